"""The scenario of an item, the outputs of a scenario, and expected content.

For a model, the scenario is made from the model and the files beside it. Comparable outputs are resources with a
``dst`` and captured frames. Expected content comes from a file or from values, and is read in pieces.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Final, NamedTuple

from scenario_runner.errors import ExpectationError, FileError, SandboxError, UsageError, file_error
from scenario_runner.errors.diagnostic import Diagnostic, escape
from scenario_runner.errors.text import reason_of
from scenario_runner.files.codec_table import CODECS, codec_for, codec_of, is_known, stored_levels
from scenario_runner.files.elements import ELEMENTS, Element, element_of, element_of_format
from scenario_runner.files.input import ParameterizedFile, is_model
from scenario_runner.files.npy import write_npy
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.sandbox import check_path
from scenario_runner.files.vk_formats import find_format
from scenario_runner.ml.model_scenario import BareModel, Kind
from scenario_runner.plan.graph_records import TensorPlan
from scenario_runner.plan.image_records import ImagePlan
from scenario_runner.plan.plan import Plan, ResourcePlan
from scenario_runner.plan.records import BufferPlan, Source, image_parts
from scenario_runner.plan.sources import ImageFileSource, NpySource
from scenario_runner.run.capture_files import FileNames, FrameFolders
from scenario_runner.run.output_files import create_resource_file
from scenario_runner.scenario import Buffer, Image, MarkBoundary, Scenario, Tensor
from scenario_runner.scenario.loader import as_scenario
from scenario_runner.suite.combinations import scenario_path
from scenario_runner.suite.discovery import MODEL_KEYS, inputs_folder, item_at
from scenario_runner.suite.expectations.reading import Expectations, load
from scenario_runner.suite.outcomes import Item
from scenario_runner.view.contents import trimmed

MOST_CAPTURES: Final = 100_000
"""Most captured resources in all iterations. Each takes half a kilobyte of memory."""
_UNFIT: Final = "SR-EXPECT-013"
_KEYS: Final[dict[Kind, str]] = dict(zip(("input", "shader", "raw_data"), MODEL_KEYS, strict=True))


def scenario_of(item: Item, expectations: Expectations) -> str | ParameterizedFile | Scenario:
    """Return the path of a scenario, or make a scenario that runs a model.

    A model gets the files that expectations name, and the files in the folder of inputs. Raises ExpectationError with
    all problems of these files; FileError and UnsupportedError for the model.
    """
    if not is_model(item.path):
        return scenario_path(item)
    model = BareModel(item.path)
    problems = list(_give_named(model, expectations)) or list(_give_inputs(model, item.path))
    if problems:
        raise ExpectationError(problems)
    model.check_outputs()
    return model.scenario()


def load_model(path: str | os.PathLike[str]) -> Scenario:
    """Make the scenario that a suite runs for a model. Raises the errors of `reading.load` and `scenario_of`."""
    item = item_at(os.fspath(path))
    return as_scenario(scenario_of(item, load(item)))


def _give_named(model: BareModel, expectations: Expectations) -> Iterator[Diagnostic]:
    """Give a model the files that expectations name, and yield problems."""
    for kind, key in _KEYS.items():
        for name, file in getattr(expectations.check, key).items():
            path, pointer = expectations.path_to(file), f"/{key}/{escape(name)}"
            try:
                model.give(kind, name, path, partial(_placed, expectations, pointer), key)
            except (FileError, UsageError) as error:  # an unknown or repeated input, or a damaged file
                yield from (_placed(expectations, pointer, problem, _UNFIT) for problem in error.problems)
            except SandboxError as error:
                yield from (_placed(expectations, pointer, problem) for problem in error.problems)
            else:
                if not os.path.exists(path):
                    yield expectations.problem("SR-EXPECT-007", pointer, f"{path}: does not exist")


def _placed(expectations: Expectations, pointer: str, problem: Diagnostic, code: str | None = None) -> Diagnostic:
    return expectations.problem(code or problem.code, pointer, problem.message, problem.help)


def _give_inputs(model: BareModel, path: str) -> Iterator[Diagnostic]:
    """Give a model other inputs from the inputs folder, and yield an error for each missing input."""
    folder = inputs_folder(path)
    stem = os.path.splitext(os.path.basename(path))[0]
    for lack in model.lacks():
        is_input = lack.kind == "input"
        files = (os.path.join(folder, lack.uid + codec.extension) for codec in CODECS if is_input)
        file = next(filter(os.path.exists, files), None)
        if file is not None:
            model.give("input", lack.name, file, lambda problem: problem, "inputs")
            continue
        key = f'in {stem}.check.json: "{_KEYS[lack.kind]}": {{ "{lack.name}": "FILE" }}'
        help = f"write {stem}.inputs/{lack.uid}.npy, or {key}" if is_input else f"write {key}"
        yield Diagnostic(_UNFIT, "error", None, lack.message, help, path=path)


class Output(NamedTuple):
    """An output.

    ``name`` is the resource's uid, or ``frame_1/uid`` for a captured frame. ``file_name`` is the expected file's path
    in the folder of expected files, without extension. The first ``size_bytes`` of the resource are
    compared: all levels of an image, or only the first if the ``dst`` holds a single level. ``resource`` is None if
    unknown before a run. ``types`` returns the types that all shaders declare for buffers, by uid; it is None before a
    plan is made.
    """

    name: str
    file_name: str
    resource: ResourcePlan | None
    size_bytes: int
    is_frame: bool = False
    types: Callable[[], Mapping[str, str]] | None = None

    @property
    def shader_element(self) -> Element | None:
        """The type that all shaders declare for the numbers in the buffer. It is None if they disagree."""
        names = {} if self.types is None or self.resource is None else self.types()
        element = ELEMENTS.get(names.get(self.resource.uid, "")) if names and self.resource is not None else None
        return None if element is None or self.size_bytes % element.size_bytes else element


class Outputs(dict[str, Output]):
    """The outputs of a run by name. ``left_out`` is the number of captures if there are more than `MOST_CAPTURES`."""

    left_out = 0

    def leaves_out(self, name: str) -> bool:
        """Return whether a name may belong to an omitted capture."""
        return bool(self.left_out) and "/" in name


def outputs_of_plan(plan: Plan, repeat: int) -> Outputs:
    """Return the outputs of a run."""
    frames = ((frame.frame_id, frame.captures) for frame in plan.frames)
    outputs = _outputs(plan.outputs, frames, plan.resources, repeat)

    types = cache(partial(_types, plan))
    for name, output in outputs.items():
        outputs[name] = output._replace(types=types)
    return outputs


def _types(plan: Plan) -> dict[str, str]:
    """Return the types of elements in a plan's buffers. Few outputs need them: this reads SPIR-V modules."""
    from scenario_runner.plan.accesses import Accesses

    return Accesses(plan).elements()


def outputs_of_scenario(scenario: Scenario, repeat: int) -> Outputs:
    """Return the outputs of a scenario, without reading any other file."""
    bodies = [body for body in scenario.resources if isinstance(body, Buffer | Image | Tensor)]
    resources = {body.uid: _described(body) for body in bodies}
    destinations = [(body.uid, body.dst) for body in bodies]
    frames: list[tuple[int, Iterable[str]]] = []
    for command in scenario.commands:
        if isinstance(command, MarkBoundary):
            number = len(frames) if command.frame_id is None else command.frame_id
            frames.append((number, dict.fromkeys(uid for uid in command.resources if uid in resources)))
    return _outputs(destinations, frames, resources, repeat)


def _outputs(
    destinations: Iterable[tuple[str, str | None]],
    frames: Iterable[tuple[int, Iterable[str]]],
    resources: Mapping[str, ResourcePlan | None],
    repeat: int,
) -> Outputs:
    """Collect the outputs with a destination, and the captures in all iterations."""
    outputs, names, folders = Outputs(), FileNames(), FrameFolders(repeat)
    for uid, destination in destinations:
        if destination is not None:
            resource = resources[uid]
            size = 0 if resource is None else _stored_bytes(resource, destination)
            outputs[uid] = Output(uid, names.name_for(uid), resource, size)
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
                outputs.setdefault(name, Output(name, f"{folder}/{names.name_for(uid)}", resource, size, is_frame=True))
    return outputs


def _stored_bytes(resource: ResourcePlan, destination: str) -> int:
    """Return how many bytes of a resource the ``dst`` file holds."""
    if not resource.is_image or resource.mips == 1:
        return resource.size_bytes
    levels = stored_levels(destination, resource.mips)
    return min(resource.size_bytes, resource.parts[levels * len(resource.format.aspects) - 1].end_bytes)


def _described(resource: Buffer | Image | Tensor) -> ResourcePlan | None:
    """Describe a resource like a plan. Return None if the scenario is wrong or tells too little."""
    if isinstance(resource, Buffer):
        return BufferPlan(resource.uid, "", resource.size)
    format, dims = find_format(resource.format), tuple(resource.dims)
    lengths = dims if isinstance(resource, Tensor) else dims[1:3]
    if format is None or not all(length > 0 for length in lengths):
        return None
    if isinstance(resource, Tensor):
        size = math.prod(dims) * format.block_size_bytes
        return None if format.numpy_dtype is None else TensorPlan(resource.uid, "", size, format, dims)
    if len(dims) != 4:
        return None
    parts = image_parts(format, dims[1], dims[2], resource.mips)
    return ImagePlan(resource.uid, "", parts[-1].end_bytes, format, dims[1], dims[2], resource.mips, parts)


def expected_files(folder: str) -> dict[str, list[str]]:
    """Find the files below a folder by name without extension, also files with an unknown extension.

    Raises ExpectationError for an unreadable folder, and SandboxError.
    """
    files: dict[str, list[str]] = {}
    folders: list[tuple[str, str]] = [("", folder)]
    searched: set[str] = set()
    for prefix, path in folders:
        if prefix:  # links may lead in a circle
            searched = searched or {os.path.realpath(folder)}
            if (target := os.path.realpath(path)) in searched:
                continue
            searched.add(target)
        check_path(path)
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)  # for a stable order of problems
        except OSError as error:
            if not os.path.lexists(path):
                continue  # the folder is optional
            message = f"cannot be searched for expected files: {reason_of(error)}"
            raise ExpectationError(Diagnostic("SR-EXPECT-007", "error", None, message, path=path)) from error
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if is_known(entry.name) or not entry.is_dir():
                files.setdefault(prefix + os.path.splitext(entry.name)[0], []).append(entry.path)
            else:
                folders.append((f"{prefix}{entry.name}/", entry.path))
    return files


def extension_of(output: Output) -> str:
    """Return the extension of a file that can hold all of an output, if possible ``.npy``."""
    resource = output.resource
    if resource is None or not resource.is_image:
        return ".npy"
    return codec_for("image", resource.format, _levels(resource, output.size_bytes)).extension


def can_hold(path: str, output: Output) -> bool:
    """Return whether a file can hold all of an output, by the extension. Raises FileError for another extension."""
    resource = output.resource
    assert resource is not None
    codec = codec_of(path, resource.kind)
    return not resource.is_image or codec.holds(resource.format, _levels(resource, output.size_bytes))


def _levels(image: ImagePlan, size_bytes: int) -> int:
    return sum(part.end_bytes <= size_bytes for part in image.parts) // len(image.format.aspects)


def write_output(
    path: str, output: Output, element: Element, data: memoryview, create: CreateOutput = OutputFile
) -> None:
    """Write the bytes of an output. ``element`` is the type of the items in a buffer. Raises FileError."""
    resource = output.resource
    assert resource is not None
    if isinstance(resource, BufferPlan):
        descr = element.raw_dtype or element.dtype
        write_npy(path, descr, (len(data) // element.size_bytes,), [data], create=create)
        return
    if resource.is_image:
        resource = resource._replace(size_bytes=output.size_bytes, mips=_levels(resource, output.size_bytes))
    with create_resource_file(path, resource, create) as writer:
        writer.write(data)


def source_of(path: str, resource: ResourcePlan, size_bytes: int) -> Source:
    """Open a file with the content of an output. Raises FileError for another type or shape."""
    if resource.is_image:
        image = ImageFileSource(path, resource.format, resource.width, resource.height, resource.mips)
        levels = _levels(resource, size_bytes)
        if image.levels >= levels:
            return image
        message = f"has {image.levels} of the {levels} mip levels of the output"
        raise file_error(path, message, help="a .dds file holds all levels", code="SR-FILE-002")
    codec_of(path, resource.kind)
    source = NpySource(path)
    header, message = source.header, f"holds {source.size_bytes} bytes, but the output has {size_bytes} bytes"
    fits = source.size_bytes == size_bytes
    if isinstance(resource, TensorPlan):
        known = element_of_format(resource.format)
        is_raw = header.kind in "Vui" and header.item_size_bytes == known.size_bytes
        has_type = is_raw or element_of_source(source) == known
        if not has_type or trimmed(header.shape) != trimmed(resource.shape):
            shapes = f"shape {header.shape}, but the output is {known.name} of shape {tuple(resource.shape)}"
            fits, message = False, f"holds {header.descr!r} of {shapes}"
    if not fits:
        raise file_error(path, message, code="SR-FILE-002")
    return source


def element_of_source(source: Source | None) -> Element | None:
    """Return the type of the items in a file, if the file tells it."""
    return element_of(f"{source.header.kind}{source.header.item_size_bytes}") if isinstance(source, NpySource) else None
