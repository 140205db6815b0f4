"""A report of what this machine has and lacks for running scenarios, as data for JSON.

``report`` gathers it, `probe` is the child process that starts the drivers, `sections` words it for people, and
``scenario-runner doctor`` prints it. docs/doctor.md documents the keys. Nothing here is imported by a run.
"""

from __future__ import annotations

from scenario_runner.doctor.report import gather

__all__ = ["gather"]
