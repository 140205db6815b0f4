"""Records of a plan for images, samplers and draws, which not every scenario needs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple

from scenario_runner.files.vk_formats import AddressMode, Filter, Format
from scenario_runner.plan.records import ImagePart, LayoutBinding, Source, Specialization

# Uses of an image besides copies; see VkImageUsageFlagBits and VkDataGraphOpticalFlowImageUsageFlagBitsARM.
ImageUsage = Literal[
    "sampled", "storage", "color_attachment", "tensor_aliasing", "flow_input", "flow_output", "flow_hint", "flow_cost"
]
Tiling = Literal["OPTIMAL", "LINEAR"]
TexelAccess = Literal["read", "write", "atomic"]


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
    ``constant`` ones are only ever sampled. ``filters`` tells whether the sampler is used. ``special_accesses`` to
    texels need a device that has them for the format: "atomic", and "read" and "write" in shaders that could declare
    the format and do not (`plan.images`). There is no type of its content in a file (``npy``): each of its ``parts`` is
    an array (`array_type`).
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
