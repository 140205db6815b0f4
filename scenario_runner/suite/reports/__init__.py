"""Results of a suite as files: JUnit XML, CTRF JSON, one HTML page; and as short text."""
