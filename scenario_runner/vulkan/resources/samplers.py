"""Samplers: made once per content, kept by the device."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from scenario_runner.plan.model.resources import SamplerPlan
from scenario_runner.sampling import ADDRESS_MODES, BORDER_COLORS, FILTERS
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.api.structs import new

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Device

# Drivers allow 4000 samplers at least (maxSamplerAllocationCount), far fewer with custom border colors.
MAX_KEPT_SAMPLERS = 256


class SamplerCache:
    """Every sampler of a device, by content."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._samplers: OrderedDict[SamplerPlan, Any] = OrderedDict()

    def get(self, plan: SamplerPlan) -> Any:
        """The VkSampler of this content, made now if it is new."""
        sampler = self._samplers.get(plan)
        if sampler is None:
            sampler = self._samplers[plan] = self._create(plan)
            self._device.live["sampler"] += 1
        else:
            self._samplers.move_to_end(plan)
        return sampler

    def trim(self) -> None:
        """Drop the samplers used longest ago; only between runs, when none is in use."""
        while len(self._samplers) > MAX_KEPT_SAMPLERS:
            self._destroy(self._samplers.popitem(last=False)[1])

    def close(self) -> None:
        """Destroy all of them; calling it again does nothing."""
        while self._samplers:
            self._destroy(self._samplers.popitem()[1])

    def _destroy(self, sampler: Any) -> None:
        self._device.fn.vkDestroySampler(self._device.handle, sampler, ffi.NULL)
        self._device.live["sampler"] -= 1

    def _create(self, plan: SamplerPlan) -> Any:
        address_mode = ADDRESS_MODES[plan.address_mode]
        info = new(
            "VkSamplerCreateInfo",
            magFilter=FILTERS[plan.mag_filter],
            minFilter=FILTERS[plan.min_filter],
            mipmapMode=FILTERS[plan.mip_filter],
            addressModeU=address_mode,
            addressModeV=address_mode,
            addressModeW=address_mode,
            maxLod=vk.LOD_CLAMP_NONE,  # the view says how many levels there are
            borderColor=BORDER_COLORS[plan.border_color],
        )
        if plan.custom_color:
            member = "uint32" if plan.border_color.startswith("INT") else "float32"
            custom = new("VkSamplerCustomBorderColorCreateInfoEXT", format=plan.custom_format)
            setattr(custom.customBorderColor, member, plan.custom_color)
            info.pNext = ffi.cast("void*", custom)  # alive until the sampler is made
        handle = ffi.new("VkSampler*")
        check(self._device.fn.vkCreateSampler(self._device.handle, info, ffi.NULL, handle), "vkCreateSampler")
        return handle[0]
