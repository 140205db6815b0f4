"""The registry of kinds: each resource and each command of the format, with the classes that deal with it.

Classes and functions are named here as "module:name", the module counted from this package; `load` imports them. So
every layer can look a kind up here, and a run imports only what its scenario uses. Names of packages are imported in
the same way (`lazy_names`). Standard library only.
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


class Kind(NamedTuple):
    """A kind of resource or command, its ``key`` in the JSON, and the names of what deals with it (see `load`)."""

    key: str
    # The pydantic model.
    model: str

    # The `ResourceResolver` or `CommandResolver` that plans what is of this kind; empty where nothing is planned.
    resolver: str = ""

    # Of a resource: the function that creates all of the kind, see `vulkan.resources`. Of a command: the
    # `vulkan.recording.Recorder` of its operations. Empty for kinds that only others look at.
    device: str = ""

    # The ``kind`` of the operations that commands become; that of a planned resource is its key.
    operation: str = ""

    # Of a command: what profiles call its operations, empty for those whose time is not measured.
    measured: str = ""

    # Older spellings of the key.
    older: tuple[str, ...] = ()


_RESOURCES = (
    Kind("image", "scenario.resources:Image", "plan.images:Images", "vulkan.images:create_images"),
    Kind("tensor", "scenario.resources:Tensor", "plan.tensors:Tensors", "vulkan.tensors:create_tensors"),
    Kind("buffer", "scenario.resources:Buffer", "plan.resources:Buffers", "vulkan.resources:create_buffers"),
    Kind("raw_data", "scenario.resources:RawData"),
    Kind("shader", "scenario.shaders:Shader"),
    Kind("graph", "scenario.shaders:Graph"),
    Kind("graph_constant", "scenario.shaders:GraphConstant", "plan.tensors:GraphConstants"),
    Kind("memory_barrier", "scenario.resources:MemoryBarrier"),
    Kind("buffer_barrier", "scenario.resources:BufferBarrier"),
    Kind("image_barrier", "scenario.resources:ImageBarrier"),
    Kind("tensor_barrier", "scenario.resources:TensorBarrier"),
)

_GRAPHS = Kind(
    "dispatch_graph",
    "scenario.commands:DispatchGraph",
    "plan.graph_commands:Graphs",
    "vulkan.recorders:GraphRecorder",
    operation="graph_dispatch",
    measured="DataGraphDispatch",
    older=("dispatch_vgf",),
)
_COMMANDS = (
    Kind(
        "dispatch_compute",
        "scenario.commands:DispatchCompute",
        "plan.dispatches:Dispatches",
        "vulkan.recording:DispatchRecorder",
        operation="dispatch",
        measured="ComputeDispatch",
    ),
    _GRAPHS,
    _GRAPHS._replace(
        key="dispatch_spirv_graph", model="scenario.commands:DispatchSpirvGraph", older=("dispatch_data_graph",)
    ),
    Kind(
        "dispatch_fragment",
        "scenario.commands:DispatchFragment",
        "plan.draws:Drawings",
        "vulkan.recorders:DrawRecorder",
        operation="draw",
        measured="GraphicsDispatch",
    ),
    Kind(
        "dispatch_optical_flow",
        "scenario.commands:DispatchOpticalFlow",
        "plan.optical_flow:OpticalFlows",
        "vulkan.recorders:OpticalFlowRecorder",
        operation="optical_flow_dispatch",
        measured="DataGraphDispatch",
    ),
    Kind(
        "dispatch_barrier",
        "scenario.commands:DispatchBarrier",
        "plan.dispatches:Barriers",
        "vulkan.recorders:BarrierRecorder",
        operation="barrier",
        older=("pipeline_barrier",),
    ),
    Kind("mark_boundary", "scenario.commands:MarkBoundary", "plan.dispatches:Boundaries", older=("frame_boundary",)),
)

# The kinds of resources by their keys in the JSON.
RESOURCES = {kind.key: kind for kind in _RESOURCES}

# The kinds of commands by their keys in the JSON, old and new ones alike.
COMMANDS = {key: kind for kind in _COMMANDS for key in (kind.key, *kind.older)}

# A kind of command that becomes operations, by the ``kind`` of these.
OPERATIONS = {kind.operation: kind for kind in _COMMANDS if kind.operation}

# The ``kind`` of an operation whose time is measured → what profiles call it: the reference runner's names.
MEASURED = {kind.operation: kind.measured for kind in _COMMANDS if kind.measured}


@cache
def load(name: str) -> Any:
    """Import a class or function that is named as here. Raises ImportError and AttributeError where there is none."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"scenario_runner.{module}"), attribute)
