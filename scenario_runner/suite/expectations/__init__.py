"""Expectations of a scenario: where they stand, reading them, and checking them against the scenario."""
