"""The dispatch_fragment command."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.scenario.bindings import (
    Bindings,
    binding_contradictions,
    binding_references,
    missing_level,
)
from scenario_runner.scenario.entry import Command, Resources, Use
from scenario_runner.scenario.model import U32, ImplicitBarrier, Model, OptionalReference, Reference, wrong
from scenario_runner.scenario.shaders import SHADER, push_data_reference, wrong_stage


class ColorAttachment(Model):
    """An image, or one of its mip levels, that is drawn into; a bare uid means the first level."""

    resource_ref: Reference = Field(description="uid of the image.")
    lod: U32 = Field(default=0, description="Mip level.")

    @model_validator(mode="before")
    @classmethod
    def _from_uid(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"resource_ref": given}
        if not isinstance(given, dict | cls):
            raise wrong("expected a uid or an object")
        return given

    @classmethod
    def in_schema(cls, definition: dict[str, Any]) -> dict[str, Any]:
        description = definition.pop("description")
        return {"description": description, "anyOf": [{"type": "string", "minLength": 1}, definition]}


Extent = Annotated[int, Field(ge=1, le=0xFFFF_FFFF)]


class DispatchFragment(Command):
    """Draws one triangle with a vertex and a fragment shader."""

    kind: ClassVar[str] = "dispatch_fragment"

    vertex_shader_ref: Reference = Field(description="uid of the vertex shader.")
    fragment_shader_ref: Reference = Field(description="uid of the fragment shader.")
    bindings: Bindings = Field(description="The resources of the shaders, each at a set and binding of its own.")
    color_attachment_refs: Annotated[tuple[ColorAttachment, ...], Field(strict=False)] = Field(
        default=(),
        description=(
            "Images that are drawn into; the position is the location of the fragment shader's output. "
            "Required without render_extent."
        ),
    )
    render_extent: Annotated[tuple[Extent, ...], Field(strict=False, min_length=2, max_length=2)] | None = Field(
        default=None,
        description=(
            "Width and height of the drawn area; by default those of the first attachment. Required without "
            "color_attachment_refs."
        ),
    )
    debug_name: str | None = Field(default=None, description="Name in reports; by default the fragment shader's uid.")
    push_data_ref: OptionalReference = Field(
        default=None, description="uid of the raw_data with the push constants of the shaders."
    )
    implicit_barrier: ImplicitBarrier = True

    def references(self) -> Iterator[Use]:
        yield "/vertex_shader_ref", self.vertex_shader_ref, SHADER
        yield "/fragment_shader_ref", self.fragment_shader_ref, SHADER
        yield from binding_references(self.bindings)
        for index, attachment in enumerate(self.color_attachment_refs):
            yield f"/color_attachment_refs/{index}", attachment.resource_ref, frozenset({"image"})
        yield from push_data_reference(self.push_data_ref)

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        yield from wrong_stage("/vertex_shader_ref", self.vertex_shader_ref, "vertex", resources)
        yield from wrong_stage("/fragment_shader_ref", self.fragment_shader_ref, "fragment", resources)
        if not self.color_attachment_refs and self.render_extent is None:
            yield error("SR-ATTACH-009", "", "needs color_attachment_refs or a render_extent")
        yield from binding_contradictions(self.bindings, resources)
        for index, attachment in enumerate(self.color_attachment_refs):
            inside = f"/color_attachment_refs/{index}"
            yield from missing_level(inside, attachment.resource_ref, attachment.lod, resources)

    def shaders(self) -> tuple[str, ...]:
        return (self.vertex_shader_ref, self.fragment_shader_ref)

    @property
    def work(self) -> str:
        return f"shader {self.fragment_shader_ref!r}"
