"""Sinks receive a run's results. `OutputFiles` writes outputs to the scenario's ``dst`` files.

A run's files get their names together, after a good run. Every run checks the files on disk first, even with a
plan from the plan cache.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Self, TypeAlias

from scenario_runner.errors import FileError, SandboxError, error_of, log
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import one_line
from scenario_runner.files.codec import ArrayCodec, ContentWriter
from scenario_runner.files.codec_table import codec_of, create_image
from scenario_runner.files.output import CreateOutput, OutputSet, check_destination, marker_path
from scenario_runner.plan.plan import FramePlan, Plan, ResourcePlan
from scenario_runner.processes import progress

Receive: TypeAlias = Callable[[str, memoryview], None]
"""Takes a resource's uid and next bytes, which are valid during the call. All bytes for a resource come
before the next resource."""


def ignore(uid: str, view: memoryview) -> None:
    """Drop bytes."""


def share(pieces: Iterable[tuple[str, memoryview]], receivers: list[Receive]) -> None:
    """Hand every piece to every receiver."""
    for uid, view in pieces:
        for receive in receivers:
            receive(uid, view)


class Sink:
    """The receiver for a run's results, and a context manager around the run. This base class ignores the results.

    ``captures`` is true if the sink takes frames.
    """

    captures = False

    def check(self) -> None:
        """Raise ScenarioRunnerError before the run if a file cannot be written."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Complete the results, or remove them after an error."""

    def frame(self, iteration: int, frame: FramePlan) -> Receive:
        """Return the receiver for a frame's captures."""
        return ignore

    def outputs(self) -> Receive:
        """Return the receiver for outputs."""
        return ignore


def create_resource_file(
    path: str, plan: ResourcePlan, create: CreateOutput, array: tuple[str, tuple[int, ...]] | None = None
) -> ContentWriter:
    """Create a resource's file in the format ``path`` names. Raise FileError.

    ``array`` is the NumPy type and shape for an image part in a separate file.
    """
    array = plan.npy or array
    if array is not None:
        codec = codec_of(path, plan.kind)
        assert isinstance(codec, ArrayCodec), "other codecs hold no items of a type"
        return codec.create_array(path, *array, create)
    assert plan.is_image, "all other resources have an array type"
    return create_image(path, plan.format, plan.width, plan.height, plan.plane_sizes_bytes, create=create)


class FileSink(Sink):
    """A sink that writes each resource's files as a single set."""

    def __init__(self, plan: Plan, files: OutputSet, key: str = "") -> None:
        """``key`` follows the resource's pointer in errors."""
        self._plan = plan
        self._files = files
        self._key = key
        self._open: list[tuple[ContentWriter, range]] = []
        self._missing_bytes = 0

    @abstractmethod
    def _create_files(self, uid: str) -> Iterator[tuple[ContentWriter, range]]:
        """Create a resource's files in turn, each with a range in the resource's bytes."""

    def _complete(self, uid: str) -> None:
        """Handle a resource's complete files."""

    def receive(self, uid: str, view: memoryview) -> None:
        """Write a resource's next bytes. Raise FileError with the resource's pointer."""
        resource = self._plan.resources[uid]
        try:
            with progress.phase("store", "file", uid):
                if not self._missing_bytes:
                    self._missing_bytes = resource.size_bytes
                    for file in self._create_files(uid):  # `__exit__` discards these if the next file fails
                        self._open.append(file)
                begin = resource.size_bytes - self._missing_bytes
                for writer, part in self._open:
                    writer.write(view[max(part.start - begin, 0) : max(part.stop - begin, 0)])
                self._missing_bytes -= len(view)
                if not self._missing_bytes:
                    while self._open:
                        self._open.pop(0)[0].__exit__(None, None, None)
                    self._complete(uid)
        except FileError as error:
            raise at_resource(error, f"{resource.pointer}{self._key}") from error.__cause__

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Discard incomplete files."""
        open_files, self._open = self._open, []
        for file in open_files:
            with suppress(FileError):
                file[0].__exit__(KeyboardInterrupt, None, None)


class OutputFiles(FileSink):
    """Writes a plan's outputs to the files in ``dst``. Raises FileError.

    The files get their names together after a good run; a failed run leaves none.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, OutputSet(), "/dst")
        self._paths = {uid: path for uid, path in plan.outputs if path is not None}

    def check(self) -> None:
        """Raise ScenarioError or FileError if a ``dst`` cannot be written or the scenario reads it."""
        if self._paths:
            wrong = list(wrong_destinations(self._plan))
            if wrong:
                raise error_of(wrong)
            mixed = mixed_outputs(self._plan)
            if mixed is not None:
                log.warning(__name__, "%s", mixed._replace(path=self._plan.name))

    def outputs(self) -> Receive:
        return self.receive

    def _create_files(self, uid: str) -> Iterator[tuple[ContentWriter, range]]:
        path, resource = self._paths.get(uid), self._plan.resources[uid]
        if path is not None:
            yield create_resource_file(path, resource, self._files.create), range(resource.size_bytes)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        super().__exit__(kind)
        with progress.phase("store", "names"):
            self._files.__exit__(kind)


def wrong_destinations(plan: Plan) -> Iterator[Diagnostic]:
    """Find each unwritable ``dst``, and each ``dst`` read by the scenario or shared by two resources.

    Links and other names for an existing file count as the same file.
    """
    inputs = set(map(file_key, plan.reads))
    first: dict[str, str] = {}
    pointers: dict[str, str] = {}
    for uid, path in plan.outputs:
        if path is None:
            continue
        resource = plan.resources[uid]
        pointer = f"{resource.pointer}/dst"
        if file_key(path) in inputs:
            message = f"the dst {path!r} of resource {uid!r} is a file that the scenario reads"
            yield Diagnostic(
                "SR-FILE-003", "error", pointer, message, "choose another name: a run would overwrite the file"
            )
            continue
        try:
            codec_of(path, resource.kind)
            check_destination(path)
        except SandboxError:
            continue  # planning has reported it
        except FileError as error:
            yield from (at_pointer(problem, pointer) for problem in error.problems)
            continue
        file = os.path.realpath(path)  # writing follows a symbolic link
        if first.setdefault(file, uid) != uid:
            message = f"resources {first[file]!r} and {uid!r} have the same dst {path!r}"
            yield Diagnostic("SR-FILE-003", "error", pointer, message)
        pointers[file] = pointer
    for file in first:
        above = os.path.dirname(file)
        while above not in first and above != os.path.dirname(above):
            above = os.path.dirname(above)
        if above in first:
            below = f"lies below that of resource {first[above]!r}, which is a file"
            yield Diagnostic("SR-FILE-003", "error", pointers[file], f"the dst of resource {first[file]!r} {below}")


def mixed_outputs(plan: Plan) -> Diagnostic | None:
    """Make a warning if the output files come from two runs: a process was killed while it replaced them."""
    paths = {uid: path for uid, path in plan.outputs if path is not None}
    marker = marker_path(paths.values())
    if marker is None or not os.path.lexists(marker):
        return None
    message = f"the output files come from two runs: a run was killed while it replaced them, and left {marker!r}"
    pointer = f"{plan.resources[next(iter(paths))].pointer}/dst"
    return Diagnostic("SR-FILE-005", "warning", pointer, message, "run the scenario again")


def at_resource(error: FileError, pointer: str) -> FileError:
    """Move a file's problems to the resource with this pointer."""
    error.problems = tuple(at_pointer(problem, pointer) for problem in error.problems)
    return error


def at_pointer(problem: Diagnostic, pointer: str) -> Diagnostic:
    """Move a file's problem to the scenario entry naming the file."""
    message = f"{one_line(problem.path or '')}: {problem.message}"
    return Diagnostic(problem.code, "error", pointer, message, problem.help)


def file_key(path: str) -> tuple[int, int] | str:
    """Return a key shared by all names for a file: device and inode, or the absolute path of a missing file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.abspath(path)
    return status.st_dev, status.st_ino


def taken_files(plan: Plan) -> dict[str, str]:
    """Map the real paths of a scenario's files to "reads" or "writes"."""
    taken = {os.path.realpath(path): "reads" for path in plan.reads}
    return taken | {os.path.realpath(path): "writes" for _, path in plan.outputs if path is not None}
