"""What the operations of a plan use on the device, ready before the first command is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scenario_runner.vulkan.devices.device import Device
from scenario_runner.vulkan.pipelines.compute import Pipeline


class Prepared(NamedTuple):
    """Operations name pipelines, graphs and descriptor lists by their index in the plan, resources by uid.

    ``pipelines`` are those of compute shaders, ``graphics`` those of drawings, ``graphs`` `GraphPipeline` objects;
    ``descriptor_sets`` are (VkDescriptorSet*, count) of each list.
    """

    device: Device
    resources: Mapping[str, Any]
    pipelines: Sequence[Pipeline]
    graphs: Sequence[Any]
    descriptor_sets: Sequence[tuple[Any, int]]
    graphics: Sequence[Pipeline] = ()
