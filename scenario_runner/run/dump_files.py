"""Dumps: a folder with files for each point in a run, and an index listing all files.

A plan with dumps is split at these points into frames with captures and without a boundary.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, get_type_hints

from scenario_runner.errors import file_error
from scenario_runner.errors.text import Json, close_files_help, json_reason, reason_of
from scenario_runner.files.codec import ArrayCodec, ContentWriter
from scenario_runner.files.codec_table import CODECS, codec_for
from scenario_runner.files.input import read_file
from scenario_runner.files.output import OutputFile
from scenario_runner.plan.accesses import (
    START,
    Accesses,
    DumpPoint,
    DumpPoints,
    DumpTarget,
    with_dumps,
    with_whole_images,
)
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.plan.records import BufferPlan
from scenario_runner.run.capture_files import FileNames, ListedFiles, check_files
from scenario_runner.run.output_files import Receive, create_resource_file, ignore
from scenario_runner.scenario import Scenario
from scenario_runner.vulkan.execute import RunOptions

INDEX = "index.json"
MARK = "scenario-runner dump"
VERSION = 1


class DumpRequest(NamedTuple):
    """A request for dumps: ``targets``, or ``everything`` after every command."""

    folder: str
    targets: tuple[DumpTarget, ...] = ()
    everything: bool = False


class _Part(NamedTuple):
    """A resource's file: the file name's end, a byte range, and NumPy type and shape for a .npy file.

    A file for an image part has a mip level and an aspect.
    """

    suffix: str
    part: range
    array: tuple[str, tuple[int, ...]] | None
    level: int | None = None
    aspect: str | None = None


def _parts_of(plan: Any) -> list[_Part]:
    """List a resource's files: several only for an image no file format can hold."""
    whole = range(plan.size_bytes)
    if plan.npy is not None:
        return [_Part(codec_for(plan.kind).extension, whole, plan.npy)]
    for codec in CODECS:
        if not isinstance(codec, ArrayCodec) and codec.holds(plan.format, plan.mips):
            return [_Part(codec.extension, whole, None)]
    parts = []
    for layout in plan.parts:
        descr, shape = plan.array_type(layout)
        suffix = f".mip{layout.level}" if plan.mips > 1 else ""
        suffix += f".{layout.aspect}" if len(plan.format.aspects) > 1 else ""
        part = range(layout.offset_bytes, layout.end_bytes)
        parts.append(_Part(f"{suffix}.npy", part, (descr, (1, *shape)), layout.level, layout.aspect))
    return parts


class DumpFiles(ListedFiles):
    """Writes a run's dumps.

    The session runs ``plan``, which is ``whole`` split at the dumps; ``whole`` names the outputs. A resource's files
    appear when they are complete. The index lists every complete file at once, so the index survives a crash.
    """

    def __init__(
        self,
        scenario: Scenario,
        plan: Plan,
        request: DumpRequest,
        options: RunOptions,
        device: Callable[[], str | None],
    ) -> None:
        """Find the points. Raise UsageError for unknown commands and resources.

        ``device`` returns the device's name after it was opened.
        """
        self._points = DumpPoints(plan, scenario).list_points(request.targets, everything=request.everything)
        self.whole = with_whole_images(plan, self._points)
        super().__init__(self.whole)
        self._folder = request.folder
        self._scenario = scenario
        self._repeat = options.repeat
        self._dry_run = options.dry_run
        self._elements = Accesses(plan).elements()
        self.plan = with_dumps(self.whole, scenario, self._points)
        self._device = device
        self._file_names = FileNames()
        self._ended_frames = 0
        self._iteration = 0
        self._entries: list[dict[str, object]] = []
        self._growing: GrowingIndex | None = None

    def check(self) -> None:
        """Raise FileError if a file cannot be written or the scenario uses it.

        Then remove an earlier dump's index, because the run replaces some files.
        """
        files = (
            (self._path(entry), "", "the dump")
            for iteration in range(self._repeat)
            for point in self._points
            for uid in point.uids
            for _, entry in self._files_of(iteration, point, uid)
        )
        check_files(self.whole, self._folder, INDEX, MARK, files)
        path = os.path.join(self._folder, INDEX)
        try:
            if not self._dry_run and os.path.lexists(path):
                os.unlink(path)
        except OSError as error:
            raise file_error(path, f"cannot be removed: {reason_of(error)}", code="SR-FILE-015") from error

    def frame(self, iteration: int, frame: FramePlan) -> Receive:
        """Return the receiver for the next point in an iteration."""
        if frame.boundary:
            return ignore
        self._iteration, self._point = iteration, self._points[self._ended_frames % len(self._points)]
        self._ended_frames += 1
        return self.receive

    def _create_listed(self, uid: str) -> Iterator[tuple[dict[str, object], ContentWriter, range]]:
        plan, create = self.whole.resources[uid], self._files.create
        for part, entry in self._files_of(self._iteration, self._point, uid):
            yield entry, create_resource_file(self._path(entry), plan, create, part.array), part.part

    def _is_last(self, uid: str) -> bool:
        return True

    def _add(self, entries: list[dict[str, object]]) -> None:
        if self._growing is None:
            self._growing = GrowingIndex(os.path.join(self._folder, INDEX), self._head())
        self._growing.add(entries)
        self._entries += entries

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        super().__exit__(kind)
        if self._growing is not None:
            self._growing.close()
        if kind is None and not self._dry_run:
            with OutputFile(os.path.join(self._folder, INDEX)) as index:
                before, tail = _around({**self._head(), "complete": True})
                index.write(before + b"\n" + _lines(self._entries) + tail)

    def _head(self) -> dict[str, object]:
        commands = [command.kind for command in self._scenario.commands]
        return {"scenario": self.whole.name, "device": self._device(), "commands": commands}

    def _path(self, entry: Mapping[str, Json]) -> str:
        return os.path.join(self._folder, entry["file"])

    def _files_of(self, iteration: int, point: DumpPoint, uid: str) -> Iterator[tuple[_Part, dict[str, Json]]]:
        """Yield a resource's files at a point, with their entries in the index."""
        plan: Any = self.whole.resources[uid]
        name, command, kind, pointer = "start", None, None, None
        if point.command != START:
            command, kind = point.command, self._scenario.commands[point.command].kind
            pointer = self._scenario.command_pointer(command)
            digits = len(str(len(self._scenario.commands) - 1))
            name = f"{command:0{digits}}_{kind}"
        folders = [] if self._repeat == 1 else [f"iteration_{iteration}"]
        folders += [name] if point.segment is None else [name, f"segment_{point.segment}"]
        base = "/".join([*folders, self._file_names.name_for(uid)])
        for part in _parts_of(plan):
            yield (
                part,
                {
                    "iteration": iteration,
                    "command": command,
                    "command_kind": kind,
                    "pointer": pointer,
                    "segment": point.segment,
                    "segment_name": point.label or None,
                    "resource": uid,
                    "kind": plan.kind,
                    "format": None if plan.format is None else plan.format.name,
                    "element": self._elements.get(uid) if isinstance(plan, BufferPlan) else None,
                    "shape": [plan.height, plan.width] if part.array is None else list(part.array[1]),
                    "mips": plan.mips if plan.is_image else None,
                    "mip": part.level,
                    "aspect": part.aspect,
                    "file": base + part.suffix,
                    "size_bytes": len(part.part),
                },
            )


class DumpEntry(NamedTuple):
    """A file in a dump; ``command`` is None for the start of the run.

    ``element`` is the number type shaders give a buffer. An image in several files has ``mip`` and, with
    depth and stencil, an ``aspect``. An image in a single file has ``mips`` levels there.
    """

    iteration: int
    command: int | None
    segment: int | None
    resource: str
    mip: int | None
    aspect: str | None
    command_kind: str | None
    pointer: str | None
    format: str | None
    element: str | None
    mips: int | None
    file: str
    sha256: str

    @property
    def key(self) -> tuple[object, ...]:
        """The fields to find the same content in another dump."""
        return self[:6]


class DumpIndex(NamedTuple):
    """A dump. ``commands`` are the scenario's command kinds; ``complete`` is false after a failed run."""

    folder: str
    complete: bool
    commands: tuple[str, ...]
    entries: tuple[DumpEntry, ...]


class GrowingIndex:
    """A dump's index during the run. The file is valid JSON after each `add`, so it survives a crash.

    It replaces no file. A full disk leaves entries out.
    """

    def __init__(self, path: str, head: Mapping[str, object]) -> None:
        before, self._tail = _around({**head, "complete": False})
        self._separator = b"\n"
        self._end = 0
        self._file: BinaryIO | None = None
        with suppress(OSError):
            self._file = open(path, "xb", buffering=0)  # noqa: SIM115
        self._append(before)

    def add(self, entries: Sequence[Mapping[str, object]]) -> None:
        """List more files."""
        self._append(self._separator + _lines(entries))
        self._separator = b",\n"

    def _append(self, text: bytes) -> None:
        if self._file is None:
            return
        try:
            self._file.seek(self._end)
            if self._file.write(text + self._tail) == len(text + self._tail):
                self._end += len(text)
                return
        except OSError:
            pass
        with suppress(OSError):
            if self._end:  # the earlier entries have their room
                self._file.truncate(self._end)
                self._file.seek(self._end)
                self._file.write(self._tail)
            else:
                os.unlink(self._file.name)
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _around(head: Mapping[str, object]) -> tuple[bytes, bytes]:
    """Return the text before and after the files' lines."""
    text = json.dumps({"kind": MARK, "version": VERSION, **head, "files": []}, indent=1)
    return text.removesuffix("]\n}").encode(), b"\n ]\n}\n"


def _lines(entries: Sequence[Mapping[str, object]]) -> bytes:
    return ",\n".join(f"  {json.dumps(entry)}" for entry in entries).encode()


def read_index(folder: str) -> DumpIndex:
    """Read the dump's index in a folder. Raise FileError for a missing or damaged index."""
    if os.path.isfile(folder):
        above, name = os.path.split(folder)
        help = f"give its folder: {above or os.curdir}" if name == INDEX else None
        raise file_error(folder, "is a file, expected the folder of a dump", help=help)
    path, how = os.path.join(folder, INDEX), "--dump-all DIR writes one"
    if os.path.isdir(folder) and not os.path.lexists(path):
        raise file_error(folder, f"has no {INDEX}, so it is not a dump", help=how)
    try:
        index = json.loads(read_file(path))
    except OSError as error:
        raise file_error(path, f"cannot be read: {reason_of(error)}", help=close_files_help(path, error)) from error
    except (ValueError, RecursionError) as error:
        raise file_error(path, f"is not JSON: {json_reason(error)}") from error
    if not isinstance(index, dict) or index.get("kind") != MARK:
        raise file_error(path, "is not the index of a dump", help=how)
    if index.get("version") != VERSION:
        raise file_error(path, f"has the version {index.get('version')!r:.40}, expected {VERSION}")
    commands, files = index.get("commands"), index.get("files")
    if not isinstance(commands, list) or not isinstance(files, list) or not all(isinstance(c, str) for c in commands):
        raise file_error(path, "is damaged: it has no lists of commands and files")
    entries = tuple(_entry(path, number, file) for number, file in enumerate(files))
    if len({entry.key for entry in entries}) != len(entries):
        raise file_error(path, "is damaged: it lists a resource twice after one command")
    return DumpIndex(folder, index.get("complete") is True, tuple(commands), entries)


def _entry(path: str, number: int, content: object) -> DumpEntry:
    """Check an index entry. Raise FileError."""
    if not isinstance(content, dict):
        raise file_error(path, f"is damaged: files/{number} is not an object")
    for name, kind in get_type_hints(DumpEntry).items():
        value = content.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise file_error(path, f"is damaged: files/{number}/{name} is {value!r:.40}")
    name = os.path.normpath(content["file"])
    if os.path.isabs(name) or name.split(os.sep)[0] == os.pardir:
        raise file_error(path, f"is damaged: files/{number}/file leads out of the folder")
    return DumpEntry(**{field: content[field] for field in DumpEntry._fields})
