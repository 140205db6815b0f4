"""The models of the commands that move data without a shader: fill and copy."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from scenario_runner.errors.diagnostic import Diagnostic, warning
from scenario_runner.errors.text import Json
from scenario_runner.scenario.commands import keys_without_effect, missing_level
from scenario_runner.scenario.entries import (
    U32,
    U64,
    ByteCount,
    Command,
    ImplicitBarrier,
    Items,
    Part,
    Reference,
    Resources,
    Use,
)
from scenario_runner.scenario.inline_contents import Number
from scenario_runner.scenario.resources import Image

_FILLED = frozenset({"buffer", "image"})
Channels = Annotated[
    Items[Number],
    Field(strict=False, min_length=1, max_length=4),
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
