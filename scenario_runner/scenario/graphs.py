"""The graph and graph_constant resources."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.scenario.entry import Resource, Resources, Use, repeated
from scenario_runner.scenario.model import Model, Reference, RequiredPath, Uid, require_source
from scenario_runner.scenario.shaders import (
    SHADER,
    PushConstantsSize,
    SpecializationConstants,
    constant_contradictions,
    wrong_stage,
)


class SpecializationConstantMap(Model):
    """Specialization constants of one shader inside a graph."""

    specialization_constants: SpecializationConstants = Field(description="Values of the constants.")
    shader_target: str = Field(min_length=1, description="Name of the shader's module or segment in the VGF file.")


class ShaderSubstitution(Model):
    """A shader in place of a placeholder node of a graph."""

    shader_ref: Reference = Field(description="uid of a compute shader.")
    target: str = Field(min_length=1, description="Name of the placeholder's module or segment in the VGF file.")


ShaderSubstitutions = Annotated[tuple[ShaderSubstitution, ...], Field(strict=False)]


def substitution_references(substitutions: Sequence[ShaderSubstitution]) -> Iterator[Use]:
    """The references of ``shader_substitutions``."""
    for index, substitution in enumerate(substitutions):
        yield f"/shader_substitutions/{index}/shader_ref", substitution.shader_ref, SHADER


def substitution_contradictions(
    substitutions: Sequence[ShaderSubstitution], resources: Resources
) -> Iterator[Diagnostic]:
    """What does not fit together in ``shader_substitutions``."""
    yield from target_contradictions([each.target for each in substitutions], "/shader_substitutions", "target")
    for index, substitution in enumerate(substitutions):
        inside = f"/shader_substitutions/{index}/shader_ref"
        yield from wrong_stage(inside, substitution.shader_ref, "compute", resources)


def target_contradictions(targets: Sequence[str], inside: str, key: str) -> Iterator[Diagnostic]:
    """Nodes of a graph that are named twice."""
    for index, first in repeated(targets):
        message = f"the node {targets[index]!r:.100} is already the target of entry {first}"
        yield error("SR-CONFLICT-004", f"{inside}/{index}/{key}", message)


class Graph(Resource):
    """A graph from a VGF file."""

    kind: ClassVar[str] = "graph"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})
    required_in_json: ClassVar[frozenset[str]] = frozenset({"src"})

    uid: Uid
    src: RequiredPath | None = Field(default=None, description="Path of the VGF file.")
    specialization_constants_map: Annotated[tuple[SpecializationConstantMap, ...], Field(strict=False)] = Field(
        default=(), description="Specialization constants of the shaders in the graph."
    )
    shader_substitutions: ShaderSubstitutions = Field(
        default=(), description="Shaders in place of placeholder nodes of the graph, for every dispatch of it."
    )
    push_constants_size: PushConstantsSize = Field(
        default=0,
        description=(
            "Size in bytes of the push constants of the shaders in the graph; a multiple of 4. 0 means the "
            "size that the substituted shader or the VGF file gives, or that the shader declares."
        ),
    )
    data: Any = Field(default=None, description="The bytes of the VGF file, in place of src.")

    @model_validator(mode="after")
    def _has_source(self) -> Self:
        return require_source(self, self.src, "data", self.data)

    def references(self) -> Iterator[Use]:
        return substitution_references(self.shader_substitutions)

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        inside, constants = "/specialization_constants_map", self.specialization_constants_map
        for index, target in enumerate(constants):
            place = f"{inside}/{index}/specialization_constants"
            yield from constant_contradictions(target.specialization_constants, place)
        yield from target_contradictions([each.shader_target for each in constants], inside, "shader_target")
        yield from substitution_contradictions(self.shader_substitutions, resources)


class GraphConstant(Resource):
    """A constant for dispatch_spirv_graph."""

    kind: ClassVar[str] = "graph_constant"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})
    required_in_json: ClassVar[frozenset[str]] = frozenset({"src"})

    uid: Uid
    dims: Annotated[
        tuple[Annotated[int, Field(ge=1, le=2**63 - 1)], ...], Field(strict=False, min_length=1, max_length=6)
    ] = Field(description="Shape, one to six dimensions.")
    format: str = Field(
        min_length=1, description="Name of a VkFormat with one component, for instance VK_FORMAT_R8_SINT."
    )
    src: RequiredPath | None = Field(
        default=None, description="NumPy file (.npy) with the values, of the type and shape of the constant."
    )
    data: Any = Field(default=None, description="The values, in place of src.")

    @model_validator(mode="after")
    def _has_source(self) -> Self:
        return require_source(self, self.src, "data", self.data)
