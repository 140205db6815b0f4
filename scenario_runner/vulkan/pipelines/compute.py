"""Compute pipelines, their layouts and their shader modules: keyed by content, made once per device."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner import errors, progress
from scenario_runner.plan.model.records import DescriptorList, LayoutBinding, PipelinePlan, Specialization
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.api.structs import new
from scenario_runner.vulkan.pipelines.descriptors import create_set_layout
from scenario_runner.vulkan.pipelines.pipeline_robustness import with_robustness

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Device

# A process that runs thousands of scenarios must not keep every pipeline it ever made.
MAX_KEPT_PIPELINES = 512


class Pipeline(NamedTuple):
    """A pipeline and the layout that its descriptor sets and push constants are bound with."""

    handle: Any
    layout: Any


class PipelineCache:
    """Every pipeline, pipeline layout and set layout of a device, by content."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._set_layouts: dict[tuple[LayoutBinding, ...], Any] = {}
        self._layouts: dict[tuple[tuple[tuple[LayoutBinding, ...], ...], int, int], Any] = {}
        self._pipelines: OrderedDict[Hashable, Pipeline] = OrderedDict()

    def get(self, plan: PipelinePlan) -> Pipeline:
        """The pipeline of this content, made now if it is new. Raises ShaderError or DeviceError, with the place."""
        cache = self._device.driver_cache
        content = plan.content if cache is None else cache.key(plan.content)
        pipeline = self._pipelines.get(content)
        if pipeline is None:
            progress.doing(f"creating the pipeline of shader {plan.label!r}", plan.pointer)
            with progress.phase("pipelines", "compute pipeline", plan.label):
                pipeline = self._pipelines[content] = self._create(plan)
            self._device.live["pipeline"] += 1
        else:
            self._pipelines.move_to_end(content)
        return pipeline

    def set_layouts(self, wanted: DescriptorList) -> tuple[Any, ...]:
        """The VkDescriptorSetLayout of every set of a descriptor list, from set 0 on."""
        return tuple(self._set_layout(bindings) for bindings in wanted.set_layouts)

    def trim(self) -> None:
        """Drop the pipelines used longest ago; only between runs, when none is in use."""
        while len(self._pipelines) > MAX_KEPT_PIPELINES:
            _, pipeline = self._pipelines.popitem(last=False)
            self._destroy(pipeline)

    def close(self) -> None:
        """Destroy everything; calling it again does nothing."""
        fn, device = self._device.fn, self._device.handle
        while self._pipelines:
            self._destroy(self._pipelines.popitem()[1])
        while self._layouts:
            fn.vkDestroyPipelineLayout(device, self._layouts.popitem()[1], ffi.NULL)
        while self._set_layouts:
            fn.vkDestroyDescriptorSetLayout(device, self._set_layouts.popitem()[1], ffi.NULL)

    def _destroy(self, pipeline: Pipeline) -> None:
        self._device.fn.vkDestroyPipeline(self._device.handle, pipeline.handle, ffi.NULL)
        self._device.live["pipeline"] -= 1

    def _set_layout(self, bindings: tuple[LayoutBinding, ...]) -> Any:
        layout = self._set_layouts.get(bindings)
        if layout is None:
            layout = self._set_layouts[bindings] = create_set_layout(self._device, bindings)
        return layout

    def layout(
        self,
        sets: tuple[tuple[LayoutBinding, ...], ...],
        push_constants_size: int,
        label: str,
        stages: int = vk.SHADER_STAGE_COMPUTE_BIT,
    ) -> Any:
        """The VkPipelineLayout of these sets and push constants, which ``stages`` see, made now if it is new.

        Raises DeviceError.
        """
        key = (sets, push_constants_size, stages)
        layout = self._layouts.get(key)
        if layout is None:
            ranges = []
            if push_constants_size:
                ranges = [{"stageFlags": stages, "offset": 0, "size": push_constants_size}]
            handle = ffi.new("VkPipelineLayout*")
            set_layouts = [self._set_layout(bindings) for bindings in sets]
            info = new("VkPipelineLayoutCreateInfo", pSetLayouts=set_layouts, pPushConstantRanges=ranges)
            check(
                self._device.fn.vkCreatePipelineLayout(self._device.handle, info, ffi.NULL, handle),
                "vkCreatePipelineLayout",
                label,
            )
            layout = self._layouts[key] = handle[0]
        return layout

    def _create(self, plan: PipelinePlan) -> Pipeline:
        fn, device = self._device.fn, self._device.handle
        try:
            layout = self.layout(plan.set_layouts, plan.push_constants_size, plan.label)
            with ExitStack() as stack:
                module = create_shader_module(self._device, stack, plan.code, plan.label)
                info = new(
                    "VkComputePipelineCreateInfo",
                    stage=new(
                        "VkPipelineShaderStageCreateInfo",
                        stage=vk.SHADER_STAGE_COMPUTE_BIT,
                        module=module,
                        pName=plan.entry,
                        pSpecializationInfo=specialization_info(plan.specialization),
                    ),
                    layout=layout,
                )
                info = with_robustness(info, self._device.enabled.features)
                if "VK_ARM_shader_instrumentation" in self._device.enabled.extensions:
                    from scenario_runner.vulkan.pipelines.instrumentation import with_instrumentation

                    info = with_instrumentation(info)
                handle = ffi.new("VkPipeline*")
                code = created(
                    self._device,
                    lambda cache, info: fn.vkCreateComputePipelines(device, cache, 1, info, ffi.NULL, handle),
                    info,
                    plan.label,
                    plan.pointer,
                    stages=1,
                )
                check(code, "vkCreateComputePipelines", f"shader {plan.label!r}")
        except errors.ScenarioRunnerError as error:
            raise error.at(pointer=plan.pointer) from None
        return Pipeline(handle[0], layout)


def created(
    device: Device, make: Callable[[Any, Any], int], info: Any, label: str, pointer: str, *, stages: int
) -> int:
    """The VkResult of ``make``, which creates a pipeline from a VkPipelineCache, or NULL, and a create info."""
    cache = device.driver_cache
    code: int = make(ffi.NULL, info) if cache is None else cache.create(make, info, label, pointer, stages)
    return code


def create_shader_module(device: Device, stack: ExitStack, code: bytes, label: str) -> Any:
    """A VkShaderModule, destroyed with ``stack``; pipelines do not need it after their creation."""
    words = ffi.from_buffer("uint32_t[]", code)
    module = ffi.new("VkShaderModule*")
    info = new("VkShaderModuleCreateInfo", codeSize=len(code), pCode=words)
    check(
        device.fn.vkCreateShaderModule(device.handle, info, ffi.NULL, module),
        "vkCreateShaderModule",
        f"shader {label!r}",
    )
    device.own(stack, "shader module", device.fn.vkDestroyShaderModule, module[0])
    return module[0]


def specialization_info(values: Specialization) -> Any:
    """A VkSpecializationInfo; NULL without values."""
    if not values.entries:
        return ffi.NULL
    return new(
        "VkSpecializationInfo",
        pMapEntries=[
            {"constantID": constant, "offset": offset, "size": size} for constant, offset, size in values.entries
        ],
        dataSize=len(values.data),
        pData=ffi.from_buffer(values.data),
    )
