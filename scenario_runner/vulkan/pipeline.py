"""Compute and graphics pipelines, layouts for all pipelines, and the driver's pipeline cache for a run.

Every object is created once per content. Graphics pipelines use dynamic rendering, without culling, blending and
stencil; viewport and scissor are dynamic.

If a device was opened with pipeline robustness (VK_EXT_pipeline_robustness, Vulkan 1.4), each pipeline gets the
strictest enabled behaviour.

Life cycle of a `DriverCache` (VkPipelineCache), for runs that keep their pipelines:

1. `feedback_required` returns the requirements for opening a device that tells hits from misses.
2. The cache is the device's `driver_cache` during a run. Pipelines are created with the cache's `create`, and its
   ``owner`` is in their keys.
3. When all pipelines of the run exist, before recording, ``on_created`` receives the cache.

A miss is VK_PIPELINE_COMPILE_REQUIRED, if the cache asks for misses, or feedback without the hit bit. Some drivers
ignore the flag and only give feedback, as do the layers that emulate graphs.

Source: Vulkan specification, "Pipeline Cache" and "Pipeline Creation Feedback".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from scenario_runner import errors
from scenario_runner.errors import log
from scenario_runner.plan.records import LayoutBinding, PipelinePlan
from scenario_runner.processes import progress
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.capabilities import Enabled
from scenario_runner.vulkan.device import Device, LruCache
from scenario_runner.vulkan.physical_device import Feature, PhysicalDevice
from scenario_runner.vulkan.resources import check_vertex_formats, create_set_layout
from scenario_runner.vulkan.vulkan_api import API_1_3, Member, chain, check, new

if TYPE_CHECKING:
    from scenario_runner.plan.image_records import AttributePlan, DepthTest, GraphicsPipelinePlan, ShaderStagePlan

# Most pipelines in a process that runs thousands of scenarios.
MAX_KEPT_PIPELINES = 512
# Graph pipelines keep their constants on the device: few large models stay, or many small ones.
_MOST_GRAPHS = 64
_MOST_CONSTANT_BYTES = 256 << 20

SHADER_STAGES = vk.SHADER_STAGE_VERTEX_BIT | vk.SHADER_STAGE_FRAGMENT_BIT


_Created = TypeVar("_Created")


class Pipeline(NamedTuple):
    """A pipeline, and the layout for descriptor sets and push constants."""

    handle: Handle
    layout: Handle


class PipelineCache:
    """All pipelines on a device, with pipeline layouts and set layouts, by content."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._stack = ExitStack()  # destroys the layouts
        self._set_layouts: dict[tuple[LayoutBinding, ...], Handle] = {}
        self._layouts: dict[tuple[tuple[tuple[LayoutBinding, ...], ...], int, int], Handle] = {}
        self.shaders: LruCache[Pipeline] = LruCache(MAX_KEPT_PIPELINES)
        self.graphs: LruCache[Any] = LruCache(_MOST_GRAPHS, _MOST_CONSTANT_BYTES)

    def compute(self, plan: PipelinePlan) -> Pipeline:
        """Return the pipeline of a compute shader. Raises ShaderError or DeviceError."""
        label = f"shader {plan.label!r}"
        return self.get_or_create(self.shaders, plan, label, "compute", plan.label, _create_compute)

    def graphics(self, plan: GraphicsPipelinePlan) -> Pipeline:
        """Return the pipeline of a vertex and a fragment shader. Raises DeviceError or a subclass."""
        return self.get_or_create(
            self.shaders, plan, _label_of(plan), "graphics", plan.fragment.label, _create_graphics
        )

    def get_or_create(
        self,
        table: LruCache[Any],
        plan: Any,
        label: str,
        kind: str,
        name: str,
        create: Callable[[PipelineCache, Any, ExitStack], _Created],
    ) -> _Created:
        """Return the pipeline of a plan from ``table``, created now if it is new.

        Messages call it ``label``, traces ``name``. Raises the errors of ``create``.
        """

        def make(stack: ExitStack) -> _Created:
            progress.set_work(f"creating the pipeline of {label}", plan.pointer, f"creating a {kind} pipeline")
            with progress.phase("pipelines", f"{kind} pipeline", name):
                return create(self, plan, stack)

        cache = self.device.driver_cache
        pipeline: _Created = table.get(plan.content if cache is None else (cache.owner, plan.content), make)
        return pipeline

    def close(self) -> None:
        """Destroy all objects. A second call does nothing."""
        self.graphs.close()
        self.shaders.close()
        self._layouts.clear()
        self._set_layouts.clear()
        self._stack.close()

    def set_layouts(self, sets: tuple[tuple[LayoutBinding, ...], ...]) -> list[Handle]:
        """Return the VkDescriptorSetLayout of each set, from set 0 on, created now if it is new."""
        for bindings in sets:
            if bindings not in self._set_layouts:
                self._set_layouts[bindings] = create_set_layout(self.device, self._stack, bindings)
        return [self._set_layouts[bindings] for bindings in sets]

    def layout(
        self,
        sets: tuple[tuple[LayoutBinding, ...], ...],
        push_constants_size: int,
        label: str,
        stages: int = vk.SHADER_STAGE_COMPUTE_BIT,
    ) -> Handle:
        """Return the VkPipelineLayout of these sets and push constants for ``stages``, created now if it is new.

        Raises DeviceError.
        """
        key = (sets, push_constants_size, stages)
        layout = self._layouts.get(key)
        if layout is None:
            ranges = []
            if push_constants_size:
                ranges = [{"stageFlags": stages, "offset": 0, "size": push_constants_size}]
            info = new("VkPipelineLayoutCreateInfo", pSetLayouts=self.set_layouts(sets), pPushConstantRanges=ranges)
            layout = self.device.create(self._stack, "pipeline layout", "PipelineLayout", info, label)
            self._layouts[key] = layout
        return layout


def _create_compute(pipelines: PipelineCache, plan: PipelinePlan, stack: ExitStack) -> Pipeline:
    layout = pipelines.layout(plan.set_layouts, plan.push_constants_size, plan.label)
    with ExitStack() as modules:
        stage = _stage(pipelines.device, modules, plan, vk.SHADER_STAGE_COMPUTE_BIT)
        if plan.full_subgroups:
            stage.flags = vk.PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
        info = new("VkComputePipelineCreateInfo", stage=stage, layout=layout)
        purpose = f"shader {plan.label!r}"
        return Pipeline(
            create_pipeline(pipelines.device, stack, "Compute", info, plan.label, plan.pointer, purpose), layout
        )


def _create_graphics(pipelines: PipelineCache, plan: GraphicsPipelinePlan, stack: ExitStack) -> Pipeline:
    device, purpose = pipelines.device, _label_of(plan)
    layout = pipelines.layout(plan.set_layouts, plan.push_constants_size, purpose, SHADER_STAGES)
    check_vertex_formats(device, [attribute.format for attribute in plan.attributes])
    with ExitStack() as modules:
        info = new(
            "VkGraphicsPipelineCreateInfo",
            pStages=[
                _stage(device, modules, plan.vertex, vk.SHADER_STAGE_VERTEX_BIT),
                _stage(device, modules, plan.fragment, vk.SHADER_STAGE_FRAGMENT_BIT),
            ],
            pVertexInputState=_vertex_input(plan.attributes),
            pInputAssemblyState={"topology": plan.topology},
            pViewportState={"viewportCount": 1, "scissorCount": 1},
            pRasterizationState=_rasterization(plan),
            pMultisampleState={"rasterizationSamples": vk.SAMPLE_COUNT_1_BIT},
            pColorBlendState={"pAttachments": [{"colorWriteMask": mask} for mask in plan.write_masks]},
            pDynamicState={"pDynamicStates": [vk.DYNAMIC_STATE_VIEWPORT, vk.DYNAMIC_STATE_SCISSOR]},
            layout=layout,
            pDepthStencilState=_depth_test(plan.depth),
        )
        depth_format = 0 if plan.depth is None else plan.depth.format
        formats = {"pColorAttachmentFormats": list(plan.formats), "depthAttachmentFormat": depth_format}
        chain(info, new("VkPipelineRenderingCreateInfo", **formats))
        return Pipeline(
            create_pipeline(device, stack, "Graphics", info, plan.fragment.label, plan.pointer, purpose), layout
        )


def _vertex_input(attributes: tuple[AttributePlan, ...]) -> dict[str, Member]:
    """Return a VkPipelineVertexInputStateCreateInfo with a binding for each attribute."""
    bindings: list[dict[str, int]] = []
    described: list[dict[str, int]] = []
    for number, (location, format, _, stride, per_instance) in enumerate(attributes):
        bindings.append({"binding": number, "stride": stride, "inputRate": int(per_instance)})
        described.append({"binding": number, "location": location, "format": format})
    return {"pVertexBindingDescriptions": bindings, "pVertexAttributeDescriptions": described}


def _rasterization(plan: GraphicsPipelinePlan) -> dict[str, Member]:
    """Return a VkPipelineRasterizationStateCreateInfo."""
    state: dict[str, Member] = {"polygonMode": plan.polygon_mode, "cullMode": vk.CULL_MODE_NONE, "lineWidth": 1.0}
    if plan.depth is not None:
        constant, clamp, slope = plan.depth.bias
        state |= {
            "depthClampEnable": int(plan.depth.clamp),
            "depthBiasEnable": int(any(plan.depth.bias)),
            "depthBiasConstantFactor": constant,
            "depthBiasClamp": clamp,
            "depthBiasSlopeFactor": slope,
        }
    return state


def _depth_test(depth: DepthTest | None) -> dict[str, Member] | None:
    """Return a VkPipelineDepthStencilStateCreateInfo; None without a depth test."""
    if depth is None:
        return None
    return {"depthTestEnable": 1, "depthWriteEnable": int(depth.write), "depthCompareOp": depth.compare_op}


def create_pipeline(
    device: Device, stack: ExitStack, kind: str, info: Handle, name: str, pointer: str, purpose: str
) -> Handle:
    """Create a VkPipeline from ``info`` with vkCreate<kind>Pipelines, destroyed with ``stack``.

    Shader pipelines get the device's robustness and instrumentation. The run's driver cache knows the pipeline by
    ``name``. Raises DeviceError or a subclass; the message names ``purpose``.
    """
    handle = ffi.new("VkPipeline*")
    command, stages, deferred = _COMMANDS[kind]
    behaviour = robustness_behaviours(device.enabled.features) if stages else None
    if behaviour is not None:
        buffers, images = behaviour
        robust = {"storageBuffers": buffers, "uniformBuffers": buffers, "images": images}
        chain(info, new("VkPipelineRobustnessCreateInfo", **robust))
    if stages and "VK_ARM_shader_instrumentation" in device.enabled.extensions:
        chain(info, new("VkPipelineCreateFlags2CreateInfo", flags=vk.PIPELINE_CREATE_2_INSTRUMENT_SHADERS_BIT_ARM))
    function, cache = getattr(device.fn, command), device.driver_cache

    def make(cache: Handle) -> int:
        return int(function(device.handle, *deferred, cache, 1, info, ffi.NULL, handle))

    check(make(ffi.NULL) if cache is None else cache.create(make, info, name, pointer, stages), command, purpose)
    device.own(stack, "graph pipeline" if deferred else "pipeline", device.fn.vkDestroyPipeline, handle[0])
    return handle[0]


# Commands that create pipelines, with the number of shader stages. Graphs also take a VkDeferredOperationKHR.
_COMMANDS: dict[str, tuple[str, int, list[Handle]]] = {
    "Compute": ("vkCreateComputePipelines", 1, []),
    "Graphics": ("vkCreateGraphicsPipelines", 2, []),
    "DataGraph": ("vkCreateDataGraphPipelinesARM", 0, [ffi.NULL]),
}


def _stage(device: Device, modules: ExitStack, plan: PipelinePlan | ShaderStagePlan, stage: int) -> Handle:
    values = plan.specialization
    entries = [{"constantID": constant, "offset": offset, "size": size} for constant, offset, size in values.entries]
    return new(
        "VkPipelineShaderStageCreateInfo",
        stage=stage,
        module=create_shader_module(device, modules, plan.code, plan.label),
        pName=plan.entry,
        pSpecializationInfo={"pMapEntries": entries, "pData": values.data} if entries else None,
    )


def _label_of(plan: GraphicsPipelinePlan) -> str:
    return f"shaders {plan.vertex.label!r} and {plan.fragment.label!r}"


def create_shader_module(device: Device, stack: ExitStack, code: bytes, label: str) -> Handle:
    """Create a VkShaderModule, destroyed with ``stack``. Pipelines do not need it after their creation."""
    info = new("VkShaderModuleCreateInfo", pCode=code)
    return device.create(stack, "shader module", "ShaderModule", info, f"shader {label!r}")


# Each feature's behaviour for buffers and images, from the weakest to the strictest.
_OF_BUFFERS = {
    "pipelineRobustness": vk.PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_ROBUST_BUFFER_ACCESS,
    "robustBufferAccess2": vk.PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_ROBUST_BUFFER_ACCESS_2,
}
_OF_IMAGES = {
    "pipelineRobustness": vk.PIPELINE_ROBUSTNESS_IMAGE_BEHAVIOR_DEVICE_DEFAULT,
    "robustImageAccess": vk.PIPELINE_ROBUSTNESS_IMAGE_BEHAVIOR_ROBUST_IMAGE_ACCESS,
    "robustImageAccess2": vk.PIPELINE_ROBUSTNESS_IMAGE_BEHAVIOR_ROBUST_IMAGE_ACCESS_2,
}


def robustness_behaviours(features: Collection[Feature]) -> tuple[int, int] | None:
    """Return the behaviour for buffers and images under the enabled ``features``; None without pipeline robustness."""
    members = {feature.member for feature in features}
    if "pipelineRobustness" not in members:
        return None
    buffers, images = ([table[name] for name in table if name in members][-1] for table in (_OF_BUFFERS, _OF_IMAGES))
    return buffers, images


_FEEDBACK = "VK_EXT_pipeline_creation_feedback"


class Creation(NamedTuple):
    """The driver's feedback on a pipeline.

    ``hit`` tells whether the pipeline came from the cache, ``duration_ns`` how long the creation took; both are None if
    the driver does not tell. ``pointer`` is the JSON pointer of the shader or graph.
    """

    label: str
    pointer: str
    hit: bool | None
    duration_ns: int | None


def feedback_required(physical: PhysicalDevice, disabled_extensions: Collection[str] = ()) -> Enabled:
    """Return the requirements for telling hits from misses, as far as the device supports them.

    They are the extension for feedback, unless the device's Vulkan version includes it, and the feature for
    VK_PIPELINE_COMPILE_REQUIRED.
    """
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
        """Create a cache from ``data`` of an earlier cache, or empty.

        Pipelines of different ``owner``s are created separately, so that each cache holds all of its owner's pipelines.
        With ``asks_for_misses``, the driver reports VK_PIPELINE_COMPILE_REQUIRED for a pipeline in no cache, before it
        compiles.

        Raises DeviceError if the driver cannot create even an empty cache.
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
            log.warning(__name__, "the driver rejects the pipeline cache of an earlier run; the cache starts empty")
            self.handle = self._create(self._stack, b"")

    def _create(self, stack: ExitStack, data: bytes) -> Handle:
        info = new("VkPipelineCacheCreateInfo", pInitialData=data)
        return self._device.create(stack, "pipeline cache", "PipelineCache", info)

    def merge(self, data: bytes) -> None:
        """Merge the data of another cache. Data that the driver rejects is ignored. Raises DeviceError."""
        device = self._device
        with ExitStack() as stack:
            try:
                other = self._create(stack, data)
            except errors.ScenarioRunnerError:
                return
            check(device.fn.vkMergePipelineCaches(device.handle, self.handle, 1, [other]), "vkMergePipelineCaches")

    def create(self, make: Callable[[Handle], int], info: Handle, label: str, pointer: str, stages: int) -> int:
        """Create a pipeline from ``info`` with this many shader stages, and note the driver's feedback.

        ``make`` creates it with a VkPipelineCache and returns the VkResult. This function returns the same result.
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
        """Return the current content of the cache (vkGetPipelineCacheData). Raises DeviceError."""
        name, get = "vkGetPipelineCacheData", self._device.fn.vkGetPipelineCacheData
        size = ffi.new("size_t*")
        check(get(self._device.handle, self.handle, size, ffi.NULL), name)
        data = ffi.new("uint8_t[]", max(size[0], 1))
        check(get(self._device.handle, self.handle, size, data), name)
        return bytes(ffi.buffer(data, size[0]))

    def close(self) -> None:
        """Destroy the cache, unless the device is abandoned. Its pipelines stay."""
        if self._device.abandoned:
            self._stack.pop_all()
        self._stack.close()
