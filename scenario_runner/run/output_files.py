"""Sinks of results, and the files that outputs and captured frames are written to: complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from scenario_runner import log, progress
from scenario_runner.errors import error_of
from scenario_runner.files.codec import ContentWriter
from scenario_runner.files.output import OutputSet
from scenario_runner.plan.destinations import mixed_outputs, wrong_destinations
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.run.resource_files import ResourceWriter, create_resource_file

if TYPE_CHECKING:
    from scenario_runner.run.capture_files import CaptureFiles


class Receiver(Protocol):
    """Takes resources one after the other, each in pieces that are valid during the call."""

    def receive(self, uid: str, view: memoryview) -> None:
        """The next piece of a resource."""

    def finish(self) -> None:
        """All is there."""


class Sink(Protocol):
    """The receiver of a run's results."""

    @property
    def captures(self) -> bool:
        """Return whether frames are wanted."""

    def frame(self, iteration: int, frame: FramePlan) -> Receiver:
        """Open the receiver of the captures of a frame."""

    def outputs(self) -> Receiver:
        """Open the receiver of the outputs."""


class FileWriter:
    """Writes the outputs of a plan where their ``dst`` says, and captured frames into folders of ``capture_dir``.

    A context manager: outputs get their names when the block ends well, and none does when it fails. Captures get
    theirs as their frames end, so that those before a failure can be looked at. Raises FileError.
    """

    def __init__(
        self, plan: Plan, *, outputs: bool = True, capture_dir: str | os.PathLike[str] | None = None, repeat: int = 1
    ) -> None:
        self._plan = plan
        self._destinations = {
            output.uid: output.destination for output in plan.outputs if outputs and output.destination is not None
        }
        self._capture_dir = None if capture_dir is None else os.fspath(capture_dir)
        self._repeat = repeat
        self._captured: CaptureFiles | None = None
        self._pending = OutputSet()
        self._writer: ResourceWriter | None = None

    @property
    def captures(self) -> bool:
        """Return whether frames are wanted."""
        return self._capture_dir is not None

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
        if self._capture_dir is not None and any(frame.captures for frame in self._plan.frames):
            from scenario_runner.run.capture_files import check_captures

            check_captures(self._plan, self._capture_dir, self._repeat)

    def frame(self, iteration: int, frame: FramePlan) -> Receiver:
        """Takes the captures of one frame; see `capture_files`."""
        if self._capture_dir is None or not frame.captures:
            return ResourceWriter(self._plan, lambda uid: ())
        if self._captured is None:
            from scenario_runner.run.capture_files import CaptureFiles

            self._captured = CaptureFiles(self._plan, self._capture_dir, self._repeat)
        return self._captured.frame(iteration, frame)

    def outputs(self) -> Receiver:
        """Open the receiver of the outputs of the run."""
        self._writer = _OutputWriter(self._plan, self._open, "/dst")
        return self._writer

    def _open(self, uid: str) -> Iterator[ContentWriter]:
        path = self._destinations.get(uid)
        if path is not None:
            yield create_resource_file(path, self._plan.resources[uid], self._pending.create)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.discard()
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


class _OutputWriter(ResourceWriter):
    """Writes outputs; the time counts as that of storing them."""

    def receive(self, uid: str, view: memoryview) -> None:
        with progress.phase("store", "file", uid):
            super().receive(uid, view)


def share(pieces: Any, receivers: list[Any]) -> None:
    """Hand every piece to every receiver, then tell them that all is there."""
    for uid, view in pieces:
        for receiver in receivers:
            receiver.receive(uid, view)
    for receiver in receivers:
        receiver.finish()
