"""Memory groups on a device: images, tensors and buffers that lie over the same bytes.

A device may pad the rows of a LINEAR image. A buffer or another image in the same memory would see the padding as
data, so that is an error unless the scenario accounts for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from scenario_runner import errors
from scenario_runner.byte_data import overlap
from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.plan.plan import memory_groups
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.resources import Resource


def check_aliases(device: Device, resources: Mapping[str, Resource]) -> None:
    """Check the memory groups that have more than buffers."""
    for group, members in memory_groups(resource.plan for resource in resources.values()).items():
        if any(plan.kind != "buffer" for plan in members):
            _check_group(device, group, [resources[plan.uid] for plan in members])


def _check_group(device: Device, group: str, members: Sequence[Any]) -> None:
    """Raise UnsupportedError where two members of a group overlap and disagree about rows, with the place, and
    ScenarioError where padding makes the initial contents of two overlap.

    A buffer as large as the padded image is taken to know about the padding. A tensor of the shape of the image has its
    strides; any other sees packed bytes, as images of other widths do.
    """
    problems: list[Diagnostic] = []
    for pair in combinations(members, 2):
        if _contents_collide(*pair):
            raise errors.ScenarioError(_collision(device, group, *pair))
        for image, other in (pair, pair[::-1]):
            if _is_image(image) and image.tiling == "LINEAR" and _overlap(image, other):
                message = _disagreement(image, other)
                if message is not None:
                    pointer = f"{image.plan.pointer}/memory_group"
                    message = f"memory group {group!r} on {device.physical.name!r}: {message}"
                    help = "choose a width whose rows need no padding, or let a shader copy the texels"
                    problems.append(error("SR-MEMORY-007", pointer, message, help))
                    break
    if problems:
        raise errors.error_of(problems)


def _is_image(resource: Resource) -> bool:
    return resource.plan.kind == "image"


def _disagreement(image: Any, other: Any) -> str | None:
    plan, part = image.plan, image.plan.parts[0]
    rows = f"rows of image {plan.uid!r} are {image.row_pitch_bytes} bytes apart"
    if _is_image(other):
        if _same_rows(image, other) or not (_is_padded(image) or _is_padded(other)):
            return None
        return f"{rows}, those of image {other.plan.uid!r} {other.row_pitch_bytes}"
    if getattr(other.plan, "image", None) == plan.uid or not _is_padded(image):
        return None  # a tensor has the strides of its image
    first_row_bytes = plan.offset_bytes + part.row_size_bytes
    if not image.start_bytes and other.plan.offset_bytes + other.plan.size_bytes <= first_row_bytes:
        return None  # what is before the first padding
    if other.plan.kind == "buffer" and other.plan.offset_bytes + other.plan.size_bytes >= image.end_bytes:
        return None
    return (
        f"{rows}, although their texels take {part.row_size_bytes}; {other.plan.kind} {other.plan.uid!r} of"
        f" {other.plan.size_bytes} bytes would see the padding as data"
    )


def _is_padded(image: Any) -> bool:
    return bool(image.has_padded_rows or image.start_bytes)


def _same_rows(image: Any, other: Any) -> bool:
    """Return whether rows of both begin at the same bytes, or one of them has a single row."""
    if 1 in (image.plan.parts[0].row_count, other.plan.parts[0].row_count):
        return True
    distance = image.plan.offset_bytes - other.plan.offset_bytes
    return bool(image.row_pitch_bytes == other.row_pitch_bytes and distance % image.row_pitch_bytes == 0)


def _contents_collide(one: Any, other: Any) -> bool:
    """Return whether the content of one goes over that of the other because this device pads the rows of the first.

    What overlaps without padding was looked at before there was a device.
    """
    first, second = sorted((one, other), key=lambda resource: resource.plan.offset_bytes)
    if first.plan.source is None or second.plan.source is None or not _is_image(first):
        return False
    end = first.plan.offset_bytes + first.plan.size_bytes
    return bool(end <= second.plan.offset_bytes < first.end_bytes)


def _collision(device: Device, group: str, one: Resource, other: Resource) -> Diagnostic:
    first: Any
    first, second = sorted((one, other), key=lambda resource: resource.plan.offset_bytes)
    return error(
        "SR-MEMORY-001",
        f"{second.plan.pointer}/memory_group",
        f"memory group {group!r} on {device.physical.name!r}: the initial content of {second.plan.uid!r} overlaps that"
        f" of image {first.plan.uid!r}, whose rows are {first.row_pitch_bytes} bytes apart so that it ends at byte"
        f" {first.end_bytes}",
        "give one of them initial content, or place it further back",
    )


def _overlap(one: Resource, other: Resource) -> bool:
    first, second = (
        (resource.plan.offset_bytes, resource.plan.offset_bytes + resource.needs.size_bytes)
        for resource in (one, other)
    )
    return overlap(first, second)
