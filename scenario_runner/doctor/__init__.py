"""The report about this machine."""
