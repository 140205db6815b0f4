"""The Vulkan instance: loader, layers, and the messages of the validation layer where it was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Literal, TypeAlias, TypeVar

from scenario_runner import errors, log
from scenario_runner.system_packages import install_here
from scenario_runner.vulkan.api import loader
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.loader import API_1_2, API_1_4, Functions, check, error_class, result_name, version_text
from scenario_runner.vulkan.api.structs import chain, enumerated, new
from scenario_runner.vulkan.devices import layers as layer_list
from scenario_runner.vulkan.devices.layers import (
    VALIDATION_LAYER,
    available_layers,
    has_instance_extension,
    hazard_settings,
    is_of_ml_layers,
    place_of,
    requested_layers,
    with_place,
)
from scenario_runner.vulkan.devices.physical_device import PhysicalDevice

Checks: TypeAlias = 'bool | Literal["sync"]'
"""Whether the validation layer is loaded, and with "sync" whether it looks for hazards as well."""

Planned = TypeVar("Planned")

_DEBUG_UTILS = "VK_EXT_debug_utils"
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
    for VK_EXT_debug_utils, which is there as well where a layer could make use of it; the attribute tells.
    """

    def __init__(self, *, layers: Sequence[str] = (), validation: Checks = False, labels: bool = False) -> None:
        self.validation_messages: list[str] = []
        self.validation_errors: list[tuple[str | None, str]] = []
        # The JSON pointer of what is being created or recorded, for what the validation layer says of it.
        self.subject: str | None = None
        self.validation = validation
        self.layers = tuple(layers)
        self._stack = ExitStack()
        _check_loader_version()
        names = list(layers)
        extensions = []
        if validation:
            if VALIDATION_LAYER not in [name for name, _, _ in available_layers()]:
                message = f"the validation layer {VALIDATION_LAYER} is not installed"
                raise errors.UnsupportedError(message, help=install_here("validation"))
            names.append(VALIDATION_LAYER)
        names += [tool for tool in layer_list.tools if tool not in names]
        self.labels = bool(validation) or (
            (labels or bool(requested_layers())) and has_instance_extension(_DEBUG_UTILS)
        )
        if self.labels:
            extensions.append(_DEBUG_UTILS)
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
        if validation:
            messenger = self._messenger_info()
            chain(info, messenger)  # for what is said while the instance is made or destroyed
        if validation == "sync":
            chain(info, *hazard_settings())
        handle = ffi.new("VkInstance*")
        code = loader.load().vkCreateInstance(info, ffi.NULL, handle)
        if code < 0:
            raise (errors.NoDeviceError if code in (-3, -9) else error_class(code))(
                f"vkCreateInstance failed with {result_name(code)}"
                + (f" (layers: {', '.join(names)})" if names else ""),
                help="'scenario-runner doctor' shows which loader and drivers are found",
            )
        self.handle: Any = handle[0]
        self.fn = Functions(lambda name: loader.instance_function(self.handle, name))
        self._stack.callback(self.fn.vkDestroyInstance, self.handle, ffi.NULL)
        try:
            if validation:
                self._listen(messenger)
            self.physical_devices = self._enumerate()
        except BaseException:
            self.close()
            raise

    def _enumerate(self) -> list[PhysicalDevice]:
        name = "vkEnumeratePhysicalDevices"
        devices = enumerated("VkPhysicalDevice", name, self.fn.vkEnumeratePhysicalDevices, self.handle)
        return [PhysicalDevice(self.fn, device, index) for index, device in enumerate(devices)]

    def _messenger_info(self) -> Any:
        """A VkDebugUtilsMessengerCreateInfoEXT that collects the messages of the validation layer."""

        @ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT")  # type: ignore[untyped-decorator]
        def on_message(severity: int, _types: int, data: Any, _user: Any) -> int:
            text = ffi.string(data.pMessage).decode(errors="replace")
            if self.layers and is_of_ml_layers(text):
                return 0
            pointer, names = place_of(data, self.subject)
            text = with_place(text, pointer, names)
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
            messageSeverity=_WARNING_AND_ERROR,
            messageType=_VALIDATION_AND_PERFORMANCE,
            pfnUserCallback=on_message,
        )

    def _listen(self, info: Any) -> None:
        messenger = ffi.new("VkDebugUtilsMessengerEXT*")
        info.pNext = ffi.NULL  # what followed it where the instance was made
        create = self.fn.vkCreateDebugUtilsMessengerEXT
        check(create(self.handle, info, ffi.NULL, messenger), "vkCreateDebugUtilsMessengerEXT")
        self._stack.callback(self.fn.vkDestroyDebugUtilsMessengerEXT, self.handle, messenger[0], ffi.NULL)

    def watched(self, plans: Iterable[Planned]) -> Iterable[Planned]:
        """The same plans; the validation layer's messages while one is in use are about what its pointer names."""
        return self._watch(plans) if self.validation else plans

    def _watch(self, plans: Iterable[Planned]) -> Iterator[Planned]:
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


def _check_loader_version() -> None:
    version = ffi.new("uint32_t*")
    check(loader.instance_function(ffi.NULL, "vkEnumerateInstanceVersion")(version), "vkEnumerateInstanceVersion")
    if version[0] < API_1_2:
        raise errors.NoDeviceError(
            f"the Vulkan loader supports version {version_text(version[0])}; 1.2 or newer is needed",
            help="install a newer Vulkan loader",
        )
