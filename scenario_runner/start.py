"""Starting the Vulkan driver beside other work.

Drivers spend most of their start in C, where Python does not run, so the command line starts one before it imports what
reads scenarios. This module is what it imports first: it must stay small.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.vulkan.instance import Instance
    from scenario_runner.vulkan.physical_device import PhysicalDevice


class InstanceStart:
    """Makes the instance and chooses the device on a thread of its own; `result` waits for both."""

    def __init__(self, device: str | None = None, *, validation: bool = False) -> None:
        self._device = device
        self._validation = validation
        self._result: tuple[Instance, PhysicalDevice] | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="driver-start", daemon=True)
        self._thread.start()

    def result(self) -> tuple[Instance, PhysicalDevice]:
        """The instance and the chosen device. Raises NoDeviceError, each time it is asked."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def _run(self) -> None:
        try:
            self._result = open_instance(self._device, validation=self._validation)
        except BaseException as error:  # raised again by result()
            self._error = error


def open_instance(device: str | None, *, validation: bool) -> tuple[Instance, PhysicalDevice]:
    """Make the instance and choose the device. Raises NoDeviceError."""
    from scenario_runner.vulkan.instance import Instance
    from scenario_runner.vulkan.physical_device import choose

    instance = Instance(validation=validation)
    try:
        return instance, choose(instance.physical_devices, device)
    except BaseException:
        instance.close()
        raise
