"""Memory groups on a device: whether members that overlap see the bytes where they expect them.

A device may put the rows of a LINEAR image further apart than their texels need. A buffer or another image in the same
memory would then see the padding as data, so that is an error unless it counts on the padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from scenario_runner import errors
from scenario_runner.plan.model import BufferPlan
from scenario_runner.vulkan.images import Image

if TYPE_CHECKING:
    from scenario_runner.vulkan.device import Device
    from scenario_runner.vulkan.resource import Resource


def check_aliases(device: Device, group: str, members: Sequence[Resource]) -> None:
    """Raise UnsupportedError where two members of a group overlap and disagree about rows, with the place.

    A buffer as large as the padded image is taken to know about the padding. Tensors see to their strides themselves.
    """
    problems: list[errors.Problem] = []
    for pair in combinations(members, 2):
        for image, other in (pair, pair[::-1]):
            if isinstance(image, Image) and image.tiling == "LINEAR" and _overlap(image, other):
                message = _disagreement(image, other)
                if message is not None:
                    problems.append(
                        errors.Problem(
                            f"memory group {group!r} on {device.physical.name!r}: {message}",
                            pointer=f"{image.plan.pointer}/memory_group",
                            help="choose a width whose rows need no padding, or let a shader copy the texels",
                        )
                    )
                    break
    if problems:
        raise errors.UnsupportedError(problems)


def _disagreement(image: Image, other: Resource) -> str | None:
    plan, part = image.plan, image.plan.parts[0]
    rows = f"rows of image {plan.uid!r} are {image.row_pitch_bytes} bytes apart"
    if isinstance(other, Image):
        if other.row_pitch_bytes == image.row_pitch_bytes or 1 in (part.row_count, other.plan.parts[0].row_count):
            return None
        return f"{rows}, those of image {other.plan.uid!r} {other.row_pitch_bytes}"
    if not isinstance(other.plan, BufferPlan) or not (image.has_padded_rows or image.start_bytes):
        return None
    padded = plan.offset_bytes + image.start_bytes + image.row_pitch_bytes * part.row_count
    if other.plan.offset_bytes + other.plan.size_bytes >= padded:
        return None
    return (
        f"{rows}, although their texels take {part.row_size_bytes}; buffer {other.plan.uid!r} of"
        f" {other.plan.size_bytes} bytes would see the padding as data"
    )


def _overlap(one: Resource, other: Resource) -> bool:
    start = max(one.plan.offset_bytes, other.plan.offset_bytes)
    return start < min(each.plan.offset_bytes + each.needs.size_bytes for each in (one, other))
