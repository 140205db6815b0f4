"""Sinks of results, and the files that outputs and captured frames are written to: complete or not at all."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from scenario_runner import log, progress
from scenario_runner.errors import FileError, error_of
from scenario_runner.files.output import CreateOutput, OutputFile, OutputSet
from scenario_runner.run.resource_files import create_resource_file

if TYPE_CHECKING:
    from scenario_runner.files.codec import ContentWriter
    from scenario_runner.plan.model.plan import FramePlan, Plan
    from scenario_runner.run.capture_files import CaptureFiles, CaptureReceiver


class Receiver(Protocol):
    """Takes resources one after the other, each in pieces that are valid during the call."""

    def receive(self, uid: str, view: memoryview) -> None:
        """The next piece of a resource."""

    def finish(self) -> None:
        """All is there."""


class Sink(Protocol):
    """What a run is given to put its results into."""

    @property
    def captures(self) -> bool:
        """Whether frames are wanted."""

    def frame(self, iteration: int, frame: FramePlan) -> Receiver:
        """Where the captures of a frame go."""

    def outputs(self) -> Receiver:
        """Where the outputs go."""


class FileWriter:
    """Writes the outputs of a plan where their ``dst`` says, and captured frames into folders of ``capture_dir``.

    A context manager: outputs get their names when the block ends well, and none does when it fails. Captures get
    theirs as their frames end, so that those before a failure can be looked at. Raises FileError.
    """

    def __init__(self, plan: Plan, *, outputs: bool = True, capture_dir: str | None = None, repeat: int = 1) -> None:
        self._plan = plan
        self._destinations = {
            output.uid: output.destination for output in plan.outputs if outputs and output.destination is not None
        }
        self._capture_dir = capture_dir
        self._repeat = repeat
        self._captured: CaptureFiles | None = None
        self._pending = OutputSet()
        self._latest: _Files | None = None

    @property
    def captures(self) -> bool:
        """Whether frames are wanted."""
        return self._capture_dir is not None

    def check(self) -> None:
        """Refuse files that cannot be written, or that the scenario reads: before the work, not after it.

        The problems of outputs have pointers into the scenario. Raises ScenarioError and FileError.
        """
        from scenario_runner.plan.destinations import mixed_outputs, wrong_destinations

        if self._destinations:
            wrong = list(wrong_destinations(self._plan))
            if wrong:
                raise error_of(wrong)
            mixed = mixed_outputs(self._plan)
            if mixed is not None:
                log.warning(__name__, "%s", mixed._replace(path=self._plan.name))
        if self._capture_dir is not None and any(frame.captures for frame in self._plan.frames):
            from scenario_runner.run.capture_files import check_captures

            check_captures(self._plan, self._capture_dir, self._repeat, self._destinations)

    def frame(self, iteration: int, frame: FramePlan) -> _Files | CaptureReceiver:
        """Takes the captures of one frame; see `capture_files`."""
        if self._capture_dir is None or not frame.captures:
            return self._files(lambda uid: None, OutputFile, "")
        if self._captured is None:
            from scenario_runner.run.capture_files import CaptureFiles

            self._captured = CaptureFiles(self._plan, self._capture_dir, self._repeat)
        return self._captured.frame(iteration, frame)

    def outputs(self) -> _Files:
        """Where the outputs of the run go."""
        return self._files(self._destinations.get, self._pending.create, "/dst")

    def _files(self, path_of: Callable[[str], str | None], create: CreateOutput, key: str) -> _Files:
        self._latest = _Files(self._plan, path_of, create, key)
        return self._latest

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._latest is not None:
            self._latest.discard_unfinished()
        captured, self._captured = self._captured, None
        try:
            if captured is not None:
                captured.close()
        except BaseException as failure:
            self._pending.__exit__(type(failure), failure, None)
            if kind is None:
                raise
            return  # what ended the block came first
        with progress.phase("store", "names"):
            self._pending.__exit__(kind, error, traceback)


class _Files:
    """Takes pieces of resources, in order, and writes each resource to its file.

    ``key`` is what the JSON pointers of problems end with, after the pointer of the resource.
    """

    def __init__(self, plan: Plan, path_of: Callable[[str], str | None], create: CreateOutput, key: str) -> None:
        self._key = key
        self._plan = plan
        self.path_of = path_of
        self._create = create
        self._writer: ContentWriter | None = None
        self._left = 0

    def receive(self, uid: str, view: memoryview) -> None:
        """Write a piece. Raises FileError with the pointer of the resource."""
        try:
            with progress.phase("store", "file", uid):
                self._receive(uid, view)
        except FileError as error:
            from scenario_runner.plan.destinations import at_pointer

            pointer = f"{self._plan.resources[uid].pointer}{self._key}"
            error.problems = tuple(at_pointer(problem, pointer) for problem in error.problems)
            raise

    def _receive(self, uid: str, view: memoryview) -> None:
        if self._left == 0:
            self._left = self._plan.resources[uid].size_bytes
            path = self.path_of(uid)
            self._writer = None if path is None else create_resource_file(path, self._plan.resources[uid], self._create)
        self._left -= len(view)
        writer = self._writer
        if writer is None:
            return
        try:
            writer.write(view)
        except BaseException as error:
            self._writer = None
            writer.__exit__(type(error), error, None)
            raise
        if self._left == 0:
            self._writer = None
            writer.__exit__(None, None, None)

    def finish(self) -> None:
        """All is there; nothing to do."""

    def discard_unfinished(self) -> None:
        """Remove a file whose last pieces never came."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.__exit__(KeyboardInterrupt, None, None)


def share(pieces: Any, receivers: list[Any]) -> None:
    """Hand every piece to every receiver, then tell them that all is there."""
    for uid, view in pieces:
        for receiver in receivers:
            receiver.receive(uid, view)
    for receiver in receivers:
        receiver.finish()
