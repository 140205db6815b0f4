"""Any workload with scenario files that no run before has seen, as when a user edits them."""

from pathlib import Path

from benchmarks.programs import Program
from benchmarks.workloads.workload import Run, Workload


class Changed(Workload):
    """``inner``, with one more line break at the end of each scenario file before each run.

    Ours keeps plans of scenarios whose text is the same; here it cannot use any. Compiled shaders are kept as ever.
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
