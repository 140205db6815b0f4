"""The models for resources with data (buffer, tensor, image, raw_data), memory groups and barriers."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, WithJsonSchema, model_validator

from scenario_runner.errors import ScenarioError
from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.errors.text import Json
from scenario_runner.files.input import array_of
from scenario_runner.files.vk_formats import AddressMode, BorderColor, Filter
from scenario_runner.scenario.entries import (
    I64,
    U32,
    U64,
    ByteCount,
    Items,
    Model,
    OptionalPath,
    Reference,
    Resource,
    Resources,
    ShaderAccess,
    Sourced,
    Targets,
    Tiling,
    Uid,
    resource_of_class,
    wrong,
)
from scenario_runner.scenario.inline_contents import Number, OptionalContent, RequiredContent, item_size_bytes, shape_in


class MemoryGroup(Model):
    """Resources with the same memory group share one memory object."""

    id: str = Field(
        default="", validation_alias=AliasChoices("id", "uid"), description="Name of the group; empty means none."
    )
    offset: U64 = Field(
        default=0,
        description="First byte of the resource in the shared memory. Devices require an alignment, often 16 to 256.",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, values: Json) -> Json:
        if isinstance(values, dict) and "id" in values and "uid" in values:
            if values["id"] != values["uid"]:
                raise wrong(
                    f"'id' and 'uid' both name the group, and differ: {values['id']!r:.80} and {values['uid']!r:.80}"
                )
            return {key: value for key, value in values.items() if key != "uid"}
        return values

    @classmethod
    def in_schema(cls, definition: dict[str, Json]) -> dict[str, Json]:
        other = {"type": "string", "description": "Another spelling of `id`, from an older dialect."}
        definition["properties"]["uid"] = other
        return definition


OptionalMemoryGroup = Annotated[
    MemoryGroup | None, AfterValidator(lambda group: group if group is not None and group.id else None)
]


def or_given_by_src(definition: dict[str, Json], key: str) -> dict[str, Json]:
    """Make a key of a schema optional for files with an object in ``src``."""
    definition["required"] = [name for name in definition["required"] if name != key]
    no_path = {"src": {"not": {"type": "string"}}}
    definition["anyOf"] = [{"required": [key]}, {"required": ["src"], "properties": no_path}]
    return definition


class Buffer(Resource):
    """A storage or uniform buffer. The shader gives the bytes a type."""

    kind: ClassVar[str] = "buffer"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})
    required_in_json: ClassVar[frozenset[str]] = frozenset({"size"})

    uid: Uid
    size: Annotated[int, Field(ge=1, le=2**63 - 1)] = Field(
        default=None,
        validate_default=True,
        description="Size in bytes. Optional if `src` gives the size.",
    )
    shader_access: ShaderAccess
    src: OptionalContent = Field(
        default=None,
        description="NumPy file (.npy) with the initial content, `size` bytes of any type and shape, or an object. By "
        "default zeros.",
    )
    dst: OptionalPath = Field(
        default=None, description="NumPy file (.npy) for the content after the last command, as 1-D int8."
    )
    memory_group: OptionalMemoryGroup = Field(default=None, description="Resources in one group share memory.")
    data: Any = Field(default=None, description="Initial content, in place of src; gives the size where there is none.")

    @classmethod
    def in_schema(cls, definition: dict[str, object]) -> dict[str, object]:
        return or_given_by_src(definition, "size")

    @classmethod
    def completed(cls, values: dict[str, Json]) -> dict[str, object]:
        data, shape = values.get("data"), shape_in(values.get("src"))
        if "size" not in values and data is None and shape is not None:
            return {**values, "size": prod(shape) * item_size_bytes(values["src"])}
        if "size" in values or data is None:
            return values
        data = array_of(data, str(values.get("uid")))
        size = getattr(data, "nbytes", None)  # arrays of bfloat16 have no buffer protocol
        if not isinstance(size, int):
            try:
                size = memoryview(data).nbytes
            except TypeError:
                message = f"Buffer.data: expected a NumPy array or bytes, got {type(data).__name__}"
                raise ScenarioError(message, code="SR-JSON-005") from None
        return {**values, "size": size}


class Tensor(Resource):
    """A tensor (VK_ARM_tensors)."""

    kind: ClassVar[str] = "tensor"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})
    retired: ClassVar[Mapping[str, str]] = {"alias_target": "give the tensor and the image the same memory_group"}

    uid: Uid
    dims: Items[I64] = Field(
        description="Shape, outermost dimension first; [] is a scalar. 0 or less: the size in the graph or content. "
        "Optional if `src` gives the shape."
    )
    format: str = Field(min_length=1, description="VkFormat with one component, such as VK_FORMAT_R8_SINT.")
    shader_access: ShaderAccess
    src: OptionalContent = Field(
        default=None,
        description="NumPy file (.npy) with the initial content in the tensor's type and shape, or an object. By "
        "default zeros.",
    )
    dst: OptionalPath = Field(default=None, description="NumPy file (.npy) for the content after the last command.")
    memory_group: OptionalMemoryGroup = Field(default=None, description="Resources in one group share memory.")
    tiling: Tiling | None = Field(default=None, description="Arrangement of the elements in memory; LINEAR by default.")
    data: Any = Field(default=None, description="Initial content, in place of src.")

    @classmethod
    def in_schema(cls, definition: dict[str, object]) -> dict[str, object]:
        return or_given_by_src(definition, "dims")

    @classmethod
    def completed(cls, values: dict[str, object]) -> dict[str, object]:
        shape = shape_in(values.get("src"))
        return values if "dims" in values or shape is None else {**values, "dims": list(shape)}


# Older files have true or false here. Both mean one level, and the loader warns.
Mips = Annotated[int, Field(ge=1, le=32), BeforeValidator(lambda value: 1 if isinstance(value, bool) else value)]


class Image(Resource):
    """A two-dimensional image with its sampler."""

    kind: ClassVar[str] = "image"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})

    uid: Uid
    format: str = Field(min_length=1, description="VkFormat, such as VK_FORMAT_R8G8B8A8_UNORM.")
    dims: Items[U32] = Field(
        description="Size in texels as [1, width, height, 1]. Optional if `src` has nested `values`: rows of texels."
    )
    shader_access: ShaderAccess
    mips: Mips = Field(
        default=1,
        description="Number of mip levels. Levels that src lacks are generated. A boolean (deprecated) means 1.",
    )
    src: OptionalContent = Field(
        default=None,
        description="DDS, PNG or NumPy file with the initial content, by extension, or an object. By default zeros.",
    )
    dst: OptionalPath = Field(
        default=None,
        description="DDS (all mip levels), PNG or NumPy file (the first) for the content after the last command.",
    )
    color_attachment: bool = Field(default=False, description="Whether dispatch_fragment may draw into the image.")
    min_filter: Filter = Field(default="NEAREST", description="Sampler filter for minification.")
    mag_filter: Filter = Field(default="NEAREST", description="Sampler filter for magnification.")
    mip_filter: Filter = Field(default="NEAREST", description="Sampler filter between mip levels.")
    border_address_mode: AddressMode = Field(
        default="CLAMP_EDGE", description="Sampler address mode in both directions outside of the image."
    )
    border_color: BorderColor = Field(
        default="FLOAT_TRANSPARENT_BLACK", description="Color outside of the image with the address mode CLAMP_BORDER."
    )
    custom_border_color: Annotated[Items[Number], Field(min_length=4, max_length=4)] | None = Field(
        default=None, description="RGBA of the border; needs border_color INT_CUSTOM_EXT or FLOAT_CUSTOM_EXT."
    )
    memory_group: OptionalMemoryGroup = Field(default=None, description="Resources in one group share memory.")
    tiling: Tiling | None = Field(
        default=None,
        description="Arrangement of the texels in memory. By default LINEAR in a memory group, else the fastest.",
    )
    data: Any = Field(default=None, description="Initial content, in place of src.")

    @classmethod
    def in_schema(cls, definition: dict[str, Json]) -> dict[str, Json]:
        mips = definition["properties"]["mips"]
        number = {key: mips.pop(key) for key in ("type", "minimum", "maximum")}
        mips["anyOf"] = [number, {"type": "boolean", "deprecated": True}]
        return or_given_by_src(definition, "dims")

    @classmethod
    def completed(cls, values: dict[str, Json]) -> dict[str, object]:
        shape = shape_in(values.get("src")) or ()
        if "dims" in values or len(shape) < 2:
            return values
        height, width = shape[-3:-1] if len(shape) > 2 else shape
        return {**values, "dims": [1, width, height, 1]}

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        color = self.custom_border_color
        if color is not None and "border_color" not in self.model_fields_set:
            message = "needs a border_color of INT_CUSTOM_EXT or FLOAT_CUSTOM_EXT"
            yield error("SR-CONFLICT-003", "/custom_border_color", message)
        if self.border_color == "INT_CUSTOM_EXT":
            if color is None:
                yield error("SR-CONFLICT-003", "/border_color", "INT_CUSTOM_EXT needs a custom_border_color")
            for index, value in enumerate(color or ()):
                if type(value) is not int or not -(2**31) <= value < 2**32:
                    message = f"INT_CUSTOM_EXT needs 32-bit integers, got {value!r}"
                    yield error("SR-CONFLICT-003", f"/custom_border_color/{index}", message)
        standard = "border_color" in self.model_fields_set and not self.border_color.endswith("_CUSTOM_EXT")
        if self.custom_border_color is not None and standard:
            message = f"has no effect with the border_color {self.border_color!r}"
            yield warning("SR-CONFLICT-002", "/custom_border_color", message)


class RawData(Sourced):
    """Host data for push constants."""

    kind: ClassVar[str] = "raw_data"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})

    uid: Uid
    src: RequiredContent | None = Field(default=None, description="NumPy file (.npy) with the data, or an object.")
    data: Any = Field(default=None, description="The data, in place of src.")


_WHOLE_SIZE = 2**64 - 1
_REMAINING = 2**32 - 1

_AccessName = Literal[
    "memory_write", "memory_read", "graph_write", "graph_read", "compute_shader_write", "compute_shader_read"
]
_StageName = Literal["graph", "compute", "graphics", "all"]
_LayoutName = Literal["tensor_aliasing", "general", "undefined"]


# The upper-case spelling of another dialect → the value.
SPELLINGS: dict[str, str] = {}


def _or_upper_case(names: object, prefix: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Accept the upper-case spellings of another dialect, too."""
    others = {prefix + name.upper(): name for name in get_args(names)}
    SPELLINGS.update(others)
    validator = BeforeValidator(lambda value: others.get(value, value) if isinstance(value, str) else value)
    return validator, WithJsonSchema({"enum": [*get_args(names), *others], "type": "string"})


Access = Annotated[_AccessName, *_or_upper_case(_AccessName, "ACCESS_")]
Stages = Items[Annotated[_StageName, *_or_upper_case(_StageName, "")]]
Layout = Annotated[_LayoutName, *_or_upper_case(_LayoutName, "IMAGE_LAYOUT_")]


class Barrier(Resource):
    """Any barrier."""

    uid: Uid
    src_access: Annotated[Access, Field(description="Memory accesses to finish before the barrier.")]
    dst_access: Annotated[Access, Field(description="Memory accesses that wait for the barrier.")]
    src_stage: Stages = Field(
        default=("all",), description="Pipeline stages of earlier commands to wait for; none if empty."
    )
    dst_stage: Stages = Field(
        default=("all",), description="Pipeline stages of later commands that wait; none if empty."
    )


class MemoryBarrier(Barrier):
    """A barrier over all memory (VkMemoryBarrier2)."""

    kind: ClassVar[str] = "memory_barrier"


class BufferBarrier(Barrier):
    """A barrier over a part of a buffer (VkBufferMemoryBarrier2)."""

    kind: ClassVar[str] = "buffer_barrier"
    refers_to: ClassVar[Targets] = {"buffer_resource": frozenset({"buffer"})}

    buffer_resource: Reference = Field(description="uid of the buffer.")
    size: ByteCount = Field(description="Number of bytes; 18446744073709551615 means all from the offset on.")
    offset: U64 = Field(default=0, description="First byte of the range.")

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        buffer = resource_of_class(resources, self.buffer_resource, Buffer)
        if buffer is not None:
            yield from range_contradictions(buffer, self.offset, None if self.size == _WHOLE_SIZE else self.size, "")


def range_contradictions(buffer: Buffer, offset: int, size: int | None, inside: str) -> Iterator[Diagnostic]:
    """Report a range that leaves the buffer. ``size`` None means the rest. ``inside`` is the pointer above the keys."""
    left = buffer.size - offset
    if left <= 0:
        message = f"the buffer {buffer.uid!r:.100} has {buffer.size} bytes, got the offset {offset}"
        yield error("SR-CONFLICT-009", f"{inside}/offset", message)
    elif size is not None and size > left:
        message = f"the buffer {buffer.uid!r:.100} has {left} bytes from offset {offset} on, got {size}"
        yield error("SR-CONFLICT-009", f"{inside}/size", message)


class SubresourceRange(Model):
    """A part of an image (VkImageSubresourceRange)."""

    base_mip_level: U32 = Field(default=0, description="First mip level.")
    level_count: Annotated[int, Field(ge=1, le=0xFFFF_FFFF)] = Field(
        default=1, description="Number of mip levels; 4294967295 means all from the first one on."
    )
    base_array_layer: U32 = Field(default=0, description="First array layer; images have one.")
    layer_count: Annotated[int, Field(ge=1, le=0xFFFF_FFFF)] = Field(
        default=1, description="Number of array layers; images have one."
    )


class ImageBarrier(Barrier):
    """A barrier over a part of an image, with a change of its layout (VkImageMemoryBarrier2)."""

    kind: ClassVar[str] = "image_barrier"
    refers_to: ClassVar[Targets] = {"image_resource": frozenset({"image"})}

    image_resource: Reference = Field(description="uid of the image.")
    old_layout: Layout = Field(description="Layout before the barrier; undefined discards the content.")
    new_layout: Layout = Field(description="Layout after the barrier: general or tensor_aliasing.")
    subresource_range: SubresourceRange = Field(
        default=SubresourceRange.model_construct(), description="Part of the image; by default its first mip level."
    )

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        image = resource_of_class(resources, self.image_resource, Image)
        if image is None:
            return
        part = self.subresource_range
        for name, base, count, total in (
            ("mip levels", "base_mip_level", "level_count", image.mips),
            ("array layers", "base_array_layer", "layer_count", 1),
        ):
            first, many = getattr(part, base), getattr(part, count)
            has = f"the image {image.uid!r:.100} has {total} {name if total > 1 else name[:-1]}"
            if first >= total:
                message = f"{has}, so {base} must be less than {total}, got {first}"
                yield error("SR-CONFLICT-010", f"/subresource_range/{base}", message)
            elif many != _REMAINING and first + many > total:
                yield error(
                    "SR-CONFLICT-010", f"/subresource_range/{count}", f"{has}, got {many} from number {first} on"
                )


class TensorBarrier(Barrier):
    """A barrier over a tensor (VkTensorMemoryBarrierARM)."""

    kind: ClassVar[str] = "tensor_barrier"
    refers_to: ClassVar[Targets] = {"tensor_resource": frozenset({"tensor"})}

    tensor_resource: Reference = Field(description="uid of the tensor.")
