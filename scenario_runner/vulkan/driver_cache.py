"""The driver's pipeline cache (VkPipelineCache) of one run, and what the driver told of each pipeline made with it.

Nothing here is imported unless a run keeps its pipelines. Life cycle:

1. `feedback_required` says what a device should be opened with, so that it tells hits from misses.
2. A `DriverCache` belongs to one run, during which it is the device's `driver_cache`. Whatever creates a pipeline then
   uses two things of it: ``owner`` in the key of what is made once per content, and `create`.
3. ``on_created`` is called with it when all pipelines of the run are there, before anything is recorded.

A miss is VK_PIPELINE_COMPILE_REQUIRED, where misses are asked for, or feedback without the hit bit: drivers and layers
that do not know the flag, as those that emulate graphs, tell by their feedback alone.

Source: Vulkan specification, "Pipeline Cache" and "Pipeline Creation Feedback".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from contextlib import ExitStack
from typing import NamedTuple

from scenario_runner import errors
from scenario_runner.errors import log
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.capabilities import Enabled
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.structs import chain, new
from scenario_runner.vulkan.vulkan_loader import API_1_3, check

_FEEDBACK = "VK_EXT_pipeline_creation_feedback"


class Creation(NamedTuple):
    """The driver's feedback on one pipeline that it created.

    ``hit`` says whether it came from the pipeline cache; None where the driver did not tell, as is ``duration_ns`` (the
    time of the creation). ``pointer`` is the JSON pointer of what it was made for.
    """

    label: str
    pointer: str
    hit: bool | None
    duration_ns: int | None


def feedback_required(physical: PhysicalDevice, disabled_extensions: Collection[str] = ()) -> Enabled:
    """The requirement for telling hits from misses: the extension with the feedback, where it is not part of the
    device's Vulkan version, and the feature for VK_PIPELINE_COMPILE_REQUIRED; as far as the device has them."""
    control = ("VkPhysicalDeviceVulkan13Features", "pipelineCreationCacheControl")
    extensions = []
    if physical.api_version < API_1_3 and _FEEDBACK in physical.extensions and _FEEDBACK not in disabled_extensions:
        extensions.append(_FEEDBACK)
    return Enabled.of(physical.features.available([control], disabled_extensions), extensions)


class DriverCache:
    """A VkPipelineCache. `close` destroys it."""

    def __init__(
        self,
        device: Device,
        owner: Hashable,
        data: bytes,
        on_created: Callable[[DriverCache], None],
        *,
        asks_for_misses: bool = False,
    ) -> None:
        """``data`` is what an earlier cache held, or nothing. ``owner`` tells whose pipelines these are: those of two
        owners are made apart, so that each cache holds all of its own. With ``asks_for_misses`` the driver is asked to
        say VK_PIPELINE_COMPILE_REQUIRED of what is in no cache, before it compiles it.

        Raises DeviceError where the driver cannot make even an empty one.
        """
        self._device = device
        self.owner = owner
        self.on_created = on_created
        self.creations: list[Creation] = []
        has_control = any(feature.member == "pipelineCreationCacheControl" for feature in device.enabled.features)
        self._flags = vk.PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT * (asks_for_misses and has_control)
        self._has_feedback = device.physical.api_version >= API_1_3 or _FEEDBACK in device.enabled.extensions
        self.tells_hits = self._has_feedback or self._flags != 0
        self._stack = ExitStack()
        try:
            self.handle = self._create(self._stack, data)
        except errors.ScenarioRunnerError:
            if not data:
                raise
            log.warning(__name__, "the driver refuses the pipeline cache of an earlier run; it starts empty")
            self.handle = self._create(self._stack, b"")

    def _create(self, stack: ExitStack, data: bytes) -> Handle:
        info = new("VkPipelineCacheCreateInfo", pInitialData=data)
        return self._device.create(stack, "pipeline cache", "PipelineCache", info)

    def merge(self, data: bytes) -> None:
        """Take in what another cache holds. Data that the driver refuses is left out. Raises DeviceError."""
        device = self._device
        with ExitStack() as stack:
            try:
                other = self._create(stack, data)
            except errors.ScenarioRunnerError:
                return
            check(device.fn.vkMergePipelineCaches(device.handle, self.handle, 1, [other]), "vkMergePipelineCaches")

    def create(self, make: Callable[[Handle], int], info: Handle, label: str, pointer: str, stages: int) -> int:
        """Create a pipeline of ``info`` with so many shader stages, and note what the driver tells of it.

        ``make`` takes the VkPipelineCache and returns the VkResult, as this does.
        """
        feedback = new("VkPipelineCreationFeedback")
        if self._has_feedback:
            of_stages = new(
                "VkPipelineCreationFeedbackCreateInfo",
                pPipelineCreationFeedback=feedback,
                pPipelineStageCreationFeedbacks=[{}] * stages,
            )
            chain(info, of_stages)
        info.flags |= self._flags
        code = make(self.handle)
        is_missing = code == vk.PIPELINE_COMPILE_REQUIRED
        if is_missing:
            info.flags &= ~self._flags
            code = make(self.handle)
        hit, duration_ns = True if self._flags else None, None
        if feedback.flags & vk.PIPELINE_CREATION_FEEDBACK_VALID_BIT:
            hit = bool(feedback.flags & vk.PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT)
            duration_ns = int(feedback.duration)
        self.creations.append(Creation(label, pointer, hit and not is_missing, duration_ns))
        return code

    def data(self) -> bytes:
        """The content of the cache now (vkGetPipelineCacheData). Raises DeviceError."""
        name, get = "vkGetPipelineCacheData", self._device.fn.vkGetPipelineCacheData
        size = ffi.new("size_t*")
        check(get(self._device.handle, self.handle, size, ffi.NULL), name)
        data = ffi.new("uint8_t[]", max(size[0], 1))
        check(get(self._device.handle, self.handle, size, data), name)
        return bytes(ffi.buffer(data, size[0]))

    def close(self) -> None:
        """Destroy the cache, unless the device is abandoned; the pipelines made with it stay."""
        if self._device.abandoned:
            self._stack.pop_all()
        self._stack.close()
