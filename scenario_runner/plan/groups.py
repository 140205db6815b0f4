"""Memory groups with images: what can share memory so that every member sees something defined.

Source: Vulkan specification, "Memory Aliasing". Buffers and LINEAR images in the layout general interpret the bytes
alike; of OPTIMAL images only the device knows where which texel lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.byte_spans import collisions
from scenario_runner.plan.model.plan import memory_groups, span_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scenario_runner.plan.model.plan import ResourcePlan
    from scenario_runner.plan.model.resources import ImagePlan
    from scenario_runner.plan.problems import Problems


def check_offsets(resources: Iterable[ResourcePlan], problems: Problems) -> None:
    """Note offsets that no device allows: bytes of a member would lie across the items that its memory is read in.

    Vulkan leaves the alignment of buffers, images and tensors to the device (VkMemoryRequirements::alignment). It is
    never below the size of an item, nor below the four bytes that vkCmdFillBuffer and 32-bit storage work on.
    """
    for plan in resources:
        if plan.group is None:
            continue
        item_size_bytes = 4
        if plan.format is not None and plan.format.numpy_dtype is not None:
            item_size_bytes = max(4, int(plan.format.numpy_dtype[2:]))
        if plan.offset_bytes % item_size_bytes:
            problems.error(
                "SR-MEMORY-002",
                f"{plan.pointer}/memory_group/offset",
                f"memory group {plan.group!r} places {plan.uid!r} at offset {plan.offset_bytes}, which no device"
                f" allows: expected a multiple of {item_size_bytes}",
                "multiples of 256 suit nearly all devices; each says itself what it needs when a scenario runs",
            )


def check_groups(resources: Mapping[str, ResourcePlan], problems: Problems) -> None:
    """Note what is wrong with the memory groups that have an image."""
    for group, members in memory_groups(resources.values()).items():
        images: list[Any] = [plan for plan in members if plan.kind == "image"]
        if len(members) > 1 and images:
            _check_levels(group, images, problems)
            _check_tiling(group, members, images, problems)
        if len(members) > 1:
            _check_sources(group, members, problems)


def _check_levels(group: str, images: list[ImagePlan], problems: Problems) -> None:
    for image in images:
        if image.mips > 1:
            problems.error(
                "SR-MEMORY-003",
                f"{image.pointer}/mips",
                f"image {image.uid!r} has {image.mips} mip levels and shares the memory of group {group!r}; where its"
                " levels lie is up to the device, so that the other members could not tell what they see",
                "images that share memory have one level",
            )


def _check_tiling(group: str, members: list[ResourcePlan], images: list[ImagePlan], problems: Problems) -> None:
    optimal = [image for image in images if image.tiling == "OPTIMAL"]
    if not optimal:
        return
    alike = all(_layout_key(image) == _layout_key(images[0]) for image in images)
    kinds = {plan.kind for plan in members}
    if alike and kinds == {"image"}:
        return  # identical images see the same texels in the same places, whatever these are
    if kinds == {"image", "tensor"} and len(images) == 1:
        return  # what the tensors see, `tensor_groups` looks at
    problems.error(
        "SR-MEMORY-004",
        f"{optimal[0].pointer}/tiling",
        f"image {optimal[0].uid!r} has OPTIMAL tiling and shares the memory of group {group!r}: only the device knows"
        " where its texels lie, so that the other members could not tell what they see",
        "leave tiling out, or use LINEAR",
    )


def _layout_key(image: ImagePlan) -> tuple[object, ...]:
    return image.format, image.width, image.height, image.tiling, image.offset_bytes


def _check_sources(group: str, members: list[ResourcePlan], problems: Problems) -> None:
    """Two initial contents for the same bytes; files are compared where the scenario is read, this adds arrays."""
    for plan, other in collisions((span_of(plan), plan) for plan in members if plan.source is not None):
        if not _have_one_content(plan, other):
            problems.error(
                "SR-MEMORY-001",
                f"{plan.pointer}/memory_group",
                f"the initial content of {plan.uid!r} overlaps that of {other.uid!r} in the memory group {group!r}",
                "give one of them initial content",
            )


def _have_one_content(one: ResourcePlan, other: ResourcePlan) -> bool:
    """Whether the bytes that both have are the same: one file in one place."""
    path = getattr(one.source, "path", None)
    return path is not None and path == getattr(other.source, "path", None) and one.offset_bytes == other.offset_bytes
