"""The results of a run, each handed over in one piece under the name that expectations have for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.suite.expectations.outputs import Frames

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scenario_runner.plan.model.plan import FramePlan, Plan

    Take = Callable[[str, memoryview], None]


class ResultsSink:
    """A sink of a run (`run.sink.Sink`). ``take`` is called with a name and bytes that are valid during the call.

    ``captures`` tells whether captured frames are wanted.
    """

    def __init__(self, plan: Plan, repeat: int, take: Take, *, captures: bool) -> None:
        self._plan = plan
        self._take = take
        self._frames = Frames(repeat)
        self.captures = captures

    def frame(self, iteration: int, frame: FramePlan) -> _Receiver:
        """Where the captures of a frame go."""
        folder = self._frames.name(iteration, frame.frame_id) if frame.captures else ""
        return _Receiver(self._plan, self._take, {uid: f"{folder}/{uid}" for uid in frame.captures})

    def outputs(self) -> _Receiver:
        """Where the outputs go."""
        return _Receiver(self._plan, self._take, {})


class _Receiver:
    """Takes resources in pieces; ``names`` has those that are not called by their uids."""

    def __init__(self, plan: Plan, take: Take, names: Mapping[str, str]) -> None:
        self._plan = plan
        self._take = take
        self._names = names
        self._held = bytearray()

    def receive(self, uid: str, view: memoryview) -> None:
        """The next piece of a resource; most come in one."""
        size = self._plan.resources[uid].size_bytes
        if view.nbytes == size:
            self._take(self._names.get(uid, uid), view.cast("B") if size else memoryview(b""))
            return
        self._held += view
        if len(self._held) == size:
            held, self._held = self._held, bytearray()
            self._take(self._names.get(uid, uid), memoryview(held))

    def finish(self) -> None:
        """All is there; nothing to do."""
