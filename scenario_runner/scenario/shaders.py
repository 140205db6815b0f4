"""The shader resource and its specialization constants."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.scenario.entry import Resource, Resources, Use, found, repeated
from scenario_runner.scenario.model import U32, Model, RequiredPath, Uid, require_source, wrong

SHADER = frozenset({"shader"})
RAW_DATA = frozenset({"raw_data"})


def _finite_number(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        if not -(2**63) <= value < 2**64:
            raise wrong("expected a number that fits 64 bits")
    elif kind is float:
        if value - value != 0.0:
            raise wrong("expected a finite number")
    else:
        raise wrong("expected a number")
    return value


def _finite_number_or_bool(value: Any) -> Any:
    return value if type(value) is bool else _finite_number(value)


Number = Annotated[int | float, BeforeValidator(_finite_number)]
Constant = Annotated[bool | int | float, BeforeValidator(_finite_number_or_bool)]
PushConstantsSize = Annotated[int, Field(ge=0, le=0xFFFF_FFFF, multiple_of=4)]


class SpecializationConstant(Model):
    """The value of one specialization constant."""

    id: U32 = Field(description="constant_id of the constant in the shader.")
    value: Constant = Field(
        description=(
            "A number, true or false; converted to the type that the shader declares. A value that does not fit "
            "is an error."
        )
    )


SpecializationConstants = Annotated[tuple[SpecializationConstant, ...], Field(strict=False)]


class Shader(Resource):
    """A shader from a source or SPIR-V file."""

    kind: ClassVar[str] = "shader"
    code_only: ClassVar[frozenset[str]] = frozenset({"source"})
    required_in_json: ClassVar[frozenset[str]] = frozenset({"src"})

    uid: Uid
    src: RequiredPath | None = Field(default=None, description="Path of the source or SPIR-V file.")
    type: Literal["GLSL", "SPIR-V", "HLSL"] = Field(
        default="GLSL",
        description="Language of the file; by default by its extension: .spv is SPIR-V, .hlsl is HLSL, all else GLSL.",
    )
    stage: Literal["compute", "vertex", "fragment"] = Field(
        default="compute",
        description=(
            "Pipeline stage of the shader. dispatch_compute needs compute; dispatch_fragment needs vertex and fragment."
        ),
    )
    entry: str = Field(default="main", min_length=1, description="Name of the entry point.")
    build_options: str = Field(
        default="", description="Options for the compiler as on its command line, for instance -DN=4 -Iinclude."
    )
    include_dirs: Annotated[tuple[RequiredPath, ...], Field(strict=False)] = Field(
        default=(), description="Folders searched for included files, relative to the folder of the scenario."
    )
    push_constants_size: PushConstantsSize = Field(
        default=0,
        description="Size in bytes of the shader's push constants; a multiple of 4. 0 means what the shader declares.",
    )
    specialization_constants: SpecializationConstants = Field(
        default=(), description="Values of the shader's specialization constants."
    )
    source: str | bytes | None = Field(default=None, description="Source text or SPIR-V bytes, in place of src.")

    @model_validator(mode="before")
    @classmethod
    def _infer_type(cls, given: Any) -> Any:
        if isinstance(given, dict) and "type" not in given:
            src, source = given.get("src"), given.get("source")
            name = src.lower() if isinstance(src, str) else ""
            binary = isinstance(source, bytes) or name.endswith(".spv")
            return given | {"type": "SPIR-V" if binary else "HLSL" if name.endswith(".hlsl") else "GLSL"}
        return given

    @model_validator(mode="after")
    def _has_source(self) -> Self:
        return require_source(self, self.src, "source", self.source)

    @classmethod
    def in_schema(cls, definition: dict[str, Any]) -> dict[str, Any]:
        del definition["properties"]["type"]["default"]  # it depends on the name of the file
        return definition

    def contradictions(self, resources: Resources) -> Iterator[Diagnostic]:
        return constant_contradictions(self.specialization_constants, "/specialization_constants")


def constant_contradictions(constants: tuple[SpecializationConstant, ...], inside: str) -> Iterator[Diagnostic]:
    """Constants that get a value twice."""
    for index, first in repeated(constant.id for constant in constants):
        message = f"the constant {constants[index].id} already has a value in entry {first}"
        yield error("SR-CONFLICT-004", f"{inside}/{index}/id", message)


def push_data_reference(uid: str | None) -> Iterator[Use]:
    """The reference ``push_data_ref`` of a command, where it has one."""
    if uid is not None:
        yield "/push_data_ref", uid, RAW_DATA


def wrong_stage(inside: str, uid: str, stage: str, resources: Resources) -> Iterator[Diagnostic]:
    """A shader that is of another stage than the one that is needed."""
    shader: Shader | None = found(resources, uid, "shader")
    if shader is not None and shader.stage != stage:
        message = f"expected a shader of the stage {stage!r}, got {uid!r:.100} of the stage {shader.stage!r}"
        yield error("SR-CONFLICT-006", inside, message)
