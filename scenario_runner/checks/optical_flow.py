"""The images of an optical flow against each other and against its width, height and grid size.

Source: VK_ARM_data_graph_optical_flow, VkDataGraphPipelineOpticalFlowCreateInfoARM. The images of every connection are
seen as one mip level each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.formats import Format

OUTPUTS: Final = ("output_image", "output_cost")
"""The bindings that an optical flow writes; it reads the others."""
FLAGS_OF_FOLLOWING: Final = frozenset(
    {"input_unchanged", "reference_unchanged", "input_is_previous_reference", "reference_is_previous_input"}
)
"""The flags that tell what the images have in common with those of the previous dispatch."""
_Kind = Literal["storage_image", "sampled_image", "combined_image_sampler"]
_IMAGE_TYPES: Final[dict[str, _Kind]] = {
    "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE": "storage_image",
    "VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE": "sampled_image",
    "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER": "combined_image_sampler",
}


class FlowImage(NamedTuple):
    """A mip level that an optical flow reads or writes: ``width`` times ``height`` texels."""

    uid: str
    level: int
    format: Format
    width: int
    height: int

    @property
    def called(self) -> str:
        """What messages call it."""
        return f"image {self.uid!r}" + (f", mip level {self.level}," if self.level else "")

    @property
    def extent(self) -> str:
        """Its size in words."""
        return f"{self.width} x {self.height} texels"


def check_flow(
    width: int, height: int, grid: int, images: Mapping[str, FlowImage], pointer: str
) -> Iterator[Diagnostic]:
    """What is wrong with the ``images`` of an optical flow by the names of its bindings; unknown ones are left out."""
    for name in ("search_image", "template_image"):
        image = images.get(name)
        if image is not None and (image.width, image.height) != (width, height):
            message = f"{image.called} has {image.extent}; the optical flow has {width} x {height} texels"
            yield error("SR-FLOW-001", _place(pointer, name), message, "width and height are those of the two images")
    vectors = -(-width // grid), -(-height // grid)
    for name in ("output_image", "hint_motion_vectors", "output_cost"):
        image = images.get(name)
        if image is not None and (image.width, image.height) != vectors:
            message = (
                f"{image.called} has {image.extent}; an optical flow of {width} x {height} texels with the grid size"
                f" {grid}x{grid} has {vectors[0]} x {vectors[1]} vectors"
            )
            yield error("SR-FLOW-002", _place(pointer, name), message, "the image has one texel for each vector")
    yield from _check_formats("search_image", "template_image", images, pointer)
    yield from _check_formats("output_image", "hint_motion_vectors", images, pointer)
    yield from _check_written(images, pointer)


def _check_formats(one: str, other: str, images: Mapping[str, FlowImage], pointer: str) -> Iterator[Diagnostic]:
    """The two images of the motion have one format, and so have vectors and hints."""
    first, second = images.get(one), images.get(other)
    if first is None or second is None or first.format is second.format:
        return
    message = f"{second.called} is {second.format.name}, and {first.called} is {first.format.name}"
    yield error("SR-FLOW-003", _place(pointer, other), message, f"{one} and {other} have one format")


def _check_written(images: Mapping[str, FlowImage], pointer: str) -> Iterator[Diagnostic]:
    """What is written must not be read or written by the same command through another binding."""
    seen: dict[tuple[str, int], str] = {}
    for name, image in sorted(images.items(), key=lambda each: each[0] in OUTPUTS):
        other = seen.setdefault((image.uid, image.level), name)
        if other != name and name in OUTPUTS:
            message = f"{image.called} is written as {name}, and is {other} as well"
            yield error("SR-FLOW-004", _place(pointer, name), message, "bind another image")


def check_flow_access(images: Mapping[str, FlowImage], access: Mapping[str, str], pointer: str) -> Iterator[Diagnostic]:
    """Warnings about what an optical flow does with images against their ``shader_access``, by names of bindings."""
    for name, image in images.items():
        place = _place(pointer, name)
        if name in OUTPUTS and access[name] == "readonly":
            message = f"the optical flow writes image {image.uid!r}, but its shader_access is 'readonly'"
            yield warning("SR-ACCESS-001", place, message, f"give {image.uid!r} the shader_access 'writeonly'")
        elif name not in OUTPUTS and access[name] == "writeonly":
            message = f"the optical flow reads image {image.uid!r}, but its shader_access is 'writeonly'"
            yield warning("SR-ACCESS-002", place, message, f"give {image.uid!r} the shader_access 'readonly'")


def check_first_flags(flags: Sequence[str], pointer: str) -> Iterator[Diagnostic]:
    """Warnings about flags of the first optical flow of a session: it has no previous one to compare with."""
    for index, flag in enumerate(flags):
        if flag in FLAGS_OF_FOLLOWING:
            yield warning(
                "SR-FLOW-006",
                f"{pointer}/execution_flags/{index}",
                f"the flag {flag!r} is about the previous optical flow of the session, and this one is the first;"
                " it is ignored",
                "optical flows of equal size, grid size, performance level and formats share a session",
            )


def descriptor_kind(name: str, wanted: str) -> _Kind | None:
    """The kind of descriptor for a binding with the ``descriptor_type`` that the scenario asks for; None where an
    optical flow cannot have it."""
    if wanted == "VK_DESCRIPTOR_TYPE_AUTO":
        return "storage_image" if name in OUTPUTS else "sampled_image"
    kind = _IMAGE_TYPES.get(wanted)
    return None if name in OUTPUTS and kind != "storage_image" else kind


def _place(pointer: str, name: str) -> str:
    return f"{pointer}/bindings/{name}/resource_ref"
