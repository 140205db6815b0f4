"""The times that a run took on the host and on the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from scenario_runner import log
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
    host's clock, None where there is none. ``warn``: a queue without timestamps is worth a warning.
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

    def starting(self, plan: Plan, device: Device, repeat: int, dry_run: bool) -> None:
        """Note that everything is ready to run ``plan``."""
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
            for frame_operation in frame.operations:
                operation: Any = frame_operation
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
