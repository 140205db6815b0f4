"""Records in every plan: buffers, pipelines, descriptors, dispatches, barriers and requirements.

They are named tuples: a dataclass takes five times as long to define, which slows a small run. Sizes and offsets are in
bytes. ``pointer`` is the JSON pointer of the user's entry, for messages. `image_records` has records for images and
draws, `graph_records` for tensors, graphs and optical flows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Literal, NamedTuple, Protocol

from scenario_runner.files.vk_formats import Format

DescriptorKind = Literal[
    "storage_buffer",
    "uniform_buffer",
    "storage_texel_buffer",
    "uniform_texel_buffer",
    "storage_image",
    "sampled_image",
    "combined_image_sampler",
    "sampler",
    "tensor",
]
Stage = Literal["graph", "compute", "graphics", "all"]
ShaderStage = Literal["compute", "vertex", "fragment"]
Access = Literal[
    "memory_write", "memory_read", "graph_write", "graph_read", "compute_shader_write", "compute_shader_read"
]

# Uses of a buffer beside copies, storage and uniforms; see VkBufferUsageFlagBits.
BufferUsage = Literal["vertex", "index", "storage_texel_buffer", "uniform_texel_buffer"]

# The layouts in scenarios. Every image without another layout is in "general", whatever the device uses for it.
ImageLayout = Literal["general", "tensor_aliasing"]

Span = tuple[int, int]
"""The first byte, and the byte after the last byte."""


def overlap(one: Span, other: Span) -> bool:
    """Return whether two spans share a byte."""
    return max(one[0], other[0]) < min(one[1], other[1])


class Source(Protocol):
    """The source for a resource's initial bytes. Threads take turns to read it, any number of times.

    Several threads may read parts side by side if the source has a true attribute ``divisible``.
    """

    @property
    def size_bytes(self) -> int: ...

    def read_into(self, destination: memoryview, offset: int = 0) -> None:
        """Fill ``destination`` with the bytes from ``offset`` on. Raise FileError."""


class CompilerOptions(NamedTuple):
    """The compiler to use, and the folder for compiled shaders (None: the defaults in `compile_all`)."""

    compiler: str | None = None
    cache_dir: str | None = None
    use_cache: bool = True


class BufferPlan(NamedTuple):
    """A buffer. Members of a ``group`` share memory, each at an ``offset_bytes``.

    A buffer has no ``format``: shaders decide the bytes' meaning. ``usage`` has the uses that few buffers have.
    """

    uid: str
    pointer: str
    size_bytes: int
    group: str | None = None
    offset_bytes: int = 0
    source: Source | None = None
    zero_fill: bool = True
    usage: frozenset[BufferUsage] = frozenset()
    kind: Literal["buffer"] = "buffer"
    format: None = None

    @property
    def is_image(self) -> Literal[False]:
        return False

    @property
    def npy(self) -> tuple[str, tuple[int, ...]]:
        """The file's NumPy type and shape; the reference runner writes all buffers so."""
        return "|i1", (self.size_bytes,)

    def extent(self, level: int | None) -> int:
        """Return the most items a shader can find in the buffer."""
        return self.size_bytes


class Specialization(NamedTuple):
    """VkSpecializationInfo: ``entries`` are (constant id, offset, size) into ``data``."""

    entries: tuple[tuple[int, int, int], ...] = ()
    data: bytes = b""


class LayoutBinding(NamedTuple):
    """A VkDescriptorSetLayoutBinding with ``descriptor_count`` descriptors, and the shader stages with access.

    Some descriptors of a ``partial`` array are not bound. With a count of 0, the bindings of a command decide the
    number.
    """

    binding: int
    kind: DescriptorKind
    stages: tuple[ShaderStage, ...] = ("compute",)
    descriptor_count: int = 1
    partial: bool = False


class PipelinePlan(NamedTuple):
    """A compute pipeline; plans with equal `content` share a pipeline."""

    code: bytes
    entry: str
    specialization: Specialization
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    push_constants_size: int
    label: str
    pointer: str
    local_size: tuple[int, int, int] = (1, 1, 1)
    workgroup_memory_bytes: int = 0
    full_subgroups: bool = False

    @property
    def content(self) -> Hashable:
        """The fields for comparing pipelines; ``label`` and ``pointer`` are for messages only."""
        return (*self[:5], self.full_subgroups)


class Descriptor(NamedTuple):
    """The resource at a binding in a set, at the index ``element`` of an array.

    An image has a single mip ``level`` or all levels (None).

    ``flow_input`` marks an optical flow's input picture. A shader sees ``size_bytes`` of a buffer from
    ``offset_bytes`` on; None is the rest. A texel buffer has a ``format``, and may have ``atomic_texels``.
    """

    set: int
    binding: int
    kind: DescriptorKind
    uid: str
    level: int | None = None
    flow_input: bool = False
    offset_bytes: int = 0
    size_bytes: int | None = None
    format: Format | None = None
    atomic_texels: bool = False
    element: int = 0

    def bound_bytes(self, buffer: BufferPlan) -> int:
        """Return how many bytes of the buffer a shader sees."""
        return buffer.size_bytes - self.offset_bytes if self.size_bytes is None else self.size_bytes


class DescriptorList(NamedTuple):
    """The descriptor sets for a dispatch: a layout for each set from set 0 on, and all descriptors."""

    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    descriptors: tuple[Descriptor, ...]


class Dispatch(NamedTuple):
    """A run of ``pipeline`` with workgroups in x, y and z. ``pipeline`` and ``descriptors`` index the plan's tables."""

    pipeline: int
    descriptors: int
    workgroup_count: tuple[int, int, int]
    push_constants: bytes
    barrier_after: bool
    command: int
    kind: Literal["dispatch"] = "dispatch"


class BarrierScope(NamedTuple):
    """The stages and accesses before a barrier, and those after it."""

    src_stages: tuple[Stage, ...]
    dst_stages: tuple[Stage, ...]
    src_access: Access
    dst_access: Access


class MemoryBarrier(NamedTuple):
    """A global memory barrier."""

    scope: BarrierScope
    kind: Literal["memory"] = "memory"


class BufferBarrier(NamedTuple):
    """A barrier over ``size_bytes`` in the buffer ``uid`` from ``offset_bytes``."""

    scope: BarrierScope
    uid: str
    offset_bytes: int
    size_bytes: int
    kind: Literal["buffer"] = "buffer"


class ImageBarrier(NamedTuple):
    """A barrier over ``level_count`` levels in the image ``uid``; ``old_layout`` None drops their content.

    ``barrier`` is the uid of the scenario's image_barrier; empty for the planner's barriers.
    """

    scope: BarrierScope
    uid: str
    old_layout: ImageLayout | None
    new_layout: ImageLayout
    base_level: int
    level_count: int
    barrier: str = ""
    kind: Literal["image"] = "image"


class TensorBarrier(NamedTuple):
    """A barrier over the tensor ``uid`` (VkTensorMemoryBarrierARM)."""

    scope: BarrierScope
    uid: str
    kind: Literal["tensor"] = "tensor"


# Feature structures of extensions which emulation layers can bring to a device.
ML_STRUCTURES = {
    "VkPhysicalDeviceTensorFeaturesARM": "VK_ARM_tensors",
    "VkPhysicalDeviceDataGraphFeaturesARM": "VK_ARM_data_graph",
    "VkPhysicalDeviceDataGraphOpticalFlowFeaturesARM": "VK_ARM_data_graph_optical_flow",
}


class NeededFeature(NamedTuple):
    """A ``member`` of a Vulkan feature ``structure``. ``what`` needs the feature, at ``pointer`` in the scenario.

    Nonzero ``bits`` are the bits a property must have.
    """

    structure: str
    member: str
    what: str
    pointer: str
    bits: int = 0


class MatrixUse(NamedTuple):
    """A cooperative matrix type, or a product A * B + C, as a shader needs it.

    ``words`` describe it. ``scope`` is SPIR-V's number, as in Vulkan. ``sizes`` are M, N and K, None if absent.
    ``components`` lists alternatives: the names allowed for the types in A, B, C and the result; an empty set allows
    any name. ``saturating`` is None for a type. ``invocations`` is the shader's workgroup size.
    """

    words: str
    scope: int
    sizes: tuple[int | None, int | None, int | None]
    components: tuple[tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[str]], ...]
    saturating: bool | None = None
    invocations: int = 0


class Requirements(NamedTuple):
    """The scenario's requirements on a device, with names from SPIR-V and Vulkan.

    ``capabilities`` and ``spirv_extensions`` map SPIR-V's names to a shader with the declaration. ``features``
    are Vulkan features without a SPIR-V declaration. ``graph_capabilities`` come from graph modules, and do not
    matter where an emulation layer runs the graphs. ``newest_shader`` is a shader with ``spirv_version``. ``places``
    has pointers for all shaders and graphs named here. ``graphics`` is the first draw's pointer. ``matrices`` has the
    cooperative matrices by shader. ``idle_partitions`` names the shaders that declare partitioned subgroup operations
    without using them.
    """

    capabilities: Mapping[str, str]
    spirv_extensions: Mapping[str, str]
    spirv_version: tuple[int, int] = (1, 0)
    features: tuple[NeededFeature, ...] = ()
    graph_capabilities: Mapping[str, str] = {}
    newest_shader: str = ""
    places: Mapping[str, str] = {}
    graphics: str | None = None
    matrices: Mapping[str, tuple[MatrixUse, ...]] = {}
    idle_partitions: frozenset[str] = frozenset()

    @property
    def ml_extensions(self) -> frozenset[str]:
        """The device extensions for tensors and graphs."""
        return frozenset(
            ML_STRUCTURES[feature.structure] for feature in self.features if feature.structure in ML_STRUCTURES
        )


class ImagePart(NamedTuple):
    """An aspect of a mip level in a Vulkan copy or a file: ``row_count`` tightly packed rows with texel blocks.

    ``width`` and ``height`` count texels. ``offset_bytes`` is the part's start in the whole image's bytes.
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
        """The next part's start."""
        return self.offset_bytes + self.size_bytes


# Depth bits → bytes for a depth texel in a copy without stencils (Vulkan, "Buffer and Image Addressing").
_DEPTH_SIZES_BYTES = {16: 2, 24: 4, 32: 4}


def image_parts(format: Format, width: int, height: int, mips: int) -> tuple[ImagePart, ...]:
    """List an image's parts for ``mips`` levels, in byte order."""
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
