"""The times that runs took on the host and on the device; samples of many runs, their file and their comparison.

Times are skewed and have outliers, so statistics are built on medians: the median absolute deviation (MAD) measures
the spread, and 1.4826 times it estimates the standard deviation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from scenario_runner import log
from scenario_runner.errors import FileError
from scenario_runner.files.source import read_file
from scenario_runner.kinds import MEASURED
from scenario_runner.plan.plan import Plan
from scenario_runner.progress import PHASES, Clock
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.timestamps import FrameTimes, Timestamps, wanted


class Work(NamedTuple):
    """One dispatch of a scenario: the index of its command, its type and name as the reference runner has them."""

    command: int
    type: str
    name: str


class DispatchTime(NamedTuple):
    """One dispatch on the device; a command that runs a model has one for each segment.

    ``iteration`` and ``frame`` count from 0, ``command`` is the index in the scenario. ``begin_ticks`` and
    ``end_ticks`` are the device's counter, which may have wrapped around in between; ``ticks`` and ``time_ns`` are
    right then as well.
    """

    iteration: int
    frame: int
    command: int
    type: str
    name: str
    begin_ticks: int
    end_ticks: int
    ticks: int
    time_ns: float


class Timings:
    """The measurements of one run; empty before it. ``clock`` has the spans of the host.

    ``valid_bits`` is 0 where the device has no timestamps (``why_none`` says so then): there are no dispatches then.
    ``period_ns`` is the time of a tick of the device, ``calibrated_by`` the extension that tied its counter to the
    host's clock, None where there is none. ``on_start`` is called when everything is ready to run. ``warn``: a queue
    without timestamps is worth a warning.
    """

    required = staticmethod(wanted)
    """The extension that a device must be opened with to relate its clock to the host's."""

    def __init__(self, *, warn: bool = True) -> None:
        self._warn = warn
        self.clock = Clock()
        self.plan: Plan | None = None
        self.device = ""
        self.dry_run = False
        self.repeat = 1
        self.valid_bits = 0
        self.period_ns = 1.0
        self.calibrated_by: str | None = None
        self.why_none: str | None = None
        self.frames: list[FrameTimes] = []
        self._session_bytes: Sequence[int] = ()
        self.on_start: Callable[[Plan], None] | None = None

    def starting(self, plan: Plan, device: Device, repeat: int, dry_run: bool) -> None:
        """A run of ``plan`` begins. Raises what ``on_start`` raises."""
        self.plan, self.device, self.repeat, self.dry_run = plan, device.physical.name, repeat, dry_run
        self.valid_bits = device.timestamp_valid_bits
        self.period_ns = device.physical.limits.timestampPeriod
        if not self.valid_bits:
            self.why_none = (
                f"the queue of {self.device!r} has no timestamps (timestampValidBits is 0), so that times on the device"
                " cannot be measured"
            )
        if self.on_start is not None:
            self.on_start(plan)
        if self.why_none is not None and self._warn:
            log.warning(__name__, "%s", self.why_none)

    def take(self, timestamps: Timestamps, session_bytes: Sequence[int]) -> None:
        """Take over what the device measured, and the memory of the session of each graph pipeline of the plan."""
        self.frames = timestamps.frames
        self._session_bytes = session_bytes
        self.calibrated_by = timestamps.device_clock.extension

    @cached_property
    def session_memory(self) -> list[tuple[str, int]]:
        """The name of each dispatch of a graph, and the bytes of the session that it uses."""
        return list(self._sessions())

    def _sessions(self) -> Iterator[tuple[str, int]]:
        names = _Names(self.plan)
        for frame in self.plan.frames if self.plan is not None else ():
            for each in frame.operations:
                operation: Any = each
                if operation.kind in MEASURED:
                    work = names.of(operation)
                    if work.type == "DataGraphDispatch":
                        yield work.name, self._session_bytes[operation.pipeline]

    def ticks_between(self, begin: int, end: int) -> int:
        """The number of ticks between two values of the device's counter, which wraps around at its valid bits."""
        return (end - begin) & ((1 << self.valid_bits) - 1)

    @cached_property
    def dispatches(self) -> list[DispatchTime]:
        """Every dispatch of every iteration, in the order in which they were submitted."""
        dispatches = []
        for times in self.frames:
            for work, begin, end in self.measured(times):
                ticks = self.ticks_between(begin, end)
                time_ns = ticks * self.period_ns
                dispatches.append(DispatchTime(times.iteration, times.frame, *work, begin, end, ticks, time_ns))
        return dispatches

    def measured(self, times: FrameTimes) -> Iterator[tuple[Work, int, int]]:
        """Each dispatch of one submission with the device's counter before and after it."""
        at = 0
        names = _Names(self.plan)
        for run in times.runs:
            for operation in run:
                yield names.of(operation), times.ticks[at], times.ticks[at + 1]
                at += 1
            at += 1

    @property
    def phases(self) -> dict[str, float]:
        """The host's seconds in each phase that there was, without those of phases inside of it."""
        totals: dict[str, int] = dict.fromkeys(PHASES, 0)
        there = set()
        for span in self.clock.spans:
            totals[span.phase] += span.own_ns
            there.add(span.phase)
        return {phase: own_ns / 1e9 for phase, own_ns in totals.items() if phase in there}

    def __repr__(self) -> str:
        phases = ", ".join(f"{phase} {seconds * 1e3:.3f} ms" for phase, seconds in self.phases.items())
        return f"<Timings: {len(self.dispatches)} dispatches; {phases}>"


class _Names:
    """Names of operations; it is asked for them in their order."""

    def __init__(self, plan: Plan | None) -> None:
        assert plan is not None, "nothing is measured before a run"
        self._plan = plan
        self._names: Mapping[int, tuple[str, ...]] = plan.names
        self._latest = (-1, -1)

    def of(self, operation: Any) -> Work:
        command = operation.command
        number = self._latest[1] + 1 if self._latest[0] == command else 0
        self._latest = (command, number)
        names = self._names.get(command, ())
        if number < len(names):
            name = names[number]
        elif operation.kind == "dispatch":
            name = self._plan.pipelines[operation.pipeline].label
        else:
            name = f"command {command}"
        return Work(command, MEASURED[operation.kind], name)


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
            self.rows = [Row("device", dispatch.name, dispatch.command, []) for dispatch in dispatches]
            if dispatches:
                self.rows.append(Row("device", "all dispatches", None, []))
            self.rows += [Row("host", name, None, []) for name in PHASES if name in phases]
            self.rows.append(Row("host", "whole run", None, []))
        times = [dispatch.time_ns for dispatch in dispatches]
        if times:
            times.append(sum(times))
        of_phases = [row.name for row in self.rows if row.kind == "host"][:-1]
        times += [phases.get(name, 0.0) for name in of_phases]
        times.append(sum(phases.values()))
        for row, value in zip(self.rows, times, strict=True):
            row.samples.append(value)
        self.count += 1


def samples_text(scenarios: list[ScenarioSamples]) -> str:
    """The samples as JSON."""
    return json.dumps(
        {"schema": SCHEMA, "unit": "nanoseconds", "scenarios": [_described(scenario) for scenario in scenarios]}
    )


def _described(each: ScenarioSamples) -> dict[str, Any]:
    return {
        "scenario": each.scenario,
        "device": each.device,
        "timestamp_period_ns": each.period_ns,
        "runs": each.count,
        "once": each.once,
        "rows": [row._asdict() for row in each.rows],
    }


def read_samples(path: str) -> list[ScenarioSamples]:
    """The samples in a file that `samples_text` made. Raises FileError."""
    try:
        content = json.loads(read_file(path))
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: is not JSON", help=_HELP) from error
    try:
        if content["schema"] != SCHEMA:
            raise FileError(f"{path}: has the schema {content['schema']!r}, expected {SCHEMA}", help=_HELP)
        return [_restored(entry) for entry in content["scenarios"]]
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
    mad = quantile(sorted(abs(time - median) for time in ordered), 0.5)
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
