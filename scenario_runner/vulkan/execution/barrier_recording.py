"""Recording the barriers of a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.structs import chain, new
from scenario_runner.vulkan.execution.prepared import Recorder

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import Barrier

# A queue without graph work has no such stage: what the scenario asks is then covered by all commands.
_STAGES = {
    "compute": vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT,
    "all": vk.PIPELINE_STAGE_ALL_COMMANDS_BIT,
    "graph": vk.PIPELINE_STAGE_ALL_COMMANDS_BIT,
    "graphics": vk.PIPELINE_STAGE_VERTEX_SHADER_BIT
    | vk.PIPELINE_STAGE_FRAGMENT_SHADER_BIT
    | vk.PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
}
# The same on a queue without graphics, which has no such stages either.
_STAGES_WITHOUT_GRAPHICS = {**_STAGES, "graphics": vk.PIPELINE_STAGE_ALL_COMMANDS_BIT}
_ACCESS = {
    "graph_read": vk.ACCESS_MEMORY_READ_BIT,
    "graph_write": vk.ACCESS_MEMORY_WRITE_BIT,
    "memory_read": vk.ACCESS_MEMORY_READ_BIT,
    "memory_write": vk.ACCESS_MEMORY_WRITE_BIT,
    # what a shader reads of a uniform buffer is an access of its own in Vulkan; a scenario knows one word for both
    "compute_shader_read": vk.ACCESS_SHADER_READ_BIT | vk.ACCESS_UNIFORM_READ_BIT,
    "compute_shader_write": vk.ACCESS_SHADER_WRITE_BIT,
}


class BarrierRecorder(Recorder):
    """Records barriers; what is bound stays bound."""

    binds = False

    def record(self, operations: Iterable[Barrier]) -> None:
        for operation in operations:
            self._record(operation)

    def _record(self, operation: Barrier) -> None:
        """One vkCmdPipelineBarrier for all barriers with equal stages (version 1 takes one pair of masks a call)."""
        by_stages: dict[tuple[int, int], tuple[list[Any], list[Any], list[Any]]] = {}
        tensors = []
        stages = _STAGES if self.prepared.device.has_graphics else _STAGES_WITHOUT_GRAPHICS
        for barrier in operation.barriers:
            src, dst = _mask(barrier.src_stages, stages), _mask(barrier.dst_stages, stages)
            # version 1 has no empty stage mask; top and bottom of pipe, without any access, stand for "no stage"
            src_access = _ACCESS[barrier.src_access] if src else 0
            dst_access = _ACCESS[barrier.dst_access] if dst else 0
            if barrier.kind == "tensor":
                tensors.append((self.prepared.resources[barrier.uid], src, src_access, dst, dst_access))
                continue
            key = (src or vk.PIPELINE_STAGE_TOP_OF_PIPE_BIT, dst or vk.PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT)
            memory, buffers, images = by_stages.setdefault(key, ([], [], []))
            if barrier.kind == "memory":
                memory.append(
                    {
                        "sType": vk.STRUCTURE_TYPE_MEMORY_BARRIER,
                        "srcAccessMask": src_access,
                        "dstAccessMask": dst_access,
                    }
                )
            elif barrier.kind == "image":
                images.append(
                    (self.prepared.resources[barrier.uid].barrier_transition(barrier), src_access, dst_access)
                )
            else:
                buffers.append(
                    {
                        "sType": vk.STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
                        "srcAccessMask": src_access,
                        "dstAccessMask": dst_access,
                        "srcQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
                        "dstQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
                        "buffer": self.prepared.resources[barrier.uid].handle,
                        "offset": barrier.offset_bytes,
                        "size": barrier.size_bytes,
                    }
                )
        for (src, dst), (memory, buffers, images) in by_stages.items():
            self.prepared.device.fn.vkCmdPipelineBarrier(
                self.commands,
                src,
                dst,
                0,
                len(memory),
                ffi.new("VkMemoryBarrier[]", memory),
                len(buffers),
                ffi.new("VkBufferMemoryBarrier[]", buffers),
                len(images),
                _image_barriers(images),
            )
        if tensors:
            self._record_tensor_barriers(tensors)

    def _record_tensor_barriers(self, barriers: Sequence[tuple[Any, int, int, int, int]]) -> None:
        """One vkCmdPipelineBarrier2 for (tensor, source stages, source access, destination stages, access) of each."""
        infos = [
            {
                "sType": vk.STRUCTURE_TYPE_TENSOR_MEMORY_BARRIER_ARM,
                "srcStageMask": src_stages,
                "srcAccessMask": src_access,
                "dstStageMask": dst_stages,
                "dstAccessMask": dst_access,
                "srcQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
                "dstQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
                "tensor": tensor.handle,
            }
            for tensor, src_stages, src_access, dst_stages, dst_access in barriers
        ]
        dependency = chain(new("VkDependencyInfo"), new("VkTensorDependencyInfoARM", pTensorMemoryBarriers=infos))
        self.prepared.device.fn.vkCmdPipelineBarrier2(self.commands, dependency)


def _image_barriers(images: list[tuple[Any, int, int]]) -> Any:
    """VkImageMemoryBarrier[] of (transition, source access, destination access)."""
    if not images:
        return ffi.NULL
    from scenario_runner.vulkan.resources.image_layouts import image_barriers

    barriers = image_barriers([transition for transition, _, _ in images], 0, 0)
    for barrier, (_, src_access, dst_access) in zip(barriers, images, strict=True):
        barrier.srcAccessMask, barrier.dstAccessMask = src_access, dst_access
    return barriers


def _mask(stages: tuple[str, ...], bits: Mapping[str, int]) -> int:
    mask = 0
    for stage in stages:
        mask |= bits[stage]
    return mask
