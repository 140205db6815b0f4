"""Memory groups with images: what can share memory so that every member sees something defined.

Source: Vulkan specification, "Memory Aliasing". Buffers and LINEAR images in the layout general interpret the bytes
alike; of OPTIMAL images only the device knows where which texel lies.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from scenario_runner.errors import ScenarioError, UnsupportedError
from scenario_runner.plan.image_plan import ImagePlan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.plan.model import ResourcePlan
    from scenario_runner.plan.problems import Problems


def check_groups(resources: Mapping[str, ResourcePlan], problems: Problems) -> None:
    """Note what is wrong with the memory groups that have an image."""
    groups: dict[str, list[ResourcePlan]] = {}
    for plan in resources.values():
        if plan.group is not None:
            groups.setdefault(plan.group, []).append(plan)
    for group, members in groups.items():
        images = [plan for plan in members if isinstance(plan, ImagePlan)]
        if len(members) > 1 and images:
            _check_levels(group, images, problems)
            _check_tiling(group, members, images, problems)
        if len(members) > 1:
            _check_sources(group, members, problems)


def _check_levels(group: str, images: list[ImagePlan], problems: Problems) -> None:
    for image in images:
        if image.mips > 1:
            problems.error(
                UnsupportedError,
                f"{image.pointer}/mips",
                f"image {image.uid!r} has {image.mips} mip levels and shares the memory of group {group!r}; where its"
                " levels lie is up to the device, so that the other members could not tell what they see",
                "images that share memory have one level",
            )


def _check_tiling(group: str, members: list[ResourcePlan], images: list[ImagePlan], problems: Problems) -> None:
    optimal = [image for image in images if image.tiling == "OPTIMAL"]
    if not optimal:
        return
    if len(images) == len(members) and all(_layout_key(image) == _layout_key(images[0]) for image in images):
        return  # identical images see the same texels in the same places, whatever these are
    problems.error(
        UnsupportedError,
        f"{optimal[0].pointer}/tiling",
        f"image {optimal[0].uid!r} has OPTIMAL tiling and shares the memory of group {group!r}: only the device knows"
        " where its texels lie, so that the other members could not tell what they see",
        "leave tiling out, or use LINEAR",
    )


def _layout_key(image: ImagePlan) -> tuple[object, ...]:
    return image.format, image.width, image.height, image.tiling, image.offset_bytes


def _check_sources(group: str, members: list[ResourcePlan], problems: Problems) -> None:
    """Two initial contents for the same bytes; files are compared where the scenario is read, this adds arrays."""
    sourced = sorted((plan for plan in members if plan.source is not None), key=lambda plan: plan.offset_bytes)
    for before, after in pairwise(sourced):
        if after.offset_bytes >= before.offset_bytes + before.size_bytes:
            continue
        path = getattr(after.source, "path", None)
        if path is not None and path == getattr(before.source, "path", None):
            continue
        problems.error(
            ScenarioError,
            f"{after.pointer}/memory_group",
            f"the initial content of {after.uid!r} overlaps that of {before.uid!r} in the memory group {group!r}",
            "give one of them initial content",
        )
