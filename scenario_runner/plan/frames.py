"""mark_boundary commands: each ends a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.plan.resolvers import CommandResolver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenario_runner.plan.model.plan import Operation
    from scenario_runner.scenario import MarkBoundary


class Boundaries(CommandResolver):
    """Resolves mark_boundary."""

    def resolve(self, command: MarkBoundary, index: int) -> Iterable[Operation]:
        context, tables = self.context, self.context.tables
        number = len(tables.frames) if command.frame_id is None else command.frame_id
        captures = tuple(dict.fromkeys(uid for uid in command.resources if uid in tables.resources))
        layouts = () if context.layouts is None else context.layouts.differing()
        tables.end_frame(captures, number, True, context.scenario.command_pointer(index), layouts)
        return ()
