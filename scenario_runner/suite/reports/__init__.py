"""Results of a suite as files (JUnit XML, CTRF JSON, SARIF, one HTML page), and as short text.

To add a format, write a module here, and name its writer in `cli.suites.report` and its option in `cli.option_types`.
"""
