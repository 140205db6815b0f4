"""Sinks, which receive the results of a run, and the files that outputs are written to: complete or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Self, TypeAlias

from scenario_runner.errors import FileError, error_of, log
from scenario_runner.files.codec import ContentWriter, codec_of, create_image
from scenario_runner.files.output import CreateOutput, OutputSet
from scenario_runner.plan.destinations import at_pointer, mixed_outputs, wrong_destinations
from scenario_runner.plan.plan import FramePlan, Plan, ResourcePlan
from scenario_runner.processes import progress

# Takes the uid of a resource and its next piece, valid during the call; one resource comes after the other.
Receive: TypeAlias = Callable[[str, memoryview], None]


def ignore(uid: str, view: memoryview) -> None:
    """Take a piece that nobody wants."""


def share(pieces: Iterable[tuple[str, memoryview]], receivers: list[Receive]) -> None:
    """Hand every piece to every receiver."""
    for uid, view in pieces:
        for receive in receivers:
            receive(uid, view)


class Sink:
    """The receiver of a run's results, and a context manager around the run; this one ignores the results.

    ``captures`` tells whether frames are wanted.
    """

    captures = False

    def check(self) -> None:
        """Refuse files that cannot be written, before the run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Complete what was received, or remove it."""

    def frame(self, iteration: int, frame: FramePlan) -> Receive:
        """Open the receiver of the captures of a frame."""
        return ignore

    def outputs(self) -> Receive:
        """Open the receiver of the outputs."""
        return ignore


def create_resource_file(path: str, plan: ResourcePlan, create: CreateOutput) -> ContentWriter:
    """Open the writer of the bytes of a resource to a file of the format that ``path`` names. Raises FileError."""
    if plan.npy is not None:
        return codec_of(path, plan.kind).create_array(path, *plan.npy, create)
    return create_image(path, plan.format, plan.width, plan.height, plan.plane_sizes_bytes, create=create)


def at_resource(error: FileError, pointer: str) -> FileError:
    """Give problems of a file the JSON pointer of the resource whose file it is."""
    error.problems = tuple(at_pointer(problem, pointer) for problem in error.problems)
    return error


class ResourceWriter:
    """Writes each resource that it receives to its files.

    ``open_files`` gives the writers of a resource, by its uid, each with the number of bytes that it takes: all of the
    resource, or the next part of it. ``complete`` is called when its files are. ``key`` ends the JSON pointers of
    problems, after the pointer of the resource.
    """

    def __init__(
        self,
        plan: Plan,
        open_files: Callable[[str], Iterable[tuple[ContentWriter, range]]],
        complete: Callable[[str], None] = lambda uid: None,
        key: str = "",
    ) -> None:
        self._plan = plan
        self._open_files = open_files
        self._complete = complete
        self._key = key
        self._files: list[tuple[ContentWriter, range]] = []
        self._left = 0

    def receive(self, uid: str, view: memoryview) -> None:
        """Write a piece. Raises FileError with the pointer of the resource."""
        resource = self._plan.resources[uid]
        try:
            with progress.phase("store", "file", uid):
                if not self._left:
                    self._left = resource.size_bytes
                    for file in self._open_files(uid):  # one by one: discarded where the next cannot be made
                        self._files.append(file)
                begin = resource.size_bytes - self._left
                for writer, part in self._files:
                    writer.write(view[max(part.start - begin, 0) : max(part.stop - begin, 0)])
                self._left -= len(view)
                if not self._left:
                    while self._files:
                        self._files.pop(0)[0].__exit__(None, None, None)
                    self._complete(uid)
        except FileError as error:
            raise at_resource(error, f"{resource.pointer}{self._key}") from error.__cause__

    def discard(self) -> None:
        """Remove files whose last pieces never came."""
        files, self._files = self._files, []
        for writer, _ in files:
            with suppress(FileError):
                writer.__exit__(KeyboardInterrupt, None, None)


class FileWriter(Sink):
    """Writes the outputs of a plan where their ``dst`` says: they get their names when the run ends well, and none does
    when it fails. Raises FileError."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._destinations = {
            output.uid: output.destination for output in plan.outputs if output.destination is not None
        }
        self._pending = OutputSet()
        self._writer = ResourceWriter(plan, self._open, key="/dst")

    def check(self) -> None:
        """Refuse files that cannot be written, or that the scenario reads: before the work, not after it.

        The problems of outputs have pointers into the scenario. Raises ScenarioError and FileError.
        """
        if self._destinations:
            wrong = list(wrong_destinations(self._plan))
            if wrong:
                raise error_of(wrong)
            mixed = mixed_outputs(self._plan)
            if mixed is not None:
                log.warning(__name__, "%s", mixed._replace(path=self._plan.name))

    def outputs(self) -> Receive:
        """Open the receiver of the outputs of the run."""
        return self._writer.receive

    def _open(self, uid: str) -> Iterator[tuple[ContentWriter, range]]:
        path, resource = self._destinations.get(uid), self._plan.resources[uid]
        if path is not None:
            yield create_resource_file(path, resource, self._pending.create), range(resource.size_bytes)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._writer.discard()
        with progress.phase("store", "names"):
            self._pending.__exit__(kind)
