"""Dumps: a folder of files for each point of a run, and an index of them all.

The plan of a run with dumps is split at these points; dumps and captured frames are told apart where they arrive.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from types import TracebackType
from typing import Any, NamedTuple

from scenario_runner.files.codec import all_codecs, codec_for, create_image
from scenario_runner.files.output import OutputFile, check_destination
from scenario_runner.files.source import check_folder_to_write, file_error, reason_of
from scenario_runner.plan.dumps import START, Changes, DumpPoint, DumpTarget, dump_points, with_dumps, with_whole_images
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.run.capture_files import HashedFile, check_list, refuse_taken, taken_files
from scenario_runner.run.dump_index import INDEX, MARK, GrowingIndex, index_text
from scenario_runner.run.output_files import FileWriter
from scenario_runner.run.resource_files import FileNames, ResourceWriter
from scenario_runner.scenario import Scenario


class DumpRequest(NamedTuple):
    """A request of dumps: the content of ``targets``, or with ``everything`` all after every command."""

    folder: str
    targets: tuple[DumpTarget, ...] = ()
    everything: bool = False


class _Part(NamedTuple):
    """One file of a resource: its entry in the index, and the NumPy type and shape of a .npy file."""

    entry: dict[str, Any]
    array: tuple[str, tuple[int, ...]] | None


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
        self._points = dump_points(plan, scenario, request.targets, everything=request.everything)
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
            self.path_of(part)
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
        self._writer = ResourceWriter(
            self.whole, lambda uid: [_PartsWriter(self, uid, self.parts(iteration, point, uid))]
        )
        return self._writer

    def complete(self, entries: Sequence[dict[str, Any]]) -> None:
        """All files of a resource are there."""
        self._entries += entries
        if self._growing is None:
            self._growing = GrowingIndex(os.path.join(self._folder, INDEX), self._head())
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

    def parts(self, iteration: int, point: DumpPoint, uid: str) -> list[_Part]:
        """The files of one resource at a point: one, unless no format of files can hold all of an image."""
        plan: Any = self.whole.resources[uid]
        name, command, kind, pointer = "start", None, None, None
        if point.command != START:
            command, kind = point.command, self._scenario.commands[point.command].kind
            pointer = self._scenario.command_pointer(command)
            digits = len(str(len(self._scenario.commands) - 1))
            name = f"{command:0{digits}}_{kind}"
        folders = [] if self._repeat == 1 else [f"iteration_{iteration}"]
        folders += [name] if point.segment is None else [name, f"segment_{point.segment}"]
        base = "/".join([*folders, self._file_names.of(uid)])

        def part(suffix: str, array: Any, size_bytes: int, level: int | None = None, aspect: Any = None) -> _Part:
            entry = {
                "iteration": iteration,
                "command": command,
                "command_kind": kind,
                "pointer": pointer,
                "segment": point.segment,
                "segment_name": point.label or None,
                "resource": uid,
                "kind": plan.kind,
                "format": None if plan.format is None else plan.format.name,
                "element": self._elements.get(uid) if plan.kind == "buffer" else None,
                "shape": [plan.height, plan.width] if array is None else list(array[1]),
                "mips": plan.mips if plan.kind == "image" else None,
                "mip": level,
                "aspect": aspect,
                "file": base + suffix,
                "size_bytes": size_bytes,
                "sha256": "",
            }
            return _Part(entry, array)

        if plan.npy is not None:
            return [part(codec_for(plan.kind).extension, plan.npy, plan.size_bytes)]
        for codec in all_codecs():
            if not codec.is_array and codec.holds(plan.format, plan.mips):
                return [part(codec.extension, None, plan.size_bytes)]
        parts = []
        for layout in plan.parts:
            descr, shape = plan.array_type(layout)
            suffix = f".mip{layout.level}" if plan.mips > 1 else ""
            suffix += f".{layout.aspect}" if len(plan.format.aspects) > 1 else ""
            parts.append(part(f"{suffix}.npy", (descr, (1, *shape)), layout.size_bytes, layout.level, layout.aspect))
        return parts

    def path_of(self, part: _Part) -> str:
        """The path of a file."""
        return os.path.join(self._folder, part.entry["file"])

    def open(self, part: _Part, uid: str) -> tuple[Any, list[HashedFile]]:
        """Open the writer of a part, and the file that it makes, now or when it has all. Raises FileError."""
        files: list[HashedFile] = []

        def create(path: str | os.PathLike[str], size_bytes: int = 0) -> OutputFile:
            files.append(HashedFile(path, size_bytes))
            return files[0]

        plan: Any = self.whole.resources[uid]
        if part.array is not None:
            return codec_for("buffer").create_array(self.path_of(part), *part.array, create), files
        size = (plan.width, plan.height)
        return create_image(self.path_of(part), plan.format, *size, plan.plane_sizes_bytes, create=create), files


class _PartsWriter:
    """Writes one resource at a point of the run: its bytes go to its parts, one after the other."""

    def __init__(self, dump: DumpFiles, uid: str, parts: Sequence[_Part]) -> None:
        self._dump = dump
        self._uid = uid
        self._entries = [part.entry for part in parts]
        self._parts = list(parts)
        self._open_next()

    def _open_next(self) -> None:
        self._part = self._parts.pop(0)
        self._writer, self._files = self._dump.open(self._part, self._uid)
        self._room = self._part.entry["size_bytes"]

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
        self._part.entry["sha256"] = self._files[0].digest.hexdigest()

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
