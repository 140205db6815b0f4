"""The image resource."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.sampling import AddressMode, BorderColor, Filter
from scenario_runner.scenario.entry import Resource, Resources
from scenario_runner.scenario.memory import OptionalMemoryGroup
from scenario_runner.scenario.model import U32, OptionalPath, ShaderAccess, Tiling, Uid
from scenario_runner.scenario.shaders import Number


def _one_level_for_bool(value: Any) -> Any:
    # Older files say true or false; both mean one level. The loader warns about it.
    return 1 if isinstance(value, bool) else value


Mips = Annotated[int, Field(ge=1, le=32), BeforeValidator(_one_level_for_bool)]


class Image(Resource):
    """A two-dimensional image with its sampler."""

    kind: ClassVar[str] = "image"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})

    uid: Uid
    format: str = Field(min_length=1, description="Name of a VkFormat, for instance VK_FORMAT_R8G8B8A8_UNORM.")
    dims: Annotated[tuple[U32, ...], Field(strict=False)] = Field(
        description="Size in texels as [1, width, height, 1]."
    )
    shader_access: ShaderAccess
    mips: Mips = Field(
        default=1,
        description=(
            "Number of mip levels. Levels that src does not contain are generated when it is loaded. A "
            "boolean (deprecated) means 1."
        ),
    )
    src: OptionalPath = Field(
        default=None,
        description=(
            "DDS, PNG or NumPy file with the initial content; the extension decides. Without it the image starts "
            "as zeros."
        ),
    )
    dst: OptionalPath = Field(
        default=None,
        description=(
            "DDS, PNG or NumPy file that the content is written to after the last command; the extension "
            "decides. DDS holds all mip levels, the others the first one."
        ),
    )
    color_attachment: bool = Field(default=False, description="Whether dispatch_fragment may draw into the image.")
    min_filter: Filter = Field(
        default="NEAREST", description="Sampler filter for minification: the image is sampled at less than its size."
    )
    mag_filter: Filter = Field(
        default="NEAREST", description="Sampler filter for magnification: the image is sampled at more than its size."
    )
    mip_filter: Filter = Field(default="NEAREST", description="Sampler filter between mip levels.")
    border_address_mode: AddressMode = Field(
        default="CLAMP_EDGE",
        description="Sampler address mode in both directions, for coordinates outside of the image.",
    )
    border_color: BorderColor = Field(
        default="FLOAT_TRANSPARENT_BLACK", description="Color outside of the image with the address mode CLAMP_BORDER."
    )
    custom_border_color: Annotated[tuple[Number, ...], Field(strict=False, min_length=4, max_length=4)] | None = Field(
        default=None, description="RGBA of the border; needs border_color INT_CUSTOM_EXT or FLOAT_CUSTOM_EXT."
    )
    memory_group: OptionalMemoryGroup = Field(
        default=None, description="Memory group, for resources that share memory."
    )
    tiling: Tiling | None = Field(
        default=None,
        description=(
            "Arrangement of the texels in memory. By default LINEAR in a memory group, else the fastest that "
            "the device has for this use."
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
