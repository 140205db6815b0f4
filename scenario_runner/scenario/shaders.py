"""The models of shaders, graphs and graph constants."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from scenario_runner.errors.diagnostic import Diagnostic, error
from scenario_runner.errors.text import Json
from scenario_runner.scenario.entries import (
    U32,
    BeyondReference,
    Items,
    Model,
    Reference,
    RequiredPath,
    Resources,
    Sourced,
    Targets,
    Uid,
    repeated,
    resource_of_class,
)
from scenario_runner.scenario.inline_contents import RequiredContent, RequiredSource, ShaderText, finite_number

SHADER = frozenset({"shader"})
RAW_DATA = frozenset({"raw_data"})


Constant = Annotated[
    bool | int | float, BeforeValidator(lambda value: value if type(value) is bool else finite_number(value))
]
PushConstantsSize = Annotated[int, Field(ge=0, le=0xFFFF_FFFF, multiple_of=4)]


class SpecializationConstant(Model):
    """The value of one specialization constant."""

    id: U32 = Field(description="constant_id of the constant in the shader.")
    value: Constant = Field(
        description="A number, true or false, converted to the type in the shader. One that does not fit is an error."
    )


SpecializationConstants = Items[SpecializationConstant]


class Shader(Sourced):
    """A shader from a source or SPIR-V file."""

    kind: ClassVar[str] = "shader"
    code_only: ClassVar[frozenset[str]] = frozenset({"source"})

    uid: Uid
    src: RequiredSource | None = Field(
        default=None, description="Path of the source or SPIR-V file, or an object with the source text."
    )
    type: Literal["GLSL", "SPIR-V", "HLSL"] = Field(
        default="GLSL", description="Language of the file. By default .spv is SPIR-V, .hlsl is HLSL, all else GLSL."
    )
    stage: Literal["compute", "vertex", "fragment"] = Field(
        default="compute",
        description="Pipeline stage: compute for dispatch_compute, vertex and fragment for dispatch_fragment.",
    )
    entry: str = Field(default="main", min_length=1, description="Name of the entry point.")
    build_options: str = Field(
        default="", description="Compiler options as on a command line, such as -DN=4 -Iinclude."
    )
    include_dirs: Items[RequiredPath] = Field(
        default=(), description="Folders for included files, relative to the scenario's folder."
    )
    push_constants_size: PushConstantsSize = Field(
        default=0,
        description="Size in bytes of the shader's push constants; a multiple of 4. 0: the size in the shader.",
    )
    specialization_constants: SpecializationConstants = Field(
        default=(), description="Values of the shader's specialization constants."
    )
    full_subgroups: BeyondReference[bool] = Field(
        default=False,
        description="Whether all subgroups of the compute shader are full. The feature computeFullSubgroups is needed.",
    )
    source: str | bytes | None = Field(default=None, description="Source text or SPIR-V bytes, in place of src.")

    @model_validator(mode="before")
    @classmethod
    def _infer_type(cls, values: Json) -> Json:
        if isinstance(values, dict) and "type" not in values:
            src, source = values.get("src"), values.get("source")
            name = src.lower() if isinstance(src, str) else ""
            binary = isinstance(source, bytes) or name.endswith(".spv")
            return values | {"type": "SPIR-V" if binary else "HLSL" if name.endswith(".hlsl") else "GLSL"}
        return values

    @classmethod
    def in_schema(cls, definition: dict[str, Json]) -> dict[str, Json]:
        del definition["properties"]["type"]["default"]  # it depends on the file name
        return definition

    @property
    def text(self) -> str | bytes | None:
        """The source or the SPIR-V module if the scenario holds it, else None."""
        return self.src.source if self.source is None and isinstance(self.src, ShaderText) else self.source

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        if self.type == "SPIR-V" and isinstance(self.src, ShaderText):
            yield error("SR-JSON-005", "/type", "a text is 'GLSL' or 'HLSL', got 'SPIR-V'", "give a .spv file in 'src'")
        if self.full_subgroups and self.stage != "compute":
            message = f"only a compute shader has full subgroups, {self.uid!r:.100} is of the stage {self.stage!r}"
            yield error("SR-CONFLICT-006", "/full_subgroups", message)
        yield from constant_contradictions(self.specialization_constants, "/specialization_constants")


def constant_contradictions(constants: Sequence[SpecializationConstant], inside: str) -> Iterator[Diagnostic]:
    """Report constants that get a value twice."""
    for index, first in repeated(map(attrgetter("id"), constants)):
        message = f"the constant {constants[index].id} already has a value in entry {first}"
        yield error("SR-CONFLICT-004", f"{inside}/{index}/id", message)


def wrong_stage(inside: str, uid: str, stage: str, resources: Resources) -> Iterator[Diagnostic]:
    """Report a shader of the wrong stage."""
    shader = resource_of_class(resources, uid, Shader)
    if shader is not None and shader.stage != stage:
        message = f"expected a shader of the stage {stage!r}, got {uid!r:.100} of the stage {shader.stage!r}"
        yield error("SR-CONFLICT-006", inside, message)


class SpecializationConstantMap(Model):
    """Specialization constants of one shader inside a graph."""

    specialization_constants: SpecializationConstants = Field(description="Values of the constants.")
    shader_target: str = Field(min_length=1, description="Name of the shader's module or segment.")


class ShaderSubstitution(Model):
    """A shader for a placeholder node of a graph."""

    shader_ref: Reference = Field(description="uid of a compute shader.")
    target: str = Field(min_length=1, description="Name of the placeholder's module or segment.")


ShaderSubstitutions = Items[ShaderSubstitution]


def substitution_contradictions(
    substitutions: Sequence[ShaderSubstitution], resources: Resources
) -> Iterator[Diagnostic]:
    """Find contradictions in ``shader_substitutions``."""
    yield from target_contradictions(
        [substitution.target for substitution in substitutions], "/shader_substitutions", "target"
    )
    for index, substitution in enumerate(substitutions):
        inside = f"/shader_substitutions/{index}/shader_ref"
        yield from wrong_stage(inside, substitution.shader_ref, "compute", resources)


def target_contradictions(targets: Sequence[str], inside: str, key: str) -> Iterator[Diagnostic]:
    """Report graph nodes that are named twice."""
    for index, first in repeated(targets):
        message = f"the node {targets[index]!r:.100} is already the target of entry {first}"
        yield error("SR-CONFLICT-004", f"{inside}/{index}/{key}", message)


class Graph(Sourced):
    """A graph from a VGF file."""

    kind: ClassVar[str] = "graph"
    refers_to: ClassVar[Targets] = {"shader_substitutions.shader_ref": SHADER}
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})

    uid: Uid
    src: RequiredPath | None = Field(default=None, description="Path of the VGF file.")
    specialization_constants_map: Items[SpecializationConstantMap] = Field(
        default=(), description="Specialization constants of the shaders in the graph."
    )
    shader_substitutions: ShaderSubstitutions = Field(
        default=(), description="Shaders for placeholder nodes of the graph, in every dispatch."
    )
    push_constants_size: PushConstantsSize = Field(
        default=0,
        description="Size in bytes of the push constants of the graph's shaders, a multiple of 4. 0: the size in "
        "the substituted shader, the VGF file, or the shader's block.",
    )
    data: Any = Field(default=None, description="The bytes of the VGF file, in place of src.")

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        inside, constants = "/specialization_constants_map", self.specialization_constants_map
        for index, target in enumerate(constants):
            place = f"{inside}/{index}/specialization_constants"
            yield from constant_contradictions(target.specialization_constants, place)
        yield from target_contradictions([constant.shader_target for constant in constants], inside, "shader_target")
        yield from substitution_contradictions(self.shader_substitutions, resources)


class GraphConstant(Sourced):
    """A constant for dispatch_spirv_graph."""

    kind: ClassVar[str] = "graph_constant"
    code_only: ClassVar[frozenset[str]] = frozenset({"data"})

    uid: Uid
    dims: Annotated[Items[Annotated[int, Field(ge=1, le=2**63 - 1)]], Field(min_length=1, max_length=6)] = Field(
        description="Shape, one to six dimensions."
    )
    format: str = Field(min_length=1, description="VkFormat with one component, such as VK_FORMAT_R8_SINT.")
    src: RequiredContent | None = Field(
        default=None,
        description="NumPy file (.npy) with the values, in the type and shape of the constant, or an object.",
    )
    data: Any = Field(default=None, description="The values, in place of src.")
