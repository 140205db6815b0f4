"""Tensors in a plan. Apart from `model`, because only scenarios with tensors pay for the definitions."""

from math import prod
from typing import Literal, NamedTuple

from scenario_runner.formats import Format
from scenario_runner.plan.model.records import Access, Source, Stage


class TensorDescription(NamedTuple):
    """VkTensorDescriptionARM without its usage: ``format`` is a VkFormat, ``strides`` are in bytes (None: packed).

    ``image`` is the uid of the image whose memory the tensor sees: its rows lie as the device says, so that the strides
    are not known before the image is made.
    """

    format: int
    dims: tuple[int, ...]
    linear: bool = True
    strides: tuple[int, ...] | None = None
    image: str | None = None


class TensorPlan(NamedTuple):
    """A tensor of ``shape`` (outermost dimension first, ``()`` for a scalar), packed in its file.

    ``strides`` are bytes, one for each dimension of the device's tensor; None where the elements are packed, or lie as
    the texels of the ``image`` whose memory the tensor shares. ``linear`` is the tiling.
    """

    uid: str
    pointer: str
    size_bytes: int
    format: Format
    shape: tuple[int, ...]
    linear: bool = True
    strides: tuple[int, ...] | None = None
    image: str | None = None
    group: str | None = None
    offset_bytes: int = 0
    source: Source | None = None
    zero_fill: bool = True

    @property
    def kind(self) -> Literal["tensor"]:
        """Which kind of resource it is."""
        return "tensor"

    @property
    def npy(self) -> tuple[str, tuple[int, ...]]:
        """NumPy type and shape of its content in a file."""
        assert self.format.numpy_dtype is not None, "every format of a tensor has one"
        return self.format.numpy_dtype, self.shape

    def extent(self, level: int | None) -> int:
        """The number of its elements."""
        return prod(self.shape)

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape on the device, which has no tensors of rank 0: a scalar is a tensor of one element."""
        return self.shape or (1,)

    @property
    def description(self) -> TensorDescription:
        """What Vulkan is told about it."""
        return TensorDescription(self.format.value, self.dims, self.linear, self.strides, self.image)


class TensorBarrier(NamedTuple):
    """A barrier over the tensor ``uid`` (VkTensorMemoryBarrierARM)."""

    src_stages: tuple[Stage, ...]
    dst_stages: tuple[Stage, ...]
    src_access: Access
    dst_access: Access
    uid: str

    @property
    def kind(self) -> Literal["tensor"]:
        """Which kind of barrier it is."""
        return "tensor"
