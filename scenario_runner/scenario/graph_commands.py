"""The commands that run graphs: dispatch_graph and dispatch_spirv_graph."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.scenario.bindings import Bindings, binding_contradictions, binding_references
from scenario_runner.scenario.entry import Command, Resources, Use, each_of, found
from scenario_runner.scenario.graphs import (
    ShaderSubstitutions,
    substitution_contradictions,
    substitution_references,
    target_contradictions,
)
from scenario_runner.scenario.model import ImplicitBarrier, Model, Reference, References
from scenario_runner.scenario.shaders import RAW_DATA, SHADER, Shader


class PushConstantMap(Model):
    """Push constants of one shader inside a graph."""

    push_data_ref: Reference = Field(description="uid of the raw_data with the push constants of the shader.")
    shader_target: str = Field(min_length=1, description="Name of the shader's module or segment in the VGF file.")


class DispatchGraph(Command):
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

    def references(self) -> Iterator[Use]:
        yield "/graph_ref", self.graph_ref, frozenset({"graph"})
        yield from binding_references(self.bindings)
        for index, constants in enumerate(self.push_constants):
            yield f"/push_constants/{index}/push_data_ref", constants.push_data_ref, RAW_DATA
        yield from substitution_references(self.shader_substitutions)

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        yield from binding_contradictions(self.bindings, resources)
        targets = [each.shader_target for each in self.push_constants]
        yield from target_contradictions(targets, "/push_constants", "shader_target")
        yield from substitution_contradictions(self.shader_substitutions, resources)

    @property
    def work(self) -> str:
        return f"graph {self.graph_ref!r}"


class DispatchSpirvGraph(Command):
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

    def references(self) -> Iterator[Use]:
        yield "/graph_ref", self.graph_ref, SHADER
        yield from binding_references(self.bindings, frozenset({"tensor", "image"}))
        yield from each_of("graph_constants", self.graph_constants, frozenset({"graph_constant"}))

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        shader: Shader | None = found(resources, self.graph_ref, "shader")
        if shader is not None and shader.type != "SPIR-V":
            message = f"expected a shader of the type 'SPIR-V', got {shader.uid!r:.100} of the type {shader.type!r}"
            yield error("SR-GRAPH-011", "/graph_ref", message)
        yield from binding_contradictions(self.bindings, resources)

    @property
    def work(self) -> str:
        return f"graph {self.graph_ref!r}"
