"""The plan: the work in each frame as frozen data, with every size known and without Vulkan objects.

Life cycle: `resolve.resolve` makes a `Plan` from a scenario. A device executes the plan any number of times, and nobody
changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.plan.records import (
    BufferBarrier,
    BufferPlan,
    DescriptorList,
    Dispatch,
    ImageBarrier,
    ImageLayout,
    MemoryBarrier,
    PipelinePlan,
    Requirements,
    Span,
    TensorBarrier,
)

if TYPE_CHECKING:
    from scenario_runner.plan.graph_records import (
        GraphDispatch,
        GraphPipelinePlan,
        OpticalFlowDispatch,
        OpticalFlowPlan,
        TensorPlan,
    )
    from scenario_runner.plan.image_records import (
        Draw,
        GraphicsPipelinePlan,
        ImagePlan,
        Transfer,
    )

ResourcePlan: TypeAlias = "BufferPlan | ImagePlan | TensorPlan"
AnyBarrier: TypeAlias = "MemoryBarrier | BufferBarrier | ImageBarrier | TensorBarrier"


class Barrier(NamedTuple):
    """One pipeline barrier command with all barriers in it."""

    barriers: tuple[AnyBarrier, ...]
    command: int
    kind: Literal["barrier"] = "barrier"


Work: TypeAlias = "Dispatch | GraphDispatch | OpticalFlowDispatch | Draw"
"""An operation with a pipeline and descriptors."""
Operation: TypeAlias = "Work | Transfer | Barrier"


class FramePlan(NamedTuple):
    """Operations submitted together. They finish before the next frame, and ``captures`` are read back.

    The commands after the last boundary form a frame with ``boundary=False`` and without captures. Dumps are frames
    with captures and without a boundary (`plan.accesses`). ``layouts`` has the images in another layout than "general"
    at the end, with a layout for each level.
    """

    operations: tuple[Operation, ...]
    captures: tuple[str, ...]
    frame_id: int
    boundary: bool
    pointer: str
    layouts: tuple[tuple[str, tuple[ImageLayout, ...]], ...] = ()

    @property
    def title(self) -> str:
        """The name in messages and tools: the frame's id, or the commands of a frame without a boundary."""
        if self.boundary or not self.operations:
            return f"frame {self.frame_id}"
        first, last = self.operations[0].command, self.operations[-1].command
        return f"command {first}" if first == last else f"commands {first} to {last}"


def frame_folder(frame_id: int, count: int) -> str:
    """Name the folder for captures from the ``count``-th frame with this id."""
    return f"frame_{frame_id}" + (f"_{count}" if count > 1 else "")


class Output(NamedTuple):
    """A resource to read back at the end, and the scenario's ``dst`` file, if any."""

    uid: str
    destination: str | None


class Plan(NamedTuple):
    """Everything a run does. ``name`` is the scenario's path or a label, for messages and logs.

    ``reads`` are all files read by planning or a run, with the scenario's own file. ``names`` tells how
    measurements call a command's operations, where names differ from pipeline labels. ``declared`` maps shader code
    without storage image formats to the code as the shader declares them.
    """

    name: str
    resources: Mapping[str, ResourcePlan]
    pipelines: tuple[PipelinePlan, ...]
    descriptor_lists: tuple[DescriptorList, ...]
    frames: tuple[FramePlan, ...]
    outputs: tuple[Output, ...]
    requirements: Requirements
    warnings: tuple[Diagnostic, ...] = ()
    graph_pipelines: tuple[GraphPipelinePlan | OpticalFlowPlan, ...] = ()
    reads: tuple[str, ...] = ()
    names: Mapping[int, tuple[str, ...]] = {}
    graphics_pipelines: tuple[GraphicsPipelinePlan, ...] = ()
    declared: Mapping[bytes, bytes] = {}

    @property
    def shader_codes(self) -> list[bytes]:
        """The SPIR-V code for all shaders in pipelines, in the plan's order."""
        drawn = [stage.code for pipeline in self.graphics_pipelines for stage in pipeline[:2]]
        return [*(pipeline.code for pipeline in self.pipelines), *drawn]

    def as_declared(self) -> Plan:
        """Return the plan with the declared shader code, for a device requiring storage image formats."""

        def declared(plan: Any) -> Any:
            return plan._replace(code=self.declared.get(plan.code, plan.code))

        graphics = [
            pipeline._replace(vertex=declared(pipeline.vertex), fragment=declared(pipeline.fragment))
            for pipeline in self.graphics_pipelines
        ]
        return self._replace(pipelines=tuple(map(declared, self.pipelines)), graphics_pipelines=tuple(graphics))

    @property
    def dispatch_count(self) -> int:
        return sum(operation.kind != "barrier" for frame in self.frames for operation in frame.operations)


def memory_groups(plans: Iterable[ResourcePlan]) -> dict[str, list[ResourcePlan]]:
    """Group resources sharing memory, by group name."""
    groups: dict[str, list[ResourcePlan]] = {}
    for plan in plans:
        if plan.group is not None:
            groups.setdefault(plan.group, []).append(plan)
    return groups


def span_of(plan: ResourcePlan) -> Span:
    """Return a member's size in the group's memory, before a device pads rows."""
    return plan.offset_bytes, plan.offset_bytes + plan.size_bytes


# A measured operation's ``kind`` → the name in profiles, as in the reference runner.
MEASURED = {
    "dispatch": "ComputeDispatch",
    "draw": "GraphicsDispatch",
    "graph_dispatch": "DataGraphDispatch",
    "optical_flow_dispatch": "DataGraphDispatch",
    "fill": "Fill",
    "copy": "Copy",
}
