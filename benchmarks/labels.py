"""``python -m benchmarks.labels``: the cost of labels for capture tools."""

import sys

from benchmarks.turns import many_dispatches, show_cost
from scenario_runner import Runner


def main(argv: list[str] | None = None) -> int:
    with (
        many_dispatches(argv, "labels") as (options, path),
        Runner(options.device) as runner,
        Runner(options.device, debug_labels=True) as labelled,
    ):
        plain, with_labels = runner.prepare(path), labelled.prepare(path)
        print(f"device: {runner.physical_device.name}")
        show_cost(
            "labels",
            options.runs,
            lambda: plain.run(write_files=False),
            lambda: with_labels.run(write_files=False),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
