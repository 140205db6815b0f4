"""``python -m benchmarks.labels``: what labels cost, with and without them in turns in one process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bounds import Bound
from benchmarks.pairs import Pair, compare
from scenario_runner import Runner

BOUND = Bound(must=1.02)


def main(argv: list[str] | None = None) -> int:
    """Returns 0; a bound that is missed is reported and no failure."""
    return compare(argv, "python -m benchmarks.labels", "labels", BOUND, _opened)


@contextmanager
def _opened(device: str | None, path: Path) -> Iterator[Pair]:
    with Runner(device) as plain, Runner(device, debug_labels=True) as labelled:
        prepared = {False: plain.prepare(path), True: labelled.prepare(path)}
        yield Pair(lambda has: prepared[has].run(write_files=False), lambda: plain.physical_device.name)


if __name__ == "__main__":
    sys.exit(main())
