"""``python -m benchmarks.timestamps``: the cost of timestamps."""

import sys

from benchmarks.turns import many_dispatches, show_cost
from scenario_runner import Runner


def main(argv: list[str] | None = None) -> int:
    with many_dispatches(argv, "timestamps") as (options, path), Runner(options.device) as runner:
        prepared = runner.prepare(path)
        print(f"device: {runner.physical_device.name}")
        show_cost(
            "timestamps",
            options.runs,
            lambda: prepared.run(write_files=False),
            lambda: prepared.run(write_files=False, timings=True),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
