"""The shaders of a drawing against each other, and the outputs of its fragment shader against the color attachments.

Source: Vulkan specification, "Shader Interfaces", sections "Interface Matching", "Vertex Input Interface" and "Fragment
Output Interface"; "Shaders" and the SPIR-V environment's rules on interpolation and execution modes of fragment
shaders. The extents follow the JSON Test Description Specification.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from scenario_runner.checks.resources import TEXEL_KINDS
from scenario_runner.checks.shaders import Need
from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.formats import Format
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


def check_stages(vertex: Stage, fragment: Stage, pointer: str) -> tuple[list[Diagnostic], list[Need]]:
    """Everything about the inputs and outputs of the shaders of the drawing at ``pointer``, but for its attachments;
    and the features that they take.

    Declarations that cannot be are told alone: nothing can be matched with them.
    """
    findings = [
        error("SR-STAGE-004", stage.pointer, f"shader {stage.uid!r}: {problem}")
        for stage in (vertex, fragment)
        for problem in stage.interface.problems
    ]
    if findings:
        return findings, []
    findings += [
        error(
            "SR-STAGE-005",
            f"{pointer}/vertex_shader_ref",
            f"shader {vertex.uid!r} takes {_described('input', input_)} from a vertex buffer; a drawing of a scenario"
            " has none",
            "tell the three vertices apart by gl_VertexIndex, and read their data from a buffer",
        )
        for input_ in vertex.interface.inputs
    ]
    if "Position" not in vertex.interface.outputs_built_in:
        message = f"shader {vertex.uid!r} never gives a position (gl_Position): what is drawn where is undefined"
        findings.append(warning("SR-STAGE-007", vertex.pointer, message))
    findings += _check_modes(fragment)
    findings += [
        error(
            "SR-STAGE-003",
            fragment.pointer,
            f"shader {fragment.uid!r} interpolates {_described('input', input_)}: only floats of 16 and 32 bits can be",
            "declare it flat",
        )
        for input_ in fragment.interface.inputs
        if not input_.flat
        and not input_.per_vertex
        and (input_.scalar.kind != "float" or input_.scalar.width_bits == 64)
    ]
    matches, needs = _match(vertex, fragment, f"{pointer}/fragment_shader_ref")
    return [*findings, *matches], needs


def _check_modes(fragment: Stage) -> list[Diagnostic]:
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
    return [error("SR-STAGE-006", fragment.pointer, f"shader {fragment.uid!r} {sentence}") for sentence in wrong]


def _match(vertex: Stage, fragment: Stage, place: str) -> tuple[list[Diagnostic], list[Need]]:
    """Every input of the fragment shader against the output at its location and component."""
    findings: list[Diagnostic] = []
    needs: list[Need] = []
    outputs = {(output.location, output.component): output for output in vertex.interface.outputs}
    covering: dict[tuple[int, int], StageVariable] | None = None
    for input_ in fragment.interface.inputs:
        output = outputs.get((input_.location, input_.component))
        what = f"shader {fragment.uid!r} takes {_described('input', input_)}"
        if output is None:
            if covering is None:
                covering = {word: output for output in vertex.interface.outputs for word in output.words()}
            around = covering.get((input_.location, input_.component))
            instead = f"has nothing at location {input_.location}" + (
                f", component {input_.component}" if input_.component else ""
            )
            if around is not None:
                instead = f"has {_described('output', around)} there, which begins elsewhere"
            message = f"{what}; shader {vertex.uid!r} {instead}"
            findings.append(error("SR-STAGE-001", place, message, "declare the same variable as an output there"))
            continue
        read_type: Type = input_.type
        if input_.per_vertex and isinstance(read_type, Array):
            read_type = read_type.element
        if _same(read_type, output.type):
            continue
        if (
            isinstance(read_type, Vector)
            and isinstance(output.type, Vector)
            and read_type.component == output.type.component
            and read_type.components < output.type.components
        ):
            needs.append(
                (*WIDER_VECTORS, f"{_described('input', input_)} of shader {fragment.uid!r}, a part of a vector")
            )
            continue
        message = f"{what} as {input_.type}; shader {vertex.uid!r} hands on {output.name!r} there as {output.type}"
        findings.append(error("SR-STAGE-002", place, message, "declare both with the same type"))
    return findings, needs


def _same(first: Type, second: Type) -> bool:
    """Return whether two declarations mean the same type, whatever their ids and names."""
    if isinstance(first, Array) and isinstance(second, Array):
        return first.length == second.length and _same(first.element, second.element)
    if isinstance(first, Struct) and isinstance(second, Struct):
        return len(first.members) == len(second.members) and all(
            _same(mine.type, theirs.type) for mine, theirs in zip(first.members, second.members, strict=True)
        )
    return first == second


def _described(way: str, variable: StageVariable) -> str:
    component = f", component {variable.component}" if variable.component else ""
    return f"{way} {variable.name!r} at location {variable.location}{component}"


_WORDS: Final = {"uint": "unsigned integers", "int": "signed integers", "float": "floats"}
_CHANNELS: Final = "RGBA"


class Attachment(NamedTuple):
    """One image level that is drawn into, ``width`` times ``height`` texels; ``declared`` tells color_attachment."""

    uid: str
    level: int
    format: Format
    width: int
    height: int
    declared: bool


def check_attachments(
    attachments: Sequence[Attachment | None],
    fragment: Stage,
    render_extent: tuple[int, ...] | None,
    bound: Collection[tuple[str, int | None]],
    pointer: str,
) -> list[Diagnostic]:
    """Find the problems of the attachments of the drawing at ``pointer``; unknown ones are None.

    ``bound`` are the images that the shaders use besides, each with its level or None for all.
    """
    findings = _check_images(attachments, render_extent, bound, pointer)
    if not fragment.interface.problems:  # which `check_stages` tells
        findings += _check_outputs(attachments, fragment, pointer)
    return findings


def _check_images(
    attachments: Sequence[Attachment | None],
    render_extent: tuple[int, ...] | None,
    bound: Collection[tuple[str, int | None]],
    pointer: str,
) -> list[Diagnostic]:
    findings: list[Diagnostic] = []
    extent, whose = render_extent, "the render_extent"
    first: dict[tuple[str, int], int] = {}
    for index, attachment in enumerate(attachments):
        if attachment is None:
            continue
        place = f"{pointer}/color_attachment_refs/{index}"
        name = f"image {attachment.uid!r}" + (f", mip level {attachment.level}," if attachment.level else "")
        if not attachment.declared:
            message = f"{name} is drawn into, and its color_attachment is false"
            findings.append(warning("SR-ATTACH-005", place, message, "set color_attachment of the image to true"))
        if attachment.format.is_compressed or "color" not in attachment.format.aspects:
            message = f"{name} has the format {attachment.format.name}, which cannot be drawn into as a colour"
            findings.append(error("SR-ATTACH-006", place, message))
        size = (attachment.width, attachment.height)
        if extent is None:
            extent, whose = size, f"attachment 0, {attachment.uid!r},"
        elif tuple(extent) != size:
            message = (
                f"{name} has {attachment.width} x {attachment.height} texels, {whose} has {extent[0]} x {extent[1]}"
            )
            findings.append(error("SR-ATTACH-007", place, message, "all that is drawn into at once has one size"))
        other = first.setdefault((attachment.uid, attachment.level), index)
        if other != index:
            message = f"{name} is attachment {other} already: which of the two values stays is undefined"
            findings.append(
                error("SR-ATTACH-010", place, message, "give each output an image or a mip level of its own")
            )
        if any(uid == attachment.uid and level in (None, attachment.level) for uid, level in bound):
            message = f"{name} is drawn into while the shaders use it as a binding: what they see there is undefined"
            help = "draw into another image, or bind another mip level with lod"
            findings.append(error("SR-ATTACH-008", place, message, help))
    return findings


def written_components(interface: StageInterface) -> dict[int, dict[int, StageVariable]]:
    """The components that a fragment shader gives to each attachment: the outputs by their component, by location."""
    written: dict[int, dict[int, StageVariable]] = {}
    for output in interface.outputs:
        if not output.index:
            for location, component in output.words():
                written.setdefault(location, {})[component] = output
    return written


def _check_outputs(attachments: Sequence[Attachment | None], fragment: Stage, pointer: str) -> list[Diagnostic]:
    findings: list[Diagnostic] = []
    written = written_components(fragment.interface)
    for output in fragment.interface.outputs:
        what = f"output {output.name!r} of shader {fragment.uid!r}"
        if output.index:
            message = f"{what} is the second input of a blend, and a drawing of a scenario does not blend"
            findings.append(warning("SR-ATTACH-001", pointer, message))
            continue
        lost = [location for location, _ in output.words() if location >= len(attachments)]
        if lost:
            there_are = f"the drawing has {len(attachments)}" if attachments else "the drawing has none"
            message = f"{what} goes to the attachment {lost[0]}; {there_are}, so that it is lost"
            findings.append(
                warning("SR-ATTACH-001", pointer, message, "add an image to color_attachment_refs, or drop the output")
            )
    for index, attachment in enumerate(attachments):
        place = f"{pointer}/color_attachment_refs/{index}"
        outputs = written.get(index, {})
        if not outputs:
            message = f"shader {fragment.uid!r} has no output at location {index}: the image stays as it is"
            findings.append(
                warning("SR-ATTACH-002", place, message, f"declare: layout(location = {index}) out vec4 color;")
            )
        elif attachment is not None:
            findings += _check_values(attachment, outputs, fragment.uid, place)
    return findings


def _check_values(
    attachment: Attachment, outputs: Mapping[int, StageVariable], uid: str, place: str
) -> list[Diagnostic]:
    """The outputs by component against one attachment's format."""
    format, findings = attachment.format, []
    expected_class = TEXEL_KINDS.get(format.numeric, "float")
    for output in dict.fromkeys(outputs.values()):
        if output.scalar.kind != expected_class or output.scalar.width_bits > 32:
            message = (
                f"output {output.name!r} of shader {uid!r} gives {output.scalar}; image {attachment.uid!r} of"
                f" {format.name} takes {_WORDS[expected_class]} of 32 bits"
            )
            findings.append(error("SR-ATTACH-003", place, message, "change the output's type, or the format"))
    channels = [_CHANNELS.index(channel) for channel in format.channels if channel in _CHANNELS]
    missing = [_CHANNELS[channel] for channel in sorted(channels) if channel not in outputs]
    if missing:
        names = " and ".join(repr(output.name) for output in dict.fromkeys(outputs.values()))
        message = (
            f"{names} of shader {uid!r} does not give {' and '.join(missing)} of image {attachment.uid!r}"
            f" ({format.name}), which stays as it is"
        )
        findings.append(warning("SR-ATTACH-004", place, message, f"give all {len(channels)} components"))
    return findings
