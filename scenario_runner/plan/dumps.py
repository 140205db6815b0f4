"""Dumps: the content of resources after commands that no frame boundary follows.

A plan is split there: frames are added that capture, so that a run needs to know of nothing but frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.close_names import close_names, did_you_mean
from scenario_runner.errors import UsageError
from scenario_runner.plan.changes import Changes
from scenario_runner.plan.layouts import LevelLayouts
from scenario_runner.plan.model.plan import FramePlan

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import Operation, Plan
    from scenario_runner.scenario import Scenario

START = -1  # before the first command


class Wanted(NamedTuple):
    """One thing asked for: what the commands ``first`` to ``last`` change, or the resource ``uid``, after the last."""

    first: int
    last: int
    uid: str | None = None


class DumpPoint(NamedTuple):
    """Where resources are read back: after ``command`` (`START`: before all), or after one ``segment`` of its graph.

    ``label`` is what the segment is called.
    """

    command: int
    segment: int | None
    uids: tuple[str, ...]
    label: str = ""


def dump_points(plan: Plan, scenario: Scenario, wanted: Sequence[Wanted], *, everything: bool) -> list[DumpPoint]:
    """The points of a run, in their order. ``everything`` has all resources at the start, and what each command may
    change after it. Raises UsageError for commands and resources that do not exist.
    """
    return _Points(plan, scenario).of(wanted, everything=everything)


class _Points:
    def __init__(self, plan: Plan, scenario: Scenario) -> None:
        self._plan = plan
        self._scenario = scenario
        self._declared = {resource.uid for resource in scenario.resources}
        self._changes = Changes(plan)
        self._work: dict[int, list[Operation]] = {}
        for frame in plan.frames:
            for operation in frame.operations:
                if operation.kind != "barrier":
                    self._work.setdefault(operation.command, []).append(operation)
        self._found: dict[tuple[int, int | None], set[str]] = {}

    def of(self, wanted: Sequence[Wanted], *, everything: bool) -> list[DumpPoint]:
        if everything:
            self._add(START, None, self._declared & self._plan.resources.keys())
            for command in range(len(self._scenario.commands)):
                self._add_changes(command, command)
        for each in wanted:
            self._add_wanted(each)
        order = {uid: number for number, uid in enumerate(self._plan.resources)}
        points = [
            DumpPoint(command, segment, tuple(sorted(uids, key=order.__getitem__)), self._label(command, segment))
            for (command, segment), uids in self._found.items()
            if uids
        ]
        return sorted(points, key=lambda point: (point.command, point.segment is None, point.segment or 0))

    def _add(self, command: int, segment: int | None, uids: set[str] | frozenset[str]) -> None:
        self._found.setdefault((command, segment), set()).update(uids)

    def _add_wanted(self, wanted: Wanted) -> None:
        count = len(self._scenario.commands)
        if not wanted.first <= wanted.last < count:
            there_are = f"the commands are 0 to {count - 1}" if count else "there are no commands"
            raise UsageError(f"--dump-after: the scenario has no command {max(wanted.first, wanted.last)}: {there_are}")
        if wanted.uid is None:
            if not self._add_changes(wanted.first, wanted.last):
                kind = self._scenario.commands[wanted.last].kind
                raise UsageError(
                    f"--dump-after: command {wanted.last} ({kind}) changes no resource",
                    help=f"name a resource: --dump-after {wanted.last}:RESOURCE",
                )
            return
        self._check_uid(wanted.uid)
        command, segment = wanted.last, None
        if wanted.uid not in self._declared:  # a value inside of a graph: later segments may reuse its memory
            writing = [
                (number, segment)
                for number in range(wanted.first, wanted.last + 1)
                for segment, operation in enumerate(self._work.get(number, ()))
                if wanted.uid in self._changes.of(operation) and len(self._work[number]) > 1
            ]
            command, segment = writing[-1] if writing else (command, None)
        self._add(command, segment, {wanted.uid})

    def _add_changes(self, first: int, last: int) -> bool:
        """What the commands change, after the last one; of a single graph, after each of its segments."""
        changed: set[str] = set()
        for command in range(first, last + 1):
            for number, operation in enumerate(self._work.get(command, ())):
                uids = self._changes.of(operation)
                changed |= uids
                if first == last and len(self._work[command]) > 1:
                    self._add(command, number, uids)
        if first < last or len(self._work.get(last, ())) == 1:
            self._add(last, None, changed & self._declared if first < last else changed)
        return bool(changed)

    def _check_uid(self, uid: str) -> None:
        if uid in self._plan.resources:
            return
        for resource in self._scenario.resources:
            if resource.uid == uid:
                raise UsageError(
                    f"--dump-after: {uid!r} is a {resource.kind}, which has no content on the device",
                    help="name a buffer, an image or a tensor",
                )
        meant = did_you_mean(close_names(uid, self._plan.resources))
        raise UsageError(
            f"--dump-after: no resource has the uid {uid!r:.100}{meant}",
            help=None if meant else f"there are: {', '.join(map(repr, list(self._plan.resources)[:20])) or 'none'}",
        )

    def _label(self, command: int, segment: int | None) -> str:
        if segment is None:
            return ""
        operation: Any = self._work[command][segment]
        plan = self._plan
        tables: Any = plan.pipelines if operation.kind == "dispatch" else plan.graph_pipelines
        return str(tables[operation.pipeline].label)


def with_whole_images(plan: Plan, points: Sequence[DumpPoint]) -> Plan:
    """The plan with images that are read back with all of their levels where they are dumped."""
    dumped = {uid for point in points for uid in point.uids}
    resources: dict[str, Any] = dict(plan.resources)
    for uid in dumped:
        if resources[uid].kind == "image":
            resources[uid] = resources[uid]._replace(size_bytes=resources[uid].parts[-1].end_bytes)
    return plan._replace(resources=resources)


def with_dumps(plan: Plan, scenario: Scenario, points: Sequence[DumpPoint]) -> Plan:
    """The plan with a frame for each point, in their order, that ends there and captures its resources.

    These frames are those with captures and without a boundary. The others keep what they have: the last part of a
    frame that was split ends as the whole one did.
    """
    due: dict[tuple[int, int], list[DumpPoint]] = {}
    ends = _Ends(plan, len(scenario.commands))
    for point in points:
        due.setdefault(ends.of(point), []).append(point)
    layouts = LevelLayouts(plan.resources)
    frames: list[FramePlan] = []
    for number, frame in enumerate(plan.frames or (FramePlan((), (), 0, False, "/commands"),)):
        operations: list[Operation] = []
        for place in range(len(frame.operations) + 1):
            for point in due.get((number, place), ()):
                pointer = "/commands" if point.command == START else scenario.command_pointer(point.command)
                frames.append(
                    FramePlan(tuple(operations), point.uids, frame.frame_id, False, pointer, layouts.differing())
                )
                operations = []
            if place < len(frame.operations):
                operations.append(frame.operations[place])
                layouts.follow(frame.operations[place])
        if operations or frame.boundary:
            frames.append(frame._replace(operations=tuple(operations)))
    return plan._replace(frames=tuple(frames))


class _Ends:
    """Where commands and the segments of graphs end: the number of a frame, and of operations in it."""

    def __init__(self, plan: Plan, commands: int) -> None:
        found: dict[int, tuple[int, int]] = {}
        self._segments: dict[int, list[tuple[int, int]]] = {}
        for number, frame in enumerate(plan.frames):
            for place, operation in enumerate(frame.operations, 1):
                found[operation.command] = number, place
                if operation.kind != "barrier":
                    self._segments.setdefault(operation.command, []).append((number, place))
        self._commands = [(0, 0)]  # the first one is START
        for command in range(commands):
            self._commands.append(found.get(command, self._commands[-1]))

    def of(self, point: DumpPoint) -> tuple[int, int]:
        if point.segment is not None:
            return self._segments[point.command][point.segment]
        return self._commands[point.command + 1]
