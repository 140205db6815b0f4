"""A Runner's device, opened at the first run and reopened when a plan needs more, and the runs on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Literal, NamedTuple

from scenario_runner.errors import UsageError, ValidationLayerError, error_of, log
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import one_line
from scenario_runner.plan.limits import NAMES, SUBGROUP_SIZE, Limits, exceeded_limits
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.processes import progress
from scenario_runner.run.output_files import Sink, share
from scenario_runner.vulkan.capabilities import Enabled, enabled_for, likely_features
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.execute import DeviceObjects, RunOptions, execute
from scenario_runner.vulkan.instance import Checks, Instance, InstanceStart, Mode, choose, needed_layers, reopen
from scenario_runner.vulkan.layers import FRAME_BOUNDARY, layer_warning
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.transfer import Pieces

if TYPE_CHECKING:
    from scenario_runner.run.graph_reports import GraphReportFiles, InstrumentationFile
    from scenario_runner.run.pipeline_caching import PipelineCaching
    from scenario_runner.run.timings import Timings
    from scenario_runner.vulkan.capture_tools import RenderDocCaptures
    from scenario_runner.vulkan.printf import Printed, Printer

# Warnings about reads that robust access makes safe.
_BY_ROBUSTNESS = ("SR-DRAW-003",)

Validation = bool | Literal["report"]
StrPath = str | os.PathLike[str]


class RunTools(NamedTuple):
    """Tools around every run by a Runner; None for tools nobody asked for.

    Instrumentation, the pipeline cache and graph reports have requirements on the device. RenderDoc needs a queue for
    graphics.
    """

    instrumentation: InstrumentationFile | None = None
    pipeline_caching: PipelineCaching | None = None
    graph_reports: GraphReportFiles | None = None
    renderdoc: RenderDocCaptures | None = None
    printer: Printer | None = None


class DeviceOptions(NamedTuple):
    """The device to use and how to open it.

    ``device`` is an index, a UUID or part of a name; None takes the fastest kind. ``robustness`` asks for
    robust buffer and image access where the device has it. ``disabled_extensions`` are never enabled. ``validation``
    loads the Khronos validation layer; with "report" validation errors fail no run. ``ml_emulation`` tells when
    tensors and graphs run through emulation layers: "auto" (where the device lacks them), "on" or "off". ``staging``
    copies all bytes on the device, even where the host could access resources in place. ``synchronization`` lets the
    validation layer look for hazards. ``labels`` asks for object names and labels for tools.
    """

    device: str | None = None
    robustness: bool = False
    disabled_extensions: frozenset[str] = frozenset()
    validation: Validation = False
    ml_emulation: Mode = "auto"
    staging: bool = False
    synchronization: bool = False
    labels: bool = False


class DeviceSession:
    """A Runner's instance, physical device and device. Runner derives from this class.

    Life cycle: the session makes the instance and chooses the physical device when a run or a caller first asks for
    either (``starting``: an instance in the making). `_device_for` opens the device for the first plan's
    requirements. When a later plan requires more, it opens the device again, with all `likely_features`. After a loss
    or a timeout it reopens instance and device. `_destroy` destroys everything except a device with unfinished work,
    which stays until the process ends.
    """

    def __init__(
        self,
        options: DeviceOptions,
        tools: RunTools,
        timeout_s: float | None,
        strict: bool,
        starting: InstanceStart | None,
    ) -> None:
        self._options = options
        self._tools = tools
        self.timeout_s = timeout_s
        self.strict = strict
        self.also_enabled: tuple[str, ...] = ()
        """Names of features and extensions that the next runs enable without a need, where the device has them."""
        self._starting = starting
        self._opened: tuple[Instance, PhysicalDevice] | None = None
        self._objects: DeviceObjects | None = None
        self._live: dict[str, int] = {}
        self._validation: Checks = "sync" if options.synchronization else bool(options.validation)
        self._latest: Instance | None = None  # has the validation layer's messages, also after its end
        self._raised = 0  # validation errors already raised by failed runs
        self._limits: tuple[PhysicalDevice, Limits] | None = None
        self._running = Lock()

    @property
    def physical_device(self) -> PhysicalDevice:
        """The chosen physical device. Raises NoDeviceError."""
        return self._open_instance()[1]

    @property
    def validation_messages(self) -> list[str]:
        """The validation layer's messages so far (empty without ``validation``)."""
        return [] if self._latest is None else self._latest.validation_messages

    @property
    def device_name(self) -> str | None:
        """The physical device's name; None before the first run."""
        return None if self._opened is None else self._opened[1].name

    @property
    def live_objects(self) -> dict[str, int]:
        """Counts of live device objects by kind; all zero after `close`.

        Objects for the next run are counted as pipelines, samplers, 'staging buffer', 'staging memory' and 'memory
        block'. A prepared scenario that ran twice, and items of suites, also keep buffers and other resources.
        """
        return self._live if self._objects is None else dict(self._objects.device.live)

    def _execute(
        self,
        plan: Plan,
        sinks: tuple[Sink, ...],
        options: RunOptions,
        timings: Timings | None = None,
        capture_dir: StrPath | None = None,
    ) -> tuple[Printed, ...]:
        """Carry out a plan, hand the results to the sinks, and write captured frames to ``capture_dir``.

        Return messages printed by shaders. Raise UsageError while another thread runs a scenario.
        """
        if options.repeat < 1:
            raise UsageError(f"repeat is {options.repeat}, expected 1 or more")
        if not self._running.acquire(blocking=False):
            help = "take turns, or use a Runner for each process"
            raise UsageError("another thread is running a scenario on this Runner", help=help)
        with ExitStack() as stack:
            stack.callback(self._running.release)
            tools = self._tools
            settled = _BY_ROBUSTNESS if self._options.robustness else ()
            warnings = [warning for warning in plan.warnings if warning.code not in settled]
            if self.strict and warnings:
                raise error_of(warning._replace(severity="error") for warning in warnings)
            for warning in warnings:
                log.warning(__name__, "%s", warning)
            if capture_dir is not None:
                from scenario_runner.run.capture_files import CaptureFiles

                sinks += (CaptureFiles(plan, os.fspath(capture_dir), options.repeat),)
            for sink in sinks:
                sink.check()
            with progress.phase("device"):
                objects = self._device_for(plan, None if timings is None else timings.required)
            if timings is not None:
                timings.starting(plan, objects.device, options.repeat, options.dry_run)
            if tools.graph_reports is not None:
                tools.graph_reports.announce(plan)
            options = self._run_options(options, plan, objects.device, sinks, timings)
            if tools.printer is not None:
                tools.printer.begin(plan)
            for sink in sinks:
                stack.enter_context(sink)
            if tools.pipeline_caching is not None:
                stack.enter_context(tools.pipeline_caching.around(objects.device, plan))
            execute(objects, plan, options)
            self._raise_validation_errors(close=True)
        return () if tools.printer is None else tuple(tools.printer.messages)

    def _run_options(
        self, options: RunOptions, plan: Plan, device: Device, sinks: tuple[Sink, ...], timings: Timings | None
    ) -> RunOptions:
        """Add the receivers for results to the options."""
        tools = self._tools

        def on_frame(iteration: int, frame: FramePlan, pieces: Pieces) -> None:
            share(pieces, [sink.frame(iteration, frame) for sink in sinks if sink.captures])

        def on_outputs(pieces: Pieces) -> None:
            share(pieces, [sink.outputs() for sink in sinks])

        measured, reports = tools.instrumentation, tools.graph_reports
        return options._replace(
            timeout_s=self.timeout_s,
            capture=None if tools.renderdoc is None else tools.renderdoc.captures_of(plan),
            on_frame=on_frame if [sink for sink in sinks if sink.captures] else None,
            on_outputs=on_outputs,
            on_measured=None if measured is None else partial(measured.add, plan.name, device.physical.name),
            on_timed=None if timings is None else timings.take,
            on_graphs=None if reports is None else partial(reports.write, device, plan),
        )

    def _destroy(self) -> None:
        """Destroy device and instance; a second call does nothing, and a later `_device_for` opens new ones."""
        abandoned = self._objects is not None and self._objects.device.abandoned
        self._close_device()
        self._starting = None
        opened, self._opened = self._opened, None
        if opened is not None and not abandoned:
            opened[0].close()

    def release(self) -> None:
        """Free pipelines, model constants and other objects kept for later runs.

        The next run makes them again. The instance stays open, and prepared scenarios can still run.
        """
        # drivers and layers keep pipeline parts until their device closes, and the C library keeps freed memory
        import ctypes

        from scenario_runner.plan import graph_files

        graph_files.forget()
        self._close_device()
        with suppress(OSError, AttributeError, TypeError):  # other C libraries than GNU's
            ctypes.CDLL(None).malloc_trim(0)

    def _forget(self, owner: object) -> None:
        """Destroy the objects kept for a prepared scenario."""
        if self._objects is not None and not self._objects.device.abandoned:
            self._objects.runs.drop(lambda kept: kept.owner is owner)

    def _close_device(self) -> None:
        """Close the device with all objects; the instance stays open."""
        objects, self._objects = self._objects, None
        if objects is not None:
            objects.close()
            objects.device.close()
            self._live = dict(objects.device.live)

    def _open_instance(self) -> tuple[Instance, PhysicalDevice]:
        """Return the instance and the physical device; the first call starts the driver."""
        if self._opened is None:
            progress.set_work("starting the driver")
            starting, self._starting = self._starting, None
            settings = (self._validation, self._options.labels)
            printer = self._tools.printer
            if starting is not None and (starting.validation, starting.labels) == settings and printer is None:
                instance = starting.result()
            else:
                instance = Instance(validation=self._validation, labels=self._options.labels, printer=printer)
            self._latest, self._raised = instance, 0
            if message := layer_warning():
                log.warning(__name__, "%s", message)
            try:
                self._opened = instance, choose(instance.physical_devices, self._options.device)
            except BaseException:
                instance.close()
                raise
        return self._opened

    def _reopen_with_emulation(
        self, instance: Instance, physical: PhysicalDevice, needed: Collection[str]
    ) -> tuple[Instance, PhysicalDevice]:
        """Return the instance, reopened with the ML emulation layers if the device lacks extensions."""
        progress.set_work("starting the emulation layers")
        layers = needed_layers(physical, needed, self._options.ml_emulation)
        if not layers:
            return instance, physical
        self._close_device()
        self._opened = reopen(instance, physical, layers, validation=self._validation)
        self._latest = self._opened[0]
        return self._opened

    def _raise_validation_errors(self, *, close: bool = False) -> None:
        """Raise ValidationLayerError for the validation layer's new errors, except with validation="report".

        ``close`` closes the device first: the layer repeats an error only a few times in an instance's life.
        """
        new = [] if self._latest is None else self._latest.validation_errors[self._raised :]
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

    def _device_for(
        self, plan: Plan, also: Callable[[PhysicalDevice, Collection[str]], Enabled] | None = None
    ) -> DeviceObjects:
        """Return the open device, reopened where the plan needs more; a reopened device meets ``also``, too."""
        if self._objects is not None and not self._objects.device.usable:
            log.warning(__name__, "the device was lost or did not finish its work; it is opened again")
            self._destroy()
        instance, physical = self._open_instance()
        ml_extensions = plan.requirements.ml_extensions
        if ml_extensions and not instance.layers:
            instance, physical = self._reopen_with_emulation(instance, physical, ml_extensions)
        self._check_limits(plan, physical)
        needed = self._collect_needs(plan, instance, physical)
        if ml_extensions:
            _check_ml(plan, physical, emulated=bool(instance.layers))
        objects = self._objects
        if objects is None or not objects.device.enabled.covers(needed):
            if objects is not None:
                more = likely_features(physical, self._options.disabled_extensions)
                needed = needed.union(objects.device.enabled.neutral).union(more)
                self._close_device()
            if also is not None:
                needed = needed.union(also(physical, self._options.disabled_extensions))
            progress.set_work("opening the device")
            device = Device(instance, physical, needed, staging=self._options.staging)
            self._objects = objects = DeviceObjects(device)
        reports = self._tools.graph_reports
        objects.device.graph_reports = None if reports is None else reports.reports
        return objects

    def _collect_needs(self, plan: Plan, instance: Instance, physical: PhysicalDevice) -> Enabled:
        """Collect needs from plan, options and tools. Raise UnsupportedError for missing features."""
        options, disabled = self._options, self._options.disabled_extensions
        needed = enabled_for(
            physical,
            plan.requirements,
            robustness=options.robustness,
            frame_boundaries=FRAME_BOUNDARY in physical.extensions
            and (instance.labels or any(frame.boundary for frame in plan.frames)),
            disabled_extensions=disabled,
            emulated=bool(instance.layers),
            graphics=self._tools.renderdoc is not None,
            also=self.also_enabled,
        )
        tools = self._tools
        reports = None if tools.graph_reports is None else tools.graph_reports.reports
        for tool in (tools.instrumentation, tools.pipeline_caching, reports):
            if tool is not None:
                needed = needed.union(tool.required(physical, disabled))
        return needed

    def _check_limits(self, plan: Plan, physical: PhysicalDevice) -> None:
        """Warn of demands above tolerated limits. Raise UnsupportedError for demands above hard limits."""
        if self._limits is None or self._limits[0] is not physical:
            limits = {name: _limit(physical.limits, name) for name in NAMES}
            self._limits = physical, limits | {SUBGROUP_SIZE: int(physical.vulkan11_properties.subgroupSize)}
        problems = []
        for finding in exceeded_limits(plan, self._limits[1], physical.name):
            if finding.severity == "error":
                problems.append(finding)
            else:
                log.warning(__name__, "%s", finding._replace(path=plan.name))
        if problems:
            raise error_of(problems)


def _check_ml(plan: Plan, physical: PhysicalDevice, *, emulated: bool) -> None:
    """Raise UnsupportedError for tensors and optical flows the device does not support."""
    from scenario_runner.vulkan.tensors import exceeded_tensor_limits

    problems = exceeded_tensor_limits(plan, physical, emulated=emulated)
    if any(pipeline.is_optical_flow for pipeline in plan.graph_pipelines):
        from scenario_runner.vulkan.optical_flow import flow_problems

        problems += flow_problems(plan, physical)
    if problems:
        raise error_of(problems)


def _limit(limits: object, name: str) -> int | tuple[float, ...]:
    """Return a limit from VkPhysicalDeviceLimits, or all numbers of an array."""
    value = getattr(limits, name)
    return value if isinstance(value, int) else tuple(value)


def choose_devices(names: Sequence[str]) -> list[str]:
    """Choose devices by their names, each once, and return their UUIDs. Raise NoDeviceError.

    "all" names the fastest kind's devices. "gpus" names every device able to run scenarios, and a CPU only where
    there is nothing else. Devices sharing a UUID are returned by index.
    """
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
