"""The pydantic models of the attributes (of the shader, of an input or output, of a sampler) and their JSON Schema.

The models hold names of Vulkan's enums as text; `reading` looks them up. Source: "Vulkan Shader in TOSA Custom
Operation Attributes".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.json_schema import models_json_schema

from scenario_runner.custom_shader.attributes import SAMPLER_NAMES
from scenario_runner.formats import all_formats
from scenario_runner.graphs.model import DESCRIPTOR_TYPE_NAMES
from scenario_runner.scenario.model import U32
from scenario_runner.scenario.model_base import ModelBase
from scenario_runner.scenario.schema import without_null

OTHER_DESCRIPTOR_TYPES = {"VK_DESCRIPTOR_TYPE_STORAGE_TENSOR_EXT": "VK_DESCRIPTOR_TYPE_TENSOR_ARM"}
"""Names that the description of the attributes uses and Vulkan does not have, with Vulkan's."""


_Size = Annotated[int, Field(ge=1, le=0xFFFF_FFFF)]


def _enum(names: Any) -> dict[str, Any]:
    return {"enum": list(names)}


class Sampler(ModelBase):
    """How an image is sampled."""

    min_filter: str = Field(
        description="VkFilter where the image is made smaller.", json_schema_extra=_enum(SAMPLER_NAMES["min_filter"])
    )
    mag_filter: str = Field(
        description="VkFilter where the image is made larger.", json_schema_extra=_enum(SAMPLER_NAMES["mag_filter"])
    )
    address_mode_u: str = Field(
        description="VkSamplerAddressMode in x.", json_schema_extra=_enum(SAMPLER_NAMES["address_mode_u"])
    )
    address_mode_v: str = Field(
        description="VkSamplerAddressMode in y.", json_schema_extra=_enum(SAMPLER_NAMES["address_mode_v"])
    )
    border_color: str = Field(
        description="VkBorderColor, used by the address mode CLAMP_TO_BORDER.",
        json_schema_extra=_enum(SAMPLER_NAMES["border_color"]),
    )


class Resource(ModelBase):
    """One input or output: its keys without ``input_<index>_`` or ``output_<index>_``."""

    vkformat: str = Field(
        min_length=1,
        description="Name of the VkFormat of the elements or texels.",
        json_schema_extra=_enum(format.name for format in all_formats()),
    )
    vkdescriptortype: str = Field(
        min_length=1,
        description="Name of the VkDescriptorType of the shader's variable.",
        json_schema_extra=_enum((*DESCRIPTOR_TYPE_NAMES, *OTHER_DESCRIPTOR_TYPES)),
    )
    binding: U32 = Field(description="Binding of the shader's variable.")
    descriptorset: U32 = Field(description="Descriptor set of the shader's variable.")
    type: str | None = Field(
        default=None, description="Logical type, such as Tensor, Image or Buffer; the descriptor type decides."
    )
    sampler: Sampler | None = Field(default=None, description="Sampler of a VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER.")


class CustomShader(ModelBase):
    """The attributes of a custom operation that is a Vulkan compute shader."""

    entry_point: str = Field(min_length=1, description="Name of the shader's entry point; main for GLSL.")
    workgroup_sizes: Annotated[tuple[_Size, ...], Field(strict=False, min_length=3, max_length=3)] = Field(
        description=(
            "x, y and z. Converters write them as the number of workgroups of the dispatch; the description of the "
            "attributes calls them the local size."
        )
    )
    shader_language: Literal["", "SPIR-V", "GLSL", "HLSL"] = Field(
        default="", description="Language of shader_code; empty or left out for a placeholder without code."
    )
    shader_code: str | None = Field(
        default=None, description="Source text of GLSL or HLSL, or a SPIR-V module (32-bit little-endian) in base64."
    )
    push_constants: str = Field(
        default="", description="Names and sizes in bytes, in their order, such as 'scale: 4, bias: 4'."
    )


_INDEXED = "^(input|output)_(0|[1-9][0-9]*)_{name}$"


def json_schema() -> dict[str, Any]:
    """The schema as JSON data: an object whose further keys may be anything but indices with leading zeros."""
    _, generated = models_json_schema(
        [(CustomShader, "validation"), (Resource, "validation")], ref_template="#/$defs/{model}"
    )
    definitions = without_null(generated["$defs"])
    shader, resource = definitions.pop("CustomShader"), definitions.pop("Resource")
    for model in (shader, resource, *definitions.values()):
        for part in model["properties"].values():
            part.pop("title", None)
    for model in definitions.values():
        model.pop("title", None)
        model["additionalProperties"] = True
    languages = [name for name in shader["properties"]["shader_language"]["enum"] if name]
    with_language = {"properties": {"shader_language": {"enum": languages}}, "required": ["shader_language"]}
    with_code = {"properties": {"shader_code": {"minLength": 1}}, "required": ["shader_code"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Attributes of a custom operation with a Vulkan shader",
        "description": shader["description"],
        "type": "object",
        "properties": shader["properties"],
        "required": shader["required"],
        "patternProperties": {
            **{_INDEXED.format(name=name): part for name, part in resource["properties"].items()},
            "^(input|output)_0[0-9]+_": False,
        },
        "additionalProperties": True,
        "allOf": [
            {"if": with_language, "then": with_code},
            {"if": with_code, "then": with_language},
        ],
        "$defs": definitions,
    }
