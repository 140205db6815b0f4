"""The four barrier resources, and the dispatch_barrier command that inserts them."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from scenario_runner.scenario.dialects import canonical
from scenario_runner.scenario.model import U32, U64, Model, Reference, References, Uid

Access = Annotated[
    Literal[
        "memory_write",
        "memory_read",
        "graph_write",
        "graph_read",
        "compute_shader_write",
        "compute_shader_read",
        "ACCESS_MEMORY_WRITE",
        "ACCESS_MEMORY_READ",
        "ACCESS_GRAPH_WRITE",
        "ACCESS_GRAPH_READ",
        "ACCESS_COMPUTE_SHADER_WRITE",
        "ACCESS_COMPUTE_SHADER_READ",
    ],
    AfterValidator(canonical),
]
Stage = Annotated[
    Literal["graph", "compute", "graphics", "all", "GRAPH", "COMPUTE", "GRAPHICS", "ALL"], AfterValidator(canonical)
]
Stages = Annotated[tuple[Stage, ...], Field(strict=False)]
Layout = Annotated[
    Literal[
        "tensor_aliasing",
        "general",
        "undefined",
        "IMAGE_LAYOUT_TENSOR_ALIASING",
        "IMAGE_LAYOUT_GENERAL",
        "IMAGE_LAYOUT_UNDEFINED",
    ],
    AfterValidator(canonical),
]


class MemoryBarrier(Model):
    """A barrier over all memory (VkMemoryBarrier2)."""

    kind: ClassVar[str] = "memory_barrier"

    uid: Uid = Field(description="Name of the resource, unique in the file.")
    src_access: Access = Field(description="Accesses before the barrier that are waited for.")
    dst_access: Access = Field(description="Accesses after the barrier that wait.")
    src_stage: Stages = Field(default=("all",), description="Pipeline stages before the barrier.")
    dst_stage: Stages = Field(default=("all",), description="Pipeline stages after the barrier.")


class BufferBarrier(Model):
    """A barrier over a part of a buffer (VkBufferMemoryBarrier2)."""

    kind: ClassVar[str] = "buffer_barrier"

    uid: Uid = Field(description="Name of the resource, unique in the file.")
    buffer_resource: Reference = Field(description="uid of the buffer.")
    size: Annotated[int, Field(ge=1, le=2**64 - 1)] = Field(description="Number of bytes that the barrier covers.")
    offset: U64 = Field(default=0, description="First byte that the barrier covers.")
    src_access: Access = Field(description="Accesses before the barrier that are waited for.")
    dst_access: Access = Field(description="Accesses after the barrier that wait.")
    src_stage: Stages = Field(default=("all",), description="Pipeline stages before the barrier.")
    dst_stage: Stages = Field(default=("all",), description="Pipeline stages after the barrier.")


class SubresourceRange(Model):
    """A part of an image (VkImageSubresourceRange)."""

    base_mip_level: U32 = Field(default=0, description="First mip level.")
    level_count: Annotated[int, Field(ge=1, le=0xFFFF_FFFF)] = Field(default=1, description="Number of mip levels.")
    base_array_layer: U32 = Field(default=0, description="First array layer.")
    layer_count: Annotated[int, Field(ge=1, le=0xFFFF_FFFF)] = Field(default=1, description="Number of array layers.")


class ImageBarrier(Model):
    """A barrier over a part of an image, with a change of its layout (VkImageMemoryBarrier2)."""

    kind: ClassVar[str] = "image_barrier"

    uid: Uid = Field(description="Name of the resource, unique in the file.")
    image_resource: Reference = Field(description="uid of the image.")
    old_layout: Layout = Field(description="Layout before the barrier.")
    new_layout: Layout = Field(description="Layout after the barrier.")
    subresource_range: SubresourceRange = Field(
        default=SubresourceRange.model_construct(), description="Part of the image; by default its first mip level."
    )
    src_access: Access = Field(description="Accesses before the barrier that are waited for.")
    dst_access: Access = Field(description="Accesses after the barrier that wait.")
    src_stage: Stages = Field(default=("all",), description="Pipeline stages before the barrier.")
    dst_stage: Stages = Field(default=("all",), description="Pipeline stages after the barrier.")


class TensorBarrier(Model):
    """A barrier over a tensor (VkTensorMemoryBarrierARM)."""

    kind: ClassVar[str] = "tensor_barrier"

    uid: Uid = Field(description="Name of the resource, unique in the file.")
    tensor_resource: Reference = Field(description="uid of the tensor.")
    src_access: Access = Field(description="Accesses before the barrier that are waited for.")
    dst_access: Access = Field(description="Accesses after the barrier that wait.")
    src_stage: Stages = Field(default=("all",), description="Pipeline stages before the barrier.")
    dst_stage: Stages = Field(default=("all",), description="Pipeline stages after the barrier.")


class DispatchBarrier(Model):
    """Inserts barriers."""

    kind: ClassVar[str] = "dispatch_barrier"

    image_barrier_refs: References = Field(default=(), description="uids of image barriers.")
    tensor_barrier_refs: References = Field(default=(), description="uids of tensor barriers.")
    memory_barrier_refs: References = Field(default=(), description="uids of memory barriers.")
    buffer_barrier_refs: References = Field(default=(), description="uids of buffer barriers.")
