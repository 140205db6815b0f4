"""Memory groups with tensors: what a tensor sees of an image or a buffer in the same memory.

Source: Vulkan specification, "Memory Aliasing": LINEAR tensors, LINEAR images and buffers interpret bytes alike. A
tensor over an image has the shape [H, W, C] or [1, H, W, C], with C the components of a texel; its strides are the
image's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.byte_spans import overlap
from scenario_runner.plan.model.memory_groups import memory_groups, span_of

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import ResourcePlan
    from scenario_runner.plan.model.tensors import TensorPlan
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
                if _check_image(tensor, shown, problems):
                    _join_optimal(tensor, shown, resources)
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
            if shown is None:
                _check_overlap(tensor, images, group, problems)
            elif _check_image(tensor, shown, problems):
                resources[tensor.uid] = tensor._replace(image=shown.uid)


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


def _check_overlap(tensor: TensorPlan, images: list[Any], group: str, problems: Problems) -> None:
    for image in images:
        if overlap(span_of(tensor), span_of(image)):
            problems.error(
                "SR-MEMORY-005",
                f"{tensor.pointer}/memory_group/offset",
                f"tensor {tensor.uid!r} at offset {tensor.offset_bytes} of memory group {group!r} begins inside image"
                f" {image.uid!r} at offset {image.offset_bytes}",
                "a tensor that shares the memory of an image begins where the image does",
            )
            return


def _check_image(tensor: TensorPlan, image: Any, problems: Problems) -> bool:
    """Whether a tensor can show the texels of an image."""
    texel = image.format
    shape = tensor.dims
    message = None
    expected = [image.height, image.width, texel.components]
    if texel.is_packed or texel.is_compressed or len(texel.aspects) > 1:
        message = f"its texels of {texel.name} are not made of whole numbers side by side"
    elif tensor.format.block_size_bytes * texel.components != texel.block_size_bytes:
        message = f"a texel of {texel.name} has {texel.components} components of {texel.channel_bits[0]} bits"
    elif len(shape) not in (3, 4) or list(shape[-3:]) != expected or (len(shape) == 4 and shape[0] != 1):
        message = f"its shape must be {expected} or {[1, *expected]}: height, width, components of a texel"
    if message is None:
        return True
    problems.error(
        "SR-MEMORY-006",
        f"{tensor.pointer}/memory_group",
        f"tensor {tensor.uid!r} of the shape {list(tensor.shape)} and {tensor.format.name} cannot show image"
        f" {image.uid!r} of {image.width} x {image.height} texels: {message}",
    )
    return False
