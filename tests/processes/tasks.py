"""Tasks of workers in these tests."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from scenario_runner.errors import FenceTimeoutError, ScenarioRunnerError, UnsupportedError
from scenario_runner.files.output import OutputFile, OutputSet
from scenario_runner.processes.temporary import make_folder
from scenario_runner.suite.outcomes import Item, Outcome, Status
from scenario_runner.suite.worker_task import Runners
from scenario_runner.vulkan.vulkan_api import known_types


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


def show_start(item: Item, runners: Runners, options: Any) -> Outcome:
    """Write down the loaded modules before and after the run."""
    before = _loaded()
    outcome = run(item, runners, options)
    Path(item.path + ".start").write_text(json.dumps([before, _loaded()]))
    return outcome


def _loaded() -> list[str]:
    modules = [name for name in sys.modules if name.startswith("scenario_runner.")]
    with open("/proc/self/maps", encoding="utf-8") as maps:
        libraries = {line.split(maxsplit=5)[-1].strip() for line in maps if "/libvulkan" in line}
    return sorted({*modules, *known_types, *libraries})


def run_unkillable(item: Item, runners: Runners, options: Any) -> Outcome:
    """Run it with no limit for the device, in a process that the signal to the group of a worker does not reach."""
    other = subprocess.Popen(["sleep", "1000"], process_group=0)
    os.setpgid(0, other.pid)
    Path(item.path + ".processes").write_text(f"{os.getpid()} {other.pid}")
    runner = runners.runner()
    runner.timeout_s = None
    runner.run_to_files(item.path)
    return Outcome("Pass")


def crash_or_sleep(item: Item, runners: Runners, options: Any) -> Outcome:
    """Crash, or take two seconds."""
    time.sleep(0.2 if item.id == "crash" else 2.0)
    if item.id == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    return Outcome("Pass")


def note_end(item: Item, runners: Runners, options: Any) -> Outcome:
    """Add the id to a list of ended items. The item "crash" crashes, and "slow" waits for a number of other items."""
    ended = Path(item.path).parent / "ended"
    if item.id == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    while item.id == "slow" and len(ended.read_text().splitlines()) < options:
        time.sleep(0.01)
    with ended.open("a") as file:
        file.write(f"{item.id}\n")
    return Outcome("Pass")


def leave_files(item: Item, runners: Runners, options: Any) -> Outcome:
    """Begin a file and a folder, and crash or wait for the end."""
    OutputFile(item.path + ".out").write(b"half")
    with OutputSet() as files:
        files.create(os.path.join(os.path.dirname(item.path), "new", "folder", "file"))
        make_folder()
        Path(item.path + ".begun").touch()
        if item.id == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(1000)
    return Outcome("Pass")


def crash_together(item: Item, runners: Runners, options: Any) -> Outcome:
    """Crash when as many others are about to."""
    here = Path(item.path).parent
    (here / f"{item.id}.begun").touch()
    while len(list(here.glob("*.begun"))) < options:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGSEGV)
    return Outcome("Pass")


def send(item: Item, runners: Runners, options: Any) -> Outcome:
    """Send the id of the item to the pool, as a worker with damaged memory may."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.set_blocking(descriptor, True)
                os.write(descriptor, item.id.encode() + b"\n")
    return Outcome("Pass")
