"""mark_boundary commands: each ends a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.plan.model.plan import frame_folder
from scenario_runner.plan.resolvers import CommandResolver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenario_runner.plan.model.plan import Operation
    from scenario_runner.plan.resolvers import PlanContext
    from scenario_runner.scenario import MarkBoundary


class Boundaries(CommandResolver):
    """Resolves mark_boundary."""

    def __init__(self, context: PlanContext) -> None:
        super().__init__(context)
        self._known: dict[int, tuple[int, int]] = {}  # frame ids, each with its first command and how many have it

    def resolve(self, command: MarkBoundary, index: int) -> Iterable[Operation]:
        context, tables = self.context, self.context.tables
        number = len(tables.frames) if command.frame_id is None else command.frame_id
        self._warn_of_duplicate(number, index)
        captures = tuple(dict.fromkeys(uid for uid in command.resources if uid in tables.resources))
        layouts = () if context.layouts is None else context.layouts.differing()
        tables.end_frame(captures, number, True, context.scenario.command_pointer(index), layouts)
        return ()

    def _warn_of_duplicate(self, number: int, index: int) -> None:
        context = self.context
        first, count = self._known.get(number, (index, 0))
        self._known[number] = first, count + 1
        if count:
            message = (
                f"the frame id {number} is that of {context.scenario.command_pointer(first)} as well;"
                f" this one is captured into the folder {frame_folder(number, count + 1)!r}"
            )
            help = "give each frame an id of its own, as capture tools expect it"
            context.problems.warn("SR-FRAME-001", context.scenario.command_pointer(index), message, help)
