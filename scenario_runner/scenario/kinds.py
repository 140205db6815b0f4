"""The registry of kinds: the key of each resource and command in a file, its model and its older spellings.

Other packages have a table of what they do with a kind: resolvers in `plan.resolve`, creators in `vulkan.execute`,
recorders in `vulkan.frame_recording`.
"""

from typing import NamedTuple

from scenario_runner.scenario import commands, resources, shaders
from scenario_runner.scenario.entries import Model


class Kind(NamedTuple):
    """A kind of resource or command: its ``key`` in the JSON, its pydantic model, and older spellings of the key."""

    key: str
    model: type[Model]
    older: tuple[str, ...] = ()


_RESOURCES = (
    Kind("image", resources.Image),
    Kind("tensor", resources.Tensor),
    Kind("buffer", resources.Buffer),
    Kind("raw_data", resources.RawData),
    Kind("shader", shaders.Shader),
    Kind("graph", shaders.Graph),
    Kind("graph_constant", shaders.GraphConstant),
    Kind("memory_barrier", resources.MemoryBarrier),
    Kind("buffer_barrier", resources.BufferBarrier),
    Kind("image_barrier", resources.ImageBarrier),
    Kind("tensor_barrier", resources.TensorBarrier),
)
_COMMANDS = (
    Kind("dispatch_compute", commands.DispatchCompute),
    Kind("dispatch_graph", commands.DispatchGraph, older=("dispatch_vgf",)),
    Kind("dispatch_spirv_graph", commands.DispatchSpirvGraph, older=("dispatch_data_graph",)),
    Kind("dispatch_fragment", commands.DispatchFragment),
    Kind("dispatch_optical_flow", commands.DispatchOpticalFlow),
    Kind("dispatch_barrier", commands.DispatchBarrier, older=("pipeline_barrier",)),
    Kind("mark_boundary", commands.MarkBoundary, older=("frame_boundary",)),
)

# The kinds of resources by their keys in the JSON.
RESOURCES = {kind.key: kind for kind in _RESOURCES}

# The kinds of commands by their keys in the JSON, old and new ones alike.
COMMANDS = {key: kind for kind in _COMMANDS for key in (kind.key, *kind.older)}
