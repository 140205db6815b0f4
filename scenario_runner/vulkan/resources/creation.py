"""Creating the resources of a plan, placing them in memory, and checking that aliased members agree on their layout.

A device may pad the rows of a LINEAR image. A buffer or another image in the same memory would see the padding as
data, so that is an error unless the scenario accounts for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import combinations
from typing import TYPE_CHECKING, Any

from scenario_runner import errors
from scenario_runner.byte_data import overlap
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.kinds import RESOURCES
from scenario_runner.plan.model.plan import ResourcePlan, memory_groups
from scenario_runner.vulkan.devices.device import Device
from scenario_runner.vulkan.resources.images import Image
from scenario_runner.vulkan.resources.memory import MemoryBlocks
from scenario_runner.vulkan.resources.placement import place

if TYPE_CHECKING:
    from scenario_runner.vulkan.resources.placement import Resource
    from scenario_runner.vulkan.resources.samplers import SamplerCache


def check_aliases(device: Device, resources: Mapping[str, Resource]) -> None:
    """Check the memory groups that have more than buffers."""
    for group, members in memory_groups(resource.plan for resource in resources.values()).items():
        if any(plan.kind != "buffer" for plan in members):
            _check_group(device, group, [resources[plan.uid] for plan in members])


def _check_group(device: Device, group: str, members: Sequence[Resource]) -> None:
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
            if isinstance(image, Image) and image.tiling == "LINEAR" and _overlap(image, other):
                message = _disagreement(image, other)
                if message is not None:
                    problems.append(
                        Diagnostic(
                            "SR-MEMORY-007",
                            "error",
                            f"{image.plan.pointer}/memory_group",
                            f"memory group {group!r} on {device.physical.name!r}: {message}",
                            "choose a width whose rows need no padding, or let a shader copy the texels",
                        )
                    )
                    break
    if problems:
        raise errors.error_of(problems)


def _disagreement(image: Image, other: Resource) -> str | None:
    plan, part = image.plan, image.plan.parts[0]
    rows = f"rows of image {plan.uid!r} are {image.row_pitch_bytes} bytes apart"
    if isinstance(other, Image):
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


def _is_padded(image: Image) -> bool:
    return image.has_padded_rows or bool(image.start_bytes)


def _same_rows(one: Image, other: Image) -> bool:
    """Whether rows of both begin at the same bytes, or one of them has a single row."""
    if 1 in (one.plan.parts[0].row_count, other.plan.parts[0].row_count):
        return True
    distance = one.plan.offset_bytes - other.plan.offset_bytes
    return one.row_pitch_bytes == other.row_pitch_bytes and distance % one.row_pitch_bytes == 0


def _contents_collide(one: Resource, other: Resource) -> bool:
    """Whether the content of one goes over that of the other because this device pads the rows of the first.

    What overlaps without padding was looked at before there was a device.
    """
    first, second = sorted((one, other), key=lambda each: each.plan.offset_bytes)
    if first.plan.source is None or second.plan.source is None or not isinstance(first, Image):
        return False
    end = first.plan.offset_bytes + first.plan.size_bytes
    return end <= second.plan.offset_bytes < first.end_bytes


def _collision(device: Device, group: str, one: Resource, other: Resource) -> Diagnostic:
    first, second = sorted((one, other), key=lambda each: each.plan.offset_bytes)
    assert isinstance(first, Image)
    return Diagnostic(
        "SR-MEMORY-001",
        "error",
        f"{second.plan.pointer}/memory_group",
        f"memory group {group!r} on {device.physical.name!r}: the initial content of {second.plan.uid!r} overlaps that"
        f" of image {first.plan.uid!r}, whose rows are {first.row_pitch_bytes} bytes apart so that it ends at byte"
        f" {first.end_bytes}",
        "give one of them initial content, or place it further back",
    )


def _overlap(one: Resource, other: Resource) -> bool:
    first, second = ((each.plan.offset_bytes, each.plan.offset_bytes + each.needs.size_bytes) for each in (one, other))
    return overlap(first, second)


def create_resources(
    device: Device,
    memory: MemoryBlocks,
    stack: ExitStack,
    plans: Iterable[ResourcePlan],
    samplers: Callable[[], SamplerCache],
) -> dict[str, Any]:
    """Create every resource of a plan and give it memory: a `Resource` for each uid.

    The registry of kinds names what creates all resources of one kind. It gets the arguments of this function but
    for ``memory``, and the resources made before, by uid, and returns its own by uid.

    Raises OutOfMemoryError, UnsupportedError and others, with the place.
    """
    plans = list(plans)
    by_kind: dict[str, list[ResourcePlan]] = {}
    for plan in plans:
        by_kind.setdefault(plan.kind, []).append(plan)
    made: dict[str, Any] = {}
    for kind in RESOURCES:  # images before the tensors that see them
        if kind in by_kind:
            made |= RESOURCES[kind].device(device, stack, by_kind[kind], made, samplers)
    resources = {plan.uid: made[plan.uid] for plan in plans}
    if by_kind.keys() - {"buffer"}:
        check_aliases(device, resources)
    place(device, memory, stack, resources.values())
    return resources
