"""Creating the resources of a plan and giving them memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scenario_runner.kinds import RESOURCES, load
from scenario_runner.plan.model.plan import ResourcePlan
from scenario_runner.vulkan.devices.device import Device
from scenario_runner.vulkan.memory.blocks import MemoryBlocks
from scenario_runner.vulkan.memory.placement import place

if TYPE_CHECKING:
    from scenario_runner.vulkan.resources.samplers import SamplerCache


def create_resources(
    device: Device,
    memory: MemoryBlocks,
    stack: ExitStack,
    plans: Iterable[ResourcePlan],
    samplers: Callable[[], SamplerCache],
) -> dict[str, Any]:
    """Create every resource of a plan and give it memory: a `Resource` for each uid.

    The registry of kinds names what creates all resources of one kind. It gets the arguments of this function but
    for ``memory``, and the resources made before, by uid, and returns its own by uid.

    Raises OutOfMemoryError, UnsupportedError and others, with the place.
    """
    plans = list(plans)
    by_kind: dict[str, list[ResourcePlan]] = {}
    for plan in plans:
        by_kind.setdefault(plan.kind, []).append(plan)
    made: dict[str, Any] = {}
    for kind in RESOURCES:  # images before the tensors that see them
        if kind in by_kind:
            made |= load(RESOURCES[kind].device)(device, stack, by_kind[kind], made, samplers)
    resources = {plan.uid: made[plan.uid] for plan in plans}
    if by_kind.keys() - {"buffer"}:
        from scenario_runner.vulkan.resources.aliasing import check_aliases

        check_aliases(device, resources)
    place(device, memory, stack, resources.values())
    return resources
