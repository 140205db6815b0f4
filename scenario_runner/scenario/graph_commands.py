"""The commands that run graphs: dispatch_graph and dispatch_spirv_graph."""

from typing import Annotated, ClassVar

from pydantic import Field

from scenario_runner.scenario.bindings import Bindings
from scenario_runner.scenario.graphs import ShaderSubstitutions
from scenario_runner.scenario.model import ImplicitBarrier, Model, Reference, References


class PushConstantMap(Model):
    """Push constants of one shader inside a graph."""

    push_data_ref: Reference = Field(description="uid of the raw_data with the push constants of the shader.")
    shader_target: str = Field(min_length=1, description="Name of the shader's module in the VGF file.")


class DispatchGraph(Model):
    """Runs the graph of a VGF file."""

    kind: ClassVar[str] = "dispatch_graph"

    graph_ref: Reference = Field(description="uid of a graph resource (a VGF file).")
    bindings: Bindings = Field(description="Inputs and outputs of the graph.")
    push_constants: Annotated[tuple[PushConstantMap, ...], Field(strict=False)] = Field(
        default=(), description="Push constants of the shaders in the graph."
    )
    shader_substitutions: ShaderSubstitutions = Field(
        default=(),
        description=(
            "Shaders in place of placeholder nodes, in addition to those of the graph resource; for the same "
            "target these are used."
        ),
    )
    implicit_barrier: ImplicitBarrier = True


class DispatchSpirvGraph(Model):
    """Runs the graph of a SPIR-V module."""

    kind: ClassVar[str] = "dispatch_spirv_graph"

    graph_ref: Reference = Field(description="uid of a shader resource of type SPIR-V, whose module contains a graph.")
    bindings: Bindings = Field(description="Inputs and outputs of the graph.")
    graph_constants: References = Field(
        default=(),
        description=(
            "uids of graph_constant resources. The first one is the constant with the id 0 in the module, the "
            "second one that with the id 1, and so on."
        ),
    )
    implicit_barrier: ImplicitBarrier = True
