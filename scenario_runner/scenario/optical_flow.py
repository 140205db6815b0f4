"""The dispatch_optical_flow command (VK_ARM_data_graph_optical_flow)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scenario_runner.scenario.bindings import Binding
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


class DispatchOpticalFlow(Model):
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
