"""Numbers of workgroups that are hardly meant.

Source: Vulkan specification, "Dispatching Commands". What a device does not take is `plan.limits`' matter.
"""

from collections.abc import Iterable
from math import prod
from typing import Final, NamedTuple

from scenario_runner.diagnostics import Diagnostic, warning

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
