"""The Vulkan instance with layers, validation messages and physical devices, also through the ML emulation layers.

`Instance` loads the driver and the layers, and lists the physical devices. Close it after all devices opened from it.

Arm's ML emulation layers bring VK_ARM_tensors and VK_ARM_data_graph to devices with compute shaders. They come with the
Python package ``ai_ml_emulation_layer_for_vulkan`` (the ``ml`` extra). The program points the Vulkan loader to their
manifests while it creates an instance, so that users set no environment variables. Manifests for Linux name the
libraries without a folder. The program therefore loads the libraries first, and the system finds them by name. The
graph layer uses the tensor layer, so their order matters.
"""

from __future__ import annotations

# Loading a driver holds the dynamic loader's lock. The extension modules of a plain run are therefore imported before.
import _pickle  # noqa: F401
import array  # noqa: F401
import contextvars  # noqa: F401
import math  # noqa: F401
import os
import struct  # noqa: F401
import sys
import threading
import zlib  # noqa: F401
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from scenario_runner import errors
from scenario_runner.errors import log
from scenario_runner.errors.installation import install_here
from scenario_runner.processes import system_limits
from scenario_runner.vulkan import Handle, ffi, vulkan_api
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.capabilities import emulation_obstacle
from scenario_runner.vulkan.layers import (
    FILES,
    GRAPH_LAYER,
    OF_ML_LAYERS,
    PACKAGE,
    TENSOR_LAYER,
    VALIDATION_LAYER,
    available_layers,
    has_instance_extension,
    manifest_path,
    package_folder,
    requested_layers,
    tools,
    validation_structs,
    with_environment,
    with_place,
)
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.vulkan_api import (
    API_1_2,
    API_1_3,
    API_1_4,
    Functions,
    chain,
    check,
    enumerated,
    error_class,
    new,
    result_name,
    version_text,
)

if TYPE_CHECKING:
    from scenario_runner.vulkan.printf import Printer

Checks: TypeAlias = 'bool | Literal["sync"]'
"""Use of the validation layer: True loads it, "sync" also looks for hazards."""


class _HasPointer(Protocol):
    @property
    def pointer(self) -> str: ...


_Planned = TypeVar("_Planned", bound=_HasPointer)
_Created = TypeVar("_Created")

_DEBUG_UTILS = "VK_EXT_debug_utils"
_PORTABILITY = "VK_KHR_portability_enumeration"
_INFO = vk.DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT
_ERROR = vk.DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT
_WARNING_AND_ERROR = vk.DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | _ERROR
_VALIDATION_AND_PERFORMANCE = (
    vk.DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | vk.DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT
)
# Fills and copies leave images in GENERAL, since a change of layout would wait for other commands. Plans leave unused
# attributes out, but versions of 2025 do not know about the columns of a matrix. A layer that is older
# than the driver lacks structures.
_ADVICE = ("instead of GENERAL", "not consumed by vertex shader", "structure with unknown VkStructureType")


class Instance:
    """A VkInstance. Raises NoDeviceError if the loader is missing or accepts no driver.

    ``layers`` are enabled in this order, the first next to the application. ``validation=True`` enables the Khronos
    validation layer. Its messages go to ``validation_messages``; errors also go to ``validation_errors``, with the JSON
    pointer of the cause if it is known. ``labels`` asks for VK_EXT_debug_utils, which is also enabled for layers that
    can use labels; the attribute tells. ``printer`` receives the messages that shaders print through the validation
    layer.
    """

    def __init__(
        self,
        *,
        layers: Sequence[str] = (),
        validation: Checks = False,
        labels: bool = False,
        printer: Printer | None = None,
    ) -> None:
        self.validation_messages: list[str] = []
        self.validation_errors: list[tuple[str | None, str]] = []
        # The JSON pointer of the object that is being created or recorded, for validation messages.
        self.subject: str | None = None
        self.validation = validation
        self.printer = printer
        self.layers = tuple(layers)
        self._stack = ExitStack()
        if vulkan_api.loader_version() < API_1_2:
            raise errors.NoDeviceError(
                f"the Vulkan loader supports version {version_text(vulkan_api.loader_version())}; "
                "1.2 or newer is needed",
                help="install a newer Vulkan loader",
            )
        names = list(layers)
        extensions = []
        has_validation_layer = bool(validation) or printer is not None
        if has_validation_layer:
            if VALIDATION_LAYER not in [name for name, _, _ in available_layers()]:
                message = f"the validation layer {VALIDATION_LAYER} is not installed"
                raise errors.UnsupportedError(message, help=install_here("validation"))
            names.append(VALIDATION_LAYER)
        names += [tool for tool in tools if tool not in names]
        self.labels = has_validation_layer or (
            (labels or bool(requested_layers())) and has_instance_extension(_DEBUG_UTILS)
        )
        if self.labels:
            extensions.append(_DEBUG_UTILS)
        if sys.platform == "darwin" and has_instance_extension(_PORTABILITY):  # the loader hides MoltenVK otherwise
            extensions.append(_PORTABILITY)
        messenger = self._messenger_info() if has_validation_layer else None
        self.handle: Handle = self._create(names, extensions, messenger)
        self.fn = Functions(vulkan_api.instance_function, self.handle)
        self._stack.callback(self.fn.vkDestroyInstance, self.handle, ffi.NULL)
        try:
            if messenger is not None:
                self._listen(messenger)
            name = "vkEnumeratePhysicalDevices"
            devices = enumerated("VkPhysicalDevice", name, self.fn.vkEnumeratePhysicalDevices, self.handle)
            self.physical_devices = [PhysicalDevice(self.fn, handle, index) for index, handle in enumerate(devices)]
        except BaseException:
            self.close()
            raise

    def _create(self, names: list[str], extensions: list[str], messenger: Handle) -> Handle:
        """Create a VkInstance with these layers and extensions. ``messenger`` is None without the validation layer."""
        application = new(
            "VkApplicationInfo",
            pApplicationName="scenario-runner",
            pEngineName="scenario-runner",
            apiVersion=API_1_4,
        )
        info = new(
            "VkInstanceCreateInfo",
            pApplicationInfo=application,
            ppEnabledLayerNames=names,
            ppEnabledExtensionNames=extensions,
        )
        if _PORTABILITY in extensions:
            info.flags = vk.INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
        if messenger is not None:
            chain(info, messenger)  # receives the messages about creating and destroying the instance
        hazards, printer = self.validation == "sync", self.printer
        if hazards or printer is not None:
            chain(info, *validation_structs(bool(self.validation), hazards=hazards, printf=printer is not None))
        handle = ffi.new("VkInstance*")
        with nullcontext() if printer is None else printer.settings():
            code = vulkan_api.load().vkCreateInstance(info, ffi.NULL, handle)
        if code < 0:
            raise (errors.NoDeviceError if code in (-3, -9) else error_class(code))(
                f"vkCreateInstance failed with {result_name(code)}"
                + (f" (layers: {', '.join(names)})" if names else ""),
                help="'scenario-runner doctor' shows which loader and drivers are found",
            )
        return handle[0]

    def _messenger_info(self) -> Handle:
        """Return a VkDebugUtilsMessengerCreateInfoEXT that collects the messages of the validation layer."""
        printer = self.printer
        onerror = None if printer is None else printer.keep_error

        @ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", onerror=onerror)  # type: ignore[untyped-decorator]
        def on_message(severity: int, _types: int, data: Handle, _user: Handle) -> int:
            if printer is not None and (printer.receive(severity, data, self.subject) or not self.validation):
                return 0
            pointer, text = with_place(data, self.subject)
            if any(advice in text for advice in _ADVICE) or (self.layers and OF_ML_LAYERS.search(text)):
                return 0
            self.validation_messages.append(text)
            if severity >= _ERROR:
                self.validation_errors.append((pointer, text))
                log.error(__name__, "validation layer: %s", text)
            else:
                log.warning(__name__, "validation layer: %s", text)
            return 0

        self._on_message = on_message  # keeps the cffi callback alive
        return new(
            "VkDebugUtilsMessengerCreateInfoEXT",
            messageSeverity=_WARNING_AND_ERROR | (0 if printer is None else _INFO),
            messageType=_VALIDATION_AND_PERFORMANCE,
            pfnUserCallback=on_message,
        )

    def _listen(self, info: Handle) -> None:
        messenger = ffi.new("VkDebugUtilsMessengerEXT*")
        info.pNext = ffi.NULL  # the structures that followed it in VkInstanceCreateInfo
        create = self.fn.vkCreateDebugUtilsMessengerEXT
        check(create(self.handle, info, ffi.NULL, messenger), "vkCreateDebugUtilsMessengerEXT")
        self._stack.callback(self.fn.vkDestroyDebugUtilsMessengerEXT, self.handle, messenger[0], ffi.NULL)

    def create_each(self, plans: Iterable[_Planned], create: Callable[[_Planned], _Created]) -> list[_Created]:
        """Create an object for each plan. Validation messages and errors name the plan's JSON pointer."""
        created = []
        for plan in plans:
            self.subject = plan.pointer
            try:
                created.append(create(plan))
            except errors.ScenarioRunnerError as error:
                raise error.at(pointer=plan.pointer) from None
        self.subject = None
        return created

    def inherit_messages(self, earlier: Instance) -> None:
        """Take over the validation messages of an earlier instance that this instance replaces."""
        self.validation_messages[:0] = earlier.validation_messages
        self.validation_errors[:0] = earlier.validation_errors

    def close(self) -> None:
        """Destroy the instance. Close all devices before. A second call does nothing."""
        self._stack.close()


class InstanceStart:
    """Creates an instance on another thread, beside other work; `result` waits for it.

    Drivers spend most of their start in C, where Python does not run. The command line therefore starts an instance
    before it imports the modules that read arguments and scenarios. The thread is a daemon: a process that needs no
    device ends without waiting for it.
    """

    def __init__(self, *, validation: Checks = False, labels: bool = False) -> None:
        self.validation = validation
        self.labels = labels
        self._instance: Instance | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="driver-start", daemon=True)
        system_limits.start(self._thread)

    def result(self) -> Instance:
        """Return the instance. Each call raises the error of a failed creation, mostly NoDeviceError."""
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


_PREFERENCE = {"discrete": 5, "integrated": 4, "virtual": 3, "cpu": 2, "other": 1}


def choose(devices: Sequence[PhysicalDevice], choice: str | None) -> PhysicalDevice:
    """Return the device with this index, UUID or (part of the) name; by default the fastest kind of device.

    Raises NoDeviceError, which lists the existing devices.
    """
    if not devices:
        raise errors.NoDeviceError(
            "no Vulkan device was found",
            help=f"install the driver of your GPU, or a software driver: {install_here('driver')}",
        )
    if choice is None:
        usable = [device for device in devices if device.unusable_because() is None]
        if not usable:
            reasons = "; ".join(f"{device.name!r}: {device.unusable_because()}" for device in devices)
            raise errors.NoDeviceError(f"no Vulkan device can run scenarios ({reasons})")
        return max(usable, key=lambda device: _PREFERENCE[device.type])
    chosen = _matching(devices, choice)
    reason = chosen.unusable_because()
    if reason is not None:
        raise errors.NoDeviceError(
            f"the device {chosen.name!r} cannot run scenarios: {reason}",
            help="--list-devices lists the devices, --device selects another one",
        )
    return chosen


def _matching(devices: Sequence[PhysicalDevice], choice: str) -> PhysicalDevice:
    listed = "; ".join(f"{device.index}: {device.name!r} ({device.uuid})" for device in devices)
    if choice.isdecimal() and len(choice) < 6:
        if int(choice) < len(devices):
            return devices[int(choice)]
        raise errors.NoDeviceError(f"there is no device {choice}; devices: {listed}")
    plain = choice.replace("-", "").lower()
    matches = [device for device in devices if device.uuid.replace("-", "") == plain]
    matches = matches or [device for device in devices if device.name.lower() == choice.lower()]
    matches = matches or [device for device in devices if choice.lower() in device.name.lower()]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise errors.NoDeviceError(f"{choice!r} names more than one device; devices: {listed}")
    raise errors.NoDeviceError(f"no device has the index, name or UUID {choice!r}; devices: {listed}")


Mode = Literal["auto", "on", "off"]

TENSORS = "VK_ARM_tensors"
DATA_GRAPH = "VK_ARM_data_graph"

# Older loaders only know VK_LAYER_PATH, which replaces the standard folders.
_ADD_LAYER_PATH_SINCE = API_1_3 | 234
_STANDARD_FOLDERS = ("/usr/local/etc", "/usr/local/share", "/etc", "/usr/share")


def needed_layers(physical: PhysicalDevice, needed: Collection[str], mode: Mode) -> tuple[str, ...]:
    """List the layers that ``physical`` needs for the device extensions in ``needed``, in their order; mostly none.

    ``mode`` is ``--ml-emulation``: "auto" uses the device's own extensions, "on" prefers the layers, "off" never loads
    layers. A device has the extensions as well if the environment enables the layers.
    """
    lacking = {name for name in needed if name not in physical.extensions}
    if mode == "off" or not needed or (mode == "auto" and not lacking):
        return ()
    if TENSORS in physical.extensions:  # a device with native tensors gets the graph layer only
        return () if DATA_GRAPH in physical.extensions else (GRAPH_LAYER,)
    return (GRAPH_LAYER, TENSOR_LAYER)


def reopen(
    instance: Instance, physical: PhysicalDevice, layers: tuple[str, ...], *, validation: Checks
) -> tuple[Instance, PhysicalDevice]:
    """Return the same device through ``layers``, and close the old instance.

    Raises UnsupportedError if the layers are not installed or cannot run on the device. The old instance then stays
    open.
    """
    reason = emulation_obstacle(physical)
    if reason is not None:
        raise errors.UnsupportedError(
            f"{physical.name!r} has no {TENSORS} and {DATA_GRAPH}, and the ML emulation layers cannot run on it:"
            f" {reason}"
        )
    layered = open_layered(layers, validation=validation, labels=instance.labels, printer=instance.printer)
    for device in layered.physical_devices:
        if device.index == physical.index and device.uuid == physical.uuid:
            layered.inherit_messages(instance)
            instance.close()
            return layered, device
    layered.close()
    raise errors.UnsupportedError(
        f"Vulkan no longer lists the device {physical.name!r} once the ML emulation layers are loaded",
        help="--list-devices lists the devices, --device selects another one",
    )


def open_layered(
    layers: tuple[str, ...], *, validation: Checks, labels: bool = False, printer: Printer | None = None
) -> Instance:
    """Create an instance with the emulation layers. Raises MissingPackageError if they are not installed."""
    deployed = package_folder()
    if deployed is None and not {*layers} <= {name for name, _, _ in available_layers()}:
        raise errors.MissingPackageError(
            "the ML emulation layers, which run tensors and graphs on devices without"
            f" {TENSORS} and {DATA_GRAPH}, are not installed",
            help=f"install them with 'scenario-runner doctor --fix', or: pip install {PACKAGE}",
        )
    with nullcontext() if deployed is None else _search_path(deployed):
        return Instance(layers=layers, validation=validation, labels=labels, printer=printer)


@contextmanager
def _search_path(deployed: str) -> Iterator[None]:
    """Let the Vulkan loader find the layers in the package's folder while the block runs."""
    with ExitStack() as stack:
        for file in FILES.values():
            with suppress(OSError):
                library = ffi.dlopen(os.path.join(deployed, "lib", f"lib{file}.so"))
                stack.callback(ffi.dlclose, library)
        name, others = "VK_ADD_LAYER_PATH", os.environ.get("VK_ADD_LAYER_PATH")
        if os.environ.get("VK_LAYER_PATH") or vulkan_api.loader_version() < _ADD_LAYER_PATH_SINCE:
            standard = [os.path.join(base, "vulkan", "explicit_layer.d") for base in _STANDARD_FOLDERS]
            name, others = "VK_LAYER_PATH", os.environ.get("VK_LAYER_PATH") or os.pathsep.join(standard)
        folder = os.path.dirname(manifest_path(deployed, GRAPH_LAYER))
        stack.enter_context(with_environment(name, os.pathsep.join(filter(None, (folder, others)))))
        yield


class DeviceInfo(NamedTuple):
    """A Vulkan device of this machine. ``problem`` says why scenarios cannot run on it; None for a usable device."""

    index: int  # type: ignore[assignment]  # tuple.index gives way to the word of Vulkan
    name: str
    type: str
    vulkan: str
    driver: str
    uuid: str
    problem: str | None
    is_default: bool


def devices() -> list[DeviceInfo]:
    """List the Vulkan devices, and mark the default of `Runner`. Raises NoDeviceError if there is no driver."""
    instance = Instance()
    try:
        found = instance.physical_devices
        default = None  # stays None if no device is usable
        with suppress(errors.NoDeviceError):
            default = choose(found, None).index
        return [
            DeviceInfo(
                device.index,
                device.name,
                device.type,
                vulkan_api.version_text(device.api_version),
                device.driver,
                device.uuid,
                device.unusable_because(),
                device.index == default,
            )
            for device in found
        ]
    finally:
        instance.close()
