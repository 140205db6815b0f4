"""The resources that hold data: buffer, tensor, image and raw_data, and the memory groups that they may share."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, model_validator

from scenario_runner.byte_data import array_of
from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.errors import ScenarioError
from scenario_runner.formats import AddressMode, BorderColor, Filter
from scenario_runner.scenario.model import (
    I64,
    U32,
    U64,
    Model,
    OptionalPath,
    RequiredPath,
    Resource,
    Resources,
    ShaderAccess,
    Sourced,
    Tiling,
    Uid,
    wrong,
)
from scenario_runner.scenario.shaders import Number


class MemoryGroup(Model):
    """Resources with the same memory group share one memory object."""

    id: str = Field(
        default="",
        validation_alias=AliasChoices("id", "uid"),
        description="Name of the group; empty means none.",
    )
    offset: U64 = Field(
        default=0,
        description=("First byte of the resource in the shared memory. Devices require an alignment, often 16 to 256."),
    )

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, values: Any) -> Any:
        if isinstance(values, dict) and "id" in values and "uid" in values:
            if values["id"] != values["uid"]:
                raise wrong(
                    f"'id' and 'uid' both name the group, and differ: {values['id']!r:.80} and {values['uid']!r:.80}"
                )
            return {key: value for key, value in values.items() if key != "uid"}
        return values

    @classmethod
    def in_schema(cls, definition: dict[str, Any]) -> dict[str, Any]:
        other = {"type": "string", "description": "Another spelling of `id`, from an older dialect."}
        definition["properties"]["uid"] = other
        return definition


OptionalMemoryGroup = Annotated[
    MemoryGroup | None, AfterValidator(lambda group: group if group is not None and group.id else None)
]


class Buffer(Resource):
    """A storage or uniform buffer; the shader decides what its bytes mean."""

    kind: ClassVar[str] = "buffer"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})
    required_in_json: ClassVar[frozenset[str]] = frozenset({"size"})

    uid: Uid
    size: Annotated[int, Field(ge=1, le=2**63 - 1)] = Field(
        default=None, validate_default=True, description="Size in bytes."
    )
    shader_access: ShaderAccess
    src: OptionalPath = Field(
        default=None,
        description=(
            "NumPy file (.npy) with the initial content: exactly `size` bytes of any type and shape. By default zeros."
        ),
    )
    dst: OptionalPath = Field(
        default=None,
        description="NumPy file (.npy) for the content after the last command, as 1-D int8.",
    )
    memory_group: OptionalMemoryGroup = Field(default=None, description="Resources in one group share memory.")
    data: Any = Field(default=None, description="Initial content, in place of src; gives the size where there is none.")

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        data = values.get("data")
        if "size" in values or data is None:
            return values
        data = array_of(data, str(values.get("uid")))
        size = getattr(data, "nbytes", None)  # also of arrays with types that have no buffer, such as bfloat16
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
    dims: Annotated[tuple[I64, ...], Field(strict=False)] = Field(
        description=(
            "Shape, outermost dimension first; [] is a scalar. A dimension of 0 or less comes from the "
            "graph, or from the tensor's content."
        )
    )
    format: str = Field(min_length=1, description="VkFormat with one component, such as VK_FORMAT_R8_SINT.")
    shader_access: ShaderAccess
    src: OptionalPath = Field(
        default=None,
        description=(
            "NumPy file (.npy) with the initial content, in the type and shape of the tensor. By default zeros."
        ),
    )
    dst: OptionalPath = Field(default=None, description="NumPy file (.npy) for the content after the last command.")
    memory_group: OptionalMemoryGroup = Field(default=None, description="Resources in one group share memory.")
    tiling: Tiling | None = Field(default=None, description="Arrangement of the elements in memory; LINEAR by default.")
    data: Any = Field(default=None, description="Initial content, in place of src.")


# Older files say true or false; both mean one level. The loader warns about it.
Mips = Annotated[int, Field(ge=1, le=32), BeforeValidator(lambda value: 1 if isinstance(value, bool) else value)]


class Image(Resource):
    """A two-dimensional image with its sampler."""

    kind: ClassVar[str] = "image"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})

    uid: Uid
    format: str = Field(min_length=1, description="VkFormat, such as VK_FORMAT_R8G8B8A8_UNORM.")
    dims: Annotated[tuple[U32, ...], Field(strict=False)] = Field(
        description="Size in texels as [1, width, height, 1]."
    )
    shader_access: ShaderAccess
    mips: Mips = Field(
        default=1,
        description=("Number of mip levels. Levels that src lacks are generated. A boolean (deprecated) means 1."),
    )
    src: OptionalPath = Field(
        default=None,
        description=("DDS, PNG or NumPy file with the initial content, by extension. By default zeros."),
    )
    dst: OptionalPath = Field(
        default=None,
        description=(
            "DDS, PNG or NumPy file for the content after the last command, by extension. DDS holds "
            "all mip levels, the others the first one."
        ),
    )
    color_attachment: bool = Field(default=False, description="Whether dispatch_fragment may draw into the image.")
    min_filter: Filter = Field(default="NEAREST", description="Sampler filter for minification.")
    mag_filter: Filter = Field(default="NEAREST", description="Sampler filter for magnification.")
    mip_filter: Filter = Field(default="NEAREST", description="Sampler filter between mip levels.")
    border_address_mode: AddressMode = Field(
        default="CLAMP_EDGE",
        description="Sampler address mode in both directions outside of the image.",
    )
    border_color: BorderColor = Field(
        default="FLOAT_TRANSPARENT_BLACK", description="Color outside of the image with the address mode CLAMP_BORDER."
    )
    custom_border_color: Annotated[tuple[Number, ...], Field(strict=False, min_length=4, max_length=4)] | None = Field(
        default=None, description="RGBA of the border; needs border_color INT_CUSTOM_EXT or FLOAT_CUSTOM_EXT."
    )
    memory_group: OptionalMemoryGroup = Field(default=None, description="Resources in one group share memory.")
    tiling: Tiling | None = Field(
        default=None,
        description=(
            "Arrangement of the texels in memory. By default LINEAR in a memory group, otherwise the "
            "fastest for this use."
        ),
    )
    data: Any = Field(default=None, description="Initial content, in place of src.")

    @classmethod
    def in_schema(cls, definition: dict[str, Any]) -> dict[str, Any]:
        mips = definition["properties"]["mips"]
        number = {key: mips.pop(key) for key in ("type", "minimum", "maximum")}
        mips["anyOf"] = [number, {"type": "boolean", "deprecated": True}]
        return definition

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
    src: RequiredPath | None = Field(default=None, description="NumPy file (.npy) with the data.")
    data: Any = Field(default=None, description="The data, in place of src.")
