"""Tensors in a plan. Apart from `model`, because only scenarios with tensors pay for the definitions."""

# No `from __future__ import annotations` here: NamedTuple would compile every annotation again, 30 µs each.

from typing import NamedTuple

from scenario_runner.formats import Format
from scenario_runner.plan.model import Access, Source, Stage


class TensorDescription(NamedTuple):
    """VkTensorDescriptionARM without its usage: ``format`` is a VkFormat, ``strides`` are in bytes (None: packed)."""

    format: int
    dims: tuple[int, ...]
    linear: bool = True
    strides: tuple[int, ...] | None = None


class TensorPlan(NamedTuple):
    """A tensor of ``shape`` (outermost dimension first, ``()`` for a scalar), packed in its file.

    ``strides`` are bytes, one for each dimension of the device's tensor, where it shares the memory of an image; None
    where the elements are packed. ``linear`` is the tiling. ``image_aliasing`` tells whether it shares memory with one.
    """

    uid: str
    pointer: str
    size_bytes: int
    format: Format
    shape: tuple[int, ...]
    linear: bool = True
    strides: tuple[int, ...] | None = None
    image_aliasing: bool = False
    group: str | None = None
    offset_bytes: int = 0
    source: Source | None = None
    zero_fill: bool = True

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape on the device, which has no tensors of rank 0: a scalar is a tensor of one element."""
        return self.shape or (1,)

    @property
    def description(self) -> TensorDescription:
        """What Vulkan is told about it."""
        return TensorDescription(self.format.value, self.dims, self.linear, self.strides)


class TensorBarrier(NamedTuple):
    """A barrier over the tensor ``uid`` (VkTensorMemoryBarrierARM)."""

    src_stages: tuple[Stage, ...]
    dst_stages: tuple[Stage, ...]
    src_access: Access
    dst_access: Access
    uid: str
