"""The samples of a benchmark: for each scenario those of its dispatches and phases, and their file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.clock import PHASES
from scenario_runner.errors import FileError

if TYPE_CHECKING:
    from scenario_runner.run.timings import Timings

SCHEMA = 1
"""Version of the JSON; a key that changes its meaning raises it."""


class Row(NamedTuple):
    """Samples of one dispatch or phase in nanoseconds; ``kind`` is "device" or "host".

    ``command`` is the index of the scenario's command, None for a phase.
    """

    kind: str
    name: str
    command: int | None
    samples: list[float]


class ScenarioSamples:
    """The samples of one scenario; ``once`` has the nanoseconds of the phases that only come once."""

    def __init__(self, scenario: str) -> None:
        self.scenario = scenario
        self.device = ""
        self.period_ns = 0.0
        self.why_none: str | None = None
        self.once: dict[str, float] = {}
        self.rows: list[Row] = []
        self.count = 0

    def add(self, timings: Timings) -> None:
        """One more run."""
        self.device, self.period_ns, self.why_none = timings.device, timings.period_ns, timings.why_none
        dispatches = timings.dispatches
        phases = {name: seconds * 1e9 for name, seconds in timings.phases.items()}
        if not self.rows:
            self.rows = [Row("device", each.name, each.command, []) for each in dispatches]
            if dispatches:
                self.rows.append(Row("device", "all dispatches", None, []))
            self.rows += [Row("host", name, None, []) for name in PHASES if name in phases]
            self.rows.append(Row("host", "whole run", None, []))
        times = [each.time_ns for each in dispatches]
        if times:
            times.append(sum(times))
        of_phases = [row.name for row in self.rows if row.kind == "host"][:-1]
        times += [phases.get(name, 0.0) for name in of_phases]
        times.append(sum(phases.values()))
        for row, value in zip(self.rows, times, strict=True):
            row.samples.append(value)
        self.count += 1


def text(scenarios: list[ScenarioSamples]) -> str:
    """The samples as JSON."""
    return json.dumps({"schema": SCHEMA, "unit": "nanoseconds", "scenarios": [_described(each) for each in scenarios]})


def _described(each: ScenarioSamples) -> dict[str, Any]:
    return {
        "scenario": each.scenario,
        "device": each.device,
        "timestamp_period_ns": each.period_ns,
        "runs": each.count,
        "once": each.once,
        "rows": [row._asdict() for row in each.rows],
    }


def read(path: str) -> list[ScenarioSamples]:
    """The samples in a file that `text` made. Raises FileError."""
    try:
        with open(path, "rb") as file:
            content = json.load(file)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: is not JSON", help=_HELP) from error
    try:
        if content["schema"] != SCHEMA:
            raise FileError(f"{path}: has the schema {content['schema']!r}, expected {SCHEMA}", help=_HELP)
        return [_restored(each) for each in content["scenarios"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path}: does not hold the samples of a benchmark", help=_HELP) from error


_HELP = "expected a file of scenario-runner bench --json"


def _restored(each: dict[str, Any]) -> ScenarioSamples:
    found = ScenarioSamples(str(each["scenario"]))
    found.device, found.period_ns, found.count = (
        str(each["device"]),
        float(each["timestamp_period_ns"]),
        int(each["runs"]),
    )
    found.once = {name: float(value) for name, value in each["once"].items()}
    for row in each["rows"]:
        samples = [float(value) for value in row["samples"]]
        command = None if row["command"] is None else int(row["command"])
        if not samples or not all(map(math.isfinite, samples)):
            raise ValueError("no samples")
        found.rows.append(Row(str(row["kind"]), str(row["name"]), command, samples))
    return found


def keyed(each: ScenarioSamples) -> Iterator[tuple[tuple[Any, ...], Row]]:
    """Each row with what tells it from the others of its scenario."""
    seen: dict[tuple[Any, ...], int] = {}
    for row in each.rows:
        key = row[:3]
        seen[key] = seen.get(key, 0) + 1
        yield (*key, seen[key]), row
