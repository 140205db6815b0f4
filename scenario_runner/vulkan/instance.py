"""The Vulkan instance, with the messages of the validation layer where it was asked for, and the open device.

Life cycle:

1. `Instance` loads the driver and layers, and lists the physical devices.
2. `Device` opens one of them with what the first scenario requires.
3. Objects are made on it, and counted.
4. `close` destroys it. A device whose work did not finish (``abandoned``) is not waited for.
"""

from __future__ import annotations

# Loading a driver holds the dynamic loader's lock, so the extension modules that a plain run needs come before.
import _pickle  # noqa: F401
import array  # noqa: F401
import contextvars  # noqa: F401
import math  # noqa: F401
import os
import struct  # noqa: F401
import sys
import threading
import zlib  # noqa: F401
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from scenario_runner import errors
from scenario_runner.errors import log
from scenario_runner.errors.installation import install_here
from scenario_runner.processes import system_limits
from scenario_runner.vulkan import Handle, ffi, vulkan_loader
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.capabilities import reason_against
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
from scenario_runner.vulkan.structs import chain, enumerated, new
from scenario_runner.vulkan.vulkan_loader import (
    API_1_2,
    API_1_3,
    API_1_4,
    Functions,
    check,
    error_class,
    result_name,
    version_text,
)

if TYPE_CHECKING:
    from scenario_runner.vulkan.printf import Printer

Checks: TypeAlias = 'bool | Literal["sync"]'
"""Use of the validation layer: true loads it, and with "sync" it looks for hazards as well."""

Planned = TypeVar("Planned")

_DEBUG_UTILS = "VK_EXT_debug_utils"
_PORTABILITY = "VK_KHR_portability_enumeration"
_INFO = vk.DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT
_ERROR = vk.DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT
_WARNING_AND_ERROR = vk.DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | _ERROR
_VALIDATION_AND_PERFORMANCE = (
    vk.DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | vk.DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT
)


class Instance:
    """One VkInstance. Raises NoDeviceError when there is no loader or no driver that it accepts.

    ``layers`` are enabled in this order, the first one next to the application. ``validation=True`` enables the Khronos
    validation layer and collects what it says in ``validation_messages``; those of severity error are in
    ``validation_errors`` as well, each with the JSON pointer of what caused it, where that is known. ``labels`` asks
    for VK_EXT_debug_utils, which is there as well where a layer could make use of it; the attribute tells. ``printer``
    gets what shaders print, from the same layer.
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
        # The JSON pointer of what is being created or recorded, for what the validation layer says of it.
        self.subject: str | None = None
        self.validation = validation
        self.printer = printer
        self.layers = tuple(layers)
        self._stack = ExitStack()
        if vulkan_loader.loader_version() < API_1_2:
            raise errors.NoDeviceError(
                f"the Vulkan loader supports version {version_text(vulkan_loader.loader_version())}; "
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
        if sys.platform == "darwin" and has_instance_extension(_PORTABILITY):  # else the loader hides MoltenVK
            extensions.append(_PORTABILITY)
        messenger = self._messenger_info() if has_validation_layer else None
        self.handle: Handle = self._create(names, extensions, messenger)
        self.fn = Functions(vulkan_loader.instance_function, self.handle)
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
        """A VkInstance with these layers and extensions; ``messenger`` is None without the validation layer."""
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
            chain(info, messenger)  # for what is said while the instance is made or destroyed
        hazards, printer = self.validation == "sync", self.printer
        if hazards or printer is not None:
            chain(info, *validation_structs(bool(self.validation), hazards=hazards, printf=printer is not None))
        handle = ffi.new("VkInstance*")
        with nullcontext() if printer is None else printer.settings():
            code = vulkan_loader.load().vkCreateInstance(info, ffi.NULL, handle)
        if code < 0:
            raise (errors.NoDeviceError if code in (-3, -9) else error_class(code))(
                f"vkCreateInstance failed with {result_name(code)}"
                + (f" (layers: {', '.join(names)})" if names else ""),
                help="'scenario-runner doctor' shows which loader and drivers are found",
            )
        return handle[0]

    def _messenger_info(self) -> Handle:
        """A VkDebugUtilsMessengerCreateInfoEXT that collects the messages of the validation layer."""
        printer = self.printer
        onerror = None if printer is None else printer.keep_error

        @ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", onerror=onerror)  # type: ignore[untyped-decorator]
        def on_message(severity: int, _types: int, data: Handle, _user: Handle) -> int:
            if printer is not None and (printer.receive(severity, data, self.subject) or not self.validation):
                return 0
            pointer, text = with_place(data, self.subject)
            if self.layers and OF_ML_LAYERS.search(text):
                return 0
            self.validation_messages.append(text)
            if severity >= _ERROR:
                self.validation_errors.append((pointer, text))
                log.error(__name__, "validation layer: %s", text)
            else:
                log.warning(__name__, "validation layer: %s", text)
            return 0

        self._on_message = on_message  # cffi callbacks live as long as this reference
        return new(
            "VkDebugUtilsMessengerCreateInfoEXT",
            messageSeverity=_WARNING_AND_ERROR | (0 if printer is None else _INFO),
            messageType=_VALIDATION_AND_PERFORMANCE,
            pfnUserCallback=on_message,
        )

    def _listen(self, info: Handle) -> None:
        messenger = ffi.new("VkDebugUtilsMessengerEXT*")
        info.pNext = ffi.NULL  # what followed it where the instance was made
        create = self.fn.vkCreateDebugUtilsMessengerEXT
        check(create(self.handle, info, ffi.NULL, messenger), "vkCreateDebugUtilsMessengerEXT")
        self._stack.callback(self.fn.vkDestroyDebugUtilsMessengerEXT, self.handle, messenger[0], ffi.NULL)

    def watched(self, plans: Iterable[Planned]) -> Iterator[Planned]:
        """The same plans; messages of the validation layer while one is in use are about what its pointer names."""
        for plan in plans:
            self.subject = getattr(plan, "pointer", None)
            yield plan
        self.subject = None

    def follow(self, earlier: Instance) -> None:
        """Take over what the validation layer said of an instance that this one replaces."""
        self.validation_messages[:0] = earlier.validation_messages
        self.validation_errors[:0] = earlier.validation_errors

    def close(self) -> None:
        """Destroy the instance; every device made from it must be closed before. Calling it again does nothing."""
        self._stack.close()


class InstanceStart:
    """Makes an instance on a thread of its own, beside other work; `result` waits for it.

    Drivers spend most of their start in C, where Python does not run, so the command line starts one before it imports
    what reads arguments and scenarios. The thread is a daemon: a process that turns out to need no device just ends.
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


_PREFERENCE = {"discrete": 5, "integrated": 4, "virtual": 3, "cpu": 2, "other": 1}


def choose(devices: Sequence[PhysicalDevice], choice: str | None) -> PhysicalDevice:
    """The device with this index, UUID or (part of its) name; without one, the fastest kind there is.

    Raises NoDeviceError, naming the devices that exist.
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
        raise errors.NoDeviceError(f"the device {chosen.name!r} cannot run scenarios: {reason}")
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

# Older loaders know VK_LAYER_PATH alone, which replaces the standard folders instead of adding to them.
_ADD_LAYER_PATH_SINCE = API_1_3 | 234
_STANDARD_FOLDERS = ("/usr/local/etc", "/usr/local/share", "/etc", "/usr/share")


def needed_layers(physical: PhysicalDevice, needed: Collection[str], mode: Mode) -> tuple[str, ...]:
    """The layers that ``physical`` needs for the device extensions in ``needed``, in their order; mostly none.

    ``mode`` is ``--ml-emulation``: "auto" takes what the device has itself, "on" prefers the layers, "off" never loads
    them. Layers that the environment enables already make the device look as if it had the extensions itself.
    """
    lacking = {name for name in needed if name not in physical.extensions}
    if mode == "off" or not needed or (mode == "auto" and not lacking):
        return ()
    if TENSORS in physical.extensions:  # layers over a device with tensors: only graphs are to be had
        return () if DATA_GRAPH in physical.extensions else (GRAPH_LAYER,)
    return (GRAPH_LAYER, TENSOR_LAYER)


def reopen(
    instance: Instance, physical: PhysicalDevice, layers: tuple[str, ...], *, validation: Checks
) -> tuple[Instance, PhysicalDevice]:
    """The same device seen through ``layers``; the old instance is closed then.

    Raises UnsupportedError, and leaves the old instance open, when the layers are not installed or cannot run on it.
    """
    reason = reason_against(physical)
    if reason is not None:
        raise errors.UnsupportedError(
            f"{physical.name!r} has no {TENSORS} and {DATA_GRAPH}, and the ML emulation layers cannot run on it:"
            f" {reason}"
        )
    layered = open_layered(layers, validation=validation, labels=instance.labels, printer=instance.printer)
    for device in layered.physical_devices:
        if device.index == physical.index and device.uuid == physical.uuid:
            layered.follow(instance)
            instance.close()
            return layered, device
    layered.close()
    raise errors.UnsupportedError(f"the ML emulation layers do not show the device {physical.name!r}")


def open_layered(
    layers: tuple[str, ...], *, validation: Checks, labels: bool = False, printer: Printer | None = None
) -> Instance:
    """An instance with the emulation layers. Raises MissingPackageError when they are not installed."""
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
    """Let the Vulkan loader find the layers in the package's folder, as long as the block runs."""
    with ExitStack() as stack:
        for file in FILES.values():
            with suppress(OSError):
                library = ffi.dlopen(os.path.join(deployed, "lib", f"lib{file}.so"))
                stack.callback(ffi.dlclose, library)
        name, others = "VK_ADD_LAYER_PATH", os.environ.get("VK_ADD_LAYER_PATH")
        if os.environ.get("VK_LAYER_PATH") or vulkan_loader.loader_version() < _ADD_LAYER_PATH_SINCE:
            standard = [os.path.join(base, "vulkan", "explicit_layer.d") for base in _STANDARD_FOLDERS]
            name, others = "VK_LAYER_PATH", os.environ.get("VK_LAYER_PATH") or os.pathsep.join(standard)
        folder = os.path.dirname(manifest_path(deployed, GRAPH_LAYER))
        stack.enter_context(with_environment(name, os.pathsep.join(filter(None, (folder, others)))))
        yield
