"""The model of dispatch_fragment: shaders, vertices and attachments of a draw."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Final, Literal, get_args

from pydantic import Field

from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.scenario.commands import Bindings, binding_contradictions, missing_level
from scenario_runner.scenario.entries import (
    I32,
    STORAGE,
    U32,
    U64,
    BeyondReference,
    Command,
    ImplicitBarrier,
    Items,
    Model,
    OptionalReference,
    Part,
    Reference,
    Resources,
    Targets,
    Use,
    repeated,
)
from scenario_runner.scenario.shaders import RAW_DATA, SHADER, wrong_stage


class ColorAttachment(Part):
    """A mip level of an image to draw into. A bare uid means the first level."""

    resource_ref: Reference = Field(description="uid of the image.")
    lod: U32 = Field(default=0, description="Mip level.")


Extent = Annotated[int, Field(ge=1, le=0xFFFF_FFFF)]
Float32 = Annotated[float, Field(ge=-3.4028234e38, le=3.4028234e38)]
Depth = Annotated[float, Field(ge=0.0, le=1.0)]
PolygonMode = Literal["FILL", "LINE", "POINT"]
Topology = Literal["POINT_LIST", "LINE_LIST", "LINE_STRIP", "TRIANGLE_LIST", "TRIANGLE_STRIP", "TRIANGLE_FAN"]
CompareOp = Literal["NEVER", "LESS", "EQUAL", "LESS_OR_EQUAL", "GREATER", "NOT_EQUAL", "GREATER_OR_EQUAL", "ALWAYS"]
# A name's index is the number in Vulkan.
POLYGON_MODES: Final[tuple[str, ...]] = get_args(PolygonMode)
TOPOLOGIES: Final[tuple[str, ...]] = get_args(Topology)
COMPARE_OPS: Final[tuple[str, ...]] = get_args(CompareOp)


class VertexAttribute(Model):
    """An input of the vertex shader, read from a buffer."""

    location: U32 = Field(description="Location of the input in the vertex shader.")
    resource_ref: Reference = Field(description="uid of the buffer.")
    format: str = Field(description="VkFormat of an element, like VK_FORMAT_R32G32_SFLOAT.")
    stride: U32 | None = Field(
        default=None,
        description="Bytes from an element to the next; 0 for a single element. By default the size of the format.",
    )
    offset: U64 = Field(default=0, description="First byte in the buffer.")
    input_rate: Literal["VERTEX", "INSTANCE"] = Field(
        default="VERTEX", description="Whether each vertex or each instance has an element."
    )


class IndexBuffer(Model):
    """A buffer with the number of each vertex."""

    resource_ref: Reference = Field(description="uid of the buffer.")
    index_type: Literal["UINT8", "UINT16", "UINT32"] = Field(default="UINT32", description="Type of an index.")
    offset: U64 = Field(default=0, description="First byte in the buffer, a multiple of the size of an index.")


class Viewport(Model):
    """The part of the attachments to draw into, in texels, and the range of depths."""

    x: Float32 = Field(default=0.0, description="Left edge.")
    y: Float32 = Field(default=0.0, description="Upper edge.")
    width: Annotated[Float32, Field(gt=0.0)] | None = Field(
        default=None, description="Width; by default the width of the draw."
    )
    height: Float32 | None = Field(
        default=None, description="Height; by default the height of the draw. A negative height turns the picture over."
    )
    min_depth: Depth = Field(default=0.0, description="Depth of the near plane.")
    max_depth: Depth = Field(default=1.0, description="Depth of the far plane.")


class DepthBias(Model):
    """Additions to the depth of each triangle."""

    constant: Float32 = Field(default=0.0, description="Addition, in the smallest steps of the format.")
    slope: Float32 = Field(default=0.0, description="Factor of the triangle's slope.")
    clamp: Float32 = Field(default=0.0, description="Largest addition, or smallest if negative; 0 for no limit.")


class DepthAttachment(Model):
    """The image for the depth test."""

    resource_ref: Reference = Field(description="uid of an image with a depth format.")
    lod: U32 = Field(default=0, description="Mip level.")
    compare_op: CompareOp = Field(default="LESS", description="Comparison of a new depth with the depth in the image.")
    write: bool = Field(default=True, description="Store the depths that pass.")
    bias: DepthBias | None = Field(default=None, description="Additions to the depths of triangles.")
    clamp: bool = Field(default=False, description="Clamp depths to the range of the viewport, instead of clipping.")


class DispatchFragment(Command):
    """Draws primitives with a vertex and a fragment shader, by default a triangle."""

    kind: ClassVar[str] = "dispatch_fragment"
    refers_to: ClassVar[Targets] = {
        "vertex_shader_ref": SHADER,
        "fragment_shader_ref": SHADER,
        "bindings.resource_ref": STORAGE,
        "push_data_ref": RAW_DATA,
        "vertex_attributes.resource_ref": frozenset({"buffer"}),
        "index_buffer.resource_ref": frozenset({"buffer"}),
        "depth_attachment.resource_ref": frozenset({"image"}),
    }

    vertex_shader_ref: Reference = Field(description="uid of the vertex shader.")
    fragment_shader_ref: Reference = Field(description="uid of the fragment shader.")
    bindings: Bindings = Field(description="The resources of the shaders, each at its own set and binding.")
    color_attachment_refs: Items[ColorAttachment] = Field(
        default=(),
        description="Images to draw into, by the location of the shader's output. Required without render_extent.",
    )
    render_extent: Annotated[Items[Extent], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        description="Width and height to draw; default: the first attachment's size. Required without attachments.",
    )
    debug_name: str | None = Field(default=None, description="Name in reports; by default the fragment shader's uid.")
    push_data_ref: OptionalReference = Field(
        default=None, description="uid of the raw_data with the push constants of the shaders."
    )
    vertex_count: BeyondReference[U32 | None] = Field(
        default=None, description="Number of vertices or indices; by default 3, or all indices from first_index on."
    )
    instance_count: BeyondReference[U32] = Field(default=1, description="Number of instances.")
    first_instance: BeyondReference[U32] = Field(default=0, description="Number of the first instance.")
    first_vertex: BeyondReference[I32] = Field(
        default=0, description="Number of the first vertex. With an index_buffer it is added to each index."
    )
    first_index: BeyondReference[U32] = Field(default=0, description="First index to use, with an index_buffer.")
    topology: BeyondReference[Topology] = Field(default="TRIANGLE_LIST", description="How vertices form primitives.")
    vertex_attributes: BeyondReference[Items[VertexAttribute]] = Field(
        default=(), description="The inputs of the vertex shader."
    )
    index_buffer: BeyondReference[IndexBuffer | None] = Field(
        default=None, description="Numbers of the vertices; by default they count from first_vertex."
    )
    viewport: BeyondReference[Viewport | None] = Field(
        default=None, description="Where to draw; by default everywhere. Texels outside of the images are cut."
    )
    depth_attachment: BeyondReference[DepthAttachment | None] = Field(
        default=None, description="Image for a depth test; by default there is none."
    )
    polygon_mode: BeyondReference[PolygonMode] = Field(
        default="FILL", description="Fill triangles, or draw their edges or corners."
    )
    implicit_barrier: ImplicitBarrier = True

    def references(self) -> Iterable[Use]:
        yield from super().references()
        for index, attachment in enumerate(self.color_attachment_refs):
            yield f"/color_attachment_refs/{index}", attachment.resource_ref, frozenset({"image"})

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        yield from wrong_stage("/vertex_shader_ref", self.vertex_shader_ref, "vertex", resources)
        yield from wrong_stage("/fragment_shader_ref", self.fragment_shader_ref, "fragment", resources)
        attachments, depth = self.attachments(), self.depth_attachment
        if not attachments and self.render_extent is None:
            yield error("SR-ATTACH-009", "", "needs color_attachment_refs, a depth_attachment or a render_extent")
        yield from binding_contradictions(self.bindings, resources)
        for place, attachment in attachments.items():
            yield from missing_level(f"/{place}", attachment.resource_ref, attachment.lod, resources)
        if depth is not None and depth.compare_op == "NEVER" and depth.write and "write" in depth.model_fields_set:
            yield warning("SR-CONFLICT-002", "/depth_attachment/write", "has no effect with compare_op NEVER")
        for index, first in repeated(attribute.location for attribute in self.vertex_attributes):
            where = f"location {self.vertex_attributes[index].location}"
            message = f"{where} is already read from entry {first}"
            yield error("SR-CONFLICT-004", f"/vertex_attributes/{index}/location", message)
        if self.index_buffer is None and self.first_vertex < 0:
            message = f"the first vertex is {self.first_vertex}, and without an index_buffer it is at least 0"
            yield error("SR-DRAW-004", "/first_vertex", message)
        if self.index_buffer is None and self.first_index:
            message = f"the first index is {self.first_index}, but the draw has no index_buffer"
            yield error("SR-DRAW-004", "/first_index", message, "add an index_buffer, or remove first_index")

    def attachments(self) -> dict[str, ColorAttachment | DepthAttachment]:
        """Return the attachments by their places in the command: colors by location, then the depths."""
        places: dict[str, ColorAttachment | DepthAttachment] = {
            f"color_attachment_refs/{index}": attachment for index, attachment in enumerate(self.color_attachment_refs)
        }
        return places if self.depth_attachment is None else {**places, "depth_attachment": self.depth_attachment}

    def shaders(self) -> tuple[str, ...]:
        return (self.vertex_shader_ref, self.fragment_shader_ref)
