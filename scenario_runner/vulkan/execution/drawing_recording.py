"""Recording draws with dynamic rendering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.plan.model.commands import Draw, Target
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.structs import new
from scenario_runner.vulkan.execution.prepared import Prepared, Recorder
from scenario_runner.vulkan.pipelines.graphics import SHADER_STAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scenario_runner.vulkan.resources.companion_image import CompanionImage

_MEMORY = vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT


class DrawingRecorder(Recorder):
    """Records draws; what is bound already is not bound again.

    Draws into the same attachments with nothing between them are one rendering. Attachments are loaded, so that what a
    draw does not cover stays.
    """

    keeps_open = True

    def __init__(self, prepared: Prepared, commands: Any, alone: bool) -> None:
        super().__init__(prepared, commands, alone)
        device = prepared.device
        fn = device.fn
        suffix = "KHR" if "VK_KHR_dynamic_rendering" in device.enabled.extensions else ""
        self._begin = getattr(fn, f"vkCmdBeginRendering{suffix}")
        self._end = getattr(fn, f"vkCmdEndRendering{suffix}")
        self._bind_pipeline, self._bind_sets = fn.vkCmdBindPipeline, fn.vkCmdBindDescriptorSets
        self._push, self._draw = fn.vkCmdPushConstants, fn.vkCmdDraw
        self._set_viewport, self._set_scissor = fn.vkCmdSetViewport, fn.vkCmdSetScissor
        self._pipeline_barrier = fn.vkCmdPipelineBarrier
        self._everything = new("VkMemoryBarrier", srcAccessMask=vk.ACCESS_MEMORY_WRITE_BIT, dstAccessMask=_MEMORY)
        self._renderings: dict[tuple[tuple[Target, ...], tuple[int, int]], tuple[Any, list[CompanionImage]]] = {}
        self._open: tuple[tuple[Target, ...], tuple[int, int]] | None = None
        self._open_companions: list[CompanionImage] = []
        self.disturbed()

    def disturbed(self) -> None:
        self._pipeline = self._descriptors = -1
        self._layout: Any = None
        self._extent = (0, 0)
        self._pushed: bytes | None = None

    def record(self, operations: Iterable[Draw]) -> None:
        for draw in operations:
            self._record(draw)
        self._finish()

    def _record(self, draw: Draw) -> None:
        """One draw, and the barrier after it."""
        commands = self.commands
        key = (draw.targets, draw.extent)
        if key != self._open:
            self._finish()
            self._start(key)
        if draw.extent != self._extent:
            self._extent = draw.extent
            width, height = draw.extent
            self._set_viewport(commands, 0, 1, [(0, 0, width, height, 0, 1)])
            self._set_scissor(commands, 0, 1, [((0, 0), (width, height))])
        if draw.pipeline != self._pipeline:
            self._pipeline = draw.pipeline
            pipeline = self.prepared.graphics[draw.pipeline]
            self._bind_pipeline(commands, vk.PIPELINE_BIND_POINT_GRAPHICS, pipeline.handle)
            if pipeline.layout != self._layout:
                self._layout = pipeline.layout
                self._descriptors = -1
                self._pushed = None
        if draw.descriptors != self._descriptors:
            self._descriptors = draw.descriptors
            sets, count = self.prepared.descriptor_sets[draw.descriptors]
            if count:
                self._bind_sets(commands, vk.PIPELINE_BIND_POINT_GRAPHICS, self._layout, 0, count, sets, 0, ffi.NULL)
        if draw.push_constants and draw.push_constants != self._pushed:
            self._pushed = draw.push_constants
            data = ffi.from_buffer(self._pushed)
            self._push(commands, self._layout, SHADER_STAGES, 0, len(self._pushed), data)
        self._draw(commands, 3, 1, 0, 0)
        if draw.barrier_after:
            self._finish()
            self._barrier()

    def _finish(self) -> None:
        """End the rendering that is going on, if there is one."""
        if self._open is None:
            return
        self._open = None
        self._end(self.commands)
        if self._open_companions:
            for companion in self._open_companions:
                companion.record_out(self.commands)
            self._open_companions = []
            self._barrier()

    def _start(self, key: tuple[tuple[Target, ...], tuple[int, int]]) -> None:
        self._open = key
        targets, extent = key
        found = self._renderings.get(key)
        if found is None:
            found = self._renderings[key] = self._rendering(targets, extent)
        info, companions = found
        if companions:
            self._barrier()  # the scenario's barriers are about the attachments, not about copies of them
            self._open_companions = companions
            for companion in companions:
                companion.record_in(self.commands)
        self._begin(self.commands, info)

    def _rendering(self, targets: Sequence[Target], extent: tuple[int, int]) -> tuple[Any, list[CompanionImage]]:
        """VkRenderingInfo, and the companion images that are drawn into in place of others."""
        attachments: list[dict[str, Any]] = []
        companions: list[CompanionImage] = []
        for uid, level in targets:
            image = self.prepared.resources[uid]
            view, layout = image.render_target(level)
            if image.companions:
                companions.append(image.companions[level])
            attachments.append(
                {
                    "sType": vk.STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO,
                    "imageView": view,
                    "imageLayout": layout,
                    "loadOp": vk.ATTACHMENT_LOAD_OP_LOAD,
                    "storeOp": vk.ATTACHMENT_STORE_OP_STORE,
                }
            )
        area = {"extent": {"width": extent[0], "height": extent[1]}}
        return new("VkRenderingInfo", renderArea=area, layerCount=1, pColorAttachments=attachments), companions

    def _barrier(self) -> None:
        """Everything before, before everything after."""
        self._pipeline_barrier(
            self.commands,
            vk.PIPELINE_STAGE_ALL_COMMANDS_BIT,
            vk.PIPELINE_STAGE_ALL_COMMANDS_BIT,
            0,
            1,
            self._everything,
            0,
            ffi.NULL,
            0,
            ffi.NULL,
        )
