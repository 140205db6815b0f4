"""The dispatch_compute command."""

from typing import Annotated, ClassVar

from pydantic import Field

from scenario_runner.scenario.bindings import Bindings
from scenario_runner.scenario.model import U32, ImplicitBarrier, Model, OptionalReference, Reference


class DispatchCompute(Model):
    """Runs a compute shader."""

    kind: ClassVar[str] = "dispatch_compute"

    shader_ref: Reference = Field(description="uid of a compute shader.")
    bindings: Bindings = Field(description="The resources of the shader, each at a set and binding of its own.")
    rangeND: Annotated[tuple[U32, ...], Field(strict=False, min_length=1, max_length=3)] = Field(  # noqa: N815
        description="Number of workgroups in x, y and z. Dimensions that are left out are 1."
    )
    push_data_ref: OptionalReference = Field(
        default=None,
        description=(
            "uid of the raw_data with the push constants: at most push_constants_size bytes, and all that the shader reads."
        ),
    )
    implicit_barrier: ImplicitBarrier = True
