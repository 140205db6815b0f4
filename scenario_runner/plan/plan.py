"""The plan: the work of each frame as frozen data, with every size known and no Vulkan object in it.

Life cycle: `resolve.resolve` makes a `Plan` from a scenario; a device carries it out as often as asked. It is never
changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.byte_data import Span
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
    from scenario_runner.plan.image_records import Draw, GraphicsPipelinePlan, ImagePlan

ResourcePlan: TypeAlias = "BufferPlan | ImagePlan | TensorPlan"
AnyBarrier: TypeAlias = "MemoryBarrier | BufferBarrier | ImageBarrier | TensorBarrier"


class Barrier(NamedTuple):
    """One pipeline barrier command with everything it lists."""

    barriers: tuple[AnyBarrier, ...]
    command: int
    kind: Literal["barrier"] = "barrier"


Work: TypeAlias = "Dispatch | GraphDispatch | OpticalFlowDispatch | Draw"
"""An operation with a pipeline and descriptors."""
Operation: TypeAlias = "Work | Barrier"


class FramePlan(NamedTuple):
    """Operations submitted together and finished before the next frame; ``captures`` are read back at its end.

    The commands after the last boundary form a frame with ``boundary=False`` and nothing to capture; dumps are frames
    with captures and without a boundary (`plan.accesses`). ``layouts`` has
    the images that are not in "general" at its end, with the layout of each level.
    """

    operations: tuple[Operation, ...]
    captures: tuple[str, ...]
    frame_id: int
    boundary: bool
    pointer: str
    layouts: tuple[tuple[str, tuple[ImageLayout, ...]], ...] = ()

    @property
    def title(self) -> str:
        """Its name in messages and tools: the frame, or the commands where no boundary ends it."""
        if self.boundary or not self.operations:
            return f"frame {self.frame_id}"
        first, last = self.operations[0].command, self.operations[-1].command
        return f"command {first}" if first == last else f"commands {first} to {last}"


def frame_folder(frame_id: int, count: int) -> str:
    """Name the folder of a frame's captures, the ``count``-th one with its id."""
    return f"frame_{frame_id}" + (f"_{count}" if count > 1 else "")


class Output(NamedTuple):
    """A resource to read back at the end, and the file (if any) that the scenario wants it in."""

    uid: str
    destination: str | None


class Plan(NamedTuple):
    """Everything a run does. ``name`` is the scenario's path or a label, for messages and logs.

    ``reads`` are the files that it was made from or that a run reads, the scenario's own among them. ``names`` has what
    measurements call the operations of a command, by its index, where that is not the label of their pipeline.
    ``declared`` has the code of shaders as they declare their storage images, by the code that declares no format.
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
        """The SPIR-V of every shader of the pipelines, in an order that follows from the plan."""
        drawn = [stage.code for pipeline in self.graphics_pipelines for stage in pipeline[:2]]
        return [*(pipeline.code for pipeline in self.pipelines), *drawn]

    def as_declared(self) -> Plan:
        """The plan for a device that cannot access its images without a format: shaders stay as they declare them."""

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
    """The members of each group, by its name."""
    groups: dict[str, list[ResourcePlan]] = {}
    for plan in plans:
        if plan.group is not None:
            groups.setdefault(plan.group, []).append(plan)
    return groups


def span_of(plan: ResourcePlan) -> Span:
    """The bytes of a member in the memory of its group, before a device pads its rows."""
    return plan.offset_bytes, plan.offset_bytes + plan.size_bytes


# The ``kind`` of an operation whose time is measured → what profiles call it: the reference runner's names.
MEASURED = {
    "dispatch": "ComputeDispatch",
    "draw": "GraphicsDispatch",
    "graph_dispatch": "DataGraphDispatch",
    "optical_flow_dispatch": "DataGraphDispatch",
}
