"""A run's times on the host and the device."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from scenario_runner.errors import log
from scenario_runner.errors.text import counted
from scenario_runner.plan.plan import MEASURED, Barrier, Plan
from scenario_runner.processes.phases import PHASES, Clock
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
                f"the queue of {self.device!r} has no timestamps (timestampValidBits is 0), so that times on the device"
                " cannot be measured"
            )
            if self._warn:
                log.warning(__name__, "%s", self.why_none)

    def take(self, timestamps: Timestamps, session_bytes: Sequence[int]) -> None:
        """Take the device's measurements, and each graph pipeline's session memory."""
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
