"""A binding: which resource a shader or graph sees at which descriptor."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.scenario.entry import STORAGE, Resources, Use, found, repeated
from scenario_runner.scenario.model import U32, Model, Reference

if TYPE_CHECKING:
    from scenario_runner.scenario.images import Image

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


def binding_references(bindings: Iterable[Binding], kinds: frozenset[str] = STORAGE) -> Iterator[Use]:
    """The references of the ``bindings`` of a command."""
    for index, binding in enumerate(bindings):
        yield f"/bindings/{index}/resource_ref", binding.resource_ref, kinds


def binding_contradictions(bindings: Sequence[Binding], resources: Resources) -> Iterator[Diagnostic]:
    """What does not fit together in the ``bindings`` of a command."""
    for index, first in repeated([(binding.set, binding.id) for binding in bindings]):
        where = f"set {bindings[index].set}, id {bindings[index].id}"
        yield error("SR-CONFLICT-005", f"/bindings/{index}", f"{where} is already bound by entry {first}")
    for index, binding in enumerate(bindings):
        if binding.lod:
            inside, uid = f"/bindings/{index}", binding.resource_ref
            yield from missing_level(inside, uid, binding.lod, resources)
            resource = resources.get(uid)
            if resource is not None and resource.kind != "image":
                yield warning("SR-CONFLICT-002", f"{inside}/lod", f"has no effect on the {resource.kind} {uid!r:.100}")


def missing_level(inside: str, uid: str, lod: int | None, resources: Resources) -> Iterator[Diagnostic]:
    """A mip level that an image does not have."""
    image: Image | None = found(resources, uid, "image") if lod else None
    if image is not None and lod is not None and lod >= image.mips:
        message = f"the last mip level of {image.uid!r:.100} is {image.mips - 1}, got {lod}"
        yield error("SR-CONFLICT-007", f"{inside}/lod", message)
