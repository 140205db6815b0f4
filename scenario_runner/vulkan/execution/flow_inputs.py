"""Copies of the mip levels that optical flows read, for a driver that reads them wrongly.

The ML emulation layers sample the pictures of an optical flow with unnormalized coordinates. That is allowed with any
view of a single level, but where this is not the first level of its image, llvmpipe of Mesa 25 reads none of its texels
(seen with 25.0.7; 22.3.6 is right). There, such a level is copied into an image that has no other, before each
optical flow that reads it; this costs little beside the optical flow, and is right on every llvmpipe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.pipelines.descriptors import allocate_sets
from scenario_runner.vulkan.resources.companion_image import CompanionImage
from scenario_runner.vulkan.resources.image_support import usage_flags

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.plan.model.records import Descriptor, DescriptorList
    from scenario_runner.vulkan.devices.device import Device


class FlowInputs(NamedTuple):
    """The descriptor sets of an optical flow, (VkDescriptorSet*, count), and the images to fill before it."""

    sets: tuple[Any, int]
    copies: tuple[CompanionImage, ...]


class _WithCopies(NamedTuple):
    """A resource for `allocate_sets`: an image that has a copy in its place at some bindings."""

    image: Any
    copies: Mapping[int, CompanionImage]

    def write_descriptor(self, write: Any, descriptor: Descriptor) -> Any:
        info = self.image.write_descriptor(write, descriptor)
        copy = self.copies.get(descriptor.binding)
        if copy is not None:
            info.imageView, info.imageLayout = copy.view, copy.layout
        return info


def flow_inputs(
    device: Device,
    stack: ExitStack,
    plan: Plan,
    resources: Mapping[str, Any],
    layouts_of: Callable[[DescriptorList], Sequence[Any]],
) -> dict[int, FlowInputs]:
    """What replaces the descriptor lists, by their index, of optical flows that read other levels than the first ones;
    nothing where the driver reads them rightly."""
    if device.physical.vulkan12_properties.driverID != vk.DRIVER_ID_MESA_LLVMPIPE:
        return {}
    flows = {
        operation.descriptors: plan.graph_pipelines[operation.pipeline]
        for frame in plan.frames
        for operation in frame.operations
        if operation.kind == "optical_flow_dispatch"
    }
    made: dict[tuple[str, int], CompanionImage] = {}
    found = {}
    for index, flow in flows.items():
        descriptors = plan.descriptor_lists[index]
        read = {connection.binding for connection in flow.resources if connection.reads}
        copies: dict[int, CompanionImage] = {}
        for descriptor in descriptors.descriptors:
            uid, level = descriptor.uid, descriptor.level
            if level and descriptor.binding in read:
                if (uid, level) not in made:
                    image = resources[uid]
                    usage = usage_flags(device, image.plan, "OPTIMAL")
                    made[uid, level] = CompanionImage(device, stack, image, level, usage, vk.IMAGE_LAYOUT_GENERAL)
                copies[descriptor.binding] = made[uid, level]
        if copies:
            seen: dict[str, Any] = {
                each.uid: _WithCopies(resources[each.uid], copies) for each in descriptors.descriptors
            }
            (sets,) = allocate_sets(device, stack, [descriptors], layouts_of, seen)
            found[index] = FlowInputs(sets, tuple(dict.fromkeys(copies.values())))
    return found
