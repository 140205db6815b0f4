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
import os
import struct  # noqa: F401
import threading
import zlib  # noqa: F401
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scenario_runner import system_limits

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Warm
    from scenario_runner.vulkan.devices.instance import Checks, Instance

# How the names of resources and commands end that need tensors or graphs.
_ML_WORDS = (b'tensor"', b'graph"', b'_vgf"')
_LOOKED_AT_BYTES = 1 << 20


class InstanceStart:
    """Makes a Vulkan instance on a thread of its own; `result` waits for it.

    The thread is a daemon: a process that turns out to need no device just ends.
    """

    def __init__(self, *, validation: Checks = False, labels: bool = False, files: Sequence[str] = ()) -> None:
        """``files`` are the scenarios that will run: where one seems to need tensors or graphs, and the device does not
        have them, a device through the ML emulation layers is opened as well, for `warm`."""
        self.validation = validation
        self.labels = labels
        self._files = files
        self._instance: Instance | None = None
        self._warm: Warm | None = None
        self._made = threading.Event()
        self._error: BaseException | None = None
        # Imported here and not on the thread: there it would wait for its turn with the interpreter again and again.
        from scenario_runner.vulkan.devices.instance import Instance

        self._make = Instance
        self._thread = threading.Thread(target=self._run, name="driver-start", daemon=True)
        system_limits.start(self._thread)

    def result(self) -> Instance:
        """The instance. Raises what making it raised (NoDeviceError, mostly), each time it is asked."""
        self._made.wait()
        if self._error is not None:
            raise self._error
        assert self._instance is not None
        return self._instance

    def warm(self) -> Warm | None:
        """The device through the ML emulation layers, once; waits for it. None where none was opened."""
        self._thread.join()
        warm, self._warm = self._warm, None
        return warm

    def _run(self) -> None:
        try:
            self._instance = self._make(validation=self.validation, labels=self.labels)
        except BaseException as error:  # raised again by result()
            self._error = error
            return
        finally:
            self._made.set()
        if mention_ml(self._files):
            from scenario_runner.vulkan.devices.device import open_warm

            self._warm = open_warm(self._instance, validation=self.validation)


def mention_ml(files: Sequence[str]) -> bool:
    """Return whether one of these scenarios or models seems to have tensors or graphs: a guess from the text alone."""
    for path in files:
        if path.lower().endswith(".vgf"):
            return True
        try:
            if not os.path.isfile(path):
                continue  # what is read from a pipe is gone
            with open(path, "rb") as file:
                text = file.read(_LOOKED_AT_BYTES)
        except (OSError, ValueError):
            continue
        if any(word in text for word in _ML_WORDS):
            return True
    return False
