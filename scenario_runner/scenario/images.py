"""The image resource."""

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from scenario_runner.sampling import AddressMode, BorderColor, Filter
from scenario_runner.scenario.memory import OptionalMemoryGroup
from scenario_runner.scenario.model import U32, Model, OptionalPath, ShaderAccess, Tiling, Uid
from scenario_runner.scenario.shaders import Number


def _one_level_for_bool(value: Any) -> Any:
    # Older files say true or false; both mean one level. The loader warns about it.
    return 1 if isinstance(value, bool) else value


Mips = Annotated[int, Field(ge=1, le=32), BeforeValidator(_one_level_for_bool)]


class Image(Model):
    """A two-dimensional image with its sampler."""

    kind: ClassVar[str] = "image"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})

    uid: Uid = Field(description="Name of the resource, unique in the file.")
    format: str = Field(min_length=1, description="Name of a VkFormat, for instance VK_FORMAT_R8G8B8A8_UNORM.")
    dims: Annotated[tuple[U32, ...], Field(strict=False)] = Field(
        description="Size in texels as [1, width, height, 1]."
    )
    shader_access: ShaderAccess = Field(description="How shaders use the image.")
    mips: Mips = Field(
        default=1,
        description="Number of mip levels; the levels below the first are generated. A boolean (deprecated) means 1.",
    )
    src: OptionalPath = Field(default=None, description="DDS, PNG or NumPy file with the initial content.")
    dst: OptionalPath = Field(
        default=None, description="DDS or PNG file that receives the content after the last command."
    )
    color_attachment: bool = Field(default=False, description="Whether dispatch_fragment draws into the image.")
    min_filter: Filter = Field(default="NEAREST", description="Sampler filter where the image is shrunk.")
    mag_filter: Filter = Field(default="NEAREST", description="Sampler filter where the image is enlarged.")
    mip_filter: Filter = Field(default="NEAREST", description="Sampler filter between mip levels.")
    border_address_mode: AddressMode = Field(
        default="CLAMP_EDGE", description="What the sampler gives outside of the image."
    )
    border_color: BorderColor = Field(
        default="FLOAT_TRANSPARENT_BLACK", description="Color of the border with CLAMP_BORDER."
    )
    custom_border_color: Annotated[tuple[Number, ...], Field(strict=False, min_length=4, max_length=4)] | None = Field(
        default=None, description="RGBA of the border; needs border_color INT_CUSTOM_EXT or FLOAT_CUSTOM_EXT."
    )
    memory_group: OptionalMemoryGroup = Field(default=None, description="Memory shared with other resources.")
    tiling: Tiling | None = Field(
        default=None, description="Arrangement of the texels; by default what suits the device."
    )
    data: Any = Field(default=None, description="Initial content, in place of src.")
