"""Starting the Vulkan driver beside other work.

Drivers spend most of their start in C, where Python does not run, so the command line starts one before it imports what
reads arguments and scenarios. This module is what it imports first: it must stay small.
"""

from __future__ import annotations

# Loading a driver holds the dynamic loader's lock, so the extension modules that a plain run needs come before.
import _pickle  # noqa: F401
import array  # noqa: F401
import contextvars  # noqa: F401
import math  # noqa: F401
import struct  # noqa: F401
import threading
import zlib  # noqa: F401

from scenario_runner import system_limits
from scenario_runner.vulkan.device import Checks, Instance


class InstanceStart:
    """Makes a Vulkan instance on a thread of its own; `result` waits for it.

    The thread is a daemon: a process that turns out to need no device just ends.
    """

    def __init__(self, *, validation: Checks = False, labels: bool = False) -> None:
        self.validation = validation
        self.labels = labels
        self._instance: Instance | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="driver-start", daemon=True)
        system_limits.start(self._thread)

    def result(self) -> Instance:
        """The instance. Raises what making it raised (NoDeviceError, mostly), each time it is asked."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._instance is not None
        return self._instance

    def _run(self) -> None:
        try:
            self._instance = Instance(validation=self.validation, labels=self.labels)
        except BaseException as error:  # raised again by result()
            self._error = error
