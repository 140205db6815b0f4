"""Records of a plan that not every scenario needs: images, tensors, graphs, optical flows and draws."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Literal, NamedTuple

from scenario_runner.formats import AddressMode, Filter, Format
from scenario_runner.plan.records import ImagePart, LayoutBinding, Source, Specialization
from scenario_runner.plan.sources import ConstantData

# Uses of an image besides copies; see VkImageUsageFlagBits and VkDataGraphOpticalFlowImageUsageFlagBitsARM.
ImageUsage = Literal[
    "sampled", "storage", "color_attachment", "tensor_aliasing", "flow_input", "flow_output", "flow_hint", "flow_cost"
]
Tiling = Literal["OPTIMAL", "LINEAR"]
TexelAccess = Literal["read", "write"]


class SamplerPlan(NamedTuple):
    """VkSamplerCreateInfo in the scenario's words; equal plans are one sampler.

    ``border_color`` is a VkBorderColor without its prefix. A custom one is the VkClearColorValue ``custom_color``, as
    bytes since 0.0 and -0.0 are equal numbers, and meant for the VkFormat ``custom_format``.
    """

    min_filter: Filter = "NEAREST"
    mag_filter: Filter = "NEAREST"
    mip_filter: Filter = "NEAREST"
    address_mode: AddressMode = "CLAMP_EDGE"
    border_color: str = "FLOAT_TRANSPARENT_BLACK"
    custom_color: bytes = b""
    custom_format: int = 0

    @property
    def is_linear(self) -> bool:
        """Return whether it interpolates in any way."""
        return "LINEAR" in self[:3]


class ImagePlan(NamedTuple):
    """A two-dimensional image of ``mips`` levels, with its sampler.

    Its bytes are its ``parts``, one after the other: level by level, of each level the depths before the stencils. The
    first ``size_bytes`` are read back. A source holds those of the first ``source_levels`` levels; the other levels are
    generated. ``tiling`` is None where the device may choose. ``aliased`` images share memory with other resources.
    ``constant`` ones are only ever sampled. ``filters`` tells whether the sampler is used. ``without_format`` is what
    shaders do with texels that do not declare the format although they could (`plan.images`). There is no type of its
    content in a file (``npy``): each of its ``parts`` is an array (`array_type`).
    """

    uid: str
    pointer: str
    size_bytes: int
    format: Format
    width: int
    height: int
    mips: int
    parts: tuple[ImagePart, ...]
    sampler: SamplerPlan = SamplerPlan()
    tiling: Tiling | None = None
    usage: frozenset[ImageUsage] = frozenset()
    constant: bool = False
    filters: bool = False
    group: str | None = None
    offset_bytes: int = 0
    aliased: bool = False
    source: Source | None = None
    source_levels: int = 0
    zero_fill: bool = True
    without_format: frozenset[TexelAccess] = frozenset()
    kind: Literal["image"] = "image"
    npy: None = None

    def extent(self, level: int | None) -> int:
        """The number of texels in a mip level, by default the first one."""
        return max(1, self.width >> (level or 0)) * max(1, self.height >> (level or 0))

    @property
    def plane_sizes_bytes(self) -> tuple[int, ...]:
        """Sizes of the parts that are read back."""
        return tuple(part.size_bytes for part in self.parts if part.end_bytes <= self.size_bytes)

    def part_of(self, level: int) -> ImagePart:
        """The first aspect of a level, whether it is read back or not."""
        return self.parts[level * len(self.format.aspects)]

    def level_name(self, level: int) -> str:
        """The image, or one of its further mip levels, in messages."""
        return f"image {self.uid!r}" + (f", mip level {level}," if level else "")

    def part(self, level: int, aspect: str | None = None) -> ImagePart:
        """A part that is read back, by level and aspect (the first one by default). Raises KeyError."""
        aspect_name = aspect or self.format.aspects[0]
        for part in self.parts:
            if part.level == level and part.aspect == aspect_name and part.end_bytes <= self.size_bytes:
                return part
        raise KeyError(f"image {self.uid!r} was read back without level {level} of {aspect_name}")

    def array_type(self, part: ImagePart) -> tuple[str, tuple[int, int, int]]:
        """NumPy type and shape (height, width, items) of a part; rows of blocks as bytes where it is compressed."""
        format = self.format
        if format.numpy_dtype is None:
            return "|u1", (part.row_count, part.row_size_bytes // format.block_size_bytes, format.block_size_bytes)
        if part.aspect == "stencil":
            return "|u1", (part.height, part.width, 1)
        return format.numpy_dtype, (part.height, part.width, format.numpy_items)


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


# VkDataGraphPipelineNodeConnectionTypeARM, without its prefix.
Connection = Literal["input", "reference", "hint", "flow_vector", "cost"]
PerformanceLevel = Literal["unknown", "slow", "medium", "fast"]


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


class ShaderStagePlan(NamedTuple):
    """One shader of a graphics pipeline; ``label`` is its uid.

    ``inputs`` and ``outputs`` count the locations that its variables take, built-in ones aside.
    """

    code: bytes
    entry: str
    specialization: Specialization
    label: str
    pointer: str
    inputs: int = 0
    outputs: int = 0


class GraphicsPipelinePlan(NamedTuple):
    """A vertex and a fragment shader, and the VkFormat of each color attachment; equal `content` is one pipeline.

    ``push_constants_size`` is seen by both shaders. ``write_masks`` are the components of each attachment that the
    fragment shader gives, VkColorComponentFlags; the others keep their values. ``pointer`` is that of the first command
    that draws with it.
    """

    vertex: ShaderStagePlan
    fragment: ShaderStagePlan
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    push_constants_size: int
    formats: tuple[int, ...]
    write_masks: tuple[int, ...]
    pointer: str

    @property
    def content(self) -> Hashable:
        """The content that decides which pipeline this is."""
        return self.vertex[:3], self.fragment[:3], *self[2:6]


class Target(NamedTuple):
    """A mip level of an image that is drawn into."""

    uid: str
    level: int


class Draw(NamedTuple):
    """Draw three vertices with ``pipeline`` into ``targets``; ``extent`` is the width and height of what is drawn.

    What the triangle does not cover keeps its texels.
    """

    pipeline: int
    descriptors: int
    targets: tuple[Target, ...]
    extent: tuple[int, int]
    push_constants: bytes
    barrier_after: bool
    command: int
    kind: Literal["draw"] = "draw"
