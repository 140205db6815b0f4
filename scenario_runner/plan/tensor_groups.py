"""Memory groups with tensors: what a tensor sees of an image or a buffer in the same memory.

Source: Vulkan specification, "Memory Aliasing": LINEAR tensors, LINEAR images and buffers interpret bytes alike. A
tensor of the shape [H, W, C] or [1, H, W, C], with C the components of a texel, that begins where an image does has the
strides of the image. Any other one is packed: it sees the bytes of an image whose rows are packed, and is refused on a
device that pads these (`vulkan.resources.aliasing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.byte_spans import overlap
from scenario_runner.plan.model.plan import memory_groups, span_of

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import ResourcePlan
    from scenario_runner.plan.model.resources import TensorPlan
    from scenario_runner.plan.problems import Problems


def join_groups(resources: dict[str, ResourcePlan], problems: Problems) -> None:
    """Let every tensor know the image whose memory it shares; note what cannot be shared."""
    for group, members in memory_groups(resources.values()).items():
        tensors = [plan for plan in members if plan.kind == "tensor"]
        if len(members) < 2 or not tensors:
            continue
        images: list[Any] = [plan for plan in members if plan.kind == "image"]
        for tensor in tensors:
            shown = next((each for each in images if each.offset_bytes == tensor.offset_bytes), None)
            unlike = next((each for each in images if tensor.linear == (each.tiling == "OPTIMAL")), None)
            if unlike is not None:
                _report_tilings(tensor, unlike, group, problems)
                continue
            if shown is not None and not tensor.linear and len(images) == 1:
                mismatch = _mismatch(tensor, shown)
                if mismatch is None:
                    _join_optimal(tensor, shown, resources)
                else:
                    _report_mismatch(tensor, shown, mismatch, problems)
                continue
            if not tensor.linear:
                problems.error(
                    "SR-MEMORY-004",
                    f"{tensor.pointer}/tiling",
                    f"tensor {tensor.uid!r} has OPTIMAL tiling and shares the memory of group {group!r}: only the"
                    " device knows where its elements lie, so that the other members could not tell what they see",
                    "leave tiling out, or use LINEAR",
                )
                continue
            for image in images:
                if not overlap(span_of(tensor), span_of(image)):
                    continue
                if len(image.format.aspects) > 1:
                    _report_mismatch(
                        tensor, image, "where its depths and its stencils lie is up to the device", problems
                    )
                elif image.offset_bytes == tensor.offset_bytes and _mismatch(tensor, image) is None:
                    resources[tensor.uid] = tensor._replace(image=image.uid)


def _join_optimal(tensor: TensorPlan, image: Any, resources: dict[str, ResourcePlan]) -> None:
    """Both have OPTIMAL tiling: the device makes them for each other. The elements of the tensor are the texels of the
    image, in the same order, so that the initial content of either is given to the image."""
    resources[tensor.uid] = tensor._replace(image=image.uid, source=None, zero_fill=False)
    current: Any = resources[image.uid]
    if tensor.source is not None:
        current = current._replace(source=tensor.source, source_levels=1)
    resources[image.uid] = current._replace(usage=current.usage | {"tensor_aliasing"})


def _report_tilings(tensor: TensorPlan, image: Any, group: str, problems: Problems) -> None:
    of_image = image.tiling or "LINEAR (the default of images that share memory)"
    of_tensor = "LINEAR" if tensor.linear else "OPTIMAL"
    problems.error(
        "SR-MEMORY-009",
        f"{(image if tensor.linear else tensor).pointer}/tiling",
        f"image {image.uid!r} has the tiling {of_image}, and tensor {tensor.uid!r} in the same memory group {group!r}"
        f" has {of_tensor}",
        "give both the same tiling",
    )


def _mismatch(tensor: TensorPlan, image: Any) -> str | None:
    """Why the elements of a tensor are not the components of an image's texels; None where they are."""
    texel = image.format
    shape = tensor.dims
    expected = [image.height, image.width, texel.components]
    if texel.is_packed or texel.is_compressed or len(texel.aspects) > 1:
        return f"its texels of {texel.name} are not made of whole numbers side by side"
    if tensor.format.block_size_bytes * texel.components != texel.block_size_bytes:
        return f"a texel of {texel.name} has {texel.components} components of {texel.channel_bits[0]} bits"
    if len(shape) not in (3, 4) or list(shape[-3:]) != expected or (len(shape) == 4 and shape[0] != 1):
        return f"its shape must be {expected} or {[1, *expected]}: height, width, components of a texel"
    return None


def _report_mismatch(tensor: TensorPlan, image: Any, why: str, problems: Problems) -> None:
    problems.error(
        "SR-MEMORY-006",
        f"{tensor.pointer}/memory_group",
        f"tensor {tensor.uid!r} of the shape {list(tensor.shape)} and {tensor.format.name} cannot show image"
        f" {image.uid!r} of {image.width} x {image.height} texels: {why}",
    )
