"""What runs on one device share: pipelines, samplers, memory and a fence, made when first needed and kept."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from scenario_runner.vulkan.devices.device import Device
from scenario_runner.vulkan.execution.submission import Submission
from scenario_runner.vulkan.execution.transfer import Transfer
from scenario_runner.vulkan.pipelines.compute import PipelineCache
from scenario_runner.vulkan.resources.memory import MemoryBlocks

if TYPE_CHECKING:
    from scenario_runner.vulkan.pipelines.graphics import GraphicsCache
    from scenario_runner.vulkan.pipelines.graphs import GraphCache
    from scenario_runner.vulkan.resources.samplers import SamplerCache


class DeviceObjects:
    """The caches of an open device. `close` destroys them; it must come before the device's own."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._stack = ExitStack()
        self.pipelines = PipelineCache(device)
        self._stack.callback(self.pipelines.close)
        self.memory = MemoryBlocks(device)
        self._stack.callback(self.memory.close)

    @cached_property
    def submission(self) -> Submission:
        """What submits the frames of one run after the other."""
        submission = Submission(self.device)
        self._stack.callback(submission.close)
        return submission

    @cached_property
    def transfer(self) -> Transfer:
        """The way in and out of resources, with its staging memory."""
        transfer = Transfer(self.device)
        self._stack.callback(transfer.close)
        return transfer

    @cached_property
    def graphs(self) -> GraphCache:
        """Every data graph pipeline with its session, by content."""
        from scenario_runner.vulkan.pipelines.graphs import GraphCache

        graphs = GraphCache(self.device, self.pipelines)
        self._stack.callback(graphs.close)
        return graphs

    @cached_property
    def graphics(self) -> GraphicsCache:
        """Every graphics pipeline, by content."""
        from scenario_runner.vulkan.pipelines.graphics import GraphicsCache

        graphics = GraphicsCache(self.device, self.pipelines)
        self._stack.callback(graphics.close)
        return graphics

    @cached_property
    def samplers(self) -> SamplerCache:
        """Every sampler, by content."""
        from scenario_runner.vulkan.resources.samplers import SamplerCache

        samplers = SamplerCache(self.device)
        self._stack.callback(samplers.close)
        return samplers

    def trim(self) -> None:
        """Drop what was used longest ago; only between runs, when nothing is in use."""
        self.pipelines.trim()
        if "graphs" in vars(self):
            self.graphs.trim()
        if "graphics" in vars(self):
            self.graphics.trim()
        if "samplers" in vars(self):
            self.samplers.trim()

    def close(self) -> None:
        """Destroy everything, unless the device is abandoned; calling it again does nothing."""
        if self.device.abandoned:
            self._stack.pop_all()
        self._stack.close()
