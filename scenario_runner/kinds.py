"""The registry of kinds: each resource and each command of the format, with the classes that deal with it.

Classes and functions are named as "module:name", the module counted from this package, and imported when one of their
kind is first met (`load`). So every layer can look a kind up here, and a run imports only what its scenario uses.
Names of packages are imported in the same way (`lazy_names`). Standard library only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package, with the module below it that each name comes from."""

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


class ResourceKind(NamedTuple):
    """A kind of resource, and its key in the JSON.

    ``model`` is its pydantic model. ``resolver`` (a `plan.context.ResourceResolver`) makes its plan, whose ``kind``
    is ``key``; ``device`` is the function that creates all resources of the kind (see `vulkan.resources.creation`).
    Kinds without memory on the device have none: the commands that name them look at their models.
    """

    key: str
    model: str
    resolver: str = ""
    device: str = ""


class CommandKind(NamedTuple):
    """A kind of command, its key in the JSON, and ``older`` spellings of it.

    ``resolver`` (a `plan.context.CommandResolver`) turns commands into operations.
    ``recorder`` (a `vulkan.execution.prepared.Recorder`) records the operations whose ``kind`` is ``operation``.
    ``measured`` is what profiles call them, empty for those whose time is not measured.
    """

    key: str
    model: str
    resolver: str
    operation: str = ""
    recorder: str = ""
    measured: str = ""
    older: tuple[str, ...] = ()


_RESOURCES = (
    ResourceKind("image", "scenario.images:Image", "plan.images:Images", "vulkan.resources.images:create_images"),
    ResourceKind(
        "tensor", "scenario.tensors:Tensor", "plan.tensors:Tensors", "vulkan.resources.tensors:create_tensors"
    ),
    ResourceKind(
        "buffer", "scenario.buffers:Buffer", "plan.resources:Buffers", "vulkan.resources.buffers:create_buffers"
    ),
    ResourceKind("raw_data", "scenario.raw_data:RawData", "plan.resources:RawDatas"),
    ResourceKind("shader", "scenario.shaders:Shader"),
    ResourceKind("graph", "scenario.graphs:Graph"),
    ResourceKind("graph_constant", "scenario.graphs:GraphConstant"),
    ResourceKind("memory_barrier", "scenario.barriers:MemoryBarrier"),
    ResourceKind("buffer_barrier", "scenario.barriers:BufferBarrier"),
    ResourceKind("image_barrier", "scenario.barriers:ImageBarrier"),
    ResourceKind("tensor_barrier", "scenario.barriers:TensorBarrier"),
)

_GRAPHS = (
    "plan.graphs.commands:Graphs",
    "graph_dispatch",
    "vulkan.execution.graph_recording:GraphRecorder",
    "DataGraphDispatch",
)
_COMMANDS = (
    CommandKind(
        "dispatch_compute",
        "scenario.compute:DispatchCompute",
        "plan.dispatches:Dispatches",
        "dispatch",
        "vulkan.execution.recording:DispatchRecorder",
        "ComputeDispatch",
    ),
    CommandKind("dispatch_graph", "scenario.graph_commands:DispatchGraph", *_GRAPHS, older=("dispatch_vgf",)),
    CommandKind(
        "dispatch_spirv_graph",
        "scenario.graph_commands:DispatchSpirvGraph",
        *_GRAPHS,
        older=("dispatch_data_graph",),
    ),
    CommandKind(
        "dispatch_fragment",
        "scenario.fragment:DispatchFragment",
        "plan.fragment:Drawings",
        "draw",
        "vulkan.execution.drawing_recording:DrawingRecorder",
        "GraphicsDispatch",
    ),
    CommandKind(
        "dispatch_optical_flow",
        "scenario.optical_flow:DispatchOpticalFlow",
        "plan.optical_flow:OpticalFlows",
        "optical_flow_dispatch",
        "vulkan.execution.graph_recording:OpticalFlowRecorder",
        "DataGraphDispatch",
    ),
    CommandKind(
        "dispatch_barrier",
        "scenario.barriers:DispatchBarrier",
        "plan.barriers:Barriers",
        "barrier",
        "vulkan.execution.barrier_recording:BarrierRecorder",
        older=("pipeline_barrier",),
    ),
    CommandKind(
        "mark_boundary", "scenario.boundary:MarkBoundary", "plan.barriers:Boundaries", older=("frame_boundary",)
    ),
)

RESOURCES = {kind.key: kind for kind in _RESOURCES}
"""The kinds of resources by their keys in the JSON."""

COMMANDS = {key: kind for kind in _COMMANDS for key in (kind.key, *kind.older)}
"""The kinds of commands by their keys in the JSON, old and new ones alike."""

RECORDERS = {kind.operation: kind.recorder for kind in _COMMANDS if kind.recorder}
"""The ``kind`` of an operation in a plan → what records it."""

MEASURED = {kind.operation: kind.measured for kind in _COMMANDS if kind.measured}
"""The ``kind`` of an operation whose time is measured → what profiles call it: the reference runner's names."""


@cache
def load(name: str) -> Any:
    """The class or function that a registry entry names. Raises ImportError and AttributeError where there is none."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"scenario_runner.{module}"), attribute)
