"""Optical flows in a plan: their pipelines and dispatches. Apart from `model`: only some scenarios have them."""

from collections.abc import Hashable
from typing import Literal, NamedTuple

from scenario_runner.plan.model.records import LayoutBinding

# VkDataGraphPipelineNodeConnectionTypeARM, without its prefix.
Connection = Literal["input", "reference", "hint", "flow_vector", "cost"]
PerformanceLevel = Literal["unknown", "slow", "medium", "fast"]


class FlowConnection(NamedTuple):
    """VkDataGraphPipelineSingleNodeConnectionARM: what is at a binding, an image of the VkFormat ``format``.

    ``uid`` and ``pointer`` are those of the first command that binds something there, for messages.
    """

    set: int
    binding: int
    connection: Connection
    format: int
    uid: str
    pointer: str

    @property
    def reads(self) -> bool:
        """Whether the optical flow reads it; otherwise it writes it."""
        return self.connection in ("input", "reference", "hint")

    @property
    def writes(self) -> bool:
        """Whether the optical flow writes it."""
        return not self.reads


class OpticalFlowPlan(NamedTuple):
    """A data graph pipeline that estimates motion, with its session; two plans with equal `content` are one pipeline.

    ``width`` and ``height`` are texels of the input, ``grid`` the width of the square of texels that one vector is for.
    """

    width: int
    height: int
    grid: int
    performance_level: PerformanceLevel
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    connections: tuple[FlowConnection, ...]
    label: str
    pointer: str

    @property
    def kind(self) -> Literal["optical_flow"]:
        """Which kind of pipeline it is."""
        return "optical_flow"

    @property
    def resources(self) -> tuple[FlowConnection, ...]:
        """What it reads and writes."""
        return self.connections

    @property
    def content(self) -> Hashable:
        """What decides which pipeline this is; uids, labels and pointers are for people only."""
        return (*self[:5], *(connection[:4] for connection in self.connections))

    def format_of(self, connection: Connection) -> int | None:
        """The VkFormat of what is connected so, None where nothing is."""
        return next((each.format for each in self.connections if each.connection == connection), None)


class OpticalFlowDispatch(NamedTuple):
    """Run an optical flow; ``pipeline`` is an index into the plan's graph pipelines, ``descriptors`` into its lists.

    ``flags`` are VkDataGraphOpticalFlowExecuteFlagBitsARM by the names that scenarios give them.
    """

    pipeline: int
    descriptors: int
    barrier_after: bool
    command: int
    flags: tuple[str, ...] = ()
    mean_flow_l1_norm_hint: int = 0

    @property
    def kind(self) -> Literal["optical_flow_dispatch"]:
        """Which kind of operation it is."""
        return "optical_flow_dispatch"
