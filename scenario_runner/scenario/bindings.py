"""A binding: which resource a shader or graph sees at which descriptor."""

from typing import Annotated, Literal

from pydantic import Field

from scenario_runner.scenario.model import U32, Model, Reference

DescriptorType = Literal[
    "VK_DESCRIPTOR_TYPE_AUTO",
    "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE",
    "VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE",
    "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER",
    "VK_DESCRIPTOR_TYPE_STORAGE_BUFFER",
    "VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER",
    "VK_DESCRIPTOR_TYPE_TENSOR_ARM",
]


class Binding(Model):
    """A resource at a descriptor set and binding."""

    set: U32 = Field(description="Descriptor set.")
    id: U32 = Field(description="Binding in the set.")
    resource_ref: Reference = Field(description="uid of a buffer, tensor or image.")
    lod: U32 | None = Field(
        default=None, description="Mip level of an image to bind; by default the image with all of its levels."
    )
    descriptor_type: DescriptorType = Field(
        default="VK_DESCRIPTOR_TYPE_AUTO", description="Kind of descriptor; AUTO takes what the shader declares."
    )


Bindings = Annotated[tuple[Binding, ...], Field(strict=False)]
