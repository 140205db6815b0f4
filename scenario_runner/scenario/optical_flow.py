"""The dispatch_optical_flow command (VK_ARM_data_graph_optical_flow)."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.scenario.bindings import Binding, missing_level
from scenario_runner.scenario.entry import Command, Resources, Use, repeated
from scenario_runner.scenario.model import U32, ImplicitBarrier, Model

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

    search_image: Binding = Field(description="Image of which the motion is estimated, the input of the optical flow.")
    template_image: Binding = Field(description="Image that it is compared with, the reference of the optical flow.")
    output_image: Binding = Field(
        description=(
            "Image that the motion vectors are written to: from a texel of the search image to where its content is in"
            " the template image, in texels."
        )
    )
    hint_motion_vectors: Binding | None = Field(
        default=None, description="Image with motion vectors to start from, of the size and format of the output image."
    )
    output_cost: Binding | None = Field(
        default=None, description="Image that the cost of each motion vector is written to."
    )

    def given(self) -> dict[str, Binding]:
        """The bindings that are there, by their keys."""
        return {name: binding for name, binding in self if binding is not None}


class DispatchOpticalFlow(Command):
    """Estimates the motion between two images."""

    kind: ClassVar[str] = "dispatch_optical_flow"

    width: Length = Field(description="Width of the search image in texels.")
    height: Length = Field(description="Height of the search image in texels.")
    grid_size: Literal["1x1", "2x2", "4x4", "8x8"] = Field(
        description="Width and height in texels of the area that one motion vector describes."
    )
    bindings: OpticalFlowBindings = Field(
        description="The images of the optical flow, each with a set and id of its own."
    )
    performance_level: Literal["unknown", "slow", "medium", "fast"] = Field(
        default="medium", description="Performance level: a faster one is less accurate."
    )
    execution_flags: Annotated[tuple[ExecutionFlag, ...], Field(strict=False)] = Field(
        default=(),
        description=(
            "What is known about the images since the previous optical flow with the same session, each flag at most"
            " once."
        ),
    )
    mean_flow_l1_norm_hint: U32 = Field(
        default=0, description="Expected mean length of the motion; less than the larger of width and height."
    )
    implicit_barrier: ImplicitBarrier = True

    def references(self) -> Iterator[Use]:
        for name, binding in self.bindings.given().items():
            yield f"/bindings/{name}/resource_ref", binding.resource_ref, frozenset({"image"})

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        longer, hint = max(self.width, self.height), self.mean_flow_l1_norm_hint
        if hint >= longer:
            message = f"expected less than the larger of width and height, {longer}, got {hint}"
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
            yield from missing_level(f"/bindings/{name}", binding.resource_ref, binding.lod, resources)

    @property
    def work(self) -> str:
        return "the optical flow"
