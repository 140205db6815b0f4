"""The registry of kinds: each resource's and command's key, model and older spellings.

Other packages have tables by kind: `plan.resolve` the resolvers, `vulkan.execute` the creators and
`vulkan.frame_recording` the recorders.
"""

from typing import NamedTuple

from scenario_runner.scenario import commands, drawing, resources, shaders, transfer_commands
from scenario_runner.scenario.entries import Model


class Kind(NamedTuple):
    """A kind of resource or command: the ``key`` in the JSON, the pydantic model, and older spellings of the key."""

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
    Kind("dispatch_fragment", drawing.DispatchFragment),
    Kind("dispatch_optical_flow", commands.DispatchOpticalFlow),
    Kind("fill", transfer_commands.Fill),
    Kind("copy", transfer_commands.Copy),
    Kind("dispatch_barrier", commands.DispatchBarrier, older=("pipeline_barrier",)),
    Kind("mark_boundary", commands.MarkBoundary, older=("frame_boundary",)),
)

# Kinds of resources by key.
RESOURCES = {kind.key: kind for kind in _RESOURCES}

# Kinds of commands by key, with the older spellings.
COMMANDS = {key: kind for kind in _COMMANDS for key in (kind.key, *kind.older)}
