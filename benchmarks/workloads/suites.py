"""Suites of small scenarios with expected results, by number of workers."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.bounds import Bound
from benchmarks.isolation import make
from benchmarks.programs import Program
from benchmarks.workloads.workload import Run, Workload
from scenario_runner.processes.system_limits import processors

_WORKERS = 1, 2, 4, 8, 14
_FOLDER_ITEMS = 400
_ITEMS_PER_WORKER = 4_000
_MOST_ITEMS = 20_000


def all_suites(items: int | None = None) -> list[Workload]:
    """Return the suites, each with ``items`` items; by default few workers get few items."""
    start = Suite("suites-start", 8, _FOLDER_ITEMS, "whole command")
    start.seconds_bound = Bound(must=1.2, aim=0.9)
    counts = {workers: items or min(_ITEMS_PER_WORKER * workers, _MOST_ITEMS) for workers in _WORKERS}
    return [start, *(Suite(f"suites-{workers}", workers, count) for workers, count in counts.items())]


class Suite(Workload):
    """``scenario-runner test`` for items with one dispatch, an input, and a check.json that names an expected file."""

    ours_alone = True

    def __init__(self, name: str, workers: int, items: int, note: str = "") -> None:
        self.name = name
        self.items = items
        self.timeout_s = 600.0
        self.title = f"{items:,} items with {workers} workers" + (f", {note}" if note else "")
        self._workers = workers

    def missing(self) -> str | None:
        least = self._workers if self.seconds_bound is None else 1
        return None if processors() >= least else f"it needs {least} processors"

    def make(self, folder: Path, *, quick: bool) -> None:
        """Make folders of items, unless an earlier suite has made them."""
        if quick:
            self.items = 4
        for place, count in self._folders(folder):
            if not place.exists():
                place.mkdir(parents=True)
                make(place, count)

    def _folders(self, folder: Path) -> Iterator[tuple[Path, int]]:
        """Yield the folders that all suites share, and the number of items in each."""
        for start in range(0, self.items, _FOLDER_ITEMS):
            count = min(_FOLDER_ITEMS, self.items - start)
            yield folder.parent / "suite" / f"{start:06}-{count}", count

    def run(self, folder: Path, program: Program, output: Path) -> Run:
        places = [str(place) for place, _ in self._folders(folder)]
        return Run([[*program.command, "test", *places, "--jobs", str(self._workers)]])

    def check(self, folder: Path, program: Program, output: Path) -> None:
        printed = (folder.parent / "log").read_text(encoding="utf-8")
        assert f": {self.items} Pass\n" in printed, printed[-400:]
