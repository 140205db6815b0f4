"""The device of a worker: one Runner that stays open from item to item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenario_runner.runner import Runner


class Runners:
    """Gives the Runner of a worker to its task.

    Life cycle: made with the worker; the device is opened when it is first needed and stays open; closed by the end of
    the process.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        timeout_s: float,
        timeout_origin: str = "",
        announce: Callable[[float, str], None] = lambda seconds, origin: None,
    ) -> None:
        """``arguments`` are those of `Runner`. ``announce`` is told of a limit that is not ``timeout_s``."""
        self._arguments = arguments
        self._default = timeout_s, timeout_origin
        self._announce = announce
        self.limit = self._default
        """The time limit of the item that runs now in seconds, and who set it."""
        self._runners: dict[bool, Runner] = {}

    def runner(self, timeout_s: float | None = None, origin: str = "", *, robustness: bool | None = None) -> Runner:
        """The Runner for the item that runs now, which may take ``timeout_s`` as ``origin`` says (None: the default),
        with robust access to buffers and images (None: as the arguments say)."""
        self.limit = self._default if timeout_s is None else (timeout_s, origin)
        if self.limit != self._default:
            self._announce(*self.limit)
        robust = bool(self._arguments.get("robustness") if robustness is None else robustness)
        runner = self._runners.get(robust)
        if runner is None:
            from scenario_runner.runner import Runner

            runner = self._runners[robust] = Runner(**{**self._arguments, "robustness": robust})
        runner.timeout_s = self.limit[0]
        return runner

    def close(self) -> None:
        """Close the devices that are open, where the process goes on without them."""
        for runner in self._runners.values():
            runner.close()
