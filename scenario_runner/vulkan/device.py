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
import struct  # noqa: F401
import sys
import threading
import zlib  # noqa: F401
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from scenario_runner import errors
from scenario_runner.errors import log
from scenario_runner.errors.installation import install_here
from scenario_runner.processes import system_limits
from scenario_runner.vulkan import Handle, ffi, vulkan_loader
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.capabilities import Enabled
from scenario_runner.vulkan.layers import (
    OF_ML_LAYERS,
    VALIDATION_LAYER,
    available_layers,
    has_instance_extension,
    requested_layers,
    tools,
    validation_structs,
    with_place,
)
from scenario_runner.vulkan.physical_device import PhysicalDevice, chain_of
from scenario_runner.vulkan.structs import chain, enumerated, new
from scenario_runner.vulkan.vulkan_loader import (
    API_1_2,
    API_1_4,
    Functions,
    check,
    error_class,
    result_name,
    type_source,
    version_text,
)

if TYPE_CHECKING:
    from scenario_runner.vulkan.printf import Printer

_Object = TypeVar("_Object")
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
        onerror = None if printer is None else printer.failed

        @ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", onerror=onerror)  # type: ignore[untyped-decorator]
        def on_message(severity: int, _types: int, data: Handle, _user: Handle) -> int:
            if printer is not None and (printer.take(severity, data, self.subject) or not self.validation):
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


class Kept(Generic[_Object]):
    """Objects made once for their content: the ``most`` used last, of ``most_bytes`` together.

    `get` has an object made with an ExitStack that destroys it. Nothing is destroyed but in `drop`, `trim` and
    `close`, which are for the time between runs, when nothing is in use.
    """

    def __init__(self, most: int, most_bytes: int | None = None) -> None:
        self._most, self._most_bytes = most, most_bytes
        # in the order of their use; an OrderedDict hashes all keys when it is iterated, and those of graphs are large
        self._entries: dict[Hashable, tuple[_Object, ExitStack]] = {}

    def get(self, content: Hashable, make: Callable[[ExitStack], _Object]) -> _Object:
        """The object of this content, made now if it is new."""
        entry = self._entries.pop(content, None)
        if entry is None:
            with ExitStack() as failed:
                stack = failed.enter_context(ExitStack())  # the object may make more with it later
                entry = make(stack), stack
                failed.pop_all()
        self._entries[content] = entry
        return entry[0]

    def drop(self, content: Hashable) -> None:
        """Destroy the object of this content, if there is one."""
        if content in self._entries:
            self._entries.pop(content)[1].close()

    @property
    def is_full(self) -> bool:
        """True where `trim` destroys objects. Those of a table with ``most_bytes`` tell their ``size_bytes``."""
        if len(self._entries) > self._most or self._most_bytes is None:
            return len(self._entries) > self._most
        return sum(value.size_bytes for value, _ in self._entries.values()) > self._most_bytes  # type: ignore[attr-defined]

    def trim(self) -> None:
        """Destroy the objects used longest ago, as many as there are too many."""
        while self.is_full:
            self._entries.pop(next(iter(self._entries)))[1].close()

    def close(self) -> None:
        """Destroy all objects, the newest first; calling it again does nothing."""
        while self._entries:
            self._entries.popitem()[1][1].close()


# Drivers allow 4000 samplers at least (maxSamplerAllocationCount), far fewer with custom border colors.
_MOST_SAMPLERS = 256


EVERYTHING = vk.PIPELINE_STAGE_ALL_COMMANDS_BIT, vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT
"""All stages of a queue with all their accesses, for `Device.barrier`."""


def memory_barrier(src_access: int, dst_access: int) -> Handle:
    """A VkMemoryBarrier."""
    barrier = ffi.new("VkMemoryBarrier*")
    barrier.sType = vk.STRUCTURE_TYPE_MEMORY_BARRIER
    barrier.srcAccessMask = src_access
    barrier.dstAccessMask = dst_access
    return barrier


class Device:
    """An open VkDevice. ``live`` counts the objects of each kind that exist; after `close` every count is zero.

    With ``staging`` no resource is read or written by the host in place.
    """

    def __init__(
        self, instance: Instance, physical: PhysicalDevice, enabled: Enabled, *, staging: bool = False
    ) -> None:
        self.instance = instance
        self.physical = physical
        self.enabled = enabled
        self.staging = staging
        self.abandoned = False
        self.lost = False
        self.live: Counter[str] = Counter()
        self.memory_bytes = 0
        self.graph_reports: Any = None  # `graph_pipelines.GraphReports`, where wanted
        self.driver_cache: Any = None  # `driver_cache.DriverCache` of a run, where wanted
        self.samplers: Kept[Handle] = Kept(_MOST_SAMPLERS)
        self._stack = ExitStack()
        family = physical.queue_family(graphics=enabled.graphics)
        assert family is not None, "choose() lets no such device through"
        self.queue_family = family
        flags, _, self.timestamp_valid_bits = physical.queue_families[family]  # 0 where the queue has none
        self.has_graphics = bool(flags & vk.QUEUE_GRAPHICS_BIT)
        seen = vk.MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.MEMORY_PROPERTY_HOST_COHERENT_BIT
        own = seen | vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT
        # The host may use resources in place where the memory is its own (integrated and software devices).
        self.unified_memory = (
            not staging
            and physical.type in ("cpu", "integrated")
            and any(kind & own == own for kind, _ in physical.memory_types)
        )
        self.mapped_types = [self.unified_memory and kind & seen == seen for kind, _ in physical.memory_types]
        """Of each memory type, whether resources in it are read and written by the host directly."""
        chain, _keep = chain_of(enabled.features)
        info = new(
            "VkDeviceCreateInfo",
            pQueueCreateInfos=[new("VkDeviceQueueCreateInfo", queueFamilyIndex=family, pQueuePriorities=[1.0])],
            ppEnabledExtensionNames=sorted(enabled.extensions),
        )
        info.pNext = ffi.cast("void*", chain)
        handle = ffi.new("VkDevice*")
        check(
            instance.fn.vkCreateDevice(physical.handle, info, ffi.NULL, handle), "vkCreateDevice", repr(physical.name)
        )
        self.handle: Handle = handle[0]
        self.fn = Functions(vulkan_loader.device_function, self.handle)
        self._stack.callback(self.fn.vkDestroyDevice, self.handle, ffi.NULL)
        queue = ffi.new("VkQueue*")
        self.fn.vkGetDeviceQueue(self.handle, family, 0, queue)
        self.queue: Handle = queue[0]
        physical.command = self.fn.vkQueueSubmit
        if log.hears(__name__, "DEBUG"):
            extensions, features = sorted(enabled.extensions), sorted(map(str, enabled.features))
            log.debug(__name__, "opened %r with extensions %s and features %s", physical.name, extensions, features)

    @property
    def usable(self) -> bool:
        """Return whether more work can be given to it: not after a loss, nor while earlier work did not finish."""
        return not (self.abandoned or self.lost)

    def create(self, stack: ExitStack, kind: str, name: str, info: Handle, purpose: str = "") -> Handle:
        """The handle of ``vkCreate<name>``, destroyed with ``stack`` and counted as a ``kind`` until then.

        Raises DeviceError or a subclass, which names ``purpose``.
        """
        handle = type_source(f"Vk{name}").new(f"Vk{name}*")
        check(getattr(self.fn, f"vkCreate{name}")(self.handle, info, ffi.NULL, handle), f"vkCreate{name}", purpose)
        self.own(stack, kind, getattr(self.fn, f"vkDestroy{name}"), handle[0])
        return handle[0]

    def barrier(
        self, commands: Handle, before: tuple[int, int] = EVERYTHING, after: tuple[int, int] = EVERYTHING
    ) -> None:
        """Record a memory barrier between stages with accesses; by default of everything before and after it."""
        barrier = memory_barrier(before[1], after[1])
        self.fn.vkCmdPipelineBarrier(commands, before[0], after[0], 0, 1, barrier, 0, ffi.NULL, 0, ffi.NULL)

    def own(self, stack: ExitStack, kind: str, destroy: Handle, handle: Handle, memory_bytes: int = 0) -> None:
        """Count a new object of this kind, and have it destroyed (and uncounted) with ``stack``."""
        self.live[kind] += 1
        self.memory_bytes += memory_bytes
        stack.callback(self._release, kind, destroy, handle, memory_bytes)

    def _release(self, kind: str, destroy: Handle, handle: Handle, memory_bytes: int) -> None:
        destroy(self.handle, handle, ffi.NULL)
        self.live[kind] -= 1
        self.memory_bytes -= memory_bytes

    def close(self) -> None:
        """Destroy the device; calling it again does nothing.

        An abandoned device is left to the operating system: destroying objects in use is undefined, and waiting for
        them could take for ever.
        """
        if self.abandoned:
            self._stack.pop_all()
            return
        self._stack.close()
