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

    set: U32 = Field(description="Number of the descriptor set. dispatch_graph ignores it.")
    id: U32 = Field(
        description="Number of the binding in the set; for dispatch_graph that of the model's input or output."
    )
    resource_ref: Reference = Field(description="uid of the buffer, tensor or image to bind.")
    lod: U32 | None = Field(
        default=None,
        description=(
            "Mip level of the image to bind. By default all levels for a sampled image and the first one for "
            "a storage image."
        ),
    )
    descriptor_type: DescriptorType = Field(
        default="VK_DESCRIPTOR_TYPE_AUTO",
        description="Descriptor type. AUTO takes the one that the shader declares, which is right for all shaders.",
    )


Bindings = Annotated[tuple[Binding, ...], Field(strict=False)]
