"""The device of a Runner: chosen and opened when it is first needed, and again when more is needed of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner import log, progress
from scenario_runner.errors import DeviceError, UnsupportedError
from scenario_runner.plan.limits import NAMES, exceeded_limits

if TYPE_CHECKING:
    from scenario_runner.plan.model import Plan
    from scenario_runner.start import InstanceStart
    from scenario_runner.vulkan.device import Device
    from scenario_runner.vulkan.instance import Instance
    from scenario_runner.vulkan.ml_emulation import Mode
    from scenario_runner.vulkan.ml_start import Warm
    from scenario_runner.vulkan.physical_device import PhysicalDevice


class DeviceOptions(NamedTuple):
    """Which device to use and how to open it.

    ``device`` is an index, a UUID or (part of) a name; None takes the fastest kind there is. ``robustness`` asks for
    robust buffer and image access where the device has it. ``disabled_extensions`` are never enabled. ``validation``
    loads the Khronos validation layer. ``ml_emulation`` tells when tensors and graphs run through emulation layers:
    "auto" (where the device lacks them), "on" or "off". ``staging`` moves all bytes by copies on the device, as
    devices with memory of their own need it, also where the host could read and write resources in place.
    ``instrument`` asks for shader instrumentation, which the device must have then.
    """

    device: str | None = None
    robustness: bool = False
    disabled_extensions: frozenset[str] = frozenset()
    validation: bool = False
    ml_emulation: Mode = "auto"
    staging: bool = False
    instrument: bool = False


class OpenedDevice:
    """Instance, physical device and device.

    Life cycle: the instance is made and the physical device chosen when either is first asked for (``starting``: an
    instance that is being made already); `device_for` opens the device with what the first plan requires, and anew when
    a later plan requires more; `close` destroys everything.
    """

    def __init__(self, options: DeviceOptions, starting: InstanceStart | None = None) -> None:
        self._options = options
        self._starting = starting
        self._started: InstanceStart | None = None
        self._opened: tuple[Instance, PhysicalDevice] | None = None
        self._device: Device | None = None
        self._live: dict[str, int] = {}
        self.messages: list[str] = []

    @property
    def physical_device(self) -> PhysicalDevice:
        """The chosen physical device. Raises NoDeviceError."""
        return self._open()[1]

    @property
    def live_objects(self) -> dict[str, int]:
        """How many device objects of each kind exist now; all zero after `close`."""
        return self._live if self._device is None else dict(self._device.live)

    def close(self) -> None:
        """Destroy the device and the instance; calling it again does nothing, and a later `run` opens both anew."""
        abandoned = self._device is not None and self._device.abandoned
        if self._device is not None:
            self._device.close()
            self._live = dict(self._device.live)
            self._device = None
        self._starting = None
        opened, self._opened = self._opened, None
        if opened is not None and not abandoned:
            opened[0].close()

    def _open(self) -> tuple[Instance, PhysicalDevice]:
        if self._opened is None:
            from scenario_runner.vulkan.instance import Instance
            from scenario_runner.vulkan.physical_device import choose

            progress.doing("starting the driver")
            starting, self._starting = self._starting, None
            self._started = starting
            if starting is not None and starting.validation == self._options.validation:
                instance = starting.result()
            else:
                instance = Instance(validation=self._options.validation)
            self.messages = instance.validation_messages
            try:
                self._opened = instance, choose(instance.physical_devices, self._options.device)
            except BaseException:
                instance.close()
                raise
        return self._opened

    def _instance_for(self, plan: Plan) -> tuple[Instance, PhysicalDevice]:
        """The instance, made anew with the ML emulation layers where the plan and the device need them."""
        instance, physical = self._open()
        needed = plan.requirements.ml_extensions
        if not needed or instance.layers:
            return instance, physical
        from scenario_runner.vulkan.ml_emulation import reopen, wanted_layers

        progress.doing("starting the emulation layers")
        layers = wanted_layers(physical, needed, self._options.ml_emulation)
        started, self._started = self._started, None
        warm = started.warm() if layers and started is not None else None
        if warm is not None:
            if self._take(warm, physical):
                instance.close()
                self.messages = warm.instance.validation_messages
                return warm.instance, warm.physical
            warm.close()
        if layers:
            if self._device is not None:
                self._device.close()
                self._device = None
            self._opened = reopen(instance, physical, layers, validation=self._options.validation)
            self.messages = self._opened[0].validation_messages
            return self._opened
        return instance, physical

    def _take(self, warm: Warm, physical: PhysicalDevice) -> bool:
        """Take over a device that was opened ahead of time, if it is the one that was chosen."""
        same = (warm.physical.index, warm.physical.uuid) == (physical.index, physical.uuid)
        if not same or self._device is not None or self._options.staging:
            return False
        self._opened = warm.instance, warm.physical
        self._device = warm.device
        return True

    def device_for(self, plan: Plan) -> Device:
        """The open device, opened anew where the plan needs more than it was opened with."""
        from scenario_runner.vulkan.device import Device
        from scenario_runner.vulkan.requirements import enabled_for

        instance, physical = self._instance_for(plan)
        beyond = exceeded_limits(plan, {name: _limit(physical.limits, name) for name in NAMES}, physical.name)
        for finding in beyond:
            if finding.severity != "error":
                log.warning(__name__, "%s", finding.message)
        problems = [finding.problem() for finding in beyond if finding.severity == "error"]
        if problems:
            raise UnsupportedError(problems)
        needed = enabled_for(
            physical,
            plan.requirements,
            robustness=self._options.robustness,
            frame_boundaries=any(frame.boundary for frame in plan.frames),
            disabled_extensions=self._options.disabled_extensions,
            emulated=bool(instance.layers),
        )
        if self._options.instrument:
            from scenario_runner.vulkan.instrumentation import required

            needed = needed.union(required(physical, self._options.disabled_extensions))
        if plan.requirements.ml_extensions:
            from scenario_runner.vulkan.tensor_limits import exceeded_tensor_limits

            problems = exceeded_tensor_limits(plan, physical, emulated=bool(instance.layers))
            if problems:
                raise UnsupportedError(problems)
        device = self._device
        if device is not None and not device.usable:
            raise DeviceError(
                "the device cannot be used any more after it was lost or did not finish; make a new Runner"
            )
        if device is None or not device.enabled.covers(needed):
            if device is not None:
                needed = needed.union(device.enabled)
                device.close()
                self._device = None
            progress.doing("opening the device")
            self._device = device = Device(instance, physical, needed, staging=self._options.staging)
        return device


def _limit(limits: Any, name: str) -> int | tuple[int, int, int]:
    value = getattr(limits, name)
    return value if isinstance(value, int) else (value[0], value[1], value[2])
