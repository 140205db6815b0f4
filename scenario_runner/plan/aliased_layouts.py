"""Layouts of images with OPTIMAL tiling whose memory tensors share: "tensor_aliasing" while a tensor is used, "general"
otherwise. The barriers that move them are added to what the scenario asks for.

Source: VK_ARM_tensors, "Tensor Aliasing"; Vulkan specification, "Memory Aliasing".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.plan.model.plan import Barrier, FramePlan
from scenario_runner.plan.model.records import ImageBarrier
from scenario_runner.plan.model.resources import TensorPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scenario_runner.plan.model.plan import Operation, ResourcePlan
    from scenario_runner.plan.model.records import DescriptorList, ImageLayout
    from scenario_runner.plan.problems import Problems
    from scenario_runner.scenario import Scenario


def with_aliasing(
    frames: tuple[FramePlan, ...],
    resources: Mapping[str, ResourcePlan],
    lists: Iterable[DescriptorList],
    scenario: Scenario,
    problems: Problems,
) -> tuple[FramePlan, ...]:
    """The frames with barriers around the operations that use such tensors; the same ones where there are none.

    At the end of each frame every image is in the layout that the frame says. An operation that uses image and tensor
    at once is an error.
    """
    image_of = {
        plan.uid: plan.image
        for plan in resources.values()
        if isinstance(plan, TensorPlan) and not plan.linear and plan.image is not None
    }
    if not image_of:
        return frames
    moving = _Moving(image_of, tuple(lists), scenario, problems)
    return tuple(frame._replace(operations=tuple(moving.through(frame))) for frame in frames)


class _Moving:
    """Where the images are while the frames go by; ``image_of`` has the image of each tensor."""

    def __init__(
        self, image_of: Mapping[str, str], lists: Sequence[DescriptorList], scenario: Scenario, problems: Problems
    ) -> None:
        self._image_of = image_of
        self._lists = lists
        self._scenario = scenario
        self._problems = problems
        self._layouts: dict[str, ImageLayout] = dict.fromkeys(image_of.values(), "general")

    def through(self, frame: FramePlan) -> list[Operation]:
        """The operations of a frame with those that move images."""
        found: list[Operation] = []
        for operation in frame.operations:
            if operation.kind == "barrier":
                found.append(self._followed(operation))
                continue
            wanted = self._wanted(operation)
            found += self._moved(wanted, operation.command)
            found.append(operation)
        last: int = found[-1].command if found else 0
        at_end = dict(frame.layouts)
        return found + self._moved({uid: at_end.get(uid, ("general",))[0] for uid in self._layouts}, last)

    def _followed(self, operation: Barrier) -> Barrier:
        """A barrier of the scenario, which was planned without those that are added here."""
        barriers: list[Any] = []
        for barrier in operation.barriers:
            if isinstance(barrier, ImageBarrier) and barrier.uid in self._layouts:
                there = self._layouts[barrier.uid]
                self._layouts[barrier.uid] = barrier.new_layout
                barriers.append(barrier if barrier.old_layout is None else barrier._replace(old_layout=there))
            else:
                barriers.append(barrier)
        return Barrier(tuple(barriers), operation.command)

    def _wanted(self, operation: Any) -> dict[str, ImageLayout]:
        """The layouts that the images must have for an operation."""
        wanted: dict[str, ImageLayout] = {}
        users: dict[str, str] = {}
        used = [each.uid for each in self._lists[operation.descriptors].descriptors]
        if operation.kind == "draw":
            used += [target.uid for target in operation.targets]
        for each in used:
            uid = self._image_of.get(each, each)
            if uid not in self._layouts:
                continue
            layout: ImageLayout = "general" if uid == each else "tensor_aliasing"
            if wanted.setdefault(uid, layout) != layout:
                tensor = users[uid] if uid == each else each
                self._problems.error(
                    "SR-MEMORY-010",
                    f"{self._scenario.command_pointer(operation.command)}/bindings",
                    f"image {uid!r} of OPTIMAL tiling and tensor {tensor!r}, which shares its memory, are used by one"
                    " command, but the image cannot be in the layouts of both",
                    "use one of them, or LINEAR tiling for both",
                )
            users[uid] = each
        return wanted

    def _moved(self, wanted: Mapping[str, ImageLayout], command: int) -> list[Barrier]:
        """A barrier that moves the images to their layouts; none where they are there."""
        barriers = [
            ImageBarrier(
                ("all",), ("all",), "memory_write", "memory_read", uid, self._layouts[uid], layout, 0, 1
            )
            for uid, layout in wanted.items()
            if self._layouts[uid] != layout
        ]  # fmt: skip
        self._layouts.update(wanted)
        return [Barrier(tuple(barriers), command)] if barriers else []
