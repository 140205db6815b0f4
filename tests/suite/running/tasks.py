"""What workers do in these tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from scenario_runner.errors import FenceTimeoutError, ScenarioRunnerError, UnsupportedError
from scenario_runner.suite.records import Item, Outcome, Status
from scenario_runner.suite.running.runners import Runners


def run(item: Item, runners: Runners, options: Any) -> Outcome:
    """Run the scenario for its files; its exit code is the outcome."""
    limit = Path(item.path + ".limit")
    timeout_s = float(limit.read_text()) if options == "limits" and limit.exists() else None
    try:
        runners.runner(timeout_s).run_to_files(item.path)
    except ScenarioRunnerError as error:
        status: Status = "Fail"
        if isinstance(error, UnsupportedError):
            status = "NotSupported"
        elif isinstance(error, FenceTimeoutError):
            status = "Timeout"
        diagnostics = tuple(problem.as_json() for problem in error.problems)
        return Outcome(status, 0.0, str(error), error.exit_code, diagnostics)
    return Outcome("Pass")


def show_process(item: Item, runners: Runners, options: Any) -> Outcome:
    """Tell the numbers of this process, of its parent and of its child, and run."""
    child = subprocess.Popen(["sleep", "1000"])
    shown = Path(item.path + ".new")
    shown.write_text(f"{os.getpid()} {os.getppid()} {child.pid}")
    shown.rename(item.path + ".processes")
    return run(item, runners, options)


def run_for_ever(item: Item, runners: Runners, options: Any) -> Outcome:
    """Run it with no limit for the device."""
    runner = runners.runner()
    runner.timeout_s = None
    runner.run_to_files(item.path)
    return Outcome("Pass")
