"""Records of a plan for tensors, graphs and optical flows."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Literal, NamedTuple

from scenario_runner.files.vk_formats import Format
from scenario_runner.plan.records import LayoutBinding, Source
from scenario_runner.plan.sources import ConstantData

# VkDataGraphPipelineNodeConnectionTypeARM, without its prefix.
Connection = Literal["input", "reference", "hint", "flow_vector", "cost"]
PerformanceLevel = Literal["unknown", "slow", "medium", "fast"]


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
    kind: Literal["tensor"] = "tensor"

    @property
    def is_image(self) -> Literal[False]:
        return False

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
        """Its description for Vulkan."""
        return TensorDescription(self.format.value, self.dims, self.linear, self.strides, self.image)


class GraphConstantPlan(NamedTuple):
    """VkDataGraphPipelineConstantARM; ``sparsity_dimension`` is the axis of 2:4 sparsity, None for dense data."""

    id: int
    description: TensorDescription
    data: ConstantData
    sparsity_dimension: int | None = None

    @property
    def size_bytes(self) -> int:
        return self.data.nbytes if isinstance(self.data, memoryview) else self.data.size_bytes


class GraphResourcePlan(NamedTuple):
    """VkDataGraphPipelineResourceInfoARM: what the graph finds at a binding, and whether it reads or writes it."""

    set: int
    binding: int
    description: TensorDescription
    reads: bool
    writes: bool


class GraphPipelinePlan(NamedTuple):
    """A data graph pipeline with its session; two plans with equal `content` are one pipeline.

    ``largest`` is what messages call the largest value between its operators, with its shape; ``unbuildable`` is why
    the emulation layers cannot build the graph ({device} stands for the device), and what to do. ``name`` is that of
    the module in its model, or the uid of the SPIR-V shader.
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
        """The content that decides which pipeline this is; ``label`` and ``pointer`` are for people only."""
        return self[:5]


class GraphDispatch(NamedTuple):
    """Run a graph; ``pipeline`` is an index into the plan's graph pipelines, ``descriptors`` into its lists."""

    pipeline: int
    descriptors: int
    barrier_after: bool
    command: int
    kind: Literal["graph_dispatch"] = "graph_dispatch"


class FlowConnection(NamedTuple):
    """VkDataGraphPipelineSingleNodeConnectionARM: what is at a binding, an image of the VkFormat ``format``.

    ``uid`` and ``pointer`` are those of the first command that binds something there, for messages.
    """

    set: int
    binding: int
    connection: Connection
    format: int
    uid: str
    pointer: str

    @property
    def reads(self) -> bool:
        """Return whether the optical flow reads it; otherwise it writes it."""
        return self.connection in ("input", "reference", "hint")

    @property
    def writes(self) -> bool:
        """Return whether the optical flow writes it."""
        return not self.reads


class OpticalFlowPlan(NamedTuple):
    """A data graph pipeline that estimates motion, with its session; two plans with equal `content` are one pipeline.

    ``width`` and ``height`` are texels of the input, ``grid`` the width of the square of texels that one vector is for.
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
        """The content that decides which pipeline this is; uids, labels and pointers are for people only."""
        return (*self[:5], *(connection[:4] for connection in self.resources))

    def format_of(self, connection: Connection) -> int | None:
        """The VkFormat of what is connected so, None where nothing is."""
        return next((end.format for end in self.resources if end.connection == connection), None)


class OpticalFlowDispatch(NamedTuple):
    """Run an optical flow; ``pipeline`` is an index into the plan's graph pipelines, ``descriptors`` into its lists.

    ``flags`` are VkDataGraphOpticalFlowExecuteFlagBitsARM by the names that scenarios give them.
    """

    pipeline: int
    descriptors: int
    barrier_after: bool
    command: int
    flags: tuple[str, ...] = ()
    mean_flow_l1_norm_hint: int = 0
    kind: Literal["optical_flow_dispatch"] = "optical_flow_dispatch"
