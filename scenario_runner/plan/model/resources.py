"""Records of images, samplers and tensors in a plan."""

from math import prod
from typing import Literal, NamedTuple

from scenario_runner.formats import AddressMode, Filter, Format
from scenario_runner.plan.model.records import Source

# What an image is used for besides copies; see VkImageUsageFlagBits and VkDataGraphOpticalFlowImageUsageFlagBitsARM.
ImageUsage = Literal[
    "sampled", "storage", "color_attachment", "tensor_aliasing", "flow_input", "flow_output", "flow_hint", "flow_cost"
]
Tiling = Literal["OPTIMAL", "LINEAR"]
TexelAccess = Literal["read", "write"]


class SamplerPlan(NamedTuple):
    """VkSamplerCreateInfo in the scenario's words; equal plans are one sampler.

    ``border_color`` is a VkBorderColor without its prefix. A custom one has its four components in ``custom_color`` and
    the VkFormat that they are meant for in ``custom_format``.
    """

    min_filter: Filter = "NEAREST"
    mag_filter: Filter = "NEAREST"
    mip_filter: Filter = "NEAREST"
    address_mode: AddressMode = "CLAMP_EDGE"
    border_color: str = "FLOAT_TRANSPARENT_BLACK"
    custom_color: tuple[int | float, ...] = ()
    custom_format: int = 0

    @property
    def is_linear(self) -> bool:
        """Return whether it interpolates in any way."""
        return "LINEAR" in self[:3]


class ImagePart(NamedTuple):
    """One aspect of one mip level, as a Vulkan copy and a file have it: ``row_count`` rows, tightly packed.

    ``width`` and ``height`` count texels; a row is one of texel blocks. ``offset_bytes`` is where the part begins in
    the bytes of the whole image.
    """

    level: int
    aspect: str
    width: int
    height: int
    row_size_bytes: int
    row_count: int
    offset_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.row_size_bytes * self.row_count

    @property
    def end_bytes(self) -> int:
        """The start of the next part."""
        return self.offset_bytes + self.size_bytes


class ImagePlan(NamedTuple):
    """A two-dimensional image of ``mips`` levels, with its sampler.

    Its bytes are its ``parts``, one after the other: level by level, of each level the depths before the stencils. The
    first ``size_bytes`` are read back. A source holds those of the first ``source_levels`` levels; the other levels are
    generated. ``tiling`` is None where the device may choose. ``aliased`` images share memory with other resources.
    ``constant`` ones are only ever sampled. ``filters`` tells whether the sampler is used. ``without_format`` is what
    shaders do with texels that do not declare the format although they could (`plan.images`).
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

    @property
    def npy(self) -> None:
        """Its content is not one array: each of its ``parts`` is (`array_type`)."""
        return None

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

    def part(self, level: int, aspect: str | None = None) -> ImagePart:
        """A part that is read back, by level and aspect (the first one by default). Raises KeyError."""
        wanted = aspect or self.format.aspects[0]
        for part in self.parts:
            if part.level == level and part.aspect == wanted and part.end_bytes <= self.size_bytes:
                return part
        raise KeyError(f"image {self.uid!r} was read back without level {level} of {wanted}")

    def array_type(self, part: ImagePart) -> tuple[str, tuple[int, int, int]]:
        """NumPy type and shape (height, width, items) of a part; rows of blocks as bytes where it is compressed."""
        format = self.format
        if format.numpy_dtype is None:
            return "|u1", (part.row_count, part.row_size_bytes // format.block_size_bytes, format.block_size_bytes)
        if part.aspect == "stencil":
            return "|u1", (part.height, part.width, 1)
        return format.numpy_dtype, (part.height, part.width, format.numpy_items)


# Bytes of a texel of one aspect where it is copied apart from the other (Vulkan, "Buffer and Image Addressing").
_DEPTH_SIZES_BYTES = {16: 2, 24: 4, 32: 4}


def image_parts(format: Format, width: int, height: int, mips: int) -> tuple[ImagePart, ...]:
    """The parts of an image of ``mips`` levels, in the order of its bytes."""
    parts: list[ImagePart] = []
    offset = 0
    block_width, block_height = format.block_extent
    for level in range(mips):
        for aspect in format.aspects:
            texel = format.block_size_bytes
            if aspect == "depth":
                texel = _DEPTH_SIZES_BYTES[format.channel_bits[format.channels.index("D")]]
            elif aspect == "stencil":
                texel = 1
            part = ImagePart(
                level, aspect, width, height, -(-width // block_width) * texel, -(-height // block_height), offset
            )
            parts.append(part)
            offset = part.end_bytes
        width, height = max(1, width // 2), max(1, height // 2)
    return tuple(parts)


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
