"""Rules for the shader stages of a draw: outputs of the vertex shader against inputs of the fragment shader.

Source: Vulkan specification, "Shader Interfaces", section "Interface Matching"; "Shaders" and the SPIR-V environment's
rules on interpolation and execution modes for fragment shaders.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from scenario_runner.checks.entry_points import Need
from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.shaders.spirv import EntryPoint
from scenario_runner.shaders.spirv._generated import enumerants as spv
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.stage_interface import StageInterface, StageVariable
from scenario_runner.shaders.spirv.types import Array, Struct, Type, Vector

_POINT_SIZE: Final = 1  # a BuiltIn
# Execution modes (SPIR-V specification, "Execution Mode").
_PIXEL_CENTER_INTEGER: Final = 6
_ORIGIN_UPPER_LEFT: Final = 7
_ORIGIN_LOWER_LEFT: Final = 8
_DEPTH_REPLACING: Final = 12


class Stage(NamedTuple):
    """One shader in a draw with inputs and outputs. ``pointer`` is the shader's place."""

    uid: str
    pointer: str
    entry: EntryPoint
    interface: StageInterface

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"shader {self.uid!r}"


def check_stages(vertex: Stage, fragment: Stage, pointer: str) -> tuple[list[Diagnostic], list[Need]]:
    """Check the inputs and outputs of a draw's shaders. Return the findings, and the device features they need.

    ``pointer`` is the place of the draw. Impossible declarations stand alone, since nothing matches them.
    """
    findings = [
        error("SR-STAGE-004", stage.pointer, f"{stage.label}: {problem}")
        for stage in (vertex, fragment)
        for problem in stage.interface.problems
    ]
    if findings:
        return findings, []
    if "Position" not in vertex.interface.outputs_built_in:
        message = f"{vertex.label} never writes a position (gl_Position), so the draw is undefined"
        findings.append(warning("SR-STAGE-007", vertex.pointer, message))
    for sentence in _wrong_modes(fragment):
        findings.append(error("SR-STAGE-006", fragment.pointer, f"{fragment.label} {sentence}"))
    for input_ in fragment.interface.inputs:
        is_float = input_.scalar.is_float and input_.scalar.width_bits != 64
        if not (input_.flat or input_.per_vertex or is_float):
            what = f"{fragment.label} interpolates {described('input', input_)}"
            message = f"{what}, but only floats of 16 and 32 bits can be interpolated"
            findings.append(error("SR-STAGE-003", fragment.pointer, message, "declare it flat"))
    outputs = {(output.location, output.component): output for output in vertex.interface.outputs}
    needs: list[Need] = []
    for input_ in fragment.interface.inputs:
        output = outputs.get((input_.location, input_.component))
        if output is not None and _is_part(input_, output):
            needed_by = f"{described('input', input_)} of {fragment.label}, a part of a vector"
            needs.append(("VkPhysicalDeviceVulkan13Features", "maintenance4", needed_by))
        else:
            findings += _check_input(vertex, fragment, input_, output, f"{pointer}/fragment_shader_ref")
    return findings, needs


def writes_point_size(vertex: Stage) -> bool:
    """Return whether a vertex shader writes gl_PointSize, as a variable or as a member of a block."""
    index = vertex.entry.source
    words, definitions = index.words, index.definitions
    if any(index.decorations_of(id).get(spv.BUILT_IN) == _POINT_SIZE for id in index.variables):
        return True
    for at in index.instructions():
        if index.opcode(at) in (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN) and words[at + 3] in index.variables:
            pointer, constant = definitions[words[definitions[words[at + 3]] + 1]], definitions.get(words[at + 4])
            if constant is not None and index.opcode(constant) == op.CONSTANT:
                member = index.member_decorations_of(words[pointer + 3], words[constant + 3])
                if member.get(spv.BUILT_IN) == _POINT_SIZE:
                    return True
    return False


def _check_input(
    vertex: Stage, fragment: Stage, input_: StageVariable, output: StageVariable | None, place: str
) -> Iterator[Diagnostic]:
    """Check a fragment shader's input against the output at the same location and component."""
    what = f"{fragment.label} takes {described('input', input_)}"
    if output is None:
        instead = f"has nothing at {_place(input_)}"
        for around in vertex.interface.outputs:
            if (input_.location, input_.component) in around.words():
                instead = f"has {described('output', around)} there, which begins elsewhere"
        message = f"{what}; {vertex.label} {instead}"
        yield error("SR-STAGE-001", place, message, "declare the same variable as an output there")
    elif not _same(_read_type(input_), output.type):
        message = f"{what} as {input_.type}; {vertex.label} hands on {output.name!r} there as {output.type}"
        yield error("SR-STAGE-002", place, message, "declare both with the same type")


def _read_type(input_: StageVariable) -> Type:
    """Return the type that an input has for each vertex."""
    return input_.type.element if input_.per_vertex and isinstance(input_.type, Array) else input_.type


def _is_part(input_: StageVariable, output: StageVariable) -> bool:
    """Return whether the input is a vector, and the output a longer vector with the same type of components."""
    read, written = _read_type(input_), output.type
    if not isinstance(read, Vector) or not isinstance(written, Vector):
        return False
    return read.component == written.component and read.components < written.components


def _wrong_modes(fragment: Stage) -> list[str]:
    """Find errors in a fragment shader's execution modes, as sentence ends."""
    entry = fragment.entry
    modes = {entry.source.words[at + 2] for at in entry.source.execution_modes(entry.function)}
    wrong = []
    if _ORIGIN_LOWER_LEFT in modes:
        wrong.append("has the execution mode OriginLowerLeft, which Vulkan does not allow")
    elif _ORIGIN_UPPER_LEFT not in modes:
        wrong.append("lacks the execution mode OriginUpperLeft, which every fragment shader needs")
    if _PIXEL_CENTER_INTEGER in modes:
        wrong.append("has the execution mode PixelCenterInteger, which Vulkan does not allow")
    if "FragDepth" in fragment.interface.outputs_built_in and _DEPTH_REPLACING not in modes:
        wrong.append("has the output FragDepth without the execution mode DepthReplacing")
    return wrong


def _same(first: Type, second: Type) -> bool:
    """Return whether two declarations mean the same type, apart from ids and names."""
    if isinstance(first, Array) and isinstance(second, Array):
        return first.length == second.length and _same(first.element, second.element)
    if isinstance(first, Struct) and isinstance(second, Struct):
        return len(first.members) == len(second.members) and all(
            _same(mine.type, theirs.type) for mine, theirs in zip(first.members, second.members, strict=True)
        )
    return first == second


def _place(variable: StageVariable) -> str:
    component = f", component {variable.component}" if variable.component else ""
    return f"location {variable.location}{component}"


def described(way: str, variable: StageVariable) -> str:
    """Name an input or output in messages."""
    return f"{way} {variable.name!r} at {_place(variable)}"
