"""Records for tensors, graphs and optical flows."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Literal, NamedTuple

from scenario_runner.files.vk_formats import Format
from scenario_runner.plan.records import LayoutBinding, Source
from scenario_runner.plan.sources import ConstantData

# VkDataGraphPipelineNodeConnectionTypeARM, without the prefix.
Connection = Literal["input", "reference", "hint", "flow_vector", "cost"]
PerformanceLevel = Literal["unknown", "slow", "medium", "fast"]


class TensorDescription(NamedTuple):
    """VkTensorDescriptionARM without usage: ``format`` is a VkFormat, ``strides`` are in bytes (None: packed).

    ``image`` is the uid for an image sharing the tensor's memory. The device decides the row pitch. So strides
    are unknown until the image exists.
    """

    format: int
    dims: tuple[int, ...]
    linear: bool = True
    strides: tuple[int, ...] | None = None
    image: str | None = None


class TensorPlan(NamedTuple):
    """A tensor of ``shape`` (outermost dimension first, ``()`` for a scalar), packed in the file.

    ``strides`` are bytes, one for each dimension of the device's tensor. They are None if elements are packed, or lie
    like texels in the ``image`` sharing the tensor's memory. ``linear`` is the tiling.
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
    kind: Literal["tensor"] = "tensor"

    @property
    def is_image(self) -> Literal[False]:
        return False

    @property
    def npy(self) -> tuple[str, tuple[int, ...]]:
        """The file's NumPy type and shape."""
        assert self.format.numpy_dtype is not None, "every format of a tensor has one"
        return self.format.numpy_dtype, self.shape

    def extent(self, level: int | None) -> int:
        """Count the elements."""
        return prod(self.shape)

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape on the device. Vulkan has no tensors of rank 0: a scalar becomes a tensor with one element."""
        return self.shape or (1,)

    @property
    def description(self) -> TensorDescription:
        """The description for Vulkan."""
        return TensorDescription(self.format.value, self.dims, self.linear, self.strides, self.image)


class GraphConstantPlan(NamedTuple):
    """VkDataGraphPipelineConstantARM. ``sparsity_dimension`` is the 2:4 sparsity axis, None for dense data."""

    id: int
    description: TensorDescription
    data: ConstantData
    sparsity_dimension: int | None = None

    @property
    def size_bytes(self) -> int:
        return self.data.nbytes if isinstance(self.data, memoryview) else self.data.size_bytes


class GraphResourcePlan(NamedTuple):
    """VkDataGraphPipelineResourceInfoARM: the tensor at a binding, and whether the graph reads or writes it."""

    set: int
    binding: int
    description: TensorDescription
    reads: bool
    writes: bool


class GraphPipelinePlan(NamedTuple):
    """A data graph pipeline with a session; records with equal `content` share a pipeline.

    ``largest`` has name and shape for the largest value between operators, for messages. ``unbuildable`` has the
    reason why the emulation layers cannot build the graph ({device} stands for the device), and a help. ``name`` is the
    module's name in the model, or the SPIR-V shader's uid.
    """

    code: bytes
    entry: str
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    resources: tuple[GraphResourcePlan, ...]
    constants: tuple[GraphConstantPlan, ...]
    label: str
    pointer: str
    largest: tuple[str, tuple[int, ...]] = ("", ())
    unbuildable: tuple[str, str] = ("", "")
    name: str = ""
    kind: Literal["graph"] = "graph"

    @property
    def is_optical_flow(self) -> Literal[False]:
        return False

    @property
    def content(self) -> Hashable:
        """The fields for comparing pipelines; ``label`` and ``pointer`` are for messages only."""
        return self[:5]


class GraphDispatch(NamedTuple):
    """A graph run. ``pipeline`` indexes the plan's graph pipelines, ``descriptors`` its descriptor lists."""

    pipeline: int
    descriptors: int
    barrier_after: bool
    command: int
    kind: Literal["graph_dispatch"] = "graph_dispatch"


class FlowConnection(NamedTuple):
    """VkDataGraphPipelineSingleNodeConnectionARM: an image with the VkFormat ``format`` at a binding.

    Messages name ``uid`` and ``pointer``, from the first command with an image there.
    """

    set: int
    binding: int
    connection: Connection
    format: int
    uid: str
    pointer: str

    @property
    def reads(self) -> bool:
        """Return whether the optical flow reads the image; otherwise it writes the image."""
        return self.connection in ("input", "reference", "hint")

    @property
    def writes(self) -> bool:
        """Return whether the optical flow writes the image."""
        return not self.reads


class OpticalFlowPlan(NamedTuple):
    """A data graph pipeline for motion estimation, with a session; records with equal `content` share a pipeline.

    ``width`` and ``height`` count input texels. Each vector stands for a square with ``grid`` x ``grid`` texels.
    """

    width: int
    height: int
    grid: int
    performance_level: PerformanceLevel
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    resources: tuple[FlowConnection, ...]
    label: str
    pointer: str
    kind: Literal["optical_flow"] = "optical_flow"

    @property
    def is_optical_flow(self) -> Literal[True]:
        return True

    @property
    def content(self) -> Hashable:
        """The fields for comparing pipelines; uids, labels and pointers are for messages only."""
        return (*self[:5], *(connection[:4] for connection in self.resources))

    def format_of(self, connection: Connection) -> int | None:
        """Return the VkFormat for a connection; None without an image."""
        return next((end.format for end in self.resources if end.connection == connection), None)


class OpticalFlowDispatch(NamedTuple):
    """An optical flow run. ``pipeline`` indexes the plan's graph pipelines, ``descriptors`` its descriptor lists.

    ``flags`` are VkDataGraphOpticalFlowExecuteFlagBitsARM by their names in scenarios.
    """

    pipeline: int
    descriptors: int
    barrier_after: bool
    command: int
    flags: tuple[str, ...] = ()
    mean_flow_l1_norm_hint: int = 0
    kind: Literal["optical_flow_dispatch"] = "optical_flow_dispatch"
