"""What takes the results of a run, as they come from the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import FramePlan


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
