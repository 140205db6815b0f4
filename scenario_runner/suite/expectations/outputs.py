"""Outputs of a scenario that can be compared (results with a ``dst``, captured frames), their files, and the content
that is expected of them: bytes of a file or of values, read in pieces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from scenario_runner.elements import Element, element_of, element_of_format
from scenario_runner.files.codec import codec_for, codec_of, stored_levels
from scenario_runner.files.npy import write_npy
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import file_error
from scenario_runner.formats import find_format
from scenario_runner.plan.plan import Plan, ResourcePlan
from scenario_runner.plan.records import BufferPlan, Source, image_parts
from scenario_runner.plan.sources import ImageFileSource, NpySource
from scenario_runner.plan.special_records import ImagePlan, TensorPlan
from scenario_runner.run.capture_files import FileNames, FrameFolders
from scenario_runner.run.output_files import create_resource_file
from scenario_runner.scenario import Scenario
from scenario_runner.viewing.content import trimmed

MOST_CAPTURES: Final = 100_000
"""Most captured resources of all iterations that can be compared; one takes half a kilobyte of memory."""


class Output(NamedTuple):
    """One output.

    ``name`` is the uid of the resource, or ``frame_1/uid`` for a captured frame; ``file_name`` is that of its expected
    file, relative to the folder, without an extension. ``size_bytes`` of the resource count: all levels of an image,
    or the first one where the ``dst`` holds one. ``resource`` is None where only a run tells what it is like.
    """

    name: str
    file_name: str
    resource: ResourcePlan | None
    size_bytes: int
    is_frame: bool = False


class Outputs(dict[str, Output]):
    """The outputs of a run by name. More captures than `MOST_CAPTURES` are left out; ``left_out`` is their number."""

    left_out = 0

    def leaves_out(self, name: str) -> bool:
        """Return whether this is the name of a capture that is not there."""
        return bool(self.left_out) and "/" in name


def outputs_of_plan(plan: Plan, repeat: int) -> Outputs:
    """The outputs of a run."""
    return _outputs(plan.outputs, ((frame.frame_id, frame.captures) for frame in plan.frames), plan.resources, repeat)


def outputs_of_scenario(scenario: Scenario, repeat: int) -> Outputs:
    """The outputs of a scenario as far as its own text tells; reads no other file."""
    bodies = [body for body in scenario.resources if body.kind in ("buffer", "image", "tensor")]
    resources = {body.uid: _described(body) for body in bodies}
    destinations = [(body.uid, getattr(body, "dst", None)) for body in bodies]
    frames: list[tuple[int, Iterable[str]]] = []
    for command in scenario.commands:
        if command.kind == "mark_boundary":
            boundary: Any = command
            number = len(frames) if boundary.frame_id is None else boundary.frame_id
            frames.append((number, dict.fromkeys(uid for uid in boundary.resources if uid in resources)))
    return _outputs(destinations, frames, resources, repeat)


def _outputs(
    destinations: Iterable[tuple[str, str | None]],
    frames: Iterable[tuple[int, Iterable[str]]],
    resources: Mapping[str, ResourcePlan | None],
    repeat: int,
) -> Outputs:
    """The outputs with a destination, and the captures of frames in every iteration."""
    outputs, names, folders = Outputs(), FileNames(), FrameFolders(repeat)
    for uid, destination in destinations:
        if destination is not None:
            resource = resources[uid]
            size = 0 if resource is None else _stored_bytes(resource, destination)
            outputs[uid] = Output(uid, names.of(uid), resource, size)
    captures = [(frame_id, tuple(uids)) for frame_id, uids in frames]
    count = repeat * sum(len(uids) for _, uids in captures)
    if count > MOST_CAPTURES:
        outputs.left_out = count
        return outputs
    names = FileNames()
    for iteration in range(repeat if count else 0):
        for frame_id, uids in captures:
            folder = folders.name(iteration, frame_id) if uids else ""
            for uid in uids:
                resource = resources[uid]
                size = 0 if resource is None else resource.size_bytes
                name = f"{folder}/{uid}"
                outputs.setdefault(name, Output(name, f"{folder}/{names.of(uid)}", resource, size, is_frame=True))
    return outputs


def _stored_bytes(resource: ResourcePlan, destination: str) -> int:
    """The number of bytes of a resource that the file of its ``dst`` holds."""
    if resource.kind != "image" or resource.mips == 1:
        return resource.size_bytes
    levels = stored_levels(destination, resource.mips)
    return min(resource.size_bytes, resource.parts[levels * len(resource.format.aspects) - 1].end_bytes)


def _described(resource: Any) -> ResourcePlan | None:
    """A resource as plans have it, as far as the scenario tells; None where it is wrong, or does not tell enough."""
    if resource.kind == "buffer":
        return BufferPlan(resource.uid, "", resource.size)
    format, dims = find_format(resource.format), tuple(resource.dims)
    lengths = dims if resource.kind == "tensor" else dims[1:3]
    if format is None or not all(length > 0 for length in lengths):
        return None
    if resource.kind == "tensor":
        size = math.prod(dims) * format.block_size_bytes
        return None if format.numpy_dtype is None else TensorPlan(resource.uid, "", size, format, dims)
    if len(dims) != 4:
        return None
    parts = image_parts(format, dims[1], dims[2], resource.mips)
    return ImagePlan(resource.uid, "", parts[-1].end_bytes, format, dims[1], dims[2], resource.mips, parts)


def extension_of(output: Output) -> str:
    """The extension of a file that holds all of an output: ``.npy``, or where that holds too little another one."""
    resource = output.resource
    if resource is None or resource.kind != "image":
        return ".npy"
    return codec_for("image", resource.format, _levels(resource, output.size_bytes)).extension


def can_hold(path: str, output: Output) -> bool:
    """Return whether a file of this name can hold all of an output. Raises FileError where the name is that of no
    format for its kind."""
    resource = output.resource
    assert resource is not None
    codec = codec_of(path, resource.kind)
    return resource.kind != "image" or codec.holds(resource.format, _levels(resource, output.size_bytes))


def _levels(image: ImagePlan, size_bytes: int) -> int:
    return sum(part.end_bytes <= size_bytes for part in image.parts) // len(image.format.aspects)


def write_output(
    path: str, output: Output, element: Element, data: memoryview, create: CreateOutput = OutputFile
) -> None:
    """Write the bytes of an output; a buffer has items of the type of ``element``. Raises FileError."""
    resource = output.resource
    assert resource is not None
    if resource.kind == "buffer":
        descr = element.raw_dtype or element.dtype
        write_npy(path, descr, (len(data) // element.size_bytes,), [data], create=create)
        return
    if resource.kind == "image":
        resource = resource._replace(size_bytes=output.size_bytes, mips=_levels(resource, output.size_bytes))
    with create_resource_file(path, resource, create) as writer:
        writer.write(data)


def source_of(path: str, resource: ResourcePlan, size_bytes: int) -> Source:
    """The content of a file as an output would have it. Raises FileError where it has another type or shape."""
    if resource.kind == "image":
        image = ImageFileSource(path, resource.format, resource.width, resource.height, resource.mips)
        levels = _levels(resource, size_bytes)
        if image.levels >= levels:
            return image
        message = f"has {image.levels} of the {levels} mip levels of the output"
        raise file_error(path, message, help="a .dds file holds all of them", code="SR-FILE-002")
    codec_of(path, resource.kind)
    source = NpySource(path)
    header, message = source.header, f"holds {source.size_bytes} bytes, but the output has {size_bytes} bytes"
    fits = source.size_bytes == size_bytes
    if resource.kind == "tensor":
        known = element_of_format(resource.format)
        is_raw = header.kind in "Vui" and header.item_size_bytes == known.size_bytes
        has_type = is_raw or element_of_source(source) == known
        if not has_type or trimmed(header.shape) != trimmed(resource.shape):
            shapes = f"shape {header.shape}, but the output is {known.name} of shape {tuple(resource.shape)}"
            fits, message = False, f"holds {header.descr!r} of {shapes}"
    if not fits:
        raise file_error(path, message, code="SR-FILE-002")
    return source


def element_of_source(source: Source) -> Element | None:
    """The type of the items of a file that says so."""
    return element_of(f"{source.header.kind}{source.header.item_size_bytes}") if isinstance(source, NpySource) else None
