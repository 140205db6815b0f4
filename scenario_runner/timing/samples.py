"""Samples of a benchmark, their file, and their comparison.

Times are skewed and have outliers, so statistics are built on medians: the median absolute deviation (MAD) measures
the spread, and 1.4826 times it estimates the standard deviation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner.errors import FileError
from scenario_runner.progress import PHASES
from scenario_runner.streams import read_file

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
        content = json.loads(read_file(path))
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


MIN_SAMPLES: Final = 5
"""Fewer samples than this say nothing about noise."""
_MAD_TO_SIGMA: Final = 1.4826
# The standard error of a median is this many times that of a mean (of normally distributed values).
_MEDIAN_ERROR: Final = math.sqrt(math.pi / 2)
# Chance alone exceeds so many standard errors in one of 300 comparisons, of normally and of exponentially distributed
# samples. The MAD of few samples is often much too small: then it takes more of them (found by drawing 60,000 pairs).
_SIGMAS: Final = 3.0
_SIGMAS_OF_FEW: Final = 15.0


class Summary(NamedTuple):
    """Of ``number`` samples in nanoseconds; ``mad`` is their median absolute deviation from the median."""

    number: int
    min: float
    median: float
    p95: float
    mad: float

    @property
    def spread_percent(self) -> float:
        """The median absolute deviation in percent of the median."""
        return 100 * self.mad / self.median if self.median else 0.0

    @property
    def error(self) -> float:
        """The standard error of the median, in nanoseconds."""
        return _MEDIAN_ERROR * _MAD_TO_SIGMA * self.mad / math.sqrt(self.number)


def quantile(ordered: Sequence[float], part: float) -> float:
    """The value below which ``part`` of the ordered samples lie, between two samples by their distance."""
    at = part * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def summary(samples: Sequence[float]) -> Summary:
    """The summary of at least one sample."""
    ordered = sorted(samples)
    median = quantile(ordered, 0.5)
    mad = quantile(sorted(abs(each - median) for each in ordered), 0.5)
    return Summary(len(ordered), ordered[0], median, quantile(ordered, 0.95), mad)


class Change(NamedTuple):
    """From ``before`` to ``after``; ``noise`` is the difference of medians in nanoseconds that chance explains.

    ``verdict`` is "slower", "faster", "same", or "unknown" with too few samples.
    """

    before: Summary
    after: Summary
    noise: float
    verdict: str

    @property
    def percent(self) -> float:
        """The change of the median in percent."""
        return 100 * (self.after.median / self.before.median - 1) if self.before.median else 0.0


def compare(before: Summary, after: Summary, *, threshold_percent: float, resolution_ns: float) -> Change:
    """Whether two medians differ by more than noise.

    They do where the difference is greater than three standard errors of it (more with few samples), than
    ``threshold_percent`` of the earlier median, and than ``resolution_ns``, below which the clock cannot tell times
    apart.
    """
    fewest = max(min(before.number, after.number), MIN_SAMPLES)
    noise = (_SIGMAS + _SIGMAS_OF_FEW / (fewest - 2)) * math.hypot(before.error, after.error)
    difference = after.median - before.median
    bound = max(noise, before.median * threshold_percent / 100, resolution_ns)
    if min(before.number, after.number) < MIN_SAMPLES:
        verdict = "unknown"
    elif abs(difference) <= bound:
        verdict = "same"
    else:
        verdict = "slower" if difference > 0 else "faster"
    return Change(before, after, noise, verdict)
