"""Records for images, samplers, draws, fills and copies, which not every plan needs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple

from scenario_runner.files.vk_formats import AddressMode, Filter, Format
from scenario_runner.plan.records import ImagePart, LayoutBinding, Source, Specialization

# Image uses beside initial contents and results: VkImageUsageFlagBits and VkDataGraphOpticalFlowImageUsageFlagBitsARM.
ImageUsage = Literal[
    "sampled",
    "storage",
    "color_attachment",
    "depth_attachment",
    "transfer",
    "tensor_aliasing",
    "flow_input",
    "flow_output",
    "flow_hint",
    "flow_cost",
]
Tiling = Literal["OPTIMAL", "LINEAR"]
TexelAccess = Literal["read", "write", "atomic"]


class SamplerPlan(NamedTuple):
    """VkSamplerCreateInfo in the scenario's words; equal records share a sampler.

    ``border_color`` is a VkBorderColor without prefix. A custom color is the VkClearColorValue ``custom_color``, as
    bytes because 0.0 and -0.0 are equal numbers, for the VkFormat ``custom_format``.
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
        """Return whether a filter interpolates."""
        return "LINEAR" in self[:3]


class ImagePlan(NamedTuple):
    """A two-dimensional image with ``mips`` levels and a sampler.

    The bytes are the ``parts`` in order: level by level, depths before stencils. A run reads the first ``size_bytes``
    back. The source holds the first ``source_levels`` levels, and the run generates the others. ``tiling`` is None
    where the device may choose. An ``aliased`` image shares memory with other resources. Shaders only sample a
    ``constant`` image. ``filters`` tells whether commands use the sampler. ``special_accesses`` to texels need support
    for the format on the device: "atomic", and "read" and "write" by shaders that declare no format although they could
    (`plan.images`). ``npy`` is None, because each part is a separate array (`array_type`).
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
    special_accesses: frozenset[TexelAccess] = frozenset()
    kind: Literal["image"] = "image"
    npy: None = None

    @property
    def is_image(self) -> Literal[True]:
        return True

    def extent(self, level: int | None) -> int:
        """Count the texels in a mip level, by default the first."""
        return max(1, self.width >> (level or 0)) * max(1, self.height >> (level or 0))

    @property
    def plane_sizes_bytes(self) -> tuple[int, ...]:
        """Sizes of all parts to read back."""
        return tuple(part.size_bytes for part in self.parts if part.end_bytes <= self.size_bytes)

    def part_of(self, level: int) -> ImagePart:
        """Return a level's first aspect, even if a run does not read it back."""
        return self.parts[level * len(self.format.aspects)]

    def level_name(self, level: int) -> str:
        """Name the image or a further mip level in messages."""
        return f"image {self.uid!r}" + (f", mip level {level}," if level else "")

    def part(self, level: int, aspect: str | None = None) -> ImagePart:
        """Find a part to read back, by level and aspect (by default the first). Raise KeyError."""
        aspect_name = aspect or self.format.aspects[0]
        for part in self.parts:
            if part.level == level and part.aspect == aspect_name and part.end_bytes <= self.size_bytes:
                return part
        raise KeyError(f"image {self.uid!r} was read back without level {level} of {aspect_name}")

    def array_type(self, part: ImagePart) -> tuple[str, tuple[int, int, int]]:
        """Return a part's NumPy type and shape (height, width, items); a compressed part has rows with block bytes."""
        format = self.format
        if format.numpy_dtype is None:
            return "|u1", (part.row_count, part.row_size_bytes // format.block_size_bytes, format.block_size_bytes)
        if part.aspect == "stencil":
            return "|u1", (part.height, part.width, 1)
        return format.numpy_dtype, (part.height, part.width, format.numpy_items)


class ShaderStagePlan(NamedTuple):
    """One shader in a graphics pipeline; ``label`` is the uid.

    ``inputs`` and ``outputs`` count locations for user-defined variables.
    """

    code: bytes
    entry: str
    specialization: Specialization
    label: str
    pointer: str
    inputs: int = 0
    outputs: int = 0


class AttributePlan(NamedTuple):
    """A vertex attribute: an input's location, and the VkFormat, size and stride of its elements."""

    location: int
    format: int
    size_bytes: int
    stride_bytes: int
    per_instance: bool


class DepthTest(NamedTuple):
    """A depth test with a VkCompareOp against an attachment of a VkFormat; ``bias`` is constant, clamp and slope."""

    format: int
    compare_op: int
    write: bool
    bias: tuple[float, float, float]
    clamp: bool


class GraphicsPipelinePlan(NamedTuple):
    """A vertex and a fragment shader, and a VkFormat for each color attachment.

    Plans with equal `content` share a pipeline.

    Both shaders see the push constants. ``write_masks`` (VkColorComponentFlags) tells which components the fragment
    shader writes in each attachment; the others keep their values. ``topology`` is a VkPrimitiveTopology, and
    ``polygon_mode`` a VkPolygonMode. ``pointer`` is the first command drawing with the pipeline.
    """

    vertex: ShaderStagePlan
    fragment: ShaderStagePlan
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    push_constants_size: int
    formats: tuple[int, ...]
    write_masks: tuple[int, ...]
    topology: int
    polygon_mode: int
    depth: DepthTest | None
    attributes: tuple[AttributePlan, ...]
    pointer: str

    @property
    def content(self) -> Hashable:
        """The fields for comparing pipelines."""
        return self.vertex[:3], self.fragment[:3], *self[2:-1]


class Target(NamedTuple):
    """An image's mip level to draw into, as a color or as the depth attachment."""

    uid: str
    level: int
    is_depth: bool = False


def bytes_of(attribute: AttributePlan, count: int) -> int:
    """Return the bytes from the start of the first of ``count`` elements to the end of the last element."""
    return (count - 1) * attribute.stride_bytes + attribute.size_bytes if count else 0


class BufferStart(NamedTuple):
    """A buffer, and the offset of the first byte that a draw reads."""

    uid: str
    offset_bytes: int


class Vertices(NamedTuple):
    """The vertices of a draw, and a buffer for each attribute.

    With an ``index_buffer``, ``vertex_count`` and ``first`` are about indices of ``index_size_bytes``, and
    ``vertex_offset`` is added to each index.
    """

    vertex_count: int
    instance_count: int
    first: int
    first_instance: int
    buffers: tuple[BufferStart, ...] = ()
    index_buffer: BufferStart | None = None
    index_size_bytes: int = 0
    vertex_offset: int = 0

    def elements(self, attribute: AttributePlan) -> tuple[int, int] | None:
        """Return the first element that a draw reads for an attribute, and the number of elements.

        Return None if indices choose the elements.
        """
        if 0 in (self.vertex_count, self.instance_count):
            return 0, 0
        if attribute.per_instance:
            return self.first_instance, self.instance_count
        return None if self.index_buffer is not None else (self.first, self.vertex_count)


class Draw(NamedTuple):
    """A draw of ``vertices`` with ``pipeline`` into ``targets``; ``extent`` is their width and height.

    The depth attachment is the last target. ``viewport`` is a VkViewport: x, y, width, height and two depths. Texels
    outside the primitives keep their values.
    """

    pipeline: int
    descriptors: int
    targets: tuple[Target, ...]
    extent: tuple[int, int]
    viewport: tuple[float, float, float, float, float, float]
    vertices: Vertices
    push_constants: bytes
    barrier_after: bool
    command: int
    kind: Literal["draw"] = "draw"


class TransferPart(NamedTuple):
    """A part of a buffer, or a mip ``level`` of an image, that a fill or copy uses.

    ``offset_bytes`` and ``size_bytes`` count packed bytes from the resource's start.
    """

    uid: str
    offset_bytes: int
    size_bytes: int
    level: int | None = None


class Transfer(NamedTuple):
    """A fill of ``target`` with ``data``, or a copy from ``source``, which has the same size.

    ``data`` has the bytes of a 32-bit word, a VkClearColorValue or a VkClearDepthStencilValue.
    """

    kind: Literal["fill", "copy"]
    target: TransferPart
    source: TransferPart | None
    data: bytes
    barrier_after: bool
    command: int

    @property
    def parts(self) -> tuple[TransferPart, ...]:
        """The parts that the command uses."""
        return (self.target,) if self.source is None else (self.source, self.target)
