"""The colour attachments of a drawing: images that can be drawn into, against the outputs of the fragment shader.

Source: Vulkan specification, "Shader Interfaces", section "Fragment Output Interface"; the extents follow the JSON Test
Description Specification.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from scenario_runner.checks.stages import Stage
from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.formats import Format
from scenario_runner.spirv.stage_interface import StageInterface, StageVariable

_CLASSES: Final = {"uint": "uint", "sint": "int"}
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
    """What is wrong with the attachments of the drawing at ``pointer``; unknown ones are None.

    ``bound`` are the images that the shaders use besides, each with its level or None for all.
    """
    found = _check_images(attachments, render_extent, bound, pointer)
    if not fragment.interface.problems:  # which `check_stages` tells
        found += _check_outputs(attachments, fragment, pointer)
    return found


def _check_images(
    attachments: Sequence[Attachment | None],
    render_extent: tuple[int, ...] | None,
    bound: Collection[tuple[str, int | None]],
    pointer: str,
) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    extent, whose = render_extent, "the render_extent"
    first: dict[tuple[str, int], int] = {}
    for index, each in enumerate(attachments):
        if each is None:
            continue
        place = f"{pointer}/color_attachment_refs/{index}"
        name = f"image {each.uid!r}" + (f", mip level {each.level}," if each.level else "")
        if not each.declared:
            message = f"{name} is drawn into, and its color_attachment is false"
            found.append(warning("SR-ATTACH-005", place, message, "set color_attachment of the image to true"))
        if each.format.is_compressed or "color" not in each.format.aspects:
            message = f"{name} has the format {each.format.name}, which cannot be drawn into as a colour"
            found.append(error("SR-ATTACH-006", place, message))
        size = (each.width, each.height)
        if extent is None:
            extent, whose = size, f"attachment 0, {each.uid!r},"
        elif tuple(extent) != size:
            message = f"{name} has {each.width} x {each.height} texels, {whose} has {extent[0]} x {extent[1]}"
            found.append(error("SR-ATTACH-007", place, message, "all that is drawn into at once has one size"))
        other = first.setdefault((each.uid, each.level), index)
        if other != index:
            message = f"{name} is attachment {other} already: which of the two values stays is undefined"
            found.append(error("SR-ATTACH-010", place, message, "give each output an image or a mip level of its own"))
        if any(uid == each.uid and level in (None, each.level) for uid, level in bound):
            message = f"{name} is drawn into while the shaders use it as a binding: what they see there is undefined"
            help = "draw into another image, or bind another mip level with lod"
            found.append(error("SR-ATTACH-008", place, message, help))
    return found


def written_components(interface: StageInterface) -> dict[int, dict[int, StageVariable]]:
    """What a fragment shader gives to each attachment: the outputs by their component, by location."""
    written: dict[int, dict[int, StageVariable]] = {}
    for output in interface.outputs:
        if not output.index:
            for location, component in output.words():
                written.setdefault(location, {})[component] = output
    return written


def _check_outputs(attachments: Sequence[Attachment | None], fragment: Stage, pointer: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    written = written_components(fragment.interface)
    for output in fragment.interface.outputs:
        what = f"output {output.name!r} of shader {fragment.uid!r}"
        if output.index:
            message = f"{what} is the second input of a blend, and a drawing of a scenario does not blend"
            found.append(warning("SR-ATTACH-001", pointer, message))
            continue
        lost = [location for location, _ in output.words() if location >= len(attachments)]
        if lost:
            there_are = f"the drawing has {len(attachments)}" if attachments else "the drawing has none"
            message = f"{what} goes to the attachment {lost[0]}; {there_are}, so that it is lost"
            found.append(
                warning("SR-ATTACH-001", pointer, message, "add an image to color_attachment_refs, or drop the output")
            )
    for index, attachment in enumerate(attachments):
        place = f"{pointer}/color_attachment_refs/{index}"
        outputs = written.get(index, {})
        if not outputs:
            message = f"shader {fragment.uid!r} has no output at location {index}: the image stays as it is"
            found.append(
                warning("SR-ATTACH-002", place, message, f"declare: layout(location = {index}) out vec4 color;")
            )
        elif attachment is not None:
            found += _check_values(attachment, outputs, fragment.uid, place)
    return found


def _check_values(
    attachment: Attachment, outputs: Mapping[int, StageVariable], uid: str, place: str
) -> list[Diagnostic]:
    """The outputs by component against one attachment's format."""
    format, found = attachment.format, []
    wanted = _CLASSES.get(format.numeric, "float")
    for output in dict.fromkeys(outputs.values()):
        if output.scalar.kind != wanted or output.scalar.width_bits > 32:
            message = (
                f"output {output.name!r} of shader {uid!r} gives {output.scalar}; image {attachment.uid!r} of"
                f" {format.name} takes {_WORDS[wanted]} of 32 bits"
            )
            found.append(error("SR-ATTACH-003", place, message, "change the output's type, or the format"))
    channels = [_CHANNELS.index(each) for each in format.channels if each in _CHANNELS]
    missing = [_CHANNELS[each] for each in sorted(channels) if each not in outputs]
    if missing:
        names = " and ".join(repr(output.name) for output in dict.fromkeys(outputs.values()))
        message = (
            f"{names} of shader {uid!r} does not give {' and '.join(missing)} of image {attachment.uid!r}"
            f" ({format.name}), which stays as it is"
        )
        found.append(warning("SR-ATTACH-004", place, message, f"give all {len(channels)} components"))
    return found
