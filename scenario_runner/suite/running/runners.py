"""The device of a worker: one Runner that stays open from item to item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scenario_runner.runner import Runner

# Of an item's time, how long a wait for the device may take: the rest is for what comes before and after it.
_SHARE_OF_FENCE: Final = 0.9


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
        from scenario_runner.runner import Runner

        self._timeout_s = timeout_s
        self._announce = announce
        self._arguments = arguments
        self._runners = {False: Runner(**arguments)}

    def runner(self, timeout_s: float | None = None, *, robustness: bool = False) -> Runner:
        """The Runner for the item that runs now, which may take ``timeout_s`` in all (None: the default).

        The limit counts from this call; whoever runs the worker ends it when the item takes longer. ``robustness`` asks
        for a device that is opened so; both stay open.
        """
        if timeout_s is not None and timeout_s != self._timeout_s:
            self._announce(timeout_s)
        if robustness not in self._runners:
            from scenario_runner.runner import Runner

            self._runners[robustness] = Runner(**{**self._arguments, "robustness": True})
        runner = self._runners[robustness]
        runner.timeout_s = (timeout_s or self._timeout_s) * _SHARE_OF_FENCE
        return runner

    def close(self) -> None:
        """Close what is open; a later item opens its device again."""
        for runner in self._runners.values():
            runner.close()
