"""Times of many runs of a scenario: the file that ``bench --json`` writes, statistics, and comparison.

Times are skewed and have outliers, so statistics are built on medians: the median absolute deviation (MAD) measures
the spread, and 1.4826 times it estimates the standard deviation.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, FiniteFloat, TypeAdapter

from scenario_runner.errors import FileError
from scenario_runner.files.source import read_file, reason_of
from scenario_runner.progress import PHASES
from scenario_runner.run.timings import Timings

SCHEMA = 1
"""Version of the JSON; a key that changes its meaning raises it."""


@dataclass
class Row:
    """Samples of one dispatch or phase in nanoseconds; ``kind`` is "device" or "host".

    ``command`` is the index of the scenario's command, None for a phase.
    """

    kind: str
    name: str
    command: int | None
    samples: Annotated[list[FiniteFloat], Field(min_length=1)]


@dataclass
class ScenarioSamples:
    """The samples of one scenario, with the keys of its JSON; ``once`` has the nanoseconds of the phases that only come
    once. ``why_none``, which the JSON leaves out, says why there are no times of the device."""

    scenario: str
    device: str = ""
    timestamp_period_ns: float = 0.0
    runs: int = 0
    once: dict[str, float] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    why_none: str | None = None

    def add(self, timings: Timings) -> None:
        """Add one more run."""
        self.device, self.timestamp_period_ns, self.why_none = timings.device, timings.period_ns, timings.why_none
        times = [dispatch.time_ns for dispatch in timings.dispatches]
        phases = {name: seconds * 1e9 for name, seconds in timings.phases.items()}
        if not self.rows:
            self.rows = [Row("device", dispatch.name, dispatch.command, []) for dispatch in timings.dispatches]
            if times:
                self.rows.append(Row("device", "all dispatches", None, []))
            self.rows += [Row("host", name, None, []) for name in PHASES if name in phases]
            self.rows.append(Row("host", "whole run", None, []))
        if times:
            times.append(sum(times))
        times += [phases.get(row.name, 0.0) for row in self.rows[len(times) : -1]]
        for row, time_ns in zip(self.rows, [*times, sum(phases.values())], strict=True):
            row.samples.append(time_ns)
        self.runs += 1

    def keyed(self) -> Iterator[tuple[tuple[Any, ...], Row]]:
        """Each row with a key that no other row of the scenario has."""
        seen: Counter[tuple[Any, ...]] = Counter()
        for row in self.rows:
            key = (row.kind, row.name, row.command)
            seen[key] += 1
            yield (*key, seen[key]), row


_SCENARIOS = TypeAdapter(list[ScenarioSamples])


def samples_text(scenarios: Sequence[ScenarioSamples]) -> str:
    """The samples as JSON."""
    described = [asdict(scenario) for scenario in scenarios]
    for scenario in described:
        del scenario["why_none"]
    return json.dumps({"schema": SCHEMA, "unit": "nanoseconds", "scenarios": described})


def read_samples(path: str) -> list[ScenarioSamples]:
    """Read a file that `samples_text` made. Raises FileError."""
    help = "expected a file of scenario-runner bench --json"
    try:
        content = json.loads(read_file(path))
        if content["schema"] != SCHEMA:
            raise FileError(f"{path}: has the schema {content['schema']!r}, expected {SCHEMA}", help=help)
        return _SCENARIOS.validate_python(content["scenarios"])
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {reason_of(error)}") from error
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise FileError(f"{path}: does not hold the samples of a benchmark", help=help) from error


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


def summary(samples: Sequence[float]) -> Summary:
    """Summarize at least one sample."""
    ordered = sorted(samples)
    median = _quantile(ordered, 0.5)
    mad = _quantile(sorted(abs(time_ns - median) for time_ns in ordered), 0.5)
    return Summary(len(ordered), ordered[0], median, _quantile(ordered, 0.95), mad)


def _quantile(ordered: Sequence[float], part: float) -> float:
    """Interpolate between ordered samples. NumPy's function takes ten times as long for as few as they are."""
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


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
    """Return whether two medians differ by more than noise.

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
