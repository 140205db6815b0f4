"""Data graph pipelines and their sessions (VK_ARM_data_graph): keyed by content, made once per device."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scenario_runner import errors, progress
from scenario_runner.plan.model.commands import GraphConstantPlan, GraphPipelinePlan, in_memory
from scenario_runner.text import one_line
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.structs import chain, new
from scenario_runner.vulkan.pipelines.compute import PipelineCache, create_shader_module
from scenario_runner.vulkan.pipelines.resident import read_once
from scenario_runner.vulkan.pipelines.sessions import create_graph_pipeline, create_session
from scenario_runner.vulkan.resources.tensors import describe, settled

if TYPE_CHECKING:
    from scenario_runner.plan.model.commands import OpticalFlowPlan
    from scenario_runner.vulkan.devices.device import Device
    from scenario_runner.vulkan.pipelines.optical_flow import OpticalFlowPipeline

# Pipelines keep their constants on the device: few large models are kept, or many small ones.
_MOST_KEPT = 64
_MOST_CONSTANT_BYTES = 256 << 20
# 2:4 semi-structured sparsity: two of four elements are zero.
_ZEROS, _GROUP = 2, 4


class GraphPipeline:
    """A data graph pipeline and the session that all of its dispatches use, one after the other.

    ``session_bytes`` is the memory of the session.
    """

    kind = "graph"

    def __init__(self, device: Device, pipelines: PipelineCache, plan: GraphPipelinePlan) -> None:
        """Raises ShaderError, UnsupportedError, OutOfMemoryError or DeviceError, with the place."""
        self._stack = ExitStack()
        self.session_bytes = 0
        self.constant_bytes = sum(constant.data.size_bytes for constant in plan.constants)
        try:
            self.layout: Any = pipelines.layout(plan.set_layouts, 0, plan.label)
            self.handle: Any = _create(device, self._stack, plan, self.layout)
            before = device.memory_bytes
            self.session: Any = create_session(device, self._stack, self.handle, plan.label)
            self.session_bytes = device.memory_bytes - before
        except BaseException as error:
            self._stack.close()
            if isinstance(error, errors.ScenarioRunnerError):
                raise error.at(pointer=plan.pointer) from None
            raise

    def close(self) -> None:
        """Destroy session, memory and pipeline; calling it again does nothing."""
        self._stack.close()


class GraphCache:
    """Every data graph pipeline of a device, by content."""

    def __init__(self, device: Device, layouts: PipelineCache) -> None:
        """``layouts`` has the pipeline layouts, which graphs share with shaders."""
        self._device = device
        self._layouts = layouts
        self._pipelines: OrderedDict[Hashable, GraphPipeline | OpticalFlowPipeline] = OrderedDict()

    def get(
        self, plan: GraphPipelinePlan | OpticalFlowPlan, resources: Mapping[str, Any]
    ) -> GraphPipeline | OpticalFlowPipeline:
        """The pipeline of this content, made now if it is new. Raises what `GraphPipeline` raises.

        ``resources`` are those of the run; how the texels of its images lie decides about tensors that see them.
        """
        if plan.kind == "graph" and any(each.description.image is not None for each in plan.resources):
            known = (each._replace(description=settled(each.description, resources)) for each in plan.resources)
            plan = plan._replace(resources=tuple(known))
        cache = self._device.driver_cache
        content = plan.content if cache is None else cache.key(plan.content)
        pipeline = self._pipelines.get(content)
        if pipeline is None:
            progress.doing(f"creating the pipeline of {one_line(plan.label)}", plan.pointer)
            name = plan.name if plan.kind == "graph" else plan.label
            with progress.phase("pipelines", f"{plan.kind.replace('_', ' ')} pipeline", name):
                pipeline = self._pipelines[content] = self._make(plan)
        else:
            self._pipelines.move_to_end(content)
        return pipeline

    def _make(self, plan: GraphPipelinePlan | OpticalFlowPlan) -> GraphPipeline | OpticalFlowPipeline:
        if plan.kind == "graph":
            return GraphPipeline(self._device, self._layouts, plan)
        from scenario_runner.vulkan.pipelines.optical_flow import OpticalFlowPipeline

        return OpticalFlowPipeline(self._device, self._layouts, plan)

    def trim(self) -> None:
        """Drop the pipelines used longest ago; only between runs, when none is in use."""
        total = sum(pipeline.constant_bytes for pipeline in self._pipelines.values())
        while len(self._pipelines) > _MOST_KEPT or total > _MOST_CONSTANT_BYTES:
            _, pipeline = self._pipelines.popitem(last=False)
            total -= pipeline.constant_bytes
            pipeline.close()

    def close(self) -> None:
        """Destroy everything; calling it again does nothing."""
        while self._pipelines:
            self._pipelines.popitem()[1].close()


def _create(device: Device, stack: ExitStack, plan: GraphPipelinePlan, layout: Any) -> Any:
    infos = [
        chain(
            new("VkDataGraphPipelineResourceInfoARM", descriptorSet=each.set, binding=each.binding),
            describe(each.description, vk.TENSOR_USAGE_DATA_GRAPH_BIT_ARM),
        )
        for each in plan.resources
    ]
    with ExitStack() as module_stack:
        views = module_stack.enter_context(in_memory(each.data for each in plan.constants))
        constants = [_constant(each, view) for each, view in zip(plan.constants, views, strict=True)]
        module = create_shader_module(device, module_stack, plan.code, plan.label)
        shader = new(
            "VkDataGraphPipelineShaderModuleCreateInfoARM", module=module, pName=plan.entry, pConstants=constants
        )
        info = chain(new("VkDataGraphPipelineCreateInfoARM", layout=layout, pResourceInfos=infos), shader)
        with read_once(views):
            return create_graph_pipeline(device, stack, info, plan.label, plan.pointer)


def _constant(plan: GraphConstantPlan, data: memoryview) -> Any:
    description = describe(plan.description, vk.TENSOR_USAGE_DATA_GRAPH_BIT_ARM)
    if plan.sparsity_dimension is not None:
        sparsity = new(
            "VkDataGraphPipelineConstantTensorSemiStructuredSparsityInfoARM",
            dimension=plan.sparsity_dimension,
            zeroCount=_ZEROS,
            groupSize=_GROUP,
        )
        chain(description, sparsity)
    constant = new("VkDataGraphPipelineConstantARM", id=plan.id, pConstantData=data)
    return chain(constant, description)
