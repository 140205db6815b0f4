"""Starting the Vulkan driver beside other work.

Drivers spend most of their start in C, where Python does not run, so the command line starts one before it imports what
reads arguments and scenarios. This module is what it imports first: it must stay small.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.vulkan.instance import Instance
    from scenario_runner.vulkan.ml_start import Warm

# How the names of resources and commands end that need tensors or graphs.
_ML_WORDS = (b'tensor"', b'graph"', b'_vgf"')
_LOOKED_AT_BYTES = 1 << 20


class InstanceStart:
    """Makes a Vulkan instance on a thread of its own; `result` waits for it.

    The thread is a daemon: a process that turns out to need no device just ends.
    """

    def __init__(self, *, validation: bool = False, files: Sequence[str] = ()) -> None:
        """``files`` are the scenarios that will run: where one seems to need tensors or graphs, and the device does not
        have them, a device through the ML emulation layers is opened as well, for `warm`."""
        self.validation = validation
        self._files = files
        self._instance: Instance | None = None
        self._warm: Warm | None = None
        self._made = threading.Event()
        self._error: BaseException | None = None
        # Imported here and not on the thread: there it would wait for its turn with the interpreter again and again.
        from scenario_runner.vulkan.instance import Instance

        self._make = Instance
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
            self._instance = self._make(validation=self.validation)
        except BaseException as error:  # raised again by result()
            self._error = error
