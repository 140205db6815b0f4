"""Writing a scenario: the JSON, and files for content that code gave."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from math import prod
from typing import TYPE_CHECKING, Any

from scenario_runner.errors import ScenarioError
from scenario_runner.errors.text import Json, numbered
from scenario_runner.files.codec import ArrayCodec
from scenario_runner.files.codec_table import codec_for, codec_of
from scenario_runner.files.input import ArrayLike, array_of
from scenario_runner.files.output import OutputFile
from scenario_runner.files.vk_formats import Format, find_format
from scenario_runner.scenario.entries import Model, Resource
from scenario_runner.scenario.resources import Image, Tensor
from scenario_runner.scenario.shaders import Graph, GraphConstant, Shader

if TYPE_CHECKING:
    import numpy

_LINE_LENGTH = 120
_SHADER_EXTENSIONS = {"compute": ".comp", "vertex": ".vert", "fragment": ".frag"}


def to_json(resources: Sequence[Resource], commands: Sequence[Model]) -> str:
    """Return a scenario's JSON text. Raise ScenarioError if a resource holds content from Python code."""
    for resource in resources:
        name = _content_field(resource)
        if name is not None:
            message = f"the {name} of {resource.kind} {resource.uid!r} was given in code, and JSON cannot hold it"
            raise ScenarioError(message, help="Scenario.save writes it to a file", code="SR-JSON-009")
    return _text([(resource, _body(resource)) for resource in resources], commands)


def save(resources: Sequence[Resource], commands: Sequence[Model], base_dir: str, path: str | os.PathLike[str]) -> None:
    """Write a scenario, and files for content from code. All files get their names at the end. See `Scenario.save`."""
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    moved = os.path.realpath(folder) != os.path.realpath(base_dir)
    entries = [(resource, _body(resource)) for resource in resources]
    if moved:
        for _, body in entries:
            _move(body, base_dir, folder)
    stem = os.path.splitext(os.path.basename(path))[0]
    names = (body.get(key) for _, body in entries for key in ("src", "dst"))
    taken = {os.path.normpath(name).casefold() for name in names if isinstance(name, str)}
    with ExitStack() as files:
        text = files.enter_context(OutputFile(path))  # entered first, named last
        for resource, body in entries:
            if _content_field(resource) is not None:
                body["src"] = new_name(stem, resource.uid, extension_of(resource), taken)
                _write(os.path.join(folder, body["src"]), resource, files)
        text.write(_text(entries, commands).encode())


class Uids:
    """A source of unique uids that are safe file names."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, name: str, binding: int | None = None) -> str:
        """Return a new uid like ``name``. A repeated name gets a number, from ``binding`` on.

        The name may come from a file. So the uid has a limited length, only safe characters, and no dot at the start.
        """
        safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name[:80]).lstrip(".-")
        uid = base = safe or "unnamed"
        number = 2 if binding is None else binding
        while uid in self._taken:
            uid = f"{base}_{number}"
            number += 1
        self._taken.add(uid)
        return uid


def compact(tree: Json, indent: int = 0, used: int = 0) -> str:
    """Format JSON data. Each array and object that fits stands on one line, after ``used`` other characters."""
    line = json.dumps(tree)
    if not isinstance(tree, dict | list) or not tree or indent + used + len(line) <= _LINE_LENGTH:
        return line
    opening, closing = ("{", "}") if isinstance(tree, dict) else ("[", "]")
    keys = [f"{json.dumps(key)}: " for key in tree] if isinstance(tree, dict) else [""] * len(tree)
    values = tree.values() if isinstance(tree, dict) else tree
    if len(tree) == 1:
        return f"{opening}{keys[0]}{compact(next(iter(values)), indent, used + len(keys[0]) + 1)}{closing}"
    start = "\n" + " " * (indent + 2)
    parts = [f"{key}{compact(value, indent + 2, len(key) + 1)}" for key, value in zip(keys, values, strict=True)]
    return f"{opening}{start}{(',' + start).join(parts)}\n{' ' * indent}{closing}"


def _text(entries: Sequence[tuple[Resource, dict[str, object]]], commands: Sequence[Model]) -> str:
    tree = {
        "resources": [{resource.kind: body} for resource, body in entries],
        "commands": [{command.kind: _body(command)} for command in commands],
    }
    return json.dumps(tree, indent=2, allow_nan=False) + "\n"


def _body(model: Model) -> dict[str, Json]:
    """Return an entry's body without defaults and without fields for code."""
    code_only = set(model.code_only)
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True, exclude=code_only)


def _content_field(resource: Resource) -> str | None:
    """Return the name of the field with content from code, or None."""
    return next((name for name in resource.code_only if getattr(resource, name) is not None), None)


def _move(body: dict[str, Json], base_dir: str, folder: str) -> None:
    """Make input paths relative to ``folder`` instead of ``base_dir``."""

    def moved(path: str) -> str:
        if os.path.isabs(path):
            return path
        try:
            return os.path.relpath(os.path.join(base_dir, path), folder).replace(os.sep, "/")
        except ValueError:  # another drive
            return os.path.abspath(os.path.join(base_dir, path))

    if isinstance(body.get("src"), str):
        body["src"] = moved(body["src"])
    if "text" in body.get("src", ()):  # includes in the text start from the scenario's folder
        body["include_dirs"] = [".", *body.get("include_dirs", ())]
    if "include_dirs" in body:
        body["include_dirs"] = [moved(path) for path in body["include_dirs"]]
    if "-I" in body.get("build_options", ""):
        words = shlex.split(body["build_options"])
        for index, word in enumerate(words):
            if word.startswith("-I") and word != "-I":
                words[index] = f"-I{moved(word[2:])}"
            elif index and words[index - 1] == "-I":
                words[index] = moved(word)
        body["build_options"] = shlex.join(words)


def drop_include_dirs(body: dict[str, Json]) -> None:
    """Remove the include folders of a shader without includes."""
    body.pop("include_dirs", None)
    if "-I" in body.get("build_options", ""):
        words = iter(shlex.split(body["build_options"]))
        body["build_options"] = shlex.join(
            word for word in words if not (word.startswith("-I") and (word != "-I" or next(words)))
        )


def new_name(stem: str, uid: str, extension: str, taken: set[str]) -> str:
    """Name a file beside a scenario ``<stem>_<uid><extension>``, and avoid the names in ``taken``."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in uid[:80])
    return free_name(f"{stem}_{safe}{extension}", taken)


def free_name(name: str, taken: set[str]) -> str:
    """Add a name to ``taken``, with a number if the name exists there."""
    free = numbered(*os.path.splitext(name), lambda free: free.casefold() in taken)
    taken.add(free.casefold())
    return free


def extension_of(resource: object) -> str:
    """Return the file extension for a resource's content."""
    match resource:
        case Shader():
            return {"SPIR-V": ".spv", "HLSL": ".hlsl"}.get(resource.type) or _SHADER_EXTENSIONS[resource.stage]
        case Graph():
            return ".vgf"
        case Image():
            return codec_for("image", _format(resource)).extension
        case _:
            return codec_for("tensor" if isinstance(resource, Tensor) else "buffer").extension


def _write(path: str, resource: Any, files: ExitStack) -> None:
    """Write a resource's content. The file gets the final name when ``files`` ends without an error."""
    content = getattr(resource, _content_field(resource) or "")
    if isinstance(resource, Shader | Graph):
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else memoryview(content)
        files.enter_context(OutputFile(path)).write(data)
        return
    array = _array(resource, content)
    codec = codec_of(path)
    if isinstance(codec, ArrayCodec):
        descr = f"|V{array.dtype.itemsize}" if array.dtype.char == "V" else array.dtype.str
        writer = codec.create_array(path, descr, array.shape)
    else:
        _, width, height, _ = resource.dims
        writer = codec.create_image(path, _format(resource), width, height, (array.nbytes,), OutputFile)
    files.enter_context(writer)
    writer.write(array.tobytes())


def _array(resource: Any, content: ArrayLike) -> numpy.ndarray[Any, Any]:
    """Return the content as a little-endian array. Raise ScenarioError if that is impossible."""
    import numpy

    what = f"the data of {resource.kind} {resource.uid!r}"
    try:
        given = array_of(content, resource.uid)
        if isinstance(given, numpy.ndarray):
            array = given
        else:
            dtype, shape = _layout(resource)
            array = numpy.frombuffer(memoryview(given).tobytes(), dtype)
            array = array.reshape(shape) if prod(shape) == array.size else array
    except (TypeError, ValueError, BufferError) as error:
        raise ScenarioError(f"{what} cannot be written to a file: {error}", code="SR-JSON-009") from error
    if array.dtype.hasobject:
        raise ScenarioError(f"{what} is an array of Python objects, expected numbers", code="SR-JSON-009")
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _layout(resource: Any) -> tuple[str, tuple[int, ...]]:
    """Return the type and shape of an array with the resource's content; -1 is any number of bytes."""
    format = _format(resource) if isinstance(resource, Image | Tensor | GraphConstant) else None
    if format is None or format.numpy_dtype is None:
        return "int8", (-1,)
    shape = tuple(resource.dims)
    if isinstance(resource, Image):
        shape = (shape[2], shape[1], format.numpy_items)
    return format.numpy_dtype, shape


def _format(resource: Any) -> Format:
    known = find_format(resource.format)
    if known is None:
        message = f"unknown format {resource.format!r:.100}"
        raise ScenarioError(f"{resource.kind} {resource.uid!r}: {message}", code="SR-JSON-009")
    return known
