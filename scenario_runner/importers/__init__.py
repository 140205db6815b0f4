"""Tests of other programs as suites."""
