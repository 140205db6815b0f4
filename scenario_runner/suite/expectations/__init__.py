"""Expectations of a scenario: the format, the reader, and the check against the scenario."""
