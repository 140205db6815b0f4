"""Layouts of images at each command of a scenario, level by level.

OPTIMAL images that share memory with tensors have the layout "tensor_aliasing" while a tensor is used and "general"
otherwise; barriers that change it are added to those of the scenario.

Source: VK_ARM_tensors, "Tensor Aliasing"; Vulkan specification, "Memory Aliasing".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scenario_runner.plan.plan import Barrier, FramePlan, Operation, ResourcePlan
from scenario_runner.plan.records import DescriptorList, ImageBarrier, ImageLayout
from scenario_runner.plan.special_records import ImagePlan, TensorPlan
from scenario_runner.scenario import Scenario
from scenario_runner.scenario.scenario import Problems

_REMAINING = 0xFFFF_FFFF


class LevelLayouts:
    """The layouts of the levels of images that barriers have moved; all other images are in "general"."""

    def __init__(self, resources: Mapping[str, ResourcePlan]) -> None:
        self._resources = resources
        self._moved: dict[str, list[ImageLayout]] = {}

    def follow(self, operation: Operation) -> None:
        """Follow the layouts that an operation of a plan changes."""
        for barrier in operation.barriers if operation.kind == "barrier" else ():
            if barrier.kind == "image":
                levels = self._levels_of(self._resources[barrier.uid])
                first, count = barrier.base_level, barrier.level_count
                levels[first : first + count] = [barrier.new_layout] * count

    def differing(self) -> tuple[tuple[str, tuple[ImageLayout, ...]], ...]:
        """The images that are not in "general" now, with the layout of each level."""
        return tuple(
            (uid, tuple(layouts))
            for uid, layouts in self._moved.items()
            if any(layout != "general" for layout in layouts)
        )

    def _levels_of(self, image: Any) -> list[ImageLayout]:
        """The layout of each level, to be changed."""
        return self._moved.setdefault(image.uid, ["general"] * image.mips)


class LayoutTracker(LevelLayouts):
    """Follows every image that barriers of a scenario move; at the end they are brought back to "general"."""

    def __init__(self, resources: Mapping[str, ResourcePlan], scenario: Scenario, problems: Problems) -> None:
        super().__init__(resources)
        self._scenario = scenario
        self._problems = problems

    def barriers(self, barrier: Any, pointer: str) -> list[ImageBarrier]:
        """Resolve a barrier resource of the scenario as it acts now: levels in different layouts take a barrier each.

        An old layout that is not the one there is a warning, and the one that is there is used.
        """
        image = self._resources.get(barrier.image_resource)
        if not isinstance(image, ImagePlan):
            return []
        if barrier.new_layout == "undefined":
            message = (
                f"image barrier {barrier.uid!r} moves {image.uid!r} to the layout undefined, which no image can be"
                " moved to"
            )
            help = "expected general or tensor_aliasing"
            self._problems.error("SR-IMAGE-009", f"{pointer}/new_layout", message, help)
            return []
        old_layout, new_layout = barrier.old_layout, barrier.new_layout
        if _shares_in_general(image):
            old_layout = "general" if old_layout == "tensor_aliasing" else old_layout
            new_layout = "general"
        part = barrier.subresource_range
        first = part.base_mip_level
        count = image.mips - first if part.level_count == _REMAINING else part.level_count
        layouts = self._levels_of(image)
        result: list[ImageBarrier] = []
        for level in range(first, first + count):
            current = layouts[level]
            if old_layout not in ("undefined", current):
                message = (
                    f"image barrier {barrier.uid!r} expects mip level {level} of {image.uid!r} in the layout"
                    f" {old_layout}; it is in {current}, which is used"
                )
                self._problems.warn("SR-IMAGE-010", f"{pointer}/old_layout", message)
            old = None if old_layout == "undefined" else current
            layouts[level] = new_layout
            last = result[-1] if result else None
            if last is not None and last.old_layout == old:
                result[-1] = last._replace(level_count=last.level_count + 1)
                continue
            result.append(
                ImageBarrier(
                    barrier.src_stage, barrier.dst_stage, barrier.src_access, barrier.dst_access,
                    image.uid, old, new_layout, level, 1, barrier.uid,
                )
            )  # fmt: skip
        return result

    def check_bindings(self, command: Any, index: int) -> None:
        """Note an error where the command number ``index`` binds an image in a layout that is not for shaders."""
        bound = [(binding.resource_ref, binding.lod) for binding in command.bindings]
        self.check_shader_access(bound, f"{self._scenario.command_pointer(index)}/bindings")

    def check_shader_access(
        self, uids: Iterable[tuple[str, int | None]], pointer: str, names: Sequence[str] = ()
    ) -> None:
        """Note an error where a command uses (image, level or None for all) in a layout that is not for shaders.

        ``pointer`` is that of the list that names the images, in this order, or of the object that names them by
        ``names``.
        """
        for index, (uid, level) in enumerate(uids):
            layouts = self._moved.get(uid, ())
            for number in range(len(layouts)) if level is None or not layouts else [level]:
                if layouts[number] != "general":
                    message = (
                        f"mip level {number} of image {uid!r} is in the layout {layouts[number]} here; shaders need it"
                        " in general"
                    )
                    help = "move it there with an image_barrier before this command"
                    self._problems.error("SR-IMAGE-011", f"{pointer}/{names[index] if names else index}", message, help)
                    break

    def restoring(self, command: int) -> Barrier | None:
        """A barrier that brings every image back to "general", for the end of the last frame; None if all are."""
        barriers = [
            _move(uid, layout, "general", level)
            for uid, layouts in self.differing()
            for level, layout in enumerate(layouts)
            if layout != "general"
        ]
        self._moved.clear()
        return Barrier(tuple(barriers), command) if barriers else None


def _move(uid: str, old: ImageLayout, new: ImageLayout, level: int = 0) -> ImageBarrier:
    """A barrier that only changes the layout of a level."""
    return ImageBarrier(("all",), ("all",), "memory_write", "memory_read", uid, old, new, level, 1)


def _shares_in_general(image: ImagePlan) -> bool:
    """Return whether tensors see the texels of this image in "general": that of tensor_aliasing is a layout of OPTIMAL
    tiling alone, and a barrier that asks for it means that the memory is seen as a tensor next."""
    return image.tiling == "LINEAR" or (image.tiling is None and image.aliased)


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
    """Layouts of the images while the frames go by; ``image_of`` has the image of each tensor."""

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
        operations: list[Operation] = []
        for operation in frame.operations:
            if operation.kind == "barrier":
                operations.append(self._followed(operation))
                continue
            layouts = self._needed(operation)
            operations += self._moved(layouts, operation.command)
            operations.append(operation)
        last: int = operations[-1].command if operations else 0
        at_end = dict(frame.layouts)
        return operations + self._moved({uid: at_end.get(uid, ("general",))[0] for uid in self._layouts}, last)

    def _followed(self, operation: Barrier) -> Barrier:
        """A barrier of the scenario, which was planned without those that are added here."""
        barriers: list[Any] = []
        for barrier in operation.barriers:
            if isinstance(barrier, ImageBarrier) and barrier.uid in self._layouts:
                current = self._layouts[barrier.uid]
                self._layouts[barrier.uid] = barrier.new_layout
                barriers.append(barrier if barrier.old_layout is None else barrier._replace(old_layout=current))
            else:
                barriers.append(barrier)
        return Barrier(tuple(barriers), operation.command)

    def _needed(self, operation: Any) -> dict[str, ImageLayout]:
        """The layouts that the images must have for an operation."""
        layouts: dict[str, ImageLayout] = {}
        users: dict[str, str] = {}
        used = [descriptor.uid for descriptor in self._lists[operation.descriptors].descriptors]
        if operation.kind == "draw":
            used += [target.uid for target in operation.targets]
        for use in used:
            uid = self._image_of.get(use, use)
            if uid not in self._layouts:
                continue
            layout: ImageLayout = "general" if uid == use else "tensor_aliasing"
            if layouts.setdefault(uid, layout) != layout:
                tensor = users[uid] if uid == use else use
                self._problems.error(
                    "SR-MEMORY-010",
                    f"{self._scenario.command_pointer(operation.command)}/bindings",
                    f"image {uid!r} of OPTIMAL tiling and tensor {tensor!r}, which shares its memory, are used by one"
                    " command, but the image cannot be in the layouts of both",
                    "use one of them, or LINEAR tiling for both",
                )
            users[uid] = use
        return layouts

    def _moved(self, layouts: Mapping[str, ImageLayout], command: int) -> list[Barrier]:
        """A barrier that moves the images to their layouts; none where they are there."""
        barriers = [
            _move(uid, self._layouts[uid], layout) for uid, layout in layouts.items() if self._layouts[uid] != layout
        ]
        self._layouts.update(layouts)
        return [Barrier(tuple(barriers), command)] if barriers else []
