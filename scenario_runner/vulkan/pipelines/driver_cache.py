"""The driver's pipeline cache (VkPipelineCache) of one run, and what the driver told of each pipeline made with it.

Nothing here is imported unless a run keeps its pipelines. Life cycle:

1. `feedback_required` says what a device should be opened with, so that it tells hits from misses.
2. A `DriverCache` belongs to one run, during which it is the device's `driver_cache`. Whatever creates a pipeline then
   uses three things of it: `key` for what is made once per content, `with_feedback` for the create info, and `handle`.
3. `pipelines_created` is called when all pipelines of the run are there, before anything is recorded.

Source: Vulkan specification, "Pipeline Cache" and "Pipeline Creation Feedback".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner import log
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.api.structs import chain, new
from scenario_runner.vulkan.devices.requirements import Enabled

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Device
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice

_FEEDBACK = "VK_EXT_pipeline_creation_feedback"
_API_1_3 = 1 << 22 | 3 << 12


class Creation(NamedTuple):
    """What the driver told of one pipeline that it created.

    ``hit`` says whether it came from the pipeline cache; None where the driver did not tell, as is ``duration_ns`` (the
    time of the creation). ``pointer`` is the JSON pointer of what it was made for.
    """

    label: str
    pointer: str
    hit: bool | None
    duration_ns: int | None


def feedback_required(physical: PhysicalDevice, disabled_extensions: Collection[str] = ()) -> Enabled:
    """The extension that tells hits from misses, where it is not part of the device's Vulkan version; or nothing."""
    usable = _FEEDBACK in physical.extensions and _FEEDBACK not in disabled_extensions
    wanted = physical.api_version < _API_1_3 and usable
    return Enabled(frozenset(), frozenset({_FEEDBACK} if wanted else ()))


class DriverCache:
    """A VkPipelineCache. `close` destroys it."""

    def __init__(self, device: Device, owner: Hashable, data: bytes, on_created: Callable[[DriverCache], None]) -> None:
        """``data`` is what an earlier cache held, or nothing. ``owner`` tells whose pipelines these are: those of two
        owners are made apart, so that each cache holds all of its own.

        Raises DeviceError where the driver cannot make even an empty one.
        """
        self._device = device
        self._owner = owner
        self._on_created = on_created
        self._asked: list[tuple[str, str, Any]] = []
        self.tells_hits = device.physical.api_version >= _API_1_3 or _FEEDBACK in device.enabled.extensions
        code, self.handle = self._create(data)
        if code < 0 and data:
            log.warning(__name__, "the driver refuses the pipeline cache of an earlier run; it starts empty")
            code, self.handle = self._create(b"")
        check(code, "vkCreatePipelineCache")
        device.live["pipeline cache"] += 1

    def _create(self, data: bytes) -> tuple[int, Any]:
        handle = ffi.new("VkPipelineCache*")
        info = new("VkPipelineCacheCreateInfo", initialDataSize=len(data), pInitialData=data)
        code = self._device.fn.vkCreatePipelineCache(self._device.handle, info, ffi.NULL, handle)
        return code, handle[0]

    def merge(self, data: bytes) -> None:
        """Take in what another cache holds. Data that the driver refuses is left out. Raises DeviceError."""
        fn, owner = self._device.fn, self._device.handle
        code, other = self._create(data)
        if code < 0:
            return
        try:
            check(fn.vkMergePipelineCaches(owner, self.handle, 1, [other]), "vkMergePipelineCaches")
        finally:
            fn.vkDestroyPipelineCache(owner, other, ffi.NULL)

    def key(self, content: Hashable) -> Hashable:
        """What a pipeline of this content is kept under for this run and later ones of the same owner."""
        return self._owner, content

    def with_feedback(self, info: Any, label: str, pointer: str, stages: int) -> Any:
        """The create info of a pipeline with so many shader stages (0 for a data graph), asking for feedback."""
        feedback = new("VkPipelineCreationFeedback")
        if self.tells_hits:
            of_stages = ffi.new("VkPipelineCreationFeedback[]", max(stages, 1))
            chain(
                info,
                new(
                    "VkPipelineCreationFeedbackCreateInfo",
                    pPipelineCreationFeedback=feedback,
                    pipelineStageCreationFeedbackCount=stages,
                    pPipelineStageCreationFeedbacks=of_stages,
                ),
            )
        self._asked.append((label, pointer, feedback))
        return info

    def pipelines_created(self) -> None:
        """Tell whoever keeps the cache that all pipelines are there. Raises what that raises."""
        self._on_created(self)

    @property
    def creations(self) -> list[Creation]:
        """What the driver told so far, in the order of the creations."""
        return [_creation(label, pointer, feedback) for label, pointer, feedback in self._asked]

    def data(self) -> bytes:
        """What the cache holds now (vkGetPipelineCacheData). Raises DeviceError."""
        name, get = "vkGetPipelineCacheData", self._device.fn.vkGetPipelineCacheData
        size = ffi.new("size_t*")
        check(get(self._device.handle, self.handle, size, ffi.NULL), name)
        data = ffi.new("uint8_t[]", max(size[0], 1))
        check(get(self._device.handle, self.handle, size, data), name)
        return bytes(ffi.buffer(data, size[0]))

    def close(self) -> None:
        """Destroy the cache, unless the device is abandoned; the pipelines made with it stay."""
        handle, self.handle = self.handle, None
        if handle is not None and not self._device.abandoned:
            self._device.fn.vkDestroyPipelineCache(self._device.handle, handle, ffi.NULL)
            self._device.live["pipeline cache"] -= 1


def _creation(label: str, pointer: str, feedback: Any) -> Creation:
    flags = feedback.flags
    if not flags & vk.PIPELINE_CREATION_FEEDBACK_VALID_BIT:
        return Creation(label, pointer, None, None)
    hit = bool(flags & vk.PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT)
    return Creation(label, pointer, hit, int(feedback.duration))
