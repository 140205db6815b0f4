"""Starting the Vulkan driver beside other work.

Drivers spend most of their start in C, where Python does not run, so the command line starts one before it imports what
reads arguments and scenarios. This module is what it imports first: it must stay small.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.vulkan.instance import Instance


class InstanceStart:
    """Makes a Vulkan instance on a thread of its own; `result` waits for it.

    The thread is a daemon: a process that turns out to need no device just ends.
    """

    def __init__(self, *, validation: bool = False) -> None:
        self.validation = validation
        self._instance: Instance | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="driver-start", daemon=True)
        self._thread.start()

    def result(self) -> Instance:
        """The instance. Raises what making it raised (NoDeviceError, mostly), each time it is asked."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._instance is not None
        return self._instance

    def _run(self) -> None:
        try:
            from scenario_runner.vulkan.instance import Instance

            self._instance = Instance(validation=self.validation)
        except BaseException as error:  # raised again by result()
            self._error = error
