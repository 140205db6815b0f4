"""Graphs in a plan: their pipelines and dispatches. Apart from `model`: only scenarios with graphs pay for it."""

from collections.abc import Hashable
from typing import Literal, NamedTuple

from scenario_runner.plan.model.constant_data import ConstantData
from scenario_runner.plan.model.records import LayoutBinding
from scenario_runner.plan.model.tensors import TensorDescription


class GraphConstantPlan(NamedTuple):
    """VkDataGraphPipelineConstantARM; ``sparsity_dimension`` is the axis of 2:4 sparsity, None for dense data."""

    id: int
    description: TensorDescription
    data: ConstantData
    sparsity_dimension: int | None = None


class GraphResourcePlan(NamedTuple):
    """VkDataGraphPipelineResourceInfoARM: what the graph finds at a binding, and whether it reads or writes it."""

    set: int
    binding: int
    description: TensorDescription
    reads: bool
    writes: bool


class GraphPipelinePlan(NamedTuple):
    """A data graph pipeline with its session; two plans with equal `content` are one pipeline.

    ``largest`` is what messages call the largest value between its operators, with its shape; ``unbuildable`` is why
    the emulation layers cannot build the graph ({device} stands for the device), and what to do. ``name`` is that of
    the module in its model, or the uid of the SPIR-V shader.
    """

    code: bytes
    entry: str
    set_layouts: tuple[tuple[LayoutBinding, ...], ...]
    resources: tuple[GraphResourcePlan, ...]
    constants: tuple[GraphConstantPlan, ...]
    label: str
    pointer: str
    largest: tuple[str, tuple[int, ...]] = ("", ())
    unbuildable: tuple[str, str] = ("", "")
    name: str = ""

    @property
    def kind(self) -> Literal["graph"]:
        """Which kind of pipeline it is."""
        return "graph"

    @property
    def content(self) -> Hashable:
        """What decides which pipeline this is; ``label`` and ``pointer`` are for people only."""
        return self[:5]


class GraphDispatch(NamedTuple):
    """Run a graph; ``pipeline`` is an index into the plan's graph pipelines, ``descriptors`` into its lists."""

    pipeline: int
    descriptors: int
    barrier_after: bool
    command: int

    @property
    def kind(self) -> Literal["graph_dispatch"]:
        """Which kind of operation it is."""
        return "graph_dispatch"
