"""The dispatch_compute command."""

from typing import Annotated, ClassVar

from pydantic import Field

from scenario_runner.scenario.bindings import Bindings
from scenario_runner.scenario.model import U32, Model, OptionalReference, Reference


class DispatchCompute(Model):
    """Runs a compute shader."""

    kind: ClassVar[str] = "dispatch_compute"

    shader_ref: Reference = Field(description="uid of the shader.")
    bindings: Bindings = Field(description="Resources that the shader sees.")
    rangeND: Annotated[tuple[U32, ...], Field(strict=False, min_length=1, max_length=3)] = Field(  # noqa: N815
        description="Number of workgroups in x, y and z; what is left out is 1."
    )
    push_data_ref: OptionalReference = Field(default=None, description="uid of the raw_data with the push constants.")
    implicit_barrier: bool = Field(
        default=True, description="Whether later commands wait for this one and see what it wrote."
    )
