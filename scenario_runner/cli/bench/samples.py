"""Samples of ``bench``, summaries, and ``--json`` files.

Times are skewed and have outliers, so summaries use medians. The median absolute deviation (MAD) measures the spread;
1.4826 times the MAD estimates the standard deviation.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from statistics import median, quantiles
from typing import Annotated, Final, NamedTuple

from pydantic import Field, FiniteFloat, PositiveInt, TypeAdapter

from scenario_runner.errors import FileError, UsageError
from scenario_runner.errors.text import one_line, reason_of
from scenario_runner.files.input import read_file
from scenario_runner.files.output import OutputFile
from scenario_runner.plan.plan import Plan
from scenario_runner.processes.progress import PHASES
from scenario_runner.run.timings import Timings
from scenario_runner.suite.hashes import file_hash

SCHEMA: Final = 1
"""The version of the JSON. It grows when a key changes meaning."""
_MAD_TO_SIGMA: Final = 1.4826


class Summary(NamedTuple):
    """Statistics in nanoseconds. ``mad`` is the median absolute deviation from the median."""

    min: float
    median: float
    p95: float
    mad: float


def summary(samples: Sequence[float]) -> Summary:
    """Summarize at least one sample."""
    middle = median(samples)
    p95 = quantiles(samples, n=20, method="inclusive")[-1] if len(samples) > 1 else middle
    return Summary(min(samples), middle, p95, median(abs(time_ns - middle) for time_ns in samples))


@dataclass
class Row:
    """A dispatch's or phase's samples in nanoseconds. ``kind`` is "device", "host" or "processor".

    ``command`` is the index of the command, None for a phase.
    """

    kind: str
    name: str
    command: int | None
    samples: Annotated[list[FiniteFloat], Field(min_length=1)]

    @property
    def title(self) -> str:
        return one_line(self.name if self.command is None else f"{self.command} {self.name}")


def duration(nanoseconds: float) -> str:
    """Format a time with one to three digits before the point."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds:.0f} ns"


RowKey = tuple[str, str, int | None, int]


@dataclass
class ScenarioSamples:
    """A scenario's samples, as in the JSON.

    ``processes`` has each process's number of runs, in sample order. ``once`` has the nanoseconds of phases that
    happen once. ``files`` has the SHA-256 of each input file, and None for outputs and pipes. ``why_none`` tells why
    the device gave no times; the JSON leaves it out.
    """

    scenario: str
    device: str = ""
    timestamp_period_ns: float = 0.0
    runs: int = 0
    processes: list[PositiveInt] = field(default_factory=list)
    once: dict[str, float] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    files: dict[str, str | None] = field(default_factory=dict)
    why_none: Annotated[str | None, Field(exclude=True)] = None

    def rows_of(self, kind: str) -> list[Row]:
        """Return the rows of this kind, in order."""
        return [row for row in self.rows if row.kind == kind]

    def add(self, timings: Timings, processor_ns: float) -> None:
        """Add a run. ``processor_ns`` is the time on all processors."""
        self.device, self.timestamp_period_ns, self.why_none = timings.device, timings.period_ns, timings.why_none
        times = [dispatch.time_ns for dispatch in timings.dispatches]
        times += [sum(times)] if times else []
        phases = {name: seconds * 1e9 for name, seconds in timings.phases.items()}
        if not self.rows:
            self.rows = [Row("device", dispatch.name, dispatch.command, []) for dispatch in timings.dispatches]
            self.rows += [Row("device", "all dispatches", None, [])] if times else []
            self.rows += [Row("host", name, None, []) for name in PHASES if name in phases]
            self.rows += [Row("host", "whole run", None, []), Row("processor", "whole run", None, [])]
        times += [phases.get(row.name, 0.0) for row in self.rows[len(times) : -2]]
        for row, time_ns in zip(self.rows, [*times, sum(phases.values()), processor_ns], strict=True):
            row.samples.append(time_ns)
        self.runs += 1
        self.processes = [self.runs]

    def add_process(self, other: "ScenarioSamples") -> None:
        """Add another process's runs. Keep only the rows common to both."""
        if self.rows:
            others = other.by_key()
            rows = {key: row for key, row in self.by_key().items() if key in others}
            for key, row in rows.items():
                row.samples += others[key].samples
            self.rows = list(rows.values())
        else:
            self.rows, self.once, self.files = other.rows, other.once, other.files
        self.device, self.timestamp_period_ns, self.why_none = other.device, other.timestamp_period_ns, other.why_none
        self.runs += other.runs
        self.processes += other.processes

    def note_files(self, plan: Plan) -> None:
        """Note the SHA-256 of input files, and the names of output files."""
        self.files = {path: file_hash(path) or None for path in plan.reads}
        self.files |= {output.destination: None for output in plan.outputs if output.destination is not None}

    def by_key(self) -> dict[RowKey, Row]:
        """Return the rows by unique keys."""
        seen: Counter[tuple[str, str, int | None]] = Counter()
        rows = {}
        for row in self.rows:
            key = (row.kind, row.name, row.command)
            seen[key] += 1
            rows[*key, seen[key]] = row
        return rows

    def medians(self, row: Row) -> list[float]:
        """Return the median of each process. Without ``processes``, all samples come from a single process."""
        ends = [*accumulate(self.processes, initial=0)]
        if ends[-1] != len(row.samples):
            ends = [0, len(row.samples)]
        return [median(row.samples[start:end]) for start, end in pairwise(ends)]


class Side(NamedTuple):
    """A side in a comparison: files relative to ``folder``, and options as command-line words."""

    folder: str
    files: list[str]
    options: list[str]


class Measurement(NamedTuple):
    """The content of a ``--json`` file.

    ``side`` has the files and options to measure again. It is None for two sides, and in files of earlier versions.
    """

    scenarios: list[ScenarioSamples]
    side: Side | None = None


_SCENARIOS: Final = TypeAdapter(list[ScenarioSamples])
_SIDE: Final = TypeAdapter(Side)


def read_measurement(path: str) -> Measurement:
    """Read a ``--json`` file. Raises FileError."""
    help = "expected a file of scenario-runner bench --json"
    try:
        content = json.loads(read_file(path))
        if content["schema"] != SCHEMA:
            raise FileError(f"{path}: has the schema {content['schema']!r}, expected {SCHEMA}", help=help)
        side = _SIDE.validate_python(content["side"]) if "side" in content else None
        return Measurement(_SCENARIOS.validate_python(content["scenarios"]), side)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {reason_of(error)}") from error
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise FileError(f"{path}: is not a measurement of bench", help=help) from error


def refuse_own_file(path: str, samples: ScenarioSamples) -> None:
    """Raise UsageError if the scenario reads or writes the file for the samples."""
    if os.path.realpath(path) in map(os.path.realpath, samples.files):
        raise UsageError(f"--json: {path} is a file of the scenario {samples.scenario}", help="choose another file")


def write_measurement(path: str, form: str, measured: Measurement) -> None:
    """Write a ``--json`` file in the format ``form``, a key of `FORMATS`. Raises FileError."""
    with OutputFile(path) as file:
        file.write(json.dumps(FORMATS[form](measured)).encode() + b"\n")


def _all_samples(measured: Measurement) -> object:
    scenarios = _SCENARIOS.dump_python(measured.scenarios)
    side = {} if measured.side is None else {"side": measured.side._asdict()}
    return {"schema": SCHEMA, "unit": "nanoseconds", **side, "scenarios": scenarios}


def _summaries(measured: Measurement) -> Iterator[tuple[str, Summary]]:
    """Summarize all rows. Names stay the same from measurement to measurement."""
    for samples in measured.scenarios:
        for (*_, number), row in samples.by_key().items():
            suffix = f" ({number})" if number > 1 else ""
            yield f"{samples.scenario}: {row.kind}: {row.title}{suffix}", summary(row.samples)


def _for_bencher(measured: Measurement) -> object:
    """Return Bencher Metric Format, with "latency" in nanoseconds."""
    return {
        name: {"latency": {"value": times.median, "lower_value": times.min, "upper_value": times.p95}}
        for name, times in _summaries(measured)
    }


def _for_github(measured: Measurement) -> object:
    """Return JSON for github-action-benchmark, tool "customSmallerIsBetter"."""
    return [
        {"name": name, "unit": "ns", "value": times.median, "range": f"± {_MAD_TO_SIGMA * times.mad:.0f}"}
        for name, times in _summaries(measured)
    ]


FORMATS: Final[dict[str, Callable[[Measurement], object]]] = {
    "samples": _all_samples,
    "bencher": _for_bencher,
    "github": _for_github,
}
