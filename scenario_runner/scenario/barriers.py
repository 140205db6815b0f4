"""The four barrier resources, and the dispatch_barrier command that inserts them."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema

from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.scenario.model import (
    U32,
    U64,
    Command,
    Model,
    Reference,
    References,
    Resource,
    Resources,
    Targets,
    Uid,
    resource_of_kind,
)
from scenario_runner.scenario.storage import Buffer, Image

_WHOLE_SIZE = 2**64 - 1
_REMAINING = 2**32 - 1

_AccessName = Literal[
    "memory_write", "memory_read", "graph_write", "graph_read", "compute_shader_write", "compute_shader_read"
]
_StageName = Literal["graph", "compute", "graphics", "all"]
_LayoutName = Literal["tensor_aliasing", "general", "undefined"]


SPELLINGS: dict[str, str] = {}
"""Values in the spelling of another dialect → ours."""


def _or_upper_case(names: Any, prefix: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Let the spellings of another dialect, which are in upper case, stand for names."""
    others = {prefix + name.upper(): name for name in get_args(names)}
    SPELLINGS.update(others)
    validator = BeforeValidator(lambda value: others.get(value, value) if isinstance(value, str) else value)
    return validator, WithJsonSchema({"enum": [*get_args(names), *others], "type": "string"})


Access = Annotated[_AccessName, *_or_upper_case(_AccessName, "ACCESS_")]
Stages = Annotated[tuple[Annotated[_StageName, *_or_upper_case(_StageName, "")], ...], Field(strict=False)]
Layout = Annotated[_LayoutName, *_or_upper_case(_LayoutName, "IMAGE_LAYOUT_")]


class Barrier(Resource):
    """Any barrier."""

    uid: Uid
    src_access: Annotated[Access, Field(description="Memory accesses to finish before the barrier.")]
    dst_access: Annotated[Access, Field(description="Memory accesses that wait for the barrier.")]
    src_stage: Stages = Field(
        default=("all",), description="Pipeline stages of earlier commands to wait for; none if empty."
    )
    dst_stage: Stages = Field(
        default=("all",), description="Pipeline stages of later commands that wait; none if empty."
    )


class MemoryBarrier(Barrier):
    """A barrier over all memory (VkMemoryBarrier2)."""

    kind: ClassVar[str] = "memory_barrier"


class BufferBarrier(Barrier):
    """A barrier over a part of a buffer (VkBufferMemoryBarrier2)."""

    kind: ClassVar[str] = "buffer_barrier"
    refers_to: ClassVar[Targets] = {"buffer_resource": frozenset({"buffer"})}

    buffer_resource: Reference = Field(description="uid of the buffer.")
    size: Annotated[int, Field(ge=1, le=2**64 - 1)] = Field(
        description="Number of bytes; 18446744073709551615 means all from the offset on."
    )
    offset: U64 = Field(default=0, description="First byte of the range.")

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        buffer: Buffer | None = resource_of_kind(resources, self.buffer_resource, "buffer")
        if buffer is None:
            return
        left = buffer.size - self.offset
        if left <= 0:
            message = f"the buffer {buffer.uid!r:.100} has {buffer.size} bytes, got the offset {self.offset}"
            yield error("SR-CONFLICT-009", "/offset", message)
        elif self.size != _WHOLE_SIZE and self.size > left:
            message = f"the buffer {buffer.uid!r:.100} has {left} bytes from offset {self.offset} on, got {self.size}"
            yield error("SR-CONFLICT-009", "/size", message)


class SubresourceRange(Model):
    """A part of an image (VkImageSubresourceRange)."""

    base_mip_level: U32 = Field(default=0, description="First mip level.")
    level_count: Annotated[int, Field(ge=1, le=0xFFFF_FFFF)] = Field(
        default=1, description="Number of mip levels; 4294967295 means all from the first one on."
    )
    base_array_layer: U32 = Field(default=0, description="First array layer; images have one.")
    layer_count: Annotated[int, Field(ge=1, le=0xFFFF_FFFF)] = Field(
        default=1, description="Number of array layers; images have one."
    )


class ImageBarrier(Barrier):
    """A barrier over a part of an image, with a change of its layout (VkImageMemoryBarrier2)."""

    kind: ClassVar[str] = "image_barrier"
    refers_to: ClassVar[Targets] = {"image_resource": frozenset({"image"})}

    image_resource: Reference = Field(description="uid of the image.")
    old_layout: Layout = Field(description="Layout before the barrier; undefined discards the content.")
    new_layout: Layout = Field(description="Layout after the barrier: general or tensor_aliasing.")
    subresource_range: SubresourceRange = Field(
        default=SubresourceRange.model_construct(), description="Part of the image; by default its first mip level."
    )

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        image: Image | None = resource_of_kind(resources, self.image_resource, "image")
        if image is None:
            return
        part = self.subresource_range
        for name, base, count, total in (
            ("mip levels", "base_mip_level", "level_count", image.mips),
            ("array layers", "base_array_layer", "layer_count", 1),
        ):
            first, many = getattr(part, base), getattr(part, count)
            has = f"the image {image.uid!r:.100} has {total} {name if total > 1 else name[:-1]}"
            if first >= total:
                yield error("SR-CONFLICT-010", f"/subresource_range/{base}", f"{has}, got the first one {first}")
            elif many != _REMAINING and first + many > total:
                yield error("SR-CONFLICT-010", f"/subresource_range/{count}", f"{has}, got {many} from {first} on")


class TensorBarrier(Barrier):
    """A barrier over a tensor (VkTensorMemoryBarrierARM)."""

    kind: ClassVar[str] = "tensor_barrier"
    refers_to: ClassVar[Targets] = {"tensor_resource": frozenset({"tensor"})}

    tensor_resource: Reference = Field(description="uid of the tensor.")


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
