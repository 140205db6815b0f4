"""Validation of scenario files without running them: the findings of all rules, each at its place.

``validate_file`` gives a `Validation`; `sarif` and ``Validation.as_json`` write it down. No GPU is touched; against a
device it is checked by what ``scenario-runner doctor --json`` wrote about it.
"""

from __future__ import annotations

from scenario_runner.validation.inspection import Options, validate_file
from scenario_runner.validation.model import Validation

__all__ = ["Options", "Validation", "validate_file"]
