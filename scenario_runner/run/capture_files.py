"""Captured frames' files, and sinks to hash and list files, for captures and dumps.

A frame's files get their names together when the frame is complete, so earlier frames stay after a failure.
`manifest.json` lists them. Names and folders are checked before the run.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from typing import Any

from scenario_runner.errors import FileError, file_error
from scenario_runner.errors.text import Json, numbered
from scenario_runner.files.codec import ContentWriter
from scenario_runner.files.codec_table import CODECS, codec_for
from scenario_runner.files.input import read_file
from scenario_runner.files.output import OutputFile, OutputSet, check_destination
from scenario_runner.files.sandbox import check_folder_to_write
from scenario_runner.plan.plan import FramePlan, Plan, ResourcePlan, frame_folder
from scenario_runner.run.output_files import FileSink, Receive, at_resource, create_resource_file, ignore, taken_files

MANIFEST = "manifest.json"
_MARK = "scenario-runner captures"
_VERSION = 1
_MOST_NAME_BYTES = 200  # most file systems take 255, with a number and an extension


class FileNames:
    """Gives each uid in a run a file name."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()

    def name_for(self, uid: str) -> str:
        """Return the name without extension, with underscores for unsafe characters, and cut if it is long."""
        name = self._names.get(uid)
        if name is None:
            plain = "".join(letter if letter.isalnum() or letter in "-_. " else "_" for letter in uid) or "_"
            plain = os.fsencode(plain)[:_MOST_NAME_BYTES].decode(errors="ignore")
            # some file systems ignore case
            name = numbered(plain, "", lambda name: name.casefold() in self._taken)
            self._names[uid] = name
            self._taken.add(name.casefold())
        return name


class HashedFile(OutputFile):
    """A file with a hash of the content (SHA-256), computed during writing."""

    def __init__(self, path: str | os.PathLike[str], size_bytes: int, *, files: OutputSet) -> None:
        super().__init__(path, size_bytes, files=files)
        self.digest = hashlib.sha256()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(data)
        self.digest.update(data)


class HashedFiles(OutputSet):
    """A set of hashed files."""

    def create(self, path: str | os.PathLike[str], size_bytes: int = 0) -> OutputFile:
        return HashedFile(path, size_bytes, files=self)


def read_list(path: str, mark: str) -> dict[str, Json] | None:
    """Read a file list as a JSON object; return None for any other file."""
    try:
        content: dict[str, Json] = json.loads(read_file(path))
        is_list = content["kind"] == mark and all(isinstance(entry["file"], str) for entry in content["files"])
        return content if is_list else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def check_files(plan: Plan, folder: str, listing: str, mark: str, files: Iterable[tuple[str, str, str]]) -> None:
    """Raise FileError if files or their list cannot be written to a folder, or if the scenario uses them.

    Each of ``files`` is a path, a resource's uid for error pointers ("" for none), and words for the file.
    """
    taken, path_of_list = taken_files(plan), os.path.join(folder, listing)
    for path, uid, what in ((path_of_list, "", "the list of files"), *files):
        why = taken.get(os.path.realpath(path)) if taken else None
        if why is not None:
            message = f"cannot become {what}, because the scenario {why} this file"
            raise file_error(path, message, help="choose another folder")
        try:
            check_destination(path)
        except FileError as error:
            if uid:
                at_resource(error, plan.resources[uid].pointer)
            raise
    if os.path.exists(path_of_list) and read_list(path_of_list, mark) is None:
        kind = "the index of a dump" if mark.endswith("dump") else "a list of captures"
        raise file_error(path_of_list, f"is not {kind}, and a run would replace it", help="choose another folder")
    check_folder_to_write(folder)


def captured_files(plan: Plan, folder: str, repeat: int) -> Iterator[dict[str, dict[str, str]]]:
    """Yield each captured frame's files in order, by uid: the paths, and the names below ``folder``.

    A name is ``frame_<id>/<uid>.<format>``, under ``iteration_<n>/`` when repeating. An image has a file in every
    format that can hold the whole image. Frames with equal ids get a number.
    """
    folders, file_names = FrameFolders(repeat), FileNames()
    for iteration in range(repeat):
        for frame in plan.frames:
            if frame.boundary and frame.captures:
                base = folders.name(iteration, frame.frame_id)
                files = {}
                for uid in frame.captures:
                    stem, extensions = f"{base}/{file_names.name_for(uid)}", _extensions(plan.resources[uid])
                    files[uid] = {os.path.join(folder, stem + extension): stem + extension for extension in extensions}
                yield files


def _extensions(plan: ResourcePlan) -> list[str]:
    """Return the file extensions for a resource: one for each file format that can hold it."""
    if not plan.is_image:
        return [codec_for(plan.kind).extension]
    fitting = [codec.extension for codec in CODECS if codec.holds(plan.format, plan.mips)]
    return fitting or [codec_for(plan.kind, plan.format, plan.mips).extension]


class FrameFolders:
    """Names frame folders; ask for each frame once, in order."""

    def __init__(self, repeat: int) -> None:
        self._repeat = repeat
        self._seen: Counter[tuple[int, int]] = Counter()

    def name(self, iteration: int, frame_id: int) -> str:
        """Return ``frame_<id>``, under ``iteration_<n>/`` when repeating; frames with equal ids get a number."""
        self._seen[iteration, frame_id] += 1
        name = frame_folder(frame_id, self._seen[iteration, frame_id])
        return name if self._repeat == 1 else f"iteration_{iteration}/{name}"


class ListedFiles(FileSink):
    """A sink that hashes files during writing, and then lists them. Raises FileError."""

    captures = True

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, HashedFiles())
        self._unlisted: list[dict[str, object]] = []

    @abstractmethod
    def _create_listed(self, uid: str) -> Iterator[tuple[dict[str, object], ContentWriter, range]]:
        """Create a resource's files, each with a list entry and a byte range."""

    @abstractmethod
    def _is_last(self, uid: str) -> bool:
        """Return whether the files so far get their names after this resource."""

    @abstractmethod
    def _add(self, entries: list[dict[str, object]]) -> None:
        """List files which have got their names."""

    def _create_files(self, uid: str) -> Iterator[tuple[ContentWriter, range]]:
        for entry, writer, part in self._create_listed(uid):
            self._unlisted.append(entry)
            yield writer, part

    def _complete(self, uid: str) -> None:
        if not self._is_last(uid):
            return
        done: Any = self._files.complete
        self._files.publish()
        for entry, file in zip(self._unlisted, done, strict=True):
            entry.setdefault("size_bytes", file.written_bytes)
            entry["sha256"] = file.digest.hexdigest()
        entries, self._unlisted = self._unlisted, []
        self._add(entries)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        super().__exit__(kind)
        self._files.discard()


class CaptureFiles(ListedFiles):
    """Writes captured frames to folders in ``folder``. Errors have the resource's pointer.

    Files get their names when their frame ends, so frames before a failure stay.
    """

    def __init__(self, plan: Plan, folder: str, repeat: int) -> None:
        super().__init__(plan)
        self._folder = folder
        self._repeat = repeat
        self._frames = captured_files(plan, folder, repeat)
        self._iteration = 0
        self._frame: FramePlan | None = None
        self._paths: dict[str, dict[str, str]] = {}
        self._entries: list[dict[str, object]] = []
        self._listed = 0

    def check(self) -> None:
        """Raise FileError if captures cannot be written or would overwrite the scenario's files."""
        if any(frame.captures for frame in self._plan.frames):
            is_new = not os.path.lexists(self._folder)  # a new folder has no files in the way
            files = (
                (path, uid, f"a frame of {uid!r}")
                for frame in captured_files(self._plan, self._folder, 0 if is_new else self._repeat)
                for uid, paths in frame.items()
                for path in paths
            )
            check_files(self._plan, self._folder, MANIFEST, _MARK, files)

    def frame(self, iteration: int, frame: FramePlan) -> Receive:
        """Return the receiver for captures at a boundary."""
        if not (frame.boundary and frame.captures):
            return ignore
        self._iteration, self._frame, self._paths = iteration, frame, next(self._frames)
        return self.receive

    def _create_listed(self, uid: str) -> Iterator[tuple[dict[str, object], ContentWriter, range]]:
        plan, frame = self._plan.resources[uid], self._frame
        assert frame is not None, "a frame comes before its resources"
        for path, name in self._paths[uid].items():
            entry = {
                "scenario": self._plan.name,
                "iteration": self._iteration,
                "frame_id": frame.frame_id,
                "resource": uid,
                "kind": plan.kind,
                "format": None if plan.format is None else plan.format.name,
                "shape": [plan.height, plan.width] if plan.npy is None else list(plan.npy[1]),
                "mip_levels": plan.mips if plan.is_image else None,
                "file": name,
            }
            yield entry, create_resource_file(path, plan, self._files.create), range(plan.size_bytes)

    def _is_last(self, uid: str) -> bool:
        return self._frame is not None and uid == self._frame.captures[-1]

    def _add(self, entries: list[dict[str, object]]) -> None:
        self._entries += entries
        self._list(at_least=max(1, len(self._entries) // 8))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        super().__exit__(kind)
        with suppress(FileError) if kind is not None else nullcontext():  # the run's own error matters more
            self._list(at_least=1)

    def _list(self, *, at_least: int) -> None:
        """Write the manifest if it lacks ``at_least`` files or more. Existing files from earlier runs stay listed."""
        if len(self._entries) - self._listed < at_least:
            return
        path = os.path.join(self._folder, MANIFEST)
        own = {entry["file"] for entry in self._entries}
        earlier = [
            entry
            for entry in (read_list(path, _MARK) or {"files": ()})["files"]
            if entry["file"] not in own and os.path.isfile(os.path.join(self._folder, entry["file"]))
        ]
        text = json.dumps({"kind": _MARK, "version": _VERSION, "files": [*earlier, *self._entries]}, indent=1)
        with OutputFile(path) as file:
            file.write(text.encode() + b"\n")
        self._listed = len(self._entries)
