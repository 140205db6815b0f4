"""The dispatch_fragment command."""

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from scenario_runner.scenario.bindings import Bindings
from scenario_runner.scenario.model import U32, ImplicitBarrier, Model, OptionalReference, Reference, wrong


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


Extent = Annotated[int, Field(ge=1, le=0xFFFF_FFFF)]


class DispatchFragment(Model):
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
