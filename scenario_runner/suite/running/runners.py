"""The device of a worker: one Runner that stays open from item to item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scenario_runner.runner import Runner

# A wait for the device ends so long before the item's time is over, or after half of it: there is to be time for the
# error that says which work did not finish.
_SHARE: Final = 0.1
_LEAST_S: Final = 2.0


class Runners:
    """Gives the Runner of a worker to its task.

    Life cycle: made with the worker; the device is opened when it is first needed and stays open; closed by the end of
    the process.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        timeout_s: float,
        announce: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """``arguments`` are those of `Runner`. ``announce`` is told of a limit that is not ``timeout_s``."""
        self._arguments = arguments
        self._timeout_s = timeout_s
        self._announce = announce
        self._runners: dict[bool, Runner] = {}

    def runner(self, timeout_s: float | None = None, *, robustness: bool | None = None) -> Runner:
        """The Runner for the item that runs now, which may take ``timeout_s`` in all (None: the default), with robust
        access to buffers and images (None: as the arguments say).

        The limit counts from the start of the item; whoever runs the worker ends it when the item takes longer.
        """
        if timeout_s is not None and timeout_s != self._timeout_s:
            self._announce(timeout_s)
        limit = timeout_s or self._timeout_s
        robust = bool(self._arguments.get("robustness") if robustness is None else robustness)
        runner = self._runners.get(robust)
        if runner is None:
            from scenario_runner.runner import Runner

            runner = self._runners[robust] = Runner(**{**self._arguments, "robustness": robust})
        runner.timeout_s = limit - min(max(_SHARE * limit, _LEAST_S), limit / 2)
        return runner

    def close(self) -> None:
        """Close the devices that are open, where the process goes on without them."""
        for runner in self._runners.values():
            runner.close()
