"""The two shaders of a drawing: what the vertex shader hands on against what the fragment shader takes.

Source: Vulkan specification, "Shader Interfaces", sections "Interface Matching" and "Vertex Input Interface"; "Shaders"
and the SPIR-V environment's rules on interpolation and execution modes of fragment shaders.
"""

from typing import Final, NamedTuple

from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.spirv import EntryPoint
from scenario_runner.spirv.stage_interface import StageInterface, StageVariable
from scenario_runner.spirv.types import Array, Struct, Type, Vector

# Execution modes (SPIR-V specification, "Execution Mode").
_PIXEL_CENTER_INTEGER: Final = 6
_ORIGIN_UPPER_LEFT: Final = 7
_ORIGIN_LOWER_LEFT: Final = 8
_DEPTH_REPLACING: Final = 12

WIDER_VECTORS: Final = ("VkPhysicalDeviceVulkan13Features", "maintenance4")
"""The feature that lets a fragment shader take fewer components of a vector than the vertex shader hands on."""


class Stage(NamedTuple):
    """One shader of a drawing: its uid, where the scenario declares it, and what it takes and hands on."""

    uid: str
    pointer: str
    entry: EntryPoint
    interface: StageInterface


class Stages(NamedTuple):
    """What is wrong between two stages, and (structure, member, what needs it) of the features that they take."""

    findings: list[Diagnostic]
    needs: list[tuple[str, str, str]]


def check_stages(vertex: Stage, fragment: Stage, pointer: str) -> Stages:
    """Everything about the inputs and outputs of the shaders of the drawing at ``pointer``, but for its attachments.

    Declarations that cannot be are told alone: nothing can be matched with them.
    """
    found = [
        error("SR-STAGE-004", stage.pointer, f"shader {stage.uid!r}: {problem}")
        for stage in (vertex, fragment)
        for problem in stage.interface.problems
    ]
    if found:
        return Stages(found, [])
    found += [
        error(
            "SR-STAGE-005",
            f"{pointer}/vertex_shader_ref",
            f"shader {vertex.uid!r} takes {_described('input', each)} from a vertex buffer; a drawing of a scenario has"
            " none",
            "tell the three vertices apart by gl_VertexIndex, and read their data from a buffer",
        )
        for each in vertex.interface.inputs
    ]
    if "Position" not in vertex.interface.outputs_built_in:
        message = f"shader {vertex.uid!r} never gives a position (gl_Position): what is drawn where is undefined"
        found.append(warning("SR-STAGE-007", vertex.pointer, message))
    found += _check_modes(fragment)
    found += [
        error(
            "SR-STAGE-003",
            fragment.pointer,
            f"shader {fragment.uid!r} interpolates {_described('input', each)}: only floats of 16 and 32 bits can be",
            "declare it flat",
        )
        for each in fragment.interface.inputs
        if not each.flat and not each.per_vertex and (each.scalar.kind != "float" or each.scalar.width_bits == 64)
    ]
    matches, needs = _match(vertex, fragment, f"{pointer}/fragment_shader_ref")
    return Stages([*found, *matches], needs)


def _check_modes(fragment: Stage) -> list[Diagnostic]:
    entry = fragment.entry
    modes = {entry.source.words[at + 2] for at in entry.source.execution_modes.get(entry.function, ())}
    wrong = []
    if _ORIGIN_LOWER_LEFT in modes:
        wrong.append("has the execution mode OriginLowerLeft, which Vulkan does not allow")
    elif _ORIGIN_UPPER_LEFT not in modes:
        wrong.append("lacks the execution mode OriginUpperLeft, which every fragment shader needs")
    if _PIXEL_CENTER_INTEGER in modes:
        wrong.append("has the execution mode PixelCenterInteger, which Vulkan does not allow")
    if "FragDepth" in fragment.interface.outputs_built_in and _DEPTH_REPLACING not in modes:
        wrong.append("has the output FragDepth without the execution mode DepthReplacing")
    return [error("SR-STAGE-006", fragment.pointer, f"shader {fragment.uid!r} {sentence}") for sentence in wrong]


def _match(vertex: Stage, fragment: Stage, place: str) -> tuple[list[Diagnostic], list[tuple[str, str, str]]]:
    """Every input of the fragment shader against the output at its location and component."""
    found: list[Diagnostic] = []
    needs: list[tuple[str, str, str]] = []
    outputs = {(each.location, each.component): each for each in vertex.interface.outputs}
    covering: dict[tuple[int, int], StageVariable] | None = None
    for each in fragment.interface.inputs:
        output = outputs.get((each.location, each.component))
        what = f"shader {fragment.uid!r} takes {_described('input', each)}"
        if output is None:
            if covering is None:
                covering = {word: output for output in vertex.interface.outputs for word in output.words()}
            around = covering.get((each.location, each.component))
            there = f"has nothing at location {each.location}" + (
                f", component {each.component}" if each.component else ""
            )
            if around is not None:
                there = f"has {_described('output', around)} there, which begins elsewhere"
            message = f"{what}; shader {vertex.uid!r} {there}"
            found.append(error("SR-STAGE-001", place, message, "declare the same variable as an output there"))
            continue
        wanted: Type = each.type
        if each.per_vertex and isinstance(wanted, Array):
            wanted = wanted.element
        if _same(wanted, output.type):
            continue
        if (
            isinstance(wanted, Vector)
            and isinstance(output.type, Vector)
            and wanted.component == output.type.component
            and wanted.components < output.type.components
        ):
            needs.append(
                (*WIDER_VECTORS, f"{_described('input', each)} of shader {fragment.uid!r}, a part of a vector")
            )
            continue
        message = f"{what} as {each.type}; shader {vertex.uid!r} hands on {output.name!r} there as {output.type}"
        found.append(error("SR-STAGE-002", place, message, "declare both with the same type"))
    return found, needs


def _same(one: Type, other: Type) -> bool:
    """Whether two declarations mean the same type, whatever their ids and names."""
    if isinstance(one, Array) and isinstance(other, Array):
        return one.length == other.length and _same(one.element, other.element)
    if isinstance(one, Struct) and isinstance(other, Struct):
        return len(one.members) == len(other.members) and all(
            _same(mine.type, theirs.type) for mine, theirs in zip(one.members, other.members, strict=True)
        )
    return one == other


def _described(way: str, variable: StageVariable) -> str:
    component = f", component {variable.component}" if variable.component else ""
    return f"{way} {variable.name!r} at location {variable.location}{component}"
