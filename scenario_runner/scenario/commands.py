"""The commands that need no graph: dispatch_compute, dispatch_barrier, mark_boundary."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from scenario_runner.scenario.bindings import Bindings
from scenario_runner.scenario.model import U32, Model, OptionalReference, Reference, References


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


class DispatchBarrier(Model):
    """Inserts barriers."""

    kind: ClassVar[str] = "dispatch_barrier"

    image_barrier_refs: References = Field(default=(), description="uids of image barriers.")
    tensor_barrier_refs: References = Field(default=(), description="uids of tensor barriers.")
    memory_barrier_refs: References = Field(default=(), description="uids of memory barriers.")
    buffer_barrier_refs: References = Field(default=(), description="uids of buffer barriers.")


class MarkBoundary(Model):
    """Ends a frame: what came before is submitted and finished here."""

    kind: ClassVar[str] = "mark_boundary"

    resources: References = Field(description="uids of the resources whose content belongs to the frame.")
    frame_id: int | None = Field(
        default=None, ge=0, le=0xFFFF_FFFF_FFFF_FFFF, description="Number of the frame; by default they are counted."
    )
