"""Image layouts at each command, level by level.

An OPTIMAL image sharing memory with a tensor has the layout "tensor_aliasing" while commands use the tensor, and
"general" otherwise. The planner adds barriers for these changes.

Source: VK_ARM_tensors, "Tensor Aliasing"; Vulkan specification, "Memory Aliasing".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scenario_runner.plan.graph_records import TensorPlan
from scenario_runner.plan.image_records import ImagePlan, Transfer
from scenario_runner.plan.plan import AnyBarrier, Barrier, Operation, ResourcePlan, Work
from scenario_runner.plan.records import BarrierScope, DescriptorList, ImageBarrier, ImageLayout
from scenario_runner.scenario import Scenario
from scenario_runner.scenario.scenario import Problems

_REMAINING = 0xFFFF_FFFF


class LevelLayouts:
    """Image layouts after barriers, level by level; all other images are in "general"."""

    def __init__(self, resources: Mapping[str, ResourcePlan]) -> None:
        self._resources = resources
        self._moved: dict[str, list[ImageLayout]] = {}

    def follow(self, operation: Operation) -> None:
        """Apply an operation's layout changes."""
        for barrier in operation.barriers if operation.kind == "barrier" else ():
            if barrier.kind == "image":
                levels = self._levels_of(self._resources[barrier.uid])
                first, count = barrier.base_level, barrier.level_count
                levels[first : first + count] = [barrier.new_layout] * count

    def differing(self) -> tuple[tuple[str, tuple[ImageLayout, ...]], ...]:
        """Return the images in another layout than "general", with a layout for each level."""
        return tuple(
            (uid, tuple(layouts))
            for uid, layouts in self._moved.items()
            if any(layout != "general" for layout in layouts)
        )

    def _levels_of(self, image: Any) -> list[ImageLayout]:
        """Return the layouts for all levels; the caller may change them."""
        return self._moved.setdefault(image.uid, ["general"] * image.mips)


class LayoutTracker(LevelLayouts):
    """Follows a scenario's images from barrier to barrier, and moves them back to "general" at the end.

    ``_actual`` has actual layouts for images sharing memory with tensors; the planner moves these too.
    """

    def __init__(
        self,
        resources: Mapping[str, ResourcePlan],
        lists: Sequence[DescriptorList],
        scenario: Scenario,
        problems: Problems,
    ) -> None:
        super().__init__(resources)
        self._lists = lists
        self._scenario = scenario
        self._problems = problems
        self._image_of = {
            plan.uid: plan.image
            for plan in resources.values()
            if isinstance(plan, TensorPlan) and not plan.linear and plan.image is not None
        }
        self._actual: dict[str, ImageLayout] = dict.fromkeys(self._image_of.values(), "general")

    def barriers(self, barrier: Any, pointer: str) -> list[ImageBarrier]:
        """Resolve an image_barrier at this command; levels in different layouts take separate barriers.

        Warn if the old layout differs from the current layout, and use the current layout.
        """
        image = self._resources.get(barrier.image_resource)
        if not isinstance(image, ImagePlan):
            return []
        what = f"image barrier {barrier.uid!r}"
        if barrier.new_layout == "undefined":
            message = f"{what} moves {image.uid!r} to the layout undefined, which no image can be moved to"
            self._problems.error(
                "SR-IMAGE-009", f"{pointer}/new_layout", message, "expected general or tensor_aliasing"
            )
            return []
        old_layout, new_layout = barrier.old_layout, barrier.new_layout
        if image.tiling == "LINEAR" or (image.tiling is None and image.aliased):
            # tensor_aliasing is a layout for OPTIMAL tiling. Tensors see a LINEAR image's texels in "general".
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
                expects = f"{what} expects mip level {level} of {image.uid!r} in the layout {old_layout}"
                message = f"{expects}; it is in {current}, which is used"
                self._problems.warn("SR-IMAGE-010", f"{pointer}/old_layout", message)
            old = None if old_layout == "undefined" else current
            layouts[level] = new_layout
            if result and result[-1].old_layout == old:
                result[-1] = result[-1]._replace(level_count=result[-1].level_count + 1)
                continue
            scope = BarrierScope(barrier.src_stage, barrier.dst_stage, barrier.src_access, barrier.dst_access)
            result.append(ImageBarrier(scope, image.uid, old, new_layout, level, 1, barrier.uid))
        return result

    def check_bindings(self, command: Any, index: int) -> None:
        """Note an error if command number ``index`` binds an image in a layout without shader access."""
        place = f"{self._scenario.command_pointer(index)}/bindings"
        for number, binding in enumerate(command.bindings):
            for inside, _, part in binding.parts():
                self.check_shader_access(part.resource_ref, part.lod, f"{place}/{number}{inside}")

    def check_shader_access(self, uid: str, level: int | None, place: str) -> None:
        """Note an error if an image's mip level (None: any level) is in a layout that commands cannot use."""
        layouts = self._moved.get(uid, ())
        for number in range(len(layouts)) if level is None or not layouts else [level]:
            if layouts[number] != "general":
                has = f"mip level {number} of image {uid!r} is in the layout {layouts[number]} here"
                help = "move it there with an image_barrier before this command"
                self._problems.error("SR-IMAGE-011", place, f"{has}; the command needs it in general", help)
                break

    def restoring(self, command: int) -> list[Operation]:
        """Return a barrier moving every image back to "general" at the last frame's end."""
        barriers = [
            _move(uid, layout, "general", level)
            for uid, layouts in self.differing()
            for level, layout in enumerate(layouts)
            if layout != "general"
        ]
        self._moved.clear()
        return self.around(Barrier(tuple(barriers), command)) if barriers else []

    def around(self, operation: Operation) -> list[Operation]:
        """Return an operation, after a barrier if images sharing memory with tensors change layout.

        Note an error if the operation uses an image and the image's tensor at once.
        """
        if not self._actual:
            return [operation]
        if operation.kind == "barrier":
            return [Barrier(tuple(map(self._acting, operation.barriers)), operation.command)]
        return [*self._moves(self._needed(operation), operation.command), operation]

    def at_end(self, operations: Sequence[Operation]) -> list[Operation]:
        """Return the barrier to restore the scenario's layouts after a frame with ``operations``."""
        layouts: dict[str, ImageLayout] = {uid: self._moved.get(uid, ["general"])[0] for uid in self._actual}
        return self._moves(layouts, operations[-1].command if operations else 0)

    def _acting(self, barrier: AnyBarrier) -> AnyBarrier:
        """Replace the old layout in the scenario's barrier by the actual layout."""
        if not isinstance(barrier, ImageBarrier) or barrier.uid not in self._actual:
            return barrier
        current = self._actual[barrier.uid]
        self._actual[barrier.uid] = barrier.new_layout
        return barrier if barrier.old_layout is None else barrier._replace(old_layout=current)

    def _needed(self, operation: Work | Transfer) -> dict[str, ImageLayout]:
        """Return the image layouts for an operation."""
        layouts: dict[str, ImageLayout] = {}
        users: dict[str, str] = {}
        if isinstance(operation, Transfer):
            used = [part.uid for part in operation.parts]
        else:
            used = [descriptor.uid for descriptor in self._lists[operation.descriptors].descriptors]
        if operation.kind == "draw":
            used += [target.uid for target in operation.targets]
        for use in used:
            uid = self._image_of.get(use, use)
            if uid not in self._actual:
                continue
            layout: ImageLayout = "general" if uid == use else "tensor_aliasing"
            if layouts.setdefault(uid, layout) != layout:
                tensor = users[uid] if uid == use else use
                place = f"{self._scenario.command_pointer(operation.command)}/bindings"
                both = f"image {uid!r} of OPTIMAL tiling and tensor {tensor!r}, which shares its memory"
                message = f"{both}, are used by one command, but the image cannot be in the layouts of both"
                help = "use one of them, or LINEAR tiling for both"
                self._problems.error("SR-MEMORY-010", place, message, help)
            users[uid] = use
        return layouts

    def _moves(self, layouts: Mapping[str, ImageLayout], command: int) -> list[Operation]:
        """Return a barrier moving images to these layouts; none if the images are there."""
        barriers = [
            _move(uid, self._actual[uid], layout) for uid, layout in layouts.items() if self._actual[uid] != layout
        ]
        self._actual.update(layouts)
        return [Barrier(tuple(barriers), command)] if barriers else []


def _move(uid: str, old: ImageLayout, new: ImageLayout, level: int = 0) -> ImageBarrier:
    """Return a barrier for a level's layout change only."""
    scope = BarrierScope(("all",), ("all",), "memory_write", "memory_read")
    return ImageBarrier(scope, uid, old, new, level, 1)
