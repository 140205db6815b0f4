"""Memory groups with tensors: what a tensor sees of an image or a buffer in the same memory.

Source: Vulkan specification, "Memory Aliasing": LINEAR tensors, LINEAR images and buffers interpret bytes alike. A
tensor of the shape [H, W, C] or [1, H, W, C], with C the components of a texel, that begins where an image does has the
strides of the image. Any other one is packed: it sees the bytes of an image whose rows are packed, and is refused on a
device that pads these (`vulkan.resources.aliasing`).
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
                    _report_aspects(tensor, image, problems)
                elif image.offset_bytes == tensor.offset_bytes and _shows_texels(tensor, image):
                    resources[tensor.uid] = tensor._replace(image=image.uid)
                    break


def _shows_texels(tensor: TensorPlan, image: Any) -> bool:
    """Whether the elements of a tensor are the components of the image's texels, so that it can have padded rows."""
    texel = image.format
    if texel.is_packed or texel.is_compressed:
        return False
    if tensor.format.block_size_bytes * texel.components != texel.block_size_bytes:
        return False
    outer = tensor.dims[:-3]
    return tensor.dims[-3:] == (image.height, image.width, texel.components) and outer in ((), (1,))


def _report_aspects(tensor: TensorPlan, image: Any, problems: Problems) -> None:
    problems.error(
        "SR-MEMORY-006",
        f"{tensor.pointer}/memory_group",
        f"tensor {tensor.uid!r} cannot share the memory of image {image.uid!r}: where the depths and the stencils of"
        f" {image.format.name} lie is up to the device",
        "place the tensor behind the image",
    )
