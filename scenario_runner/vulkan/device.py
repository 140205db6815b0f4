"""The open device: one queue, and everything that outlives a single run.

Life cycle:

1. `Device` opens the physical device with what the first scenario requires.
2. `execution.execute` carries plans out on it; it leaves nothing behind but cached pipelines, layouts and the staging
   buffer.
3. `close` destroys all of it. A device whose work did not finish (``abandoned``) is not waited for.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scenario_runner import log
from scenario_runner.vulkan import api
from scenario_runner.vulkan.api import ffi
from scenario_runner.vulkan.features import chain_of
from scenario_runner.vulkan.functions import Functions
from scenario_runner.vulkan.memory import DEVICE_LOCAL, HOST_COHERENT, HOST_VISIBLE
from scenario_runner.vulkan.pipelines import PipelineCache
from scenario_runner.vulkan.result import check
from scenario_runner.vulkan.structs import new
from scenario_runner.vulkan.transfer import Transfer

if TYPE_CHECKING:
    from scenario_runner.vulkan.graphs import GraphCache
    from scenario_runner.vulkan.instance import Instance
    from scenario_runner.vulkan.physical_device import PhysicalDevice
    from scenario_runner.vulkan.requirements import Enabled
    from scenario_runner.vulkan.samplers import SamplerCache


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
        self._stack = ExitStack()
        family = physical.compute_queue_family()
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
        self.fn = Functions(lambda name: api.device_function(self.handle, name))
        self._stack.callback(self.fn.vkDestroyDevice, self.handle, ffi.NULL)
        queue = ffi.new("VkQueue*")
        self.fn.vkGetDeviceQueue(self.handle, family, 0, queue)
        self.queue: Any = queue[0]
        self.pipelines = PipelineCache(self)
        self._stack.callback(self.pipelines.close)
        if log.hears_debug(__name__):
            extensions, features = sorted(enabled.extensions), sorted(map(str, enabled.features))
            log.debug(__name__, "opened %r with extensions %s and features %s", physical.name, extensions, features)

    @property
    def usable(self) -> bool:
        """Whether more work can be given to it: not after a loss, nor while earlier work did not finish."""
        return not (self.abandoned or self.lost)

    @cached_property
    def transfer(self) -> Transfer:
        """The way in and out of buffers, with its staging memory; made when first needed."""
        transfer = Transfer(self)
        self._stack.callback(transfer.close)
        return transfer

    @cached_property
    def graphs(self) -> GraphCache:
        """Every data graph pipeline with its session, by content; made when first needed."""
        from scenario_runner.vulkan.graphs import GraphCache

        graphs = GraphCache(self)
        self._stack.callback(graphs.close)
        return graphs

    @cached_property
    def samplers(self) -> SamplerCache:
        """Every sampler, by content; made when first needed."""
        from scenario_runner.vulkan.samplers import SamplerCache

        samplers = SamplerCache(self)
        self._stack.callback(samplers.close)
        return samplers

    @cached_property
    def unified_memory(self) -> bool:
        """Whether the host may use resources in place: the memory is its own (integrated and software devices)."""
        if self.staging:
            return False
        wanted = DEVICE_LOCAL | HOST_VISIBLE | HOST_COHERENT
        return self.physical.type in ("cpu", "integrated") and any(
            flags & wanted == wanted for flags, _ in self.physical.memory_types
        )

    def maps(self, type_index: int) -> bool:
        """Whether resources in this memory type are read and written by the host directly."""
        flags, _ = self.physical.memory_types[type_index]
        return self.unified_memory and flags & (HOST_VISIBLE | HOST_COHERENT) == HOST_VISIBLE | HOST_COHERENT

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
