"""Graphics pipelines for dynamic rendering: keyed by content, made once per device.

Every drawing is one triangle without vertex input, filled, without culling, blending, depth and stencil. What differs
from draw to draw (viewport and scissor) is dynamic.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scenario_runner import errors, progress
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.api.structs import chain, new
from scenario_runner.vulkan.pipelines.compute import (
    MAX_KEPT_PIPELINES,
    Pipeline,
    PipelineCache,
    create_shader_module,
    created,
    specialization_info,
)
from scenario_runner.vulkan.pipelines.pipeline_robustness import with_robustness

if TYPE_CHECKING:
    from scenario_runner.plan.model.commands import GraphicsPipelinePlan, ShaderStagePlan
    from scenario_runner.vulkan.devices.device import Device

SHADER_STAGES = vk.SHADER_STAGE_VERTEX_BIT | vk.SHADER_STAGE_FRAGMENT_BIT


class GraphicsCache:
    """Every graphics pipeline of a device, by content; their layouts are those of ``pipelines``."""

    def __init__(self, device: Device, pipelines: PipelineCache) -> None:
        self._device = device
        self._shared = pipelines
        self._pipelines: OrderedDict[Hashable, Pipeline] = OrderedDict()

    def get(self, plan: GraphicsPipelinePlan) -> Pipeline:
        """The pipeline of this content, made now if it is new. Raises DeviceError or a subclass, with the place."""
        cache = self._device.driver_cache
        content = plan.content if cache is None else cache.key(plan.content)
        pipeline = self._pipelines.get(content)
        if pipeline is None:
            progress.doing(f"creating the pipeline of {_label(plan)}", plan.pointer)
            try:
                with progress.phase("pipelines", "graphics pipeline", plan.fragment.label):
                    pipeline = self._pipelines[content] = self._create(plan)
            except errors.ScenarioRunnerError as error:
                raise error.at(pointer=plan.pointer) from None
            self._device.live["pipeline"] += 1
        else:
            self._pipelines.move_to_end(content)
        return pipeline

    def trim(self) -> None:
        """Drop the pipelines used longest ago; only between runs, when none is in use."""
        while len(self._pipelines) > MAX_KEPT_PIPELINES:
            self._destroy(self._pipelines.popitem(last=False)[1])

    def close(self) -> None:
        """Destroy everything; calling it again does nothing."""
        while self._pipelines:
            self._destroy(self._pipelines.popitem()[1])

    def _destroy(self, pipeline: Pipeline) -> None:
        self._device.fn.vkDestroyPipeline(self._device.handle, pipeline.handle, ffi.NULL)
        self._device.live["pipeline"] -= 1

    def _create(self, plan: GraphicsPipelinePlan) -> Pipeline:
        device = self._device
        layout = self._shared.layout(plan.set_layouts, plan.push_constants_size, _label(plan), SHADER_STAGES)
        with ExitStack() as stack:
            info = new(
                "VkGraphicsPipelineCreateInfo",
                pStages=[
                    self._stage(stack, plan.vertex, vk.SHADER_STAGE_VERTEX_BIT),
                    self._stage(stack, plan.fragment, vk.SHADER_STAGE_FRAGMENT_BIT),
                ],
                pVertexInputState={},
                pInputAssemblyState={"topology": vk.PRIMITIVE_TOPOLOGY_TRIANGLE_LIST},
                pViewportState={"viewportCount": 1, "scissorCount": 1},
                pRasterizationState={
                    "polygonMode": vk.POLYGON_MODE_FILL,
                    "cullMode": vk.CULL_MODE_NONE,
                    "lineWidth": 1.0,
                },
                pMultisampleState={"rasterizationSamples": vk.SAMPLE_COUNT_1_BIT},
                pColorBlendState={"pAttachments": [{"colorWriteMask": mask} for mask in plan.write_masks]},
                pDynamicState={"pDynamicStates": [vk.DYNAMIC_STATE_VIEWPORT, vk.DYNAMIC_STATE_SCISSOR]},
                layout=layout,
            )
            chain(info, new("VkPipelineRenderingCreateInfo", pColorAttachmentFormats=list(plan.formats)))
            info = with_robustness(info, device.enabled.features)
            if "VK_ARM_shader_instrumentation" in device.enabled.extensions:
                from scenario_runner.vulkan.pipelines.instrumentation import with_instrumentation

                info = with_instrumentation(info)
            handle = ffi.new("VkPipeline*")
            create, owner = device.fn.vkCreateGraphicsPipelines, device.handle
            code = created(
                device,
                lambda cache, info: create(owner, cache, 1, info, ffi.NULL, handle),
                info,
                plan.fragment.label,
                plan.pointer,
                stages=2,
            )
            check(code, "vkCreateGraphicsPipelines", _label(plan))
        return Pipeline(handle[0], layout)

    def _stage(self, stack: ExitStack, plan: ShaderStagePlan, stage: int) -> Any:
        return new(
            "VkPipelineShaderStageCreateInfo",
            stage=stage,
            module=create_shader_module(self._device, stack, plan.code, plan.label),
            pName=plan.entry,
            pSpecializationInfo=specialization_info(plan.specialization),
        )


def _label(plan: GraphicsPipelinePlan) -> str:
    return f"shaders {plan.vertex.label!r} and {plan.fragment.label!r}"
