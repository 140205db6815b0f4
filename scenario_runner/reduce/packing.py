"""Packing: scenarios and all files that they read, in a single folder and in a form for other runners.

Files keep their relative places. A file that lies elsewhere under an absolute path goes to the folder ``files`` beside
the scenario. An object in ``src`` becomes a file. Shaders get their includes inserted, since other runners search
includes elsewhere. A scenario that needs no change is copied: packing a packed folder gives the same files.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from scenario_runner.errors import UsageError
from scenario_runner.errors.text import Json, numbered
from scenario_runner.files.codec import ArrayCodec
from scenario_runner.files.codec_table import codec_of
from scenario_runner.files.elements import ELEMENTS
from scenario_runner.files.input import SourceFile
from scenario_runner.files.output import OutputFile, OutputSet
from scenario_runner.files.parameters import replaced
from scenario_runner.files.vk_formats import format_named
from scenario_runner.plan.images import image_source
from scenario_runner.plan.records import image_parts
from scenario_runner.plan.resources import content_source, source_of
from scenario_runner.plan.shader_modules import compile_request
from scenario_runner.processes import temporary
from scenario_runner.scenario import Graph, Image, RawData, Scenario, Shader, load
from scenario_runner.scenario.inline_contents import file_of
from scenario_runner.scenario.writing import drop_include_dirs, extension_of, new_name
from scenario_runner.shaders.source import inlined
from scenario_runner.suite.combinations import KEYS, values_of_scenario
from scenario_runner.suite.discovery import item_at
from scenario_runner.suite.expectations.reading import load as load_expectations
from scenario_runner.suite.hashes import READ_KEYS, content, expected_files

_CHUNK_BYTES = 16 << 20
_NONE: Mapping[str, object] = MappingProxyType({})
_OLDEST = (1980, 1, 1, 0, 0, 0)  # the date of all files in an archive, so that equal files make equal archives

Write = Callable[[str, OutputSet], None]
"""Writes a file of a set to a path."""
More = Callable[[str, set[str]], Mapping[str, bytes]]
"""Makes further files by name. The arguments are the path of the first scenario, and the names in use."""


class Packed(NamedTuple):
    """A packed folder: the paths of the scenarios and of the ``added`` files in it, and the totals of all files."""

    scenarios: list[str]
    file_count: int
    size_bytes: int
    added: list[str]


def pack(
    paths: Sequence[str],
    output: str,
    parameters: Mapping[str, object] = _NONE,
    more: More = lambda scenario, taken: {},
) -> Packed:
    """Write scenarios, all files that they read, and ``more`` into the folder ``output``; nothing after an error.

    ``parameters`` replace the parameters of the scenarios. Raises ScenarioError for a wrong scenario, ExpectationError
    for wrong expectations, and FileError for an unreadable or unwritable file. Raises UsageError if a packed file
    would replace a file that is read.
    """
    scenarios = [
        load(path, values_of_scenario(item_at(path), parameters, needs_expectations=True))
        for path in {os.path.abspath(path): path for path in paths}.values()
    ]
    packing = _Packing(scenarios, parameters)
    names = [packing.add(scenario) for scenario in scenarios]
    added = more(names[0], {name.casefold() for name in packing.files})
    packing.files |= {name: partial(_write_bytes, data) for name, data in added.items()}
    inside = os.path.join(os.path.realpath(output), "")
    inputs = {os.path.realpath(path) for path in packing.sources}
    for name in packing.files:
        target = os.path.realpath(os.path.join(output, name))
        if target in inputs:
            raise UsageError(f"--output {output}: the input {target!r} would be replaced", help="choose another")
        if not target.startswith(inside):
            raise UsageError(f"--output {output}: {name!r} is a link that leads out of the folder", help="remove it")
    with OutputSet() as files:
        for name, write in packing.files.items():
            write(os.path.join(output, name), files)
        written = [file.written_bytes for file in files.complete]
    return Packed(names, len(written), sum(written), list(added))


def pack_archive(
    paths: Sequence[str],
    archive: str,
    parameters: Mapping[str, Json] = _NONE,
    more: More = lambda scenario, taken: {},
) -> Packed:
    """Write a ZIP file with the files of `pack` in a folder with the same name. Raises as `pack` does."""
    stem = os.path.splitext(os.path.basename(archive))[0]
    _check_utf8(stem)
    with temporary.temporary_folder() as folder, OutputFile(archive) as file:
        packed = pack(paths, os.path.join(folder, stem), parameters, more)
        made = os.path.join(folder, "archive.zip")
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as written:
            for above, folders, names in os.walk(os.path.join(folder, stem)):
                folders.sort()
                for name in sorted(names):
                    path = os.path.join(above, name)
                    _check_utf8(os.path.relpath(path, folder))
                    entry = zipfile.ZipInfo(os.path.relpath(path, folder), _OLDEST)
                    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                    with open(path, "rb") as source, written.open(entry, "w", force_zip64=True) as target:
                        while data := source.read(_CHUNK_BYTES):
                            target.write(data)
        _append(made, file)
    scenarios, added = ([f"{stem}/{name}" for name in names] for names in (packed.scenarios, packed.added))
    return packed._replace(scenarios=scenarios, added=added)


def _check_utf8(name: str) -> None:
    """Raise UsageError for a name that a ZIP file cannot hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        message = f"--zip: a ZIP file cannot hold the name {os.fsencode(name)!r}, which is not UTF-8"
        raise UsageError(message, help="rename it, or leave out --zip") from None


class _Packing:
    """The files of a packed folder by path; ``sources`` are the files to copy.

    ``_taken`` has by folder the names of all files that scenarios read or write.
    """

    def __init__(self, scenarios: Sequence[Scenario], parameters: Mapping[str, object]) -> None:
        self._parameters = parameters
        self.files: dict[str, Write] = {}
        self.sources: set[str] = set()
        self._names: dict[tuple[str, bytes | None], str] = {}
        self._taken: defaultdict[str, set[str]] = defaultdict(set)
        folders = []
        for scenario in scenarios:
            for resource in scenario.resources:
                for name, is_source in ((file_of(resource), True), (getattr(resource, "dst", None), False)):
                    if name is not None and not os.path.isabs(name):
                        path = os.path.normpath(os.path.join(scenario.base_dir, name))
                        folders += [os.path.dirname(path)] * is_source
                        self._reserve(path)
            folders += [scenario.base_dir, *map(os.path.dirname, item_at(str(scenario.path)).defaults)]
        self._root = os.path.commonpath(folders)

    def _reserve(self, path: str) -> None:
        """Mark a path as taken, in the spelling that `new_name` compares."""
        folder, name = os.path.split(path)
        self._taken[folder].add(name.casefold())

    def add(self, scenario: Scenario) -> str:
        """Add a scenario and the scenario's input files. Return the path in the folder. Raises as `pack` does."""
        path, folder = os.path.abspath(str(scenario.path)), scenario.base_dir
        item = item_at(path)._replace(parameters=self._parameters)
        for file in (*load_expectations(item).named_files, *expected_files(item)):  # and the defaults
            self._add(folder, file)
        if item.expectations is not None:
            text = content(item.expectations).decode("utf-8-sig")
            self._add_json(folder, item.expectations, text, self._with_relative_files)
        return self._add_json(folder, path, scenario.text or "", partial(self._plain, scenario))

    def _add_json(self, folder: str, path: str, text: str, change: Callable[[str, Json], Json]) -> str:
        """Add a JSON file, changed by ``change``. Return the path in the packed folder."""
        name = os.path.normpath(os.path.join(os.path.relpath(folder, self._root), self._add(folder, path)))
        tree = change(folder, json.loads(replaced(text, self._parameters)))
        if self._parameters:
            tree = {key: value for key, value in tree.items() if key not in KEYS}
        if tree != json.loads(text):
            self.files[name] = partial(_write_bytes, json.dumps(tree, indent=2).encode() + b"\n")
        return name

    def _with_relative_files(self, folder: str, value: Json, key: str = "") -> Json:
        """Return the JSON of expectations with relative paths to files, at any depth."""
        if isinstance(value, dict):
            return {name: self._with_relative_files(folder, part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [self._with_relative_files(folder, part, key) for part in value]
        is_path = key in ("file", *READ_KEYS) and isinstance(value, str) and os.path.isabs(value)
        return self._add(folder, value) if is_path and os.path.isfile(value) else value

    def _plain(self, scenario: Scenario, folder: str, tree: Json) -> Json:
        """Return the JSON of a scenario with relative paths and without inline contents. Adds the files."""
        if "expect" in tree:
            tree["expect"] = self._with_relative_files(folder, tree["expect"])
        bodies = [entry[key] for entry, key in zip(tree["resources"], scenario.resource_keys or (), strict=True)]
        taken = self._taken[os.path.normpath(folder)]
        stem = os.path.splitext(os.path.basename(str(scenario.path)))[0]
        pushed = _pushed_sizes(scenario)
        for resource, body in zip(scenario.resources, bodies, strict=True):
            if resource.uid in pushed and not getattr(resource, "push_constants_size", 0):
                body["push_constants_size"] = pushed[resource.uid]
            text = None
            if isinstance(resource, Shader) and resource.type != "SPIR-V":
                text = inlined(compile_request(scenario, resource))
                drop_include_dirs(body)
            if body.get("src") and file_of(resource) is not None:
                name = self._add(folder, body["src"], text)
                body["src"] = body["src"] if os.path.normpath(body["src"]) == name else name
            elif body.get("src"):
                body["src"] = new_name(stem, resource.uid, extension_of(resource), taken)
                body |= {key: getattr(resource, key) for key in ("type", "size", "dims") if hasattr(resource, key)}
                source = text or getattr(resource, "text", None)
                if isinstance(source, str):
                    source = source.encode("utf-8", "surrogatepass")
                write = partial(_write_content, scenario, resource)
                name = os.path.normpath(os.path.join(os.path.relpath(folder, self._root), body["src"]))
                self.files[name] = write if source is None else partial(_write_bytes, source)
            if body.get("dst") and self._is_outside(folder, body["dst"]):
                name = os.path.basename(body["dst"])
                is_free = name.casefold() not in taken
                body["dst"] = name if is_free else new_name(stem, resource.uid, os.path.splitext(name)[1], taken)
                taken.add(name.casefold())
        return tree

    def _is_outside(self, folder: str, path: str) -> bool:
        """Return whether a path is absolute, or leads out of the packed folder."""
        below = os.path.relpath(os.path.join(folder, path), self._root)
        return os.path.isabs(path) or below.split(os.sep)[0] == os.pardir

    def _add(self, folder: str, path: str, text: bytes | None = None) -> str:
        """Add a copy of a file, or a text instead. Return the path relative to ``folder``. Raises FileError."""
        file = os.path.normpath(os.path.join(folder, path))
        if (file, text) not in self._names:
            with SourceFile(file):  # raises the error of an unreadable file
                self.sources.add(file)
            below = os.path.relpath(folder, self._root)
            name = os.path.relpath(file, self._root)
            if name.split(os.sep)[0] == os.pardir:
                name = os.path.normpath(os.path.join(below, "files", os.path.basename(file)))
            name = numbered(*os.path.splitext(name), self.files.__contains__)
            self._names[file, text] = name
            self.files[name] = partial(_write_copy, file) if text is None else partial(_write_bytes, text)
            self._reserve(os.path.join(self._root, name))
        return os.path.relpath(os.path.join(self._root, self._names[file, text]), folder).replace(os.sep, "/")


def _pushed_sizes(scenario: Scenario) -> dict[str, int]:
    """Return the size of the push constants by uid of shader or graph: bytes, in multiples of 4.

    Other runners need push_constants_size in the scenario; without the key they drop the data.
    """
    sizes: dict[str, int] = {}
    for command in scenario.commands:
        users = [scenario.resource(uid) for _, uid, _ in command.references()]
        sources = [source_of(scenario, user, {}) for user in users if isinstance(user, RawData)]
        size = max((source.size_bytes for source in sources if source is not None), default=0)
        for user in users:
            if size and isinstance(user, Shader | Graph):
                sizes[user.uid] = max(sizes.get(user.uid, 0), size + -size % 4)
    return sizes


def _write_bytes(data: bytes, path: str, files: OutputSet) -> None:
    with files.create(path, len(data)) as file:
        file.write(data)


def _write_copy(source: str, path: str, files: OutputSet) -> None:
    with files.create(path) as file:
        _append(source, file)


def _append(source: str, target: OutputFile) -> None:
    with SourceFile(source) as file:
        for at in range(0, file.size_bytes, _CHUNK_BYTES):
            target.write(file.read(_CHUNK_BYTES, at))


def _write_content(scenario: Scenario, resource: Any, path: str, files: OutputSet) -> None:
    """Write the content of a resource with an object in ``src``."""
    format = format_named(resource.format) if hasattr(resource, "format") else None
    dims: Any = getattr(resource, "dims", ())
    codec = codec_of(path)
    if isinstance(resource, Image) and format is not None:
        _, width, height, _ = dims
        parts = image_parts(format, width, height, 1)
        with scenario.placed_errors():
            source = image_source(scenario, resource, format, parts)
        planes = tuple(part.size_bytes for part in parts)
        writer = codec.create_image(path, format, width, height, planes, files.create)
    else:
        with scenario.placed_errors():
            source = content_source(scenario, resource, dims if min(dims, default=0) > 0 else None, format)
        element = ELEMENTS[source.element]
        descr = source.descr or element.raw_dtype or element.dtype
        assert isinstance(codec, ArrayCodec), "only images have other files"
        writer = codec.create_array(path, descr, source.shape, files.create)
    with writer:
        for at in range(0, source.size_bytes, _CHUNK_BYTES):
            part = memoryview(bytearray(min(_CHUNK_BYTES, source.size_bytes - at)))
            source.read_into(part, at)
            writer.write(part)
