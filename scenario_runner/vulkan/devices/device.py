"""The open device and its queue, also opened ahead of time through the ML emulation layers.

Life cycle:

1. `Device` opens the physical device with what the first scenario requires.
2. Objects are made on it, and counted.
3. `close` destroys it. A device whose work did not finish (``abandoned``) is not waited for.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from contextlib import ExitStack
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from scenario_runner import log
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.plan.records import NeededFeature, Requirements
from scenario_runner.vulkan.api import loader
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.loader import Functions, check, type_source
from scenario_runner.vulkan.api.structs import new
from scenario_runner.vulkan.devices.instance import Checks, Instance
from scenario_runner.vulkan.devices.ml_emulation import DATA_GRAPH, TENSORS, open_layered, reason_against, wanted_layers
from scenario_runner.vulkan.devices.physical_device import PhysicalDevice, chain_of, choose
from scenario_runner.vulkan.devices.requirements import Enabled, enabled_for

_Object = TypeVar("_Object")


class Kept(Generic[_Object]):
    """Objects made once for their content: the ``most`` used last, of ``most_bytes`` together.

    `get` has an object made with an ExitStack that destroys it. Nothing is destroyed but in `trim` and `close`, which
    are for the time between runs, when nothing is in use.
    """

    def __init__(self, most: int, most_bytes: int | None = None) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._entries: OrderedDict[Hashable, tuple[_Object, ExitStack]] = OrderedDict()

    def get(self, content: Hashable, make: Callable[[ExitStack], _Object]) -> _Object:
        """The object of this content, made now if it is new."""
        entry = self._entries.get(content)
        if entry is None:
            with ExitStack() as stack:
                made = make(stack)
                entry = self._entries[content] = made, stack.pop_all()
        else:
            self._entries.move_to_end(content)
        return entry[0]

    def trim(self) -> None:
        """Destroy the objects used longest ago. Those of a table with ``most_bytes`` tell their ``size_bytes``."""
        while len(self._entries) > self._most:
            self._drop_oldest()
        if self._most_bytes is not None:
            while sum(made.size_bytes for made, _ in self._entries.values()) > self._most_bytes:  # type: ignore[attr-defined]
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._entries.popitem(last=False)[1][1].close()

    def close(self) -> None:
        """Destroy all objects, the newest first; calling it again does nothing."""
        while self._entries:
            self._entries.popitem()[1][1].close()


# Drivers allow 4000 samplers at least (maxSamplerAllocationCount), far fewer with custom border colors.
_MOST_SAMPLERS = 256


EVERYTHING = vk.PIPELINE_STAGE_ALL_COMMANDS_BIT, vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT
"""All stages of a queue with all their accesses, for `Device.barrier`."""


def memory_barrier(src_access: int, dst_access: int) -> Any:
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
        self.graph_reports: Any = None  # `pipelines.graph_reports.GraphReports`, where wanted
        self.driver_cache: Any = None  # `pipelines.driver_cache.DriverCache` of a run, where wanted
        self.samplers: Kept[Any] = Kept(_MOST_SAMPLERS)
        self._stack = ExitStack()
        family = physical.queue_family(graphics=enabled.graphics)
        assert family is not None, "choose() lets no such device through"
        self.queue_family = family
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
        self.handle: Any = handle[0]
        self.fn = Functions(lambda name: loader.device_function(self.handle, name))
        self._stack.callback(self.fn.vkDestroyDevice, self.handle, ffi.NULL)
        queue = ffi.new("VkQueue*")
        self.fn.vkGetDeviceQueue(self.handle, family, 0, queue)
        self.queue: Any = queue[0]
        physical.command = self.fn.vkQueueSubmit
        if log.hears(__name__, "DEBUG"):
            extensions, features = sorted(enabled.extensions), sorted(map(str, enabled.features))
            log.debug(__name__, "opened %r with extensions %s and features %s", physical.name, extensions, features)

    @property
    def has_graphics(self) -> bool:
        """Return whether the queue does graphics work."""
        return bool(self.physical.queue_families[self.queue_family][0] & vk.QUEUE_GRAPHICS_BIT)

    @property
    def usable(self) -> bool:
        """Return whether more work can be given to it: not after a loss, nor while earlier work did not finish."""
        return not (self.abandoned or self.lost)

    @property
    def timestamp_valid_bits(self) -> int:
        """The number of valid bits of a timestamp; 0 where the queue has none."""
        return self.physical.queue_families[self.queue_family][2]

    @cached_property
    def unified_memory(self) -> bool:
        """Return whether the host may use resources in place: the memory is its own (integrated and software
        devices)."""
        if self.staging:
            return False
        wanted = (
            vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT
            | vk.MEMORY_PROPERTY_HOST_VISIBLE_BIT
            | vk.MEMORY_PROPERTY_HOST_COHERENT_BIT
        )
        return self.physical.type in ("cpu", "integrated") and any(
            flags & wanted == wanted for flags, _ in self.physical.memory_types
        )

    def maps(self, type_index: int) -> bool:
        """Return whether resources in this memory type are read and written by the host directly."""
        flags, _ = self.physical.memory_types[type_index]
        mappable = vk.MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.MEMORY_PROPERTY_HOST_COHERENT_BIT
        return self.unified_memory and flags & mappable == mappable

    def create(self, stack: ExitStack, kind: str, name: str, info: Any, purpose: str = "") -> Any:
        """The handle of ``vkCreate<name>``, destroyed with ``stack`` and counted as a ``kind`` until then.

        Raises DeviceError or a subclass, which names ``purpose``.
        """
        handle = type_source(f"Vk{name}").new(f"Vk{name}*")
        check(getattr(self.fn, f"vkCreate{name}")(self.handle, info, ffi.NULL, handle), f"vkCreate{name}", purpose)
        self.own(stack, kind, getattr(self.fn, f"vkDestroy{name}"), handle[0])
        return handle[0]

    def barrier(self, commands: Any, before: tuple[int, int] = EVERYTHING, after: tuple[int, int] = EVERYTHING) -> None:
        """Record a memory barrier between stages with accesses; by default of everything before and after it."""
        barrier = memory_barrier(before[1], after[1])
        self.fn.vkCmdPipelineBarrier(commands, before[0], after[0], 0, 1, barrier, 0, ffi.NULL, 0, ffi.NULL)

    def own(self, stack: ExitStack, kind: str, destroy: Any, handle: Any) -> None:
        """Count a new object of this kind, and have it destroyed (and uncounted) with ``stack``."""
        self.live[kind] += 1
        stack.callback(self._release, kind, destroy, handle)

    def _release(self, kind: str, destroy: Any, handle: Any) -> None:
        destroy(self.handle, handle, ffi.NULL)
        self.live[kind] -= 1

    def close(self) -> None:
        """Destroy the device; calling it again does nothing.

        An abandoned device is left to the operating system: destroying objects in use is undefined, and waiting for
        them could take for ever.
        """
        if self.abandoned:
            self._stack.pop_all()
            return
        self._stack.close()


_FEATURES = (
    ("VkPhysicalDeviceTensorFeaturesARM", "tensors"),
    ("VkPhysicalDeviceTensorFeaturesARM", "tensorNonPacked"),
    ("VkPhysicalDeviceTensorFeaturesARM", "shaderTensorAccess"),
    ("VkPhysicalDeviceDataGraphFeaturesARM", "dataGraph"),
    ("VkPhysicalDeviceDataGraphFeaturesARM", "dataGraphShaderModule"),
    ("VkPhysicalDeviceDataGraphOpticalFlowFeaturesARM", "dataGraphOpticalFlow"),
    ("VkPhysicalDeviceVulkan13Features", "synchronization2"),
)


class Warm(NamedTuple):
    """A device through the layers; `close` it, or take it over."""

    instance: Instance
    physical: PhysicalDevice
    device: Device

    def close(self) -> None:
        """Destroy device and instance."""
        self.device.close()
        self.instance.close()


def open_warm(instance: Instance, *, validation: Checks) -> Warm | None:
    """The device that is used by default, through the layers; None where it needs none or cannot have them."""
    layered = None
    try:
        physical = choose(instance.physical_devices, None)
        layers = wanted_layers(physical, (TENSORS, DATA_GRAPH), "auto")
        if not layers or reason_against(physical) is not None:
            return None
        layered = open_layered(layers, validation=validation, labels=instance.labels)
        same = layered.physical_devices[physical.index]
        features = tuple(
            NeededFeature(structure, member, "a graph", "")
            for structure, member in _FEATURES
            if same.features.find(structure, member) is not None  # what the layers lack, the scenario is told of
        )
        device = Device(layered, same, enabled_for(same, Requirements({}, {}, features=features), emulated=True))
    except (ScenarioRunnerError, IndexError) as error:  # whoever needs the device is told when it asks for it
        log.debug(__name__, "no device was opened ahead of time: %s", error)
        if layered is not None:
            layered.close()
        return None
    return Warm(layered, same, device)
