"""A run's times on the host and the device, and files with them.

The files are the reference runner's two JSON files, and traces for Perfetto and Chrome. In traces, times are
microseconds after the first event. Source: the Chromium project's "Trace Event Format".
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from scenario_runner.errors import FileError, UnsupportedError, UsageError, log
from scenario_runner.errors.text import Json, counted
from scenario_runner.files.output import OutputSet
from scenario_runner.plan.plan import MEASURED, Barrier, Plan
from scenario_runner.processes.progress import PHASES, Clock
from scenario_runner.run.output_files import taken_files
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.measurements import FrameTimes, Timestamps, calibration_required


class Work(NamedTuple):
    """One dispatch in a scenario: the command's index, with type and name as in the reference runner."""

    command: int
    type: str
    name: str


class DispatchTime(NamedTuple):
    """A dispatch on the device; a command with a model has a dispatch for each segment.

    ``iteration`` and ``frame`` count from 0, ``command`` is the index in the scenario. ``begin_ticks`` and
    ``end_ticks`` are the device counter's values. ``ticks`` and ``time_ns`` are right even if the counter wraps
    around in between.
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
    """A run's measurements; empty before the run. ``clock`` has the host's spans.

    ``valid_bits`` is 0 on a device without timestamps; then ``why_none`` tells the reason, and there are no dispatches.
    ``period_ns`` is a device tick's time. ``calibrated_by`` is the extension that relates the device's counter to
    the host's clock, or None. ``warn`` logs a warning for a queue without timestamps.
    """

    # Tells the extensions relating the device's clock to the host's.
    required = staticmethod(calibration_required)

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

    def starting(self, plan: Plan, device: Device, repeat: int, dry_run: bool) -> None:
        """Note the plan and the device before the run."""
        self.plan, self.device, self.repeat, self.dry_run = plan, device.physical.name, repeat, dry_run
        self.valid_bits = device.timestamp_valid_bits
        self.period_ns = device.physical.limits.timestampPeriod
        if not self.valid_bits:
            self.why_none = (
                f"the queue of {self.device!r} has no timestamps (timestampValidBits is 0), so times on the device"
                " cannot be measured"
            )
            if self._warn:
                log.warning(__name__, "%s", self.why_none)

    def take(self, timestamps: Timestamps, session_bytes: Sequence[int]) -> None:
        """Store the device's measurements and the session memory of each graph pipeline."""
        self.frames = timestamps.frames
        self._session_bytes = session_bytes
        self.calibrated_by = timestamps.device_clock.extension

    @cached_property
    def session_memory(self) -> list[tuple[str, int]]:
        """Each graph dispatch by name, with the session's bytes."""
        frames = self.plan.frames if self.plan is not None else ()
        operations = [
            operation for frame in frames for operation in frame.operations if not isinstance(operation, Barrier)
        ]
        return [
            (work.name, self._session_bytes[operation.pipeline])
            for work, operation in self._works(operations)
            if work.type == "DataGraphDispatch"
        ]

    def summary(self) -> str:
        """Return a line: the device, the number and time of dispatches, and the host's phases."""
        host = ", ".join(f"{phase} {seconds * 1e3:.3g} ms" for phase, seconds in self.phases.items())
        total = sum(dispatch.time_ns for dispatch in self.dispatches) / 1e6
        dispatches = f", {counted(len(self.dispatches), 'dispatch')} in {total:.3g} ms" if self.dispatches else ""
        return f"{self.device}{dispatches}; host: {host}"

    def _works(self, operations: Iterable[Any]) -> Iterator[tuple[Work, Any]]:
        """Yield operations in order with their names; each operation in a model has a separate name."""
        plan = self.plan
        assert plan is not None, "nothing is measured before a run"
        for command, group in groupby(operations, lambda operation: operation.command):
            names = iter(plan.names.get(command, ()))
            for operation in group:
                kind = operation.kind
                other = plan.pipelines[operation.pipeline].label if kind == "dispatch" else f"command {command}"
                yield Work(command, MEASURED[kind], next(names, other)), operation

    def ticks_between(self, begin: int, end: int) -> int:
        """Count the ticks between two device counter values; the counter wraps around at the valid bits."""
        return (end - begin) & ((1 << self.valid_bits) - 1)

    @cached_property
    def dispatches(self) -> list[DispatchTime]:
        """Every dispatch in every iteration, in order."""
        dispatches = []
        for times in self.frames:
            for work, begin, end in self.measured(times):
                ticks = self.ticks_between(begin, end)
                time_ns = ticks * self.period_ns
                dispatches.append(DispatchTime(times.iteration, times.frame, *work, begin, end, ticks, time_ns))
        return dispatches

    def measured(self, times: FrameTimes) -> Iterator[tuple[Work, int, int]]:
        """Yield each dispatch in a submission with the device's counter before and after."""
        works = self._works(operation for run in times.runs for operation in run)
        at = 0
        for run in times.runs:
            for begin, end in pairwise(times.ticks[at : at + len(run) + 1]):
                yield next(works)[0], begin, end
            at += len(run) + 1

    @property
    def phases(self) -> dict[str, float]:
        """The host's seconds in each phase, without the phases inside."""
        there = {span.phase for span in self.clock.spans}
        return {
            phase: sum(span.own_ns for span in self.clock.spans if span.phase == phase) / 1e9
            for phase in PHASES
            if phase in there
        }

    def __repr__(self) -> str:
        phases = ", ".join(f"{phase} {seconds * 1e3:.3f} ms" for phase, seconds in self.phases.items())
        return f"<Timings: {len(self.dispatches)} dispatches; {phases}>"


class TimingFiles(Timings):
    """Measurements for files, which are created before the run and get their names by `write`."""

    def __init__(self, paths: Mapping[str, str], scenario: str) -> None:
        """Create the files. ``paths`` has paths by option, as in `WRITERS`.

        Raises UsageError if a file has two uses, and FileError for an unwritable file.
        """
        owners = {os.path.realpath(scenario): "the scenario"}
        for option, path in paths.items():
            owner = owners.setdefault(os.path.realpath(path), option)
            if owner != option:
                raise UsageError(f"{option}: {path} is also the file of {owner}", help="give each a file of its own")
        super().__init__(warn=_PROFILE not in paths)
        self._set = OutputSet()
        self._files = {option: self._set.create(path) for option, path in paths.items()}

    def starting(self, plan: Plan, device: Device, repeat: int, dry_run: bool) -> None:
        """Raise FileError for a scenario's own files, and UnsupportedError for a profile without timestamps."""
        super().starting(plan, device, repeat, dry_run)
        if self.why_none is not None and _PROFILE in self._files and not dry_run:
            raise UnsupportedError(self.why_none, help=f"run without {_PROFILE}, or on a device that has them")
        taken = taken_files(plan)
        for option, file in self._files.items():
            if file.target in taken:
                message = f"{option}: {file.path} is a file of the scenario, which {taken[file.target]} it"
                raise FileError(message, help="choose another file")

    def write(self) -> None:
        """Write the files after a good run. Raise FileError."""
        with self._set:
            for option, file in self._files.items():
                file.write(WRITERS[option](self).encode())
                file.commit()


def profile(timings: Timings) -> str:
    """Return a profile's text; a dry run has no timestamps.

    Keys, order and units follow the reference runner: iterations count from 1 for timestamps, and from 0 for memory. A
    scenario without dispatches gets an empty list; the reference runner fails.
    """
    content: dict[str, Json] = {}
    if timings.session_memory:
        content["Memory Usage"] = [
            {
                "Command name": name,
                "Command type": "DataGraphDispatch",
                "Iteration": iteration,
                "Session memory [bytes]": size_bytes,
            }
            for iteration in range(timings.repeat)
            for name, size_bytes in timings.session_memory
        ]
    if not timings.dry_run:
        content["Timestamps"] = [
            {
                "Command name": dispatch.name,
                "Command type": dispatch.type,
                "Cycle count after command": dispatch.end_ticks,
                "Cycle count before command": dispatch.begin_ticks,
                "Cycle count for command": dispatch.ticks,
                "Iteration": dispatch.iteration + 1,
                "Time for command [ms]": dispatch.time_ns / 1e6,
                "Timestamp Period": timings.period_ns,
            }
            for dispatch in timings.dispatches
        ]
        content["Total execution time [ms]"] = _total_ms(timings)
    return json.dumps(content, indent=4) + "\n"


def _total_ms(timings: Timings) -> float:
    """Add up the time from the first to the last timestamp in each iteration."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for times in timings.frames:
        first.setdefault(times.iteration, times.ticks[0])
        last[times.iteration] = times.ticks[-1]
    ticks = sum(timings.ticks_between(begin, last[iteration]) for iteration, begin in first.items())
    return ticks * timings.period_ns / 1e6


_UNIT = "microseconds"
_PIPELINES = {
    "compute pipeline": "Create Pipeline",
    "graph pipeline": "Create Pipeline",
    "graphics pipeline": "Create Graphics Pipeline",
    "optical flow pipeline": "Create Optical Flow Pipeline",
}
_CACHE = {
    "load": ("Load Pipeline Cache", "Load Pipeline Cache."),
    "store after setup": ("Save Pipeline Cache", "Save Pipeline Cache (setup)"),
    "store": ("Save Pipeline Cache", "Save Pipeline Cache"),
}
_STEPS = {
    ("record", "reset query pool"): "Reset Query Pool",
    ("record", "frame"): "Creating Command Buffer",
    ("submit", "frame"): "Submit Commands",
    ("wait", "frame"): "Wait for Fence",
}
# Parts in the reference runner's "Time to Inference".
_BEFORE_INFERENCE = ("Scenario Setup", "Pipeline Setup", "Load Pipeline Cache")

# Category, name, nanoseconds.
Counter = tuple[str, str, int]


def counters(timings: Timings) -> str:
    """Return the counters' text, with the reference runner's keys, names and units.

    Work without a name there, such as reading the scenario or opening the device, is not in the file.
    """
    content: dict[str, Json] = {}
    for category, name, nanoseconds in _counters(timings):
        group = content.setdefault(category, {"counters": [], "total time": 0, "unit": _UNIT})
        value = nanoseconds // 1000
        group["counters"].append({"name": name, "unit": _UNIT, "value": value})
        group["total time"] += value
    totals = {category: group["total time"] for category, group in content.items()}
    content["Time to Inference"] = sum(totals.get(category, 0) for category in _BEFORE_INFERENCE)
    content["Total Scenario Time"] = sum(totals.values())
    content["unit"] = _UNIT
    return json.dumps(content, indent=4, sort_keys=True) + "\n"


def _counters(timings: Timings) -> Iterator[Counter]:
    spans, plan = timings.clock.spans, timings.plan
    assert plan is not None, "written after a run"
    # a counter for each model; no time if a kept plan made reading unnecessary
    parsed = {span.subject: span.own_ns for span in spans if (span.phase, span.what) == ("parse", "VGF")}
    run = {name.partition("/")[0]: 0 for names in plan.names.values() for name in names}
    for uid, nanoseconds in (parsed or run).items():
        yield "Scenario Setup", f"Parse VGF: {uid}", nanoseconds
    # all resources are filled together, partly side by side: the time is divided among them by their sizes
    filled = sum(span.own_ns for span in spans if span.phase == "upload" and span.iteration is None)
    total_bytes = sum(resource.size_bytes for resource in plan.resources.values()) or 1
    for resource in plan.resources.values():
        if resource.pointer.startswith("/resources/"):  # the others lie inside models
            yield "Scenario Setup", f"Load Resource: {resource.uid}", filled * resource.size_bytes // total_bytes
    in_models = {pipeline.label for pipeline in plan.pipelines if pipeline.pointer.endswith("/graph")}
    for span in spans:
        if span.phase == "pipelines" and span.what in _PIPELINES:
            name = span.subject.partition("/")[2] if span.subject in in_models else span.subject
            yield "Pipeline Setup", f"{_PIPELINES[span.what]}: {name}", span.own_ns
        elif span.phase == "pipelines" and span.what in _CACHE:
            category, name = _CACHE[span.what]
            yield category, name, span.own_ns
    if timings.dry_run:
        return
    took = [dict.fromkeys(_STEPS, 0) for _ in range(timings.repeat)]
    for span in spans:
        if span.iteration is not None and (span.phase, span.what) in _STEPS:
            took[span.iteration][span.phase, span.what] += span.own_ns
    for iteration, durations in enumerate(took, 1):
        for step, nanoseconds in durations.items():
            yield "Run Scenario", f"{_STEPS[step]}. Iteration: {iteration}", nanoseconds
    after = [span for span in spans if span.iteration is None and span.phase in ("readback", "store")]
    yield "Save Results", "Save Resources", sum(span.own_ns for span in after)


_HOST, _DEVICE = 1, 2
_THREAD = 1


def trace(timings: Timings) -> str:
    """Return a trace's text: a track for the host's phases, and a track for the device's frames and dispatches."""
    origin_ns = min((span.begin_ns for span in timings.clock.spans), default=0)
    events = [
        _named("process_name", _HOST, "host"),
        _named("thread_name", _HOST, "phases"),
        _named("process_name", _DEVICE, timings.device or "device"),
        _named("thread_name", _DEVICE, "queue"),
        *_host_events(timings, origin_ns),
        *_device_events(timings, origin_ns),
    ]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": _about(timings)}) + "\n"


def _about(timings: Timings) -> dict[str, object]:
    """Return notes for a trace's reader."""
    about: dict[str, object] = {
        "scenario": timings.plan.name if timings.plan is not None else "",
        "device": timings.device,
        "timestamp period [ns]": timings.period_ns,
        "timestamp valid bits": timings.valid_bits,
    }
    deviations = [frame.calibration.deviation_ns for frame in timings.frames if frame.calibration is not None]
    if timings.why_none is not None:
        about["clock"] = timings.why_none
    elif timings.calibrated_by is not None:
        about["clock"] = f"the device's times are on the host's clock by {timings.calibrated_by}"
        about["greatest deviation [ns]"] = max(deviations, default=0)
    else:
        about["clock"] = (
            "the device does not tell how its clock and the host's relate: the end of each frame on the device is put"
            " where the host's wait for its fence returned"
        )
    return about


def _named(what: str, process: int, name: str) -> dict[str, object]:
    return {"name": what, "ph": "M", "pid": process, "tid": _THREAD, "args": {"name": name}}


def _event(name: str, process: int, begin_ns: float, end_ns: float, **about: object) -> dict[str, object]:
    return {
        "name": name,
        "ph": "X",
        "pid": process,
        "tid": _THREAD,
        "ts": round(begin_ns) / 1e3,
        "dur": (round(end_ns) - round(begin_ns)) / 1e3,
        "args": about,
    }


def _host_events(timings: Timings, origin_ns: int) -> Iterator[dict[str, object]]:
    titles = [frame.title for frame in timings.plan.frames] if timings.plan is not None else []
    for span in timings.clock.spans:
        about = {"of": f"{span.what} {span.subject}".strip()} if span.what else {}
        if span.what == "frame" and span.subject:
            about["of"] = titles[int(span.subject)]
        if span.iteration is not None:
            about["iteration"] = str(span.iteration)
        yield _event(span.phase, _HOST, span.begin_ns - origin_ns, span.end_ns - origin_ns, **about)


def _device_events(timings: Timings, origin_ns: int) -> Iterator[dict[str, object]]:
    assert timings.plan is not None, "written after a run"
    for times in timings.frames:

        def on_host(ticks: int, times: FrameTimes = times) -> float:
            return host_ns(timings, times, ticks) - origin_ns

        first, last = times.ticks[0], times.ticks[-1]
        numbers = {"iteration": times.iteration, "frame": times.frame}
        yield _event(timings.plan.frames[times.frame].title, _DEVICE, on_host(first), on_host(last), **numbers)
        for work, begin, end in timings.measured(times):
            yield _event(work.name, _DEVICE, on_host(begin), on_host(end), type=work.type, command=work.command)


def host_ns(timings: Timings, times: FrameTimes, ticks: int) -> float:
    """Convert the device's counter to the host's clock, in a finished frame."""
    if times.calibration is None:
        return times.finished_ns - timings.ticks_between(ticks, times.ticks[-1]) * timings.period_ns
    return times.calibration.host_ns - timings.ticks_between(ticks, times.calibration.ticks) * timings.period_ns


_PROFILE: Final = "--profiling-dump-path"
# The writer for each option's file.
WRITERS: Final[Mapping[str, Callable[[Timings], str]]] = {
    _PROFILE: profile,
    "--perf-counters-dump-path": counters,
    "--trace": trace,
}
