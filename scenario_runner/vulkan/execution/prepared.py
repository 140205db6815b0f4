"""What the operations of a plan use on the device, ready before the first command is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from scenario_runner.vulkan.devices.device import Device
from scenario_runner.vulkan.pipelines.compute import Pipeline


class Prepared(NamedTuple):
    """Operations name pipelines, graphs and descriptor lists by their index in the plan, resources by uid.

    ``pipelines`` are those of compute shaders, ``graphics`` those of drawings, ``graphs`` `GraphPipeline` objects;
    ``descriptor_sets`` are (VkDescriptorSet*, count) of each list. ``flow_inputs`` has `FlowInputs` by the index of the
    list that they replace.
    """

    device: Device
    resources: Mapping[str, Any]
    pipelines: Sequence[Pipeline]
    graphs: Sequence[Any]
    descriptor_sets: Sequence[tuple[Any, int]]
    graphics: Sequence[Pipeline] = ()
    flow_inputs: Mapping[int, Any] = {}


class Recorder:
    """Records the operations of one kind into the command buffer of one frame; the registry of kinds names it.

    ``alone`` says that the frame has nothing but dispatches of compute shaders and barriers: else a barrier after an
    operation has to cover the stages of other work as well. ``binds`` says whether it binds pipelines and descriptors,
    ``keeps_open`` whether a part of an operation may be recorded after those that follow it.
    """

    binds: ClassVar[bool] = True
    keeps_open: ClassVar[bool] = False

    def __init__(self, prepared: Prepared, commands: Any, alone: bool) -> None:
        self.prepared = prepared
        self.commands = commands

    def record(self, operations: Iterable[Any]) -> None:
        """Record operations that follow each other, with the implicit barriers after them.

        Without ``keeps_open`` an operation is recorded before the next one is asked for: ``operations`` may record
        something in between.
        """
        raise NotImplementedError

    def disturbed(self) -> None:
        """Called when another recorder may have bound something else."""
