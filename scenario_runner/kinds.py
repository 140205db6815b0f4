"""The registry of kinds: each resource and each command of the format, with the classes that deal with it.

Classes and functions are named here as "module:name", the module counted from this package, and imported when they are
first asked for: ``COMMANDS["dispatch_compute"].resolver`` is the class itself. So every layer can look a kind up here,
and a run imports only what its scenario uses. Names of packages are imported in the same way (`lazy_names`). Standard
library only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import Any


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


class _Kind:
    """A kind of entry, its ``key`` in the JSON, and the classes that deal with it."""

    def __init__(self, key: str, model: str, resolver: str) -> None:
        self.key = key
        self._model = model
        self._resolver = resolver

    @cached_property
    def model(self) -> Any:
        """The pydantic model."""
        return load(self._model)

    @cached_property
    def resolver(self) -> Any:
        """The class that plans what is of this kind, see `plan.context`; None where nothing is planned."""
        return load(self._resolver) if self._resolver else None


class ResourceKind(_Kind):
    """A kind of resource; its ``key`` is also the ``kind`` of its plan.

    Kinds without memory on the device have only a model: the commands that name them look at it.
    """

    def __init__(self, key: str, model: str, resolver: str = "", device: str = "") -> None:
        super().__init__(key, model, resolver)
        self._device = device

    @cached_property
    def device(self) -> Any:
        """The function that creates all resources of the kind (see `vulkan.resources.creation`), or None."""
        return load(self._device) if self._device else None


class CommandKind(_Kind):
    """A kind of command, and ``older`` spellings of its key.

    Its resolver turns commands into operations whose ``kind`` is ``operation``. ``measured`` is what profiles call
    them, empty for those whose time is not measured.
    """

    def __init__(
        self,
        key: str,
        model: str,
        resolver: str,
        operation: str = "",
        recorder: str = "",
        measured: str = "",
        older: tuple[str, ...] = (),
    ) -> None:
        super().__init__(key, model, resolver)
        self.operation = operation
        self._recorder = recorder
        self.measured = measured
        self.older = older

    @cached_property
    def recorder(self) -> Any:
        """The `vulkan.execution.recording.Recorder` of its operations; None where it has none."""
        return load(self._recorder) if self._recorder else None


_RESOURCES = (
    ResourceKind("image", "scenario.storage:Image", "plan.images:Images", "vulkan.resources.images:create_images"),
    ResourceKind(
        "tensor", "scenario.storage:Tensor", "plan.tensors:Tensors", "vulkan.resources.tensors:create_tensors"
    ),
    ResourceKind(
        "buffer", "scenario.storage:Buffer", "plan.resources:Buffers", "vulkan.resources.buffers:create_buffers"
    ),
    ResourceKind("raw_data", "scenario.storage:RawData"),
    ResourceKind("shader", "scenario.shaders:Shader"),
    ResourceKind("graph", "scenario.shaders:Graph"),
    ResourceKind("graph_constant", "scenario.shaders:GraphConstant"),
    ResourceKind("memory_barrier", "scenario.barriers:MemoryBarrier"),
    ResourceKind("buffer_barrier", "scenario.barriers:BufferBarrier"),
    ResourceKind("image_barrier", "scenario.barriers:ImageBarrier"),
    ResourceKind("tensor_barrier", "scenario.barriers:TensorBarrier"),
)

_GRAPHS = (
    "plan.graph_commands:Graphs",
    "graph_dispatch",
    "vulkan.execution.graph_recording:GraphRecorder",
    "DataGraphDispatch",
)
_COMMANDS = (
    CommandKind(
        "dispatch_compute",
        "scenario.commands:DispatchCompute",
        "plan.commands:Dispatches",
        "dispatch",
        "vulkan.execution.recording:DispatchRecorder",
        "ComputeDispatch",
    ),
    CommandKind("dispatch_graph", "scenario.commands:DispatchGraph", *_GRAPHS, older=("dispatch_vgf",)),
    CommandKind(
        "dispatch_spirv_graph",
        "scenario.commands:DispatchSpirvGraph",
        *_GRAPHS,
        older=("dispatch_data_graph",),
    ),
    CommandKind(
        "dispatch_fragment",
        "scenario.commands:DispatchFragment",
        "plan.fragment:Drawings",
        "draw",
        "vulkan.execution.recorders:DrawingRecorder",
        "GraphicsDispatch",
    ),
    CommandKind(
        "dispatch_optical_flow",
        "scenario.commands:DispatchOpticalFlow",
        "plan.optical_flow:OpticalFlows",
        "optical_flow_dispatch",
        "vulkan.execution.graph_recording:OpticalFlowRecorder",
        "DataGraphDispatch",
    ),
    CommandKind(
        "dispatch_barrier",
        "scenario.barriers:DispatchBarrier",
        "plan.commands:Barriers",
        "barrier",
        "vulkan.execution.recorders:BarrierRecorder",
        older=("pipeline_barrier",),
    ),
    CommandKind(
        "mark_boundary", "scenario.commands:MarkBoundary", "plan.commands:Boundaries", older=("frame_boundary",)
    ),
)

RESOURCES = {kind.key: kind for kind in _RESOURCES}
"""The kinds of resources by their keys in the JSON."""

COMMANDS = {key: kind for kind in _COMMANDS for key in (kind.key, *kind.older)}
"""The kinds of commands by their keys in the JSON, old and new ones alike."""

OPERATIONS = {kind.operation: kind for kind in _COMMANDS if kind.operation}
"""A kind of command that becomes operations, by the ``kind`` of these."""

MEASURED = {kind.operation: kind.measured for kind in _COMMANDS if kind.measured}
"""The ``kind`` of an operation whose time is measured → what profiles call it: the reference runner's names."""


@cache
def load(name: str) -> Any:
    """Import a class or function that is named as here. Raises ImportError and AttributeError where there is none."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"scenario_runner.{module}"), attribute)
