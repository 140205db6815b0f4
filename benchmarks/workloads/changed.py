"""A workload with files that are new to every run, as after a user's edit."""

from pathlib import Path

from benchmarks.programs import Program
from benchmarks.workloads.workload import Run, Workload


class Changed(Workload):
    """The workload ``inner``, with another line break at the end of each scenario file before each run.

    So our program cannot use cached plans of scenarios. Compiled shaders are cached.
    """

    def __init__(self, inner: Workload) -> None:
        self._inner = inner
        self.name = f"{inner.name}-changed"
        self.title = f"{inner.title}; edited before each run"
        self.time_bound = inner.time_bound
        self.memory_bound = inner.memory_bound
        self.timeout_s = inner.timeout_s

    def make(self, folder: Path, *, quick: bool) -> None:
        self._inner.make(folder, quick=quick)

    def prepare(self, folder: Path) -> None:
        for path in folder.glob("*.json"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def run(self, folder: Path, program: Program, output: Path) -> Run:
        return self._inner.run(folder, program, output)

    def check(self, folder: Path, program: Program, output: Path) -> None:
        self._inner.check(folder, program, output)
