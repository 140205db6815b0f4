"""Measurement of a workload with several programs in turns."""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bounds import Spread, ratio
from benchmarks.launcher import Launcher
from benchmarks.programs import CHECKOUT, Program
from benchmarks.workloads import Workload


@dataclass(frozen=True)
class Sample:
    """One run: wall and processor time, and the peak memory of the largest process."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass
class Outcome:
    """All runs of a workload by program. A program without runs has an entry in ``failures``."""

    workload: Workload
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    file_bytes: int = 0

    def times(self, program: str) -> list[float]:
        return [sample.wall_s for sample in self.samples.get(program, ())]

    def cpu_times(self, program: str) -> list[float]:
        return [sample.cpu_s for sample in self.samples.get(program, ())]

    def peaks(self, program: str) -> list[float]:
        return [float(sample.peak_bytes) for sample in self.samples.get(program, ())]

    def file_ratio(self) -> Spread | None:
        """Return our memory / the file's size; None without a bound or without runs."""
        if self.workload.file_bound is None or not self.samples.get("ours"):
            return None
        return Spread.of([peak / self.file_bytes for peak in self.peaks("ours")])

    def ratios(self) -> tuple[Spread, Spread] | None:
        """Return ours / reference for time and memory; None without runs of both."""
        if not self.samples.get("ours") or not self.samples.get("reference"):
            return None
        return (
            ratio(self.times("ours"), self.times("reference")),
            ratio(self.peaks("ours"), self.peaks("reference")),
        )


class RunError(Exception):
    """A program failed or wrote wrong results."""


@dataclass
class Bench:
    """A benchmark in the folder ``root``, which has room for large files.

    After ``patience_s`` no further turn begins.
    """

    launcher: Launcher
    root: Path
    programs: Sequence[Program]
    runs: int
    quick: bool = False
    report: Callable[[str], None] = lambda _: None
    patience_s: float = math.inf

    def measure(self, workload: Workload) -> Outcome:
        """Warm up and check each program, then run them A B A B. A failed program does not run again."""
        folder = self.root / workload.name
        folder.mkdir()
        self.report(f"{workload.name}: making its files")
        workload.make(folder, quick=self.quick)
        outcome = Outcome(workload, file_bytes=workload.file_bytes(folder))
        active = [program for program in self.programs if program.name == "ours" or not workload.ours_alone]
        started = time.perf_counter()
        for turn in range(self.runs + 1):  # the first turn warms up; first and last turn are checked
            last = turn == self.runs or (turn > 0 and time.perf_counter() - started > self.patience_s)
            self.report(f"{workload.name}: " + (f"run {turn} of {self.runs}" if turn else "warming up"))
            for program in list(active):
                try:
                    sample = self._run(workload, folder, program, check=last or turn == 0)
                except RunError as error:
                    outcome.failures[program.name] = str(error)
                    outcome.samples.pop(program.name, None)
                    active.remove(program)
                    continue
                if turn:
                    outcome.samples.setdefault(program.name, []).append(sample)
            if last:
                break
        return outcome

    def time(self, command: list[str]) -> float:
        """Measure the wall time of a command in seconds. Raises RunError if it fails."""
        return self._start(command, self.root, Workload.timeout_s).wall_s

    def _run(self, workload: Workload, folder: Path, program: Program, *, check: bool) -> Sample:
        output = folder / f"out-{program.name}"
        output.mkdir(exist_ok=True)
        run = workload.run(folder, program, output)
        workload.prepare(folder)
        os.sync()  # so that this run does not wait for the previous run's writes
        samples = [self._start(command, folder, workload.timeout_s, run.variables) for command in run.commands]
        if check:
            try:
                workload.check(folder, program, output)
            except (AssertionError, OSError, ValueError) as error:
                raise RunError(f"wrong results: {str(error).strip()}") from error
        return Sample(
            run.scale * sum(sample.wall_s for sample in samples),
            run.scale * sum(sample.cpu_s for sample in samples),
            max(sample.peak_bytes for sample in samples),
        )

    def _start(
        self, command: list[str], folder: Path, timeout_s: float, variables: Mapping[str, str] | None = None
    ) -> Sample:
        usage = self.launcher.run(
            command,
            environment={**environment(self.root), **(variables or {})},
            folder=str(folder),
            timeout_s=timeout_s,
            log=str(self.root / "log"),
        )
        if not usage.ok:
            why = f"killed after {timeout_s:g} s" if usage.wall_s >= timeout_s else f"exit code {usage.exit_code}"
            raise RunError(f"{why}: {' '.join(usage.output.split())[-300:]}")
        return Sample(usage.wall_s, usage.cpu_s, usage.peak_bytes)


def environment(root: Path) -> Mapping[str, str]:
    """Return the user's environment, in which our package is found, keeps byte code, and has a separate cache."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    paths = [str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return variables | {"SCENARIO_RUNNER_CACHE": str(root / "cache"), "PYTHONPATH": os.pathsep.join(paths)}
