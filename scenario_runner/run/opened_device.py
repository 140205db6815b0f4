"""The device of a Runner: chosen and opened when it is first needed, and again when more is needed of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Literal, NamedTuple

from scenario_runner.errors import UsageError, ValidationLayerError, error_of, log
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import one_line
from scenario_runner.plan.limits import NAMES, Limits, exceeded_limits
from scenario_runner.plan.plan import Plan
from scenario_runner.processes import progress
from scenario_runner.vulkan.capabilities import Enabled, enabled_for
from scenario_runner.vulkan.device import Checks, Device, Instance, InstanceStart
from scenario_runner.vulkan.execute import DeviceObjects
from scenario_runner.vulkan.layers import FRAME_BOUNDARY, LAYERS_VARIABLE, available_layers, unknown_layers
from scenario_runner.vulkan.ml_emulation import Mode, needed_layers, reopen
from scenario_runner.vulkan.physical_device import PhysicalDevice, choose

if TYPE_CHECKING:
    from scenario_runner.vulkan.graph_pipelines import GraphReports
    from scenario_runner.vulkan.printf import Printer

Validation = bool | Literal["report"]


Requirement = Callable[[PhysicalDevice, Collection[str]], Enabled]


class DeviceOptions(NamedTuple):
    """The device to use and how to open it.

    ``device`` is an index, a UUID or (part of) a name; None takes the fastest kind there is. ``robustness`` asks for
    robust buffer and image access where the device has it. ``disabled_extensions`` are never enabled. ``validation``
    loads the Khronos validation layer; with "report" its errors fail no run. ``ml_emulation`` tells when tensors and
    graphs run through emulation layers: "auto" (where the device lacks them), "on" or "off". ``staging`` moves all
    bytes by copies on the device, as devices with memory of their own need it, also where the host could read and
    write resources in place.
    ``requirements`` say what else it is opened with, of a physical device and the disabled extensions, and raise
    UnsupportedError for what it lacks. ``graph_reports`` are asked of its graphs.
    ``synchronization`` lets the validation layer look for hazards. ``labels`` asks for object names and labels for
    tools. ``graphics`` asks for a queue that does graphics work, which capture tools need. ``printer`` gets what
    shaders print.
    """

    device: str | None = None
    robustness: bool = False
    disabled_extensions: frozenset[str] = frozenset()
    validation: Validation = False
    ml_emulation: Mode = "auto"
    staging: bool = False
    requirements: tuple[Requirement, ...] = ()
    graph_reports: GraphReports | None = None
    synchronization: bool = False
    labels: bool = False
    graphics: bool = False
    printer: Printer | None = None


class OpenedDevice:
    """Instance, physical device and device.

    Life cycle: the instance is made and the physical device chosen when either is first asked for (``starting``: an
    instance that is being made already); `_device_for` opens the device with what the first plan requires, and anew
    when a later plan requires more. After a loss or a timeout it opens the instance and the device anew. `_destroy`
    destroys everything, except a device whose work did not finish: that one is left to the end of the process. Its
    public names are those of `Runner`, which derives from it.
    """

    def __init__(self, options: DeviceOptions, starting: InstanceStart | None = None) -> None:
        self._options = options
        self._starting = starting
        self._opened: tuple[Instance, PhysicalDevice] | None = None
        self._objects: DeviceObjects | None = None
        self._live: dict[str, int] = {}
        self._validation: Checks = "sync" if options.synchronization else bool(options.validation)
        self._validation_messages: list[str] = []
        self._validation_errors: list[tuple[str | None, str]] = []
        self._raised = 0  # how many of these have failed a run
        self._limits: tuple[PhysicalDevice, Limits] | None = None
        self._running = Lock()

    @property
    def physical_device(self) -> PhysicalDevice:
        """The chosen physical device. Raises NoDeviceError."""
        return self._open()[1]

    @property
    def validation_messages(self) -> list[str]:
        """Messages of the validation layer so far (empty without ``validation``)."""
        return self._validation_messages

    @property
    def _opened_name(self) -> str | None:
        """The name of the physical device, None before it is chosen; opens nothing."""
        return None if self._opened is None else self._opened[1].name

    @property
    def live_objects(self) -> dict[str, int]:
        """The number of device objects of each kind that exist now; all zero after `close`.

        What the device keeps for the next run has kinds of its own: pipelines, samplers, 'staging buffer', 'staging
        memory', 'memory block'. Buffers and others stay as well where a prepared scenario ran twice.
        """
        return self._live if self._objects is None else dict(self._objects.device.live)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Raise UsageError if another thread runs a scenario now; else keep other threads out of the block."""
        if not self._running.acquire(blocking=False):
            help = "take turns, or use a Runner for each process"
            raise UsageError("another thread is running a scenario on this Runner", help=help)
        try:
            yield
        finally:
            self._running.release()

    def _destroy(self) -> None:
        """Destroy the device and the instance; calling it again does nothing, and a later `_device_for` opens both
        anew."""
        abandoned = self._objects is not None and self._objects.device.abandoned
        self._close_device()
        self._starting = None
        opened, self._opened = self._opened, None
        if opened is not None and not abandoned:
            opened[0].close()

    def release(self) -> None:
        """Free what is kept for later runs, such as the pipelines and constants of models; the next run makes it anew.

        The instance stays open, and what was prepared can still run.
        """
        # the device goes as well, and free memory: drivers and layers keep parts of pipelines as long as their device,
        # and the C library what they have freed
        import ctypes

        from scenario_runner.plan import graph_files

        graph_files.forget()
        self._close_device()
        with suppress(OSError, AttributeError, TypeError):  # not the C library of GNU
            ctypes.CDLL(None).malloc_trim(0)

    def _forget(self, name: object) -> None:
        """Destroy what is kept for a prepared scenario."""
        if self._objects is not None and not self._objects.device.abandoned:
            self._objects.runs.drop(name)

    def _close_device(self) -> None:
        objects, self._objects = self._objects, None
        if objects is not None:
            objects.close()
            objects.device.close()
            self._live = dict(objects.device.live)

    def _open(self) -> tuple[Instance, PhysicalDevice]:
        if self._opened is None:
            progress.doing("starting the driver")
            starting, self._starting = self._starting, None
            settings = (self._validation, self._options.labels)
            printer = self._options.printer
            if starting is not None and (starting.validation, starting.labels) == settings and printer is None:
                instance = starting.result()
            else:
                instance = Instance(validation=self._validation, labels=self._options.labels, printer=printer)
            self._listen(instance)
            self._raised = 0
            named = os.environ.get(LAYERS_VARIABLE)
            if named and (message := unknown_layers(named, [name for name, _, _ in available_layers()])):
                log.warning(__name__, "%s", message)  # the loader ignores them
            try:
                self._opened = instance, choose(instance.physical_devices, self._options.device)
            except BaseException:
                instance.close()
                raise
        return self._opened

    def _emulating(
        self, instance: Instance, physical: PhysicalDevice, needed: Collection[str]
    ) -> tuple[Instance, PhysicalDevice]:
        """The instance, made anew with the ML emulation layers where the device lacks extensions."""
        progress.doing("starting the emulation layers")
        layers = needed_layers(physical, needed, self._options.ml_emulation)
        if not layers:
            return instance, physical
        self._close_device()
        self._opened = instance, physical = reopen(instance, physical, layers, validation=self._validation)
        self._listen(instance)
        return self._opened

    def _listen(self, instance: Instance) -> None:
        self._validation_messages = instance.validation_messages
        self._validation_errors = instance.validation_errors

    def _raise_validation_errors(self, *, close: bool = False) -> None:
        """Raise a ValidationLayerError for the errors of the validation layer that were in none before.

        With validation="report" there is none. With ``close`` the device is closed first: the layer says the same thing
        only a few times in the life of an instance."""
        new = self._validation_errors[self._raised :]
        self._raised += len(new)
        if not new or self._options.validation == "report":
            return
        if close:
            self._destroy()
        errors = "an error" if len(new) == 1 else f"{len(new)} errors"
        pointer, text = new[0]
        first = one_line(text.strip().splitlines()[0])
        help = "--validation-report (in Python: validation='report') reports such errors and lets the run succeed"
        raise ValidationLayerError(
            Diagnostic("SR-DEVICE-007", "error", pointer, f"the validation layer reported {errors}: {first}", help)
        )

    def _device_for(self, plan: Plan, also: Requirement | None = None) -> DeviceObjects:
        """The open device with what its runs share, opened anew where the plan needs more than it was opened with.

        ``also`` holds for a device that is opened now.
        """
        if self._objects is not None and not self._objects.device.usable:
            log.warning(__name__, "the device was lost or did not finish its work; it is opened again")
            self._destroy()
        instance, physical = self._open()
        ml_extensions = plan.requirements.ml_extensions
        if ml_extensions and not instance.layers:
            instance, physical = self._emulating(instance, physical, ml_extensions)
        self._check_limits(plan, physical)
        needed = self._needed(plan, instance, physical)
        if ml_extensions:
            _check_ml(plan, physical, emulated=bool(instance.layers))
        objects = self._objects
        if objects is None or not objects.device.enabled.covers(needed):
            if objects is not None:
                needed = needed.union(objects.device.enabled)
                self._close_device()
            if also is not None:
                needed = needed.union(also(physical, self._options.disabled_extensions))
            progress.doing("opening the device")
            device = Device(instance, physical, needed, staging=self._options.staging)
            self._objects = objects = DeviceObjects(device)
        objects.device.graph_reports = self._options.graph_reports
        return objects

    def _needed(self, plan: Plan, instance: Instance, physical: PhysicalDevice) -> Enabled:
        """Collect what the plan and the options need of the device. Raises UnsupportedError for what it lacks."""
        options, disabled = self._options, self._options.disabled_extensions
        needed = enabled_for(
            physical,
            plan.requirements,
            robustness=options.robustness,
            frame_boundaries=FRAME_BOUNDARY in physical.extensions
            and (instance.labels or any(frame.boundary for frame in plan.frames)),
            disabled_extensions=disabled,
            emulated=bool(instance.layers),
            graphics=options.graphics,
        )
        for required in options.requirements:
            needed = needed.union(required(physical, disabled))
        return needed

    def _check_limits(self, plan: Plan, physical: PhysicalDevice) -> None:
        """Warn of what goes beyond recommended limits. Raises UnsupportedError for what goes beyond hard ones."""
        if self._limits is None or self._limits[0] is not physical:
            self._limits = physical, {name: _limit(physical.limits, name) for name in NAMES}
        problems = []
        for finding in exceeded_limits(plan, self._limits[1], physical.name):
            if finding.severity == "error":
                problems.append(finding)
            else:
                log.warning(__name__, "%s", finding._replace(path=plan.name))
        if problems:
            raise error_of(problems)


def _check_ml(plan: Plan, physical: PhysicalDevice, *, emulated: bool) -> None:
    """Raise UnsupportedError for tensors and optical flows that the device does not support."""
    from scenario_runner.vulkan.tensors import exceeded_tensor_limits

    problems = exceeded_tensor_limits(plan, physical, emulated=emulated)
    if any(pipeline.is_optical_flow for pipeline in plan.graph_pipelines):
        from scenario_runner.vulkan.optical_flow import flow_problems

        problems += flow_problems(plan, physical)
    if problems:
        raise error_of(problems)


def _limit(limits: object, name: str) -> int | tuple[int, int, int]:
    value = getattr(limits, name)
    return value if isinstance(value, int) else (value[0], value[1], value[2])


def chosen_devices(names: Sequence[str]) -> list[str]:
    """Choose devices by their names, each once; "all" are those of the fastest kind, "gpus" all that can run scenarios
    but for those of the CPU, unless there is nothing else. Raises NoDeviceError.

    A device is returned as its UUID, or as its index if several have that UUID."""
    devices = Instance().physical_devices
    words = {"all", "gpus"}.intersection(names)
    named = {choose(devices, name).index for name in names if name not in words}
    if words:
        fastest = choose(devices, None).type
        kinds = {fastest} if "gpus" not in words or fastest == "cpu" else {device.type for device in devices} - {"cpu"}
        named |= {device.index for device in devices if device.type in kinds and device.unusable_because() is None}
    uuids = [device.uuid for device in devices]
    unique = [device.uuid if uuids.count(device.uuid) == 1 else str(device.index) for device in devices]
    return [unique[index] for index in sorted(named)]
