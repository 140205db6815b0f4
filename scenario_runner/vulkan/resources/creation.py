"""Creating the resources of a plan and giving them memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scenario_runner.plan.model.plan import ResourcePlan
from scenario_runner.plan.model.records import BufferPlan
from scenario_runner.vulkan.devices.device import Device
from scenario_runner.vulkan.memory.placement import place
from scenario_runner.vulkan.resources.buffers import Buffer

if TYPE_CHECKING:
    from scenario_runner.vulkan.resources.samplers import SamplerCache


def create_resources(
    device: Device, stack: ExitStack, plans: Iterable[ResourcePlan], samplers: Callable[[], SamplerCache]
) -> dict[str, Any]:
    """Create every resource of a plan and give it memory: a `Resource` for each uid.

    Raises OutOfMemoryError, UnsupportedError and others, with the place.
    """
    resources: dict[str, Any] = {}
    others = []
    for plan in plans:
        if isinstance(plan, BufferPlan):
            resources[plan.uid] = Buffer(device, stack, plan)
        else:
            others.append(plan)
    if others:
        from scenario_runner.plan.model.images import ImagePlan

        images = [plan for plan in others if isinstance(plan, ImagePlan)]
        if images:
            from scenario_runner.vulkan.resources.images import create_images

            resources.update(create_images(device, stack, images, samplers()))
        tensors = [plan for plan in others if not isinstance(plan, ImagePlan)]
        if tensors:
            from scenario_runner.vulkan.resources.tensors import create_tensors

            resources.update(create_tensors(device, stack, tensors, resources))
        from scenario_runner.vulkan.resources.aliasing import check_aliases

        check_aliases(device, resources.values())
    place(device, stack, resources.values())
    return resources
