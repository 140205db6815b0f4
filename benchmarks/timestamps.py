"""``python -m benchmarks.timestamps``: what timestamps cost, with and without them in turns in one process."""

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
    return compare(argv, "python -m benchmarks.timestamps", "timestamps", BOUND, _opened)


@contextmanager
def _opened(device: str | None, path: Path) -> Iterator[Pair]:
    with Runner(device) as runner:
        prepared = runner.prepare(path)
        yield Pair(lambda has: prepared.run(write_files=False, timings=has), lambda: runner.physical_device.name)


if __name__ == "__main__":
    sys.exit(main())
