"""The models of commands: dispatches, optical flows, fills, copies, frame boundaries and barriers.

`drawing` has the model of draws.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.errors.text import Json
from scenario_runner.scenario.entries import (
    STORAGE,
    U32,
    U64,
    BeyondReference,
    ByteCount,
    Command,
    ImplicitBarrier,
    Items,
    Model,
    OptionalReference,
    Part,
    Reference,
    References,
    Resources,
    Targets,
    Use,
    repeated,
    resource_of_class,
)
from scenario_runner.scenario.inline_contents import Number
from scenario_runner.scenario.resources import Buffer, Image, range_contradictions
from scenario_runner.scenario.shaders import (
    RAW_DATA,
    SHADER,
    Shader,
    ShaderSubstitutions,
    substitution_contradictions,
    target_contradictions,
    wrong_stage,
)

DescriptorType = Literal[
    "VK_DESCRIPTOR_TYPE_AUTO",
    "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE",
    "VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE",
    "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER",
    "VK_DESCRIPTOR_TYPE_SAMPLER",
    "VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER",
    "VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER",
    "VK_DESCRIPTOR_TYPE_STORAGE_BUFFER",
    "VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER",
    "VK_DESCRIPTOR_TYPE_TENSOR_ARM",
]


class BoundResource(Part):
    """A resource in an array of descriptors. A bare uid means the whole resource; an empty one means none."""

    resource_ref: str = Field(description="uid of the buffer, tensor or image; an empty string for none.")
    lod: U32 | None = Field(default=None, description="Mip level to bind, as in a binding.")
    offset: U64 = Field(default=0, description="First byte that the shader sees of a buffer.")
    size: ByteCount | None = Field(default=None, description="Number of bytes of a buffer; by default the rest.")


class Binding(Model):
    """A resource, or an array of resources, at a descriptor set and binding."""

    set: U32 = Field(description="Number of the descriptor set. dispatch_graph ignores it.")
    id: U32 = Field(description="Number of the binding; for dispatch_graph, of the model's input or output.")
    resource_ref: Reference = Field(
        default="", description="uid of the buffer, tensor or image to bind. Required without resource_refs."
    )
    lod: U32 | None = Field(
        default=None,
        description="Mip level to bind. By default all levels of a sampled image, and the first of a storage image.",
    )
    descriptor_type: DescriptorType = Field(
        default="VK_DESCRIPTOR_TYPE_AUTO",
        description="Descriptor type. AUTO, the type that the shader declares, is right for all shaders.",
    )
    offset: BeyondReference[U64] = Field(default=0, description="First byte that the shader sees of a buffer.")
    size: BeyondReference[ByteCount | None] = Field(
        default=None, description="Number of bytes that the shader sees of a buffer; by default the rest."
    )
    format: BeyondReference[str | None] = Field(
        default=None,
        description="VkFormat of the texels in a texel buffer; by default the format that the shader declares.",
    )
    resource_refs: BeyondReference[Annotated[Items[BoundResource], Field(min_length=1, max_length=65_536)]] = Field(
        default=(), description="Resources for an array of descriptors, instead of resource_ref."
    )

    @classmethod
    def in_schema(cls, definition: dict[str, Json]) -> dict[str, Json]:
        return {**definition, "oneOf": [{"required": ["resource_ref"]}, {"required": ["resource_refs"]}]}

    def parts(self) -> Iterator[tuple[str, int, "Binding | BoundResource"]]:
        """Yield each bound resource, after the pointer inside the binding and the index in the array."""
        if not self.resource_refs:
            yield "", 0, self
        for number, part in enumerate(self.resource_refs):
            if part.resource_ref:
                yield f"/resource_refs/{number}", number, part


_PARTS = frozenset({"offset", "size", "format", "resource_refs"})
Bindings = Items[Binding]


def binding_contradictions(
    bindings: Sequence[Binding], resources: Resources, *, whole: bool = False
) -> Iterator[Diagnostic]:
    """Find contradictions in the ``bindings`` of a command. ``whole`` is true for a command of whole resources."""
    for index, first in repeated(map(attrgetter("set", "id"), bindings)):
        where = f"set {bindings[index].set}, id {bindings[index].id}"
        yield error("SR-CONFLICT-005", f"/bindings/{index}", f"{where} is already bound by entry {first}")
    for index, binding in enumerate(bindings):
        if whole or binding.lod or binding.offset or binding.size or binding.resource_refs or not binding.resource_ref:
            yield from _part_contradictions(binding, f"/bindings/{index}", resources, whole=whole)


def _part_contradictions(binding: Binding, pointer: str, resources: Resources, *, whole: bool) -> Iterator[Diagnostic]:
    """Find contradictions in a binding with parts of resources, or with an array."""
    for key in sorted(_PARTS & binding.model_fields_set) if whole else ():
        message = f"a graph or optical flow takes whole resources, got {key!r}"
        yield error("SR-CONFLICT-011", f"{pointer}/{key}", message, "remove it")
    if not binding.resource_ref and not binding.resource_refs:
        yield error("SR-JSON-004", pointer, "the required key 'resource_ref' is missing")
    elif binding.resource_ref and binding.resource_refs:
        message = "expected one of 'resource_ref' and 'resource_refs', got both"
        yield error("SR-JSON-004", pointer, message, "give an array of descriptors resource_refs alone")
    for key in ("lod", "offset", "size") if binding.resource_refs else ():
        if getattr(binding, key):
            yield warning("SR-CONFLICT-002", f"{pointer}/{key}", "has no effect beside resource_refs")
    for inside, _, part in binding.parts():
        resource = resources.get(part.resource_ref)
        yield from missing_level(f"{pointer}{inside}", part.resource_ref, part.lod, resources)
        yield from keys_without_effect(part, part.resource_ref, f"{pointer}{inside}", resources)
        if isinstance(resource, Buffer):
            yield from range_contradictions(resource, part.offset, part.size, f"{pointer}{inside}")


_KIND_OF_KEY = {"offset": "buffer", "size": "buffer", "dtype": "buffer", "lod": "image"}


def keys_without_effect(part: Model, uid: str, inside: str, resources: Resources) -> Iterator[Diagnostic]:
    """Report keys of a part of the resource ``uid`` that only resources of another kind have."""
    resource = resources.get(uid)
    for key, field in type(part).model_fields.items():
        kind = _KIND_OF_KEY.get(key)
        if resource is not None and kind not in (None, resource.kind) and getattr(part, key) not in (field.default, 0):
            message = f"has no effect on the {resource.kind} {resource.uid!r:.100}"
            yield warning("SR-CONFLICT-002", f"{inside}/{key}", message)


def missing_level(inside: str, uid: str, lod: int | None, resources: Resources) -> Iterator[Diagnostic]:
    """Report a mip level that an image lacks."""
    image = resource_of_class(resources, uid, Image) if lod else None
    if image is not None and lod is not None and lod >= image.mips:
        message = f"the last mip level of {image.uid!r:.100} is {image.mips - 1}, got {lod}"
        yield error("SR-CONFLICT-007", f"{inside}/lod", message)


class DispatchCompute(Command):
    """Runs a compute shader."""

    kind: ClassVar[str] = "dispatch_compute"
    refers_to: ClassVar[Targets] = {"shader_ref": SHADER, "push_data_ref": RAW_DATA, "bindings.resource_ref": STORAGE}

    shader_ref: Reference = Field(description="uid of a compute shader.")
    bindings: Bindings = Field(description="The resources of the shader, each at its own set and binding.")
    rangeND: Annotated[Items[U32], Field(min_length=1, max_length=3)] = Field(  # noqa: N815
        description="Number of workgroups in x, y and z; omitted dimensions are 1."
    )
    push_data_ref: OptionalReference = Field(
        default=None,
        description="uid of the raw_data with all push constants of the shader, at most push_constants_size bytes.",
    )
    implicit_barrier: ImplicitBarrier = True

    @classmethod
    def in_schema(cls, definition: dict[str, Json]) -> dict[str, Json]:
        counts = definition["properties"]["rangeND"]
        usual = {key: counts.pop(key) for key in ("type", "items", "minItems", "maxItems")}
        longer = {"type": "array", "prefixItems": [usual["items"]] * 3, "items": {"const": 1}, "minItems": 4}
        counts["anyOf"] = [usual, {**longer, "deprecated": True}]
        return definition

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        yield from wrong_stage("/shader_ref", self.shader_ref, "compute", resources)
        yield from binding_contradictions(self.bindings, resources)

    def shaders(self) -> tuple[str, ...]:
        return (self.shader_ref,)


class PushConstantMap(Model):
    """Push constants of one shader inside a graph."""

    push_data_ref: Reference = Field(description="uid of the raw_data with the push constants of the shader.")
    shader_target: str = Field(min_length=1, description="Name of the shader's module or segment.")


class DispatchGraph(Command):
    """Runs the graph of a VGF file."""

    kind: ClassVar[str] = "dispatch_graph"
    refers_to: ClassVar[Targets] = {
        "graph_ref": frozenset({"graph"}),
        "bindings.resource_ref": STORAGE,
        "push_constants.push_data_ref": RAW_DATA,
        "shader_substitutions.shader_ref": SHADER,
    }

    graph_ref: Reference = Field(description="uid of a graph resource (a VGF file).")
    bindings: Bindings = Field(description="Inputs and outputs of the graph.")
    push_constants: Items[PushConstantMap] = Field(
        default=(), description="Push constants of the shaders in the graph."
    )
    shader_substitutions: ShaderSubstitutions = Field(
        default=(),
        description="Shaders for placeholder nodes; they override the substitutions of the graph resource.",
    )
    implicit_barrier: ImplicitBarrier = True

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        yield from binding_contradictions(self.bindings, resources, whole=True)
        targets = [push_constant.shader_target for push_constant in self.push_constants]
        yield from target_contradictions(targets, "/push_constants", "shader_target")
        yield from substitution_contradictions(self.shader_substitutions, resources)


class DispatchSpirvGraph(Command):
    """Runs the graph of a SPIR-V module."""

    kind: ClassVar[str] = "dispatch_spirv_graph"
    refers_to: ClassVar[Targets] = {
        "graph_ref": SHADER,
        "bindings.resource_ref": frozenset({"tensor", "image"}),
        "graph_constants": frozenset({"graph_constant"}),
    }

    graph_ref: Reference = Field(description="uid of a SPIR-V shader resource that contains a graph.")
    bindings: Bindings = Field(description="Inputs and outputs of the graph.")
    graph_constants: References = Field(
        default=(),
        description="uids of graph_constant resources; the position is the id of the constant in the module, from 0.",
    )
    implicit_barrier: ImplicitBarrier = True

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        shader = resource_of_class(resources, self.graph_ref, Shader)
        if shader is not None and shader.type != "SPIR-V":
            message = f"expected a shader of the type 'SPIR-V', got {shader.uid!r:.100} of the type {shader.type!r}"
            yield error("SR-GRAPH-011", "/graph_ref", message)
        yield from binding_contradictions(self.bindings, resources, whole=True)


ExecutionFlag = Literal[
    "disable_temporal_hints",
    "input_unchanged",
    "reference_unchanged",
    "input_is_previous_reference",
    "reference_is_previous_input",
]
Length = Annotated[int, Field(ge=1, le=0xFFFF_FFFF)]


class OpticalFlowBindings(Model):
    """The images of an optical flow."""

    search_image: Binding = Field(description="The moving image, the input of the optical flow.")
    template_image: Binding = Field(description="The image to compare with, the reference of the optical flow.")
    output_image: Binding = Field(
        description="Image for the motion vectors in texels, from the search image to its content in the template."
    )
    hint_motion_vectors: Binding | None = Field(
        default=None, description="Image with initial motion vectors, in the size and format of the output image."
    )
    output_cost: Binding | None = Field(default=None, description="Image for the cost of each motion vector.")

    def given(self) -> dict[str, Binding]:
        """Return the given bindings by key."""
        return {name: binding for name, binding in self if binding is not None}


class DispatchOpticalFlow(Command):
    """Estimates the motion between two images."""

    kind: ClassVar[str] = "dispatch_optical_flow"

    width: Length = Field(description="Width of the search image in texels.")
    height: Length = Field(description="Height of the search image in texels.")
    grid_size: Literal["1x1", "2x2", "4x4", "8x8"] = Field(
        description="Width and height in texels of the area of a motion vector."
    )
    bindings: OpticalFlowBindings = Field(description="The images of the optical flow, each at its own set and id.")
    performance_level: Literal["unknown", "slow", "medium", "fast"] = Field(
        default="medium", description="Performance level: a faster one is less accurate."
    )
    execution_flags: Items[ExecutionFlag] = Field(
        default=(),
        description="Changes of the images since the previous optical flow of the session, each flag at most once.",
    )
    mean_flow_l1_norm_hint: U32 = Field(
        default=0, description="Expected mean length of the motion, less than the larger of width and height."
    )
    implicit_barrier: ImplicitBarrier = True

    def references(self) -> Iterable[Use]:
        for name, binding in self.bindings.given().items():
            if binding.resource_ref:
                yield f"/bindings/{name}/resource_ref", binding.resource_ref, frozenset({"image"})

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        longer, hint = max(self.width, self.height), self.mean_flow_l1_norm_hint
        if hint >= longer:
            message = f"expected less than {longer} (the larger of width and height), got {hint}"
            yield error("SR-CONFLICT-008", "/mean_flow_l1_norm_hint", message)
        for index, _ in repeated(self.execution_flags):
            message = f"the flag {self.execution_flags[index]!r} is given twice"
            yield error("SR-CONFLICT-004", f"/execution_flags/{index}", message)
        images = self.bindings.given()
        names, bindings = list(images), list(images.values())
        for index, first in repeated((binding.set, binding.id) for binding in bindings):
            where = f"set {bindings[index].set}, id {bindings[index].id}"
            message = f"{where} is already bound by {names[first]!r}"
            yield error("SR-CONFLICT-005", f"/bindings/{names[index]}", message)
        for name, binding in images.items():
            yield from _part_contradictions(binding, f"/bindings/{name}", resources, whole=True)


_FILLED = frozenset({"buffer", "image"})
Channels = Annotated[
    Items[Number],
    Field(min_length=1, max_length=4),
    BeforeValidator(lambda value: value if isinstance(value, list | tuple) else [value]),
]


class Fill(Command):
    """Fills a part of a buffer, or a mip level of an image, with one value."""

    kind: ClassVar[str] = "fill"
    beyond_reference: ClassVar[bool] = True

    resource_ref: Reference = Field(description="uid of the buffer or image.")
    value: Channels = Field(
        description="A number. For an image, also the channels R, G, B, A as a shader writes them, or depth and "
        "stencil; missing channels are 0, alpha is 1."
    )
    dtype: Literal["float32", "int32", "uint32"] = Field(default="float32", description="Type of a value in a buffer.")
    offset: U64 = Field(default=0, description="First byte in a buffer, a multiple of 4.")
    size: ByteCount | None = Field(
        default=None, description="Number of bytes in a buffer, a multiple of 4; by default the rest."
    )
    lod: U32 = Field(default=0, description="Mip level of an image.")
    implicit_barrier: ImplicitBarrier = True
    debug_name: str | None = Field(default=None, description="Name in reports; by default the uid.")

    @classmethod
    def in_schema(cls, definition: dict[str, Json]) -> dict[str, Json]:
        value = definition["properties"]["value"]
        channels = {key: value.pop(key) for key in ("type", "items", "minItems", "maxItems")}
        value["anyOf"] = [{"type": "number"}, channels]
        return definition

    def references(self) -> Iterable[Use]:
        return [("/resource_ref", self.resource_ref, _FILLED)]

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        yield from missing_level("", self.resource_ref, self.lod, resources)
        yield from keys_without_effect(self, self.resource_ref, "", resources)


class CopyPlace(Part):
    """A place in a buffer, or a mip level of an image. A bare uid means the first byte or level."""

    resource_ref: Reference = Field(description="uid of the buffer or image.")
    offset: U64 = Field(default=0, description="First byte in a buffer.")
    lod: U32 = Field(default=0, description="Mip level of an image.")


class Copy(Command):
    """Copies bytes between buffers, a mip level between images, or a mip level with packed rows from or to a buffer."""

    model_config = ConfigDict(populate_by_name=True)

    kind: ClassVar[str] = "copy"
    beyond_reference: ClassVar[bool] = True

    from_: CopyPlace = Field(alias="from", description="The place to read. Python calls it `from_`.")
    to: CopyPlace = Field(description="The place to write.")
    size: ByteCount | None = Field(
        default=None, description="Number of bytes to read from a buffer; by default the rest."
    )
    implicit_barrier: ImplicitBarrier = True
    debug_name: str | None = Field(default=None, description="Name in reports; by default both uids.")

    def references(self) -> Iterable[Use]:
        return [("/from", self.from_.resource_ref, _FILLED), ("/to", self.to.resource_ref, _FILLED)]

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        for key, place in (("/from", self.from_), ("/to", self.to)):
            yield from missing_level(key, place.resource_ref, place.lod, resources)
            yield from keys_without_effect(place, place.resource_ref, key, resources)
        if self.size is not None and isinstance(resources.get(self.from_.resource_ref), Image):
            yield warning("SR-CONFLICT-002", "/size", "has no effect: a copy from an image reads a whole mip level")


class MarkBoundary(Command):
    """Ends a frame: all commands before it are submitted and finished before the next command starts."""

    kind: ClassVar[str] = "mark_boundary"
    refers_to: ClassVar[Targets] = {"resources": STORAGE}

    resources: References = Field(
        description="uids of buffers, images and tensors to capture here, for `--capture-dir` or `result.frames`."
    )
    frame_id: int | None = Field(
        default=None,
        ge=0,
        le=0xFFFF_FFFF_FFFF_FFFF,
        description="Number of the frame, for its folder `frame_<id>`. By default the number of earlier frames.",
    )


class DispatchBarrier(Command):
    """Inserts barriers, in the order of the commands."""

    kind: ClassVar[str] = "dispatch_barrier"
    refers_to: ClassVar[Targets] = {
        f"{kind}_barrier_refs": frozenset({f"{kind}_barrier"}) for kind in ("image", "tensor", "memory", "buffer")
    }

    image_barrier_refs: References = Field(default=(), description="uids of the image_barrier resources to insert.")
    tensor_barrier_refs: References = Field(default=(), description="uids of the tensor_barrier resources to insert.")
    memory_barrier_refs: References = Field(default=(), description="uids of the memory_barrier resources to insert.")
    buffer_barrier_refs: References = Field(default=(), description="uids of the buffer_barrier resources to insert.")
