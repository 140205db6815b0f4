"""Push constants against the blocks of shaders, and workgroup counts that are hardly meant.

Limits of a device are checked in `plan.limits`.

Source: Vulkan specification, "Shader Interfaces", section "Push Constant Interface"; "Dispatching Commands".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Final, NamedTuple

from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.spirv.interface import Interface, push_constants_read

MOST_BYTES = 1 << 16
"""Far above the maxPushConstantsSize of any device; keeps a wrong size or file from being taken into memory."""


def declared_size(interface: Interface) -> int:
    """Bytes of the block that a shader declares, as a multiple of 4."""
    block = interface.push_constants
    return 0 if block is None else -(-block.size_bytes // 4) * 4


def check_size(uid: str, interface: Interface, size: int, pointer: str) -> list[Diagnostic]:
    """A shader's push_constants_size, ``size`` (0: the shader's own), against what it reads; ``pointer`` is the
    shader's."""
    place = f"{pointer}/push_constants_size"
    if max(size, declared_size(interface)) > MOST_BYTES:
        size = max(size, declared_size(interface))
        return [error("SR-PUSH-004", place, f"push_constants_size is {size}; no device takes more than {MOST_BYTES}")]
    if size and size < declared_size(interface):
        read = push_constants_read(interface)
        if read > size:
            message = f"shader {uid!r} reads {read} bytes of push constants, but push_constants_size is {size}"
            help = f"set push_constants_size to {declared_size(interface)}, or leave it out"
            return [error("SR-PUSH-001", place, message, help)]
    return []


def check_data(
    shaders: str, interfaces: Sequence[Interface], size: int, data: str, data_size: int, pointer: str
) -> list[Diagnostic]:
    """The ``data_size`` bytes of the raw_data ``data`` against what ``shaders`` take and read.

    ``size`` is the largest push_constants_size of them (0: their own). What the data do not reach must not be read.
    """
    declared = max(map(declared_size, interfaces))
    most = size or declared
    if not most:
        return [
            error(
                "SR-PUSH-005",
                pointer,
                f"no push constants are declared by {shaders}, but the command has raw_data {data!r} for them",
                "remove push_data_ref",
            )
        ]
    if data_size > most:
        has = (
            f"the push_constants_size of {shaders} is {size}"
            if size
            else f"the push constants of {shaders} have {declared}"
        )
        help = f"set push_constants_size to {-(-data_size // 4) * 4}, or give less data"
        return [error("SR-PUSH-002", pointer, f"raw_data {data!r} holds {data_size} bytes, but {has}", help)]
    read = max(map(push_constants_read, interfaces)) if data_size < declared else 0
    if data_size < read:
        message = f"raw_data {data!r} holds {data_size} bytes, but {read} bytes of push constants are read by {shaders}"
        return [error("SR-PUSH-002", pointer, message, "give as much data as the shader reads")]
    return []


def padded(data: bytes) -> bytes:
    """Data as vkCmdPushConstants takes it: a multiple of 4 bytes."""
    return data + bytes(-len(data) % 4)


def check_missing_data(uid: str, interface: Interface, pointer: str) -> list[Diagnostic]:
    """A command without push_data_ref whose shader reads push constants."""
    if interface.push_constants is None:
        return []
    message = f"shader {uid!r} reads push constants, but the command has no push_data_ref; zeros are used"
    return [warning("SR-PUSH-003", pointer, message)]


_FAR_MORE: Final = 4  # a few workgroups too many are what rounding up gives


class Extent(NamedTuple):
    """A resource that a dispatch binds, with the ``amount`` of what invocations can work on: texels of an image,
    elements of a tensor, bytes of a buffer."""

    uid: str
    kind: str
    amount: int


def check_no_workgroups(groups: tuple[int, int, int], uid: str, pointer: str) -> list[Diagnostic]:
    """A dispatch of the shader ``uid`` that runs nothing."""
    if all(groups):
        return []
    message = f"{' x '.join(map(str, groups))} workgroups run nothing of shader {uid!r}"
    help = "write at least 1 in each entry, or remove the command"
    return [warning("SR-DISPATCH-001", f"{pointer}/rangeND", message, help)]


def check_too_many(
    groups: tuple[int, int, int], local_size: tuple[int, int, int], uid: str, bound: Iterable[Extent], pointer: str
) -> list[Diagnostic]:
    """A dispatch over an image with far more workgroups than the image, or anything else that is bound, has parts."""
    extents = list(bound)
    images = [extent for extent in extents if extent.kind == "image"]
    if not images or prod(groups) <= _FAR_MORE * max(extent.amount for extent in extents):
        return []
    largest = max(images, key=lambda extent: extent.amount)
    texels = f"{largest.amount} texel{'' if largest.amount == 1 else 's'}"
    message = f"{prod(groups)} workgroups of shader {uid!r} run for image {largest.uid!r}, which has {texels}"
    sizes = " x ".join(map(str, local_size))
    help = f"rangeND counts workgroups, not invocations: a workgroup of this shader has {sizes} of them"
    return [warning("SR-DISPATCH-002", f"{pointer}/rangeND", message, help)]
