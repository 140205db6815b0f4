"""Commands about suites: ``test`` and ``report``."""
