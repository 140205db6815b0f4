"""Dumps: a folder of files for each point of a run, and an index of them all.

The plan of a run with dumps is split at these points; dumps and captured frames are told apart where they arrive.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from types import TracebackType
from typing import Any, NamedTuple

from scenario_runner.errors import FileError
from scenario_runner.files.codec import all_codecs, codec_for, create_image
from scenario_runner.files.output import OutputFile, check_destination
from scenario_runner.files.source import check_folder_to_write, file_error, reason_of
from scenario_runner.plan.dumps import START, Changes, DumpPoint, Wanted, dump_points, with_dumps, with_whole_images
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.run.capture_files import HashedFile, check_list, refuse_taken, taken_files
from scenario_runner.run.dump_index import INDEX, MARK, GrowingIndex, index_text
from scenario_runner.run.output_files import FileWriter
from scenario_runner.run.resource_files import FileNames, ResourceWriter
from scenario_runner.scenario import Scenario

_NO_HASH = "0" * 64


class DumpRequest(NamedTuple):
    """A request of dumps: what each of ``wanted`` asks for, or with ``everything`` all after every command."""

    folder: str
    wanted: tuple[Wanted, ...] = ()
    everything: bool = False


class _Part(NamedTuple):
    """One file of a resource: its path below the folder, and how many of the bytes go there.

    ``level`` and ``aspect`` are set where an image takes several files. ``array`` is the NumPy type and shape of a .npy
    file.
    """

    path: str
    size_bytes: int
    shape: tuple[int, ...]
    array: tuple[str, tuple[int, ...]] | None
    level: int | None = None
    aspect: str | None = None


class DumpFiles:
    """Writes the dumps of one run; a context manager around it.

    ``whole`` is the plan whose outputs are written, ``plan`` the one that is run. Files appear as they are complete.
    The index lists these from the first one on, so that it is there also where the process is killed.
    """

    def __init__(
        self,
        scenario: Scenario,
        plan: Plan,
        request: DumpRequest,
        repeat: int,
        device: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``device`` gives the name of the device at the end.

        Raises UsageError for commands and resources that do not exist.
        """
        self._folder = request.folder
        self._scenario = scenario
        self._repeat = repeat
        self._points = dump_points(plan, scenario, request.wanted, everything=request.everything)
        self._elements = Changes(plan).elements()
        self.whole = with_whole_images(plan, self._points)
        self.plan = with_dumps(self.whole, scenario, self._points)
        self._device = device
        self._file_names = FileNames()
        self._next: dict[int, int] = {}
        self._entries: list[dict[str, Any]] = []
        self._growing: GrowingIndex | None = None
        self._writer: ResourceWriter | None = None

    def check(self) -> None:
        """Refuse a folder that cannot be written to, and files that the scenario has. Raises FileError."""
        index, taken = os.path.join(self._folder, INDEX), taken_files(self.whole)
        paths = [
            os.path.join(self._folder, part.path)
            for iteration in range(self._repeat)
            for point in self._points
            for uid in point.uids
            for part in self.parts(iteration, point, uid)
        ]
        for path in (index, *paths):
            check_destination(path)
            refuse_taken(path, "the dump", "the dump", taken)
        check_list(index, MARK, "the index of a dump")
        check_folder_to_write(self._folder)

    def __enter__(self) -> DumpFiles:
        """Remove the index of an earlier dump, some of whose files are about to be replaced. Raises FileError."""
        path = os.path.join(self._folder, INDEX)
        try:
            with suppress(FileNotFoundError):
                os.unlink(path)
        except OSError as error:
            raise file_error(path, f"cannot be removed: {reason_of(error)}", code="SR-FILE-015") from error
        return self

    def frame(self, iteration: int) -> ResourceWriter:
        """Open the taker of the pieces of the next point of an iteration, in order."""
        number = self._next.get(iteration, 0)
        self._next[iteration] = number + 1
        point = self._points[number]
        self._writer = ResourceWriter(self.whole, lambda uid: [_PartsWriter(self, iteration, point, uid)])
        return self._writer

    def complete(self, entries: Sequence[dict[str, Any]]) -> None:
        """All files of a resource are there."""
        self._entries += entries
        if self._growing is None:
            with suppress(FileError):
                self._growing = GrowingIndex(os.path.join(self._folder, INDEX), self._head())
        if self._growing is not None:
            self._growing.add(entries)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.discard()
        if self._growing is not None:
            self._growing.close()
        if kind is None:
            with OutputFile(os.path.join(self._folder, INDEX)) as index:
                index.write(index_text(self._head(), self._entries, complete=True))

    def _head(self) -> dict[str, Any]:
        commands = [command.kind for command in self._scenario.commands]
        return {"scenario": self.whole.name, "device": self._device(), "commands": commands}

    def entries_of(self, iteration: int, point: DumpPoint, uid: str) -> Iterator[dict[str, Any]]:
        """The entries of one resource, as they are before anything is written."""
        plan = self.whole.resources[uid]
        start = point.command == START
        for part in self.parts(iteration, point, uid):
            yield {
                "iteration": iteration,
                "command": None if start else point.command,
                "command_kind": None if start else self._scenario.commands[point.command].kind,
                "pointer": None if start else self._scenario.command_pointer(point.command),
                "segment": point.segment,
                "segment_name": point.label or None,
                "resource": uid,
                "kind": plan.kind,
                "format": None if plan.format is None else plan.format.name,
                "element": self._elements.get(uid) if plan.kind == "buffer" else None,
                "shape": list(part.shape),
                "mips": plan.mips if plan.kind == "image" else None,
                "mip": part.level,
                "aspect": part.aspect,
                "file": part.path.replace(os.sep, "/"),
                "size_bytes": part.size_bytes,
                "sha256": _NO_HASH,
            }

    def parts(self, iteration: int, point: DumpPoint, uid: str) -> list[_Part]:
        """The files of one resource at a point: one, unless no format of files can hold all of an image."""
        digits = len(str(max(len(self._scenario.commands) - 1, 0)))
        name = "start"
        if point.command != START:
            name = f"{point.command:0{digits}}_{self._scenario.commands[point.command].kind}"
        folders = [] if self._repeat == 1 else [f"iteration_{iteration}"]
        folders += [name] if point.segment is None else [name, f"segment_{point.segment}"]
        base = os.path.join(*folders, self._file_names.of(uid))
        plan: Any = self.whole.resources[uid]
        if plan.npy is not None:
            return [_Part(base + codec_for(plan.kind).extension, plan.size_bytes, plan.npy[1], plan.npy)]
        texels = plan.height, plan.width
        for codec in all_codecs():
            if not codec.is_array and codec.holds(plan.format, plan.mips):
                return [_Part(base + codec.extension, plan.size_bytes, texels, None)]
        parts = []
        for part in plan.parts:
            descr, shape = plan.array_type(part)
            path = base + (f".mip{part.level}" if plan.mips > 1 else "")
            path += f".{part.aspect}" if len(plan.format.aspects) > 1 else ""
            array = descr, (1, *shape)
            parts.append(_Part(f"{path}.npy", part.size_bytes, array[1], array, part.level, part.aspect))
        return parts

    def open(self, part: _Part, uid: str) -> tuple[Any, list[HashedFile]]:
        """Open the writer of a part, and the file that it makes, now or when it has all. Raises FileError."""
        files: list[HashedFile] = []

        def create(path: str | os.PathLike[str], size_bytes: int = 0) -> OutputFile:
            files.append(HashedFile(path, size_bytes))
            return files[0]

        path = os.path.join(self._folder, part.path)
        plan: Any = self.whole.resources[uid]
        if part.array is not None:
            writer: Any = codec_for("buffer").create_array(path, *part.array, create)
        else:
            writer = create_image(path, plan.format, plan.width, plan.height, plan.plane_sizes_bytes, create=create)
        return writer, files


class _PartsWriter:
    """Writes one resource at a point of the run: its bytes go to its parts, one after the other."""

    def __init__(self, dump: DumpFiles, iteration: int, point: DumpPoint, uid: str) -> None:
        self._dump = dump
        self._uid = uid
        self._parts = dump.parts(iteration, point, uid)
        self._entries = list(dump.entries_of(iteration, point, uid))
        self._writer: Any = None
        self._made: list[HashedFile] = []
        self._room = 0
        self._open_next()

    def _open_next(self) -> None:
        part = self._parts.pop(0)
        self._writer, self._made = self._dump.open(part, self._uid)
        self._room = part.size_bytes

    def write(self, data: memoryview) -> None:
        while True:
            piece = data[: self._room]
            self._writer.write(piece)
            self._room -= len(piece)
            data = data[len(piece) :]
            if self._room or not self._parts:
                return
            self._complete_part()
            self._open_next()

    def _complete_part(self) -> None:
        writer, self._writer = self._writer, None
        writer.__exit__(None, None, None)
        self._entries[len(self._entries) - len(self._parts) - 1]["sha256"] = self._made[0].digest.hexdigest()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._complete_part()
            self._dump.complete(self._entries)
        elif self._writer is not None:
            self._writer.__exit__(kind, None, None)


class DumpSink:
    """Hands frames with a boundary and outputs to ``writer``, the others to ``dump``."""

    captures = True

    def __init__(self, writer: FileWriter, dump: DumpFiles) -> None:
        self._writer = writer
        self._dump = dump

    def frame(self, iteration: int, frame: FramePlan) -> Any:
        return self._writer.frame(iteration, frame) if frame.boundary else self._dump.frame(iteration)

    def outputs(self) -> Any:
        return self._writer.outputs()


def run_with_dump(
    execute: Callable[..., None],
    scenario: Scenario,
    plan: Plan,
    request: DumpRequest,
    capture_dir: str | os.PathLike[str] | None,
    device: Callable[[], str | None],
    options: Mapping[str, Any],
) -> Plan:
    """Carry out a plan for its files, and dump; returns that plan.

    ``execute`` takes a plan, sinks and ``options``; ``device`` gives the name of the device at the end.

    Raises UsageError for what does not exist, and FileError; what is complete of the dump stays then.
    """
    repeat: int = options["repeat"]
    dump = DumpFiles(scenario, plan, request, repeat, device)
    folder = None if capture_dir is None else os.fspath(capture_dir)
    with FileWriter(dump.whole, capture_dir=folder, repeat=repeat) as writer:
        writer.check()
        dump.check()
        with nullcontext() if options["dry_run"] else dump:
            execute(dump.plan, (DumpSink(writer, dump),), **options)
    return plan
