"""Captured frames in files, written while the next frame runs.

What a frame captures is copied out of the device's memory at once; a thread writes it. At most `_MOST_CHUNKS` chunks
wait to be written: then the run waits. The files of a frame get their names together when the frame is complete, so
that those before a failure stay, and `manifest.json` lists them. Names and folders are checked before the run.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any

from scenario_runner import system_limits
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError
from scenario_runner.files.codec import ContentWriter, all_codecs, codec_for
from scenario_runner.files.output import OutputFile, OutputSet, check_destination
from scenario_runner.files.source import check_folder_to_write, file_error, read_file
from scenario_runner.plan.plan import FramePlan, Plan, frame_folder
from scenario_runner.run.resource_files import FileNames, ResourceWriter, at_resource, create_resource_file

MANIFEST = "manifest.json"
_MARK = "scenario-runner captures"
_VERSION = 1


class HashedFile(OutputFile):
    """A file whose content is hashed (SHA-256) as it is written."""

    def __init__(self, path: str | os.PathLike[str], size_bytes: int, *, files: OutputSet | None = None) -> None:
        super().__init__(path, size_bytes, files=files)
        self.digest = hashlib.sha256()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(data)
        self.digest.update(data)


def taken_files(plan: Plan) -> dict[str, str]:
    """The files of a scenario, by their real paths, and the verb for what it does with them."""
    taken = {os.path.realpath(path): "reads" for path in plan.reads}
    return taken | {os.path.realpath(path): "has as a dst" for _, path in plan.outputs if path is not None}


def refuse_taken(path: str, what: str, folder_of: str, taken: Mapping[str, str]) -> None:
    """Raise FileError for a file that is one of ``taken``."""
    why = taken.get(os.path.realpath(path)) if taken else None
    if why is not None:
        message = f"is where {what} would be written, but the scenario {why} this file"
        help = f"choose another folder for {folder_of}"
        raise FileError(Diagnostic("SR-FILE-001", "error", None, message, help, path=path))


def read_list(path: str, mark: str) -> dict[str, Any] | None:
    """The JSON object in a file that lists others; None for a file that is no such list."""
    try:
        content: dict[str, Any] = json.loads(read_file(path))
        is_list = content["kind"] == mark and all(isinstance(entry["file"], str) for entry in content["files"])
        return content if is_list else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def check_list(path: str, mark: str, what: str) -> None:
    """Refuse to replace a file of somebody else. Raises FileError."""
    if os.path.exists(path) and read_list(path, mark) is None:
        raise file_error(path, f"is not {what}, which would replace it", help="choose another folder")


def write_manifest(folder: str, entries: Sequence[dict[str, Any]]) -> None:
    """List these files, and those of earlier runs that are still there. Raises FileError."""
    path = os.path.join(folder, MANIFEST)
    own = {entry["file"] for entry in entries}
    earlier = [
        entry
        for entry in (read_list(path, _MARK) or {"files": ()})["files"]
        if entry["file"] not in own and os.path.isfile(os.path.join(folder, entry["file"]))
    ]
    text = json.dumps({"kind": _MARK, "version": _VERSION, "files": [*earlier, *entries]}, indent=1)
    with OutputFile(path) as file:
        file.write(text.encode() + b"\n")


def check_captures(plan: Plan, folder: str, repeat: int) -> None:
    """Refuse captures that cannot be written, or would overwrite what the scenario reads or one of its outputs.

    Problems of a frame's files have the pointer of the resource. Raises FileError.
    """
    manifest, taken = os.path.join(folder, MANIFEST), taken_files(plan)
    refuse_taken(manifest, "the list of captures", "captures", taken)
    check_destination(manifest)
    check_list(manifest, _MARK, "a list of captures")
    names = CaptureNames(plan, folder, repeat)
    for iteration in range(repeat if os.path.lexists(folder) else 0):  # in a new folder nothing is in the way
        for frame in plan.frames:
            for uid, files in names.files(iteration, frame).items():
                for path in files:
                    refuse_taken(path, f"a frame of {uid!r}", "captures", taken)
                    try:
                        check_destination(path)
                    except FileError as error:
                        raise at_resource(error, plan.resources[uid].pointer) from error.__cause__
    check_folder_to_write(folder)


_CHUNK_BYTES = 8 << 20
_MOST_CHUNKS = 24  # that wait to be written, small ones as well
_BESIDE_BYTES = 1 << 20  # from this size on, a chunk is hashed while it is written


class CaptureNames:
    """The files of the frames of one run: ``frame_<id>/<uid>.<format>``, under ``iteration_<n>/`` when repeating.

    Of frames with one id, the folders of the second and later ones get a number behind it.
    """

    def __init__(self, plan: Plan, folder: str, repeat: int) -> None:
        self._plan = plan
        self._folder = folder
        self._folders = FrameFolders(repeat)
        self._file_names = FileNames()

    def files(self, iteration: int, frame: FramePlan) -> dict[str, dict[str, str]]:
        """The path of each file, and its name below the folder of captures, by uid; ask once for each frame of a run,
        in order."""
        folder = self._folders.name(iteration, frame.frame_id)
        files: dict[str, dict[str, str]] = {}
        for uid in frame.captures:
            stem = os.path.join(folder, self._file_names.of(uid))
            names = [stem + extension for extension in self._extensions(uid)]
            files[uid] = {os.path.join(self._folder, name): name for name in names}
        return files

    def _extensions(self, uid: str) -> list[str]:
        """List the extensions of files that hold all of a resource: of images, every format that can."""
        plan = self._plan.resources[uid]
        if plan.kind != "image":
            return [codec_for(plan.kind).extension]
        fitting = [codec.extension for codec in all_codecs() if codec.holds(plan.format, plan.mips)]
        return fitting or [codec_for(plan.kind, plan.format, plan.mips).extension]


class FrameFolders:
    """Names of the folders of the frames of a run; ask for each frame once, in order."""

    def __init__(self, repeat: int) -> None:
        self._repeat = repeat
        self._iteration = 0
        self._seen: dict[int, int] = {}

    def name(self, iteration: int, frame_id: int) -> str:
        """``frame_<id>``, under ``iteration_<n>/`` when repeating; the second one of an id gets a number."""
        if iteration != self._iteration:
            self._iteration, self._seen = iteration, {}
        count = self._seen[frame_id] = self._seen.get(frame_id, 0) + 1
        name = frame_folder(frame_id, count)
        return name if self._repeat == 1 else f"iteration_{iteration}/{name}"


class CaptureFiles:
    """Writes the captures of a run. `frame` gives what takes the pieces of one; `close` ends it all.

    What goes wrong on the thread is raised by the next call: FileError, with the pointer of the resource. What comes
    later is not written then.
    """

    def __init__(self, plan: Plan, folder: str, repeat: int) -> None:
        self._plan = plan
        self._folder = folder
        self._names = CaptureNames(plan, folder, repeat)
        self._error: BaseException | None = None
        self._entries: list[dict[str, Any]] = []
        self._listed = 0
        self._open: FrameFiles | None = None
        self._room = threading.Semaphore(_MOST_CHUNKS)
        self._context = copy_context()  # which files may be written is a matter of the context
        self._writer = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="capture-files")
        self.hasher = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="capture-hash")

    def frame(self, iteration: int, frame: FramePlan) -> FrameFiles:
        """Open the taker of the pieces of a frame's captures, in order."""
        return FrameFiles(self, self._plan, self._names.files(iteration, frame), iteration, frame.frame_id)

    def close(self) -> None:
        """Wait until what is complete is written, and list it. Raises what went wrong."""
        self._writer.shutdown()
        self.hasher.shutdown()
        if self._open is not None:
            self._open.discard()
        try:
            self._list(at_least=1)
        finally:
            if self._error is not None:
                raise self._error

    def put(self, job: Callable[[], None]) -> None:
        """Have the thread do something after what it was given before. Raises what went wrong earlier."""
        self._room.acquire()
        if self._error is not None:
            self._room.release()
            raise self._error
        _submit(self._writer, self._context.run, self._do, job)

    def _do(self, job: Callable[[], None]) -> None:
        try:
            if self._error is None:
                job()
        except BaseException as error:  # raised again by the next call
            self._error = error
            if self._open is not None:
                self._open.discard()
        finally:
            self._room.release()

    def write(self, files: FrameFiles, uid: str, piece: bytearray) -> None:
        """On the thread: write a piece of a resource. Raises FileError with the pointer of the resource."""
        self._open = files
        files.writer.receive(uid, memoryview(piece))

    def complete(self, files: FrameFiles) -> None:
        """On the thread: all of a frame is there."""
        self._entries += files.publish()
        self._open = None
        self._list(at_least=max(1, len(self._entries) // 8))

    def _list(self, *, at_least: int) -> None:
        """Write the manifest where so many files are not in it yet: seldom enough for any number of frames."""
        if len(self._entries) - self._listed < at_least:
            return
        write_manifest(self._folder, self._entries)
        self._listed = len(self._entries)


def _submit(pool: concurrent.futures.ThreadPoolExecutor, call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return pool.submit(call, *arguments)
    except RuntimeError as error:  # a thread that could not be started
        raise system_limits.refusal("thread") from error


class FrameFiles:
    """Takes pieces of one frame's captures; copies of them are written on the thread."""

    def __init__(
        self, owner: CaptureFiles, plan: Plan, files: dict[str, dict[str, str]], iteration: int, frame_id: int
    ) -> None:
        self._owner = owner
        self._plan = plan
        self._files = files
        self._iteration = iteration
        self._frame_id = frame_id
        self._pending = OutputSet()
        self.writer = ResourceWriter(plan, self._open)

    def receive(self, uid: str, view: memoryview) -> None:
        flat = view.cast("B")
        for start in range(0, len(flat), _CHUNK_BYTES) or (0,):
            piece = bytearray(flat[start : start + _CHUNK_BYTES])
            self._owner.put(partial(self._owner.write, self, uid, piece))

    def finish(self) -> None:
        """All is there."""
        self._owner.put(partial(self._owner.complete, self))

    def _open(self, uid: str) -> Iterator[ContentWriter]:
        for path in self._files[uid]:
            yield create_resource_file(path, self._plan.resources[uid], self._create)

    def _create(self, path: str | os.PathLike[str], size_bytes: int = 0) -> OutputFile:
        return _CaptureFile(path, size_bytes, self._owner.hasher, self._pending)

    def publish(self) -> list[dict[str, Any]]:
        """Give all files their names, and return what they are."""
        by_path: dict[str, Any] = {file.path: file for file in self._pending.complete}
        self._pending.publish()
        return [
            self._entry(uid, name, by_path[path])
            for uid, files in self._files.items()
            for path, name in files.items()
            if path in by_path
        ]

    def _entry(self, uid: str, name: str, file: _CaptureFile) -> dict[str, Any]:
        plan = self._plan.resources[uid]
        shape = [plan.height, plan.width] if plan.npy is None else list(plan.npy[1])
        return {
            "scenario": self._plan.name,
            "iteration": self._iteration,
            "frame_id": self._frame_id,
            "resource": uid,
            "kind": plan.kind,
            "format": None if plan.format is None else plan.format.name,
            "shape": shape,
            "mip_levels": plan.mips if plan.kind == "image" else None,
            "file": name.replace(os.sep, "/"),
            "size_bytes": file.size_bytes,
            "sha256": file.digest.hexdigest(),
        }

    def discard(self) -> None:
        """Remove what is not complete."""
        self.writer.discard()
        self._pending.discard()


class _CaptureFile(HashedFile):
    """Hashes large pieces while they are written, on another thread."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        size_bytes: int,
        hasher: concurrent.futures.ThreadPoolExecutor,
        files: OutputSet,
    ) -> None:
        super().__init__(path, size_bytes, files=files)
        self.size_bytes = 0
        self._hasher = hasher

    def write(self, data: bytes | bytearray | memoryview) -> None:
        size = memoryview(data).nbytes
        self.size_bytes += size
        if size < _BESIDE_BYTES:
            super().write(data)
            return
        hashing = _submit(self._hasher, self.digest.update, data)
        try:
            OutputFile.write(self, data)  # the thread hashes it
        finally:
            hashing.result()
