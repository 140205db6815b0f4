"""What the user wrote: the models of every resource and command, the loader and the reference checks. No GPU.

``load`` and ``loads`` give a frozen `Scenario`; ``Scenario(resources=..., commands=...)`` builds one in code from the
models. Names are imported when they are first used, because pydantic is the costliest import of a plain run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.kinds import lazy_names

if TYPE_CHECKING:
    from scenario_runner.scenario.barriers import (
        BufferBarrier,
        DispatchBarrier,
        ImageBarrier,
        MemoryBarrier,
        SubresourceRange,
        TensorBarrier,
    )
    from scenario_runner.scenario.commands import (
        Binding,
        ColorAttachment,
        DispatchCompute,
        DispatchFragment,
        DispatchGraph,
        DispatchOpticalFlow,
        DispatchSpirvGraph,
        MarkBoundary,
        OpticalFlowBindings,
        PushConstantMap,
    )
    from scenario_runner.scenario.loader import from_dict, load, loads
    from scenario_runner.scenario.model import Command, Model, Resource
    from scenario_runner.scenario.scenario import Scenario, check_references
    from scenario_runner.scenario.schema import json_schema
    from scenario_runner.scenario.shaders import (
        Graph,
        GraphConstant,
        Shader,
        ShaderSubstitution,
        SpecializationConstant,
        SpecializationConstantMap,
    )
    from scenario_runner.scenario.storage import Buffer, Image, MemoryGroup, RawData, Tensor

_NAMES = {
    "barriers": (
        "BufferBarrier",
        "DispatchBarrier",
        "ImageBarrier",
        "MemoryBarrier",
        "SubresourceRange",
        "TensorBarrier",
    ),
    "commands": (
        "Binding",
        "ColorAttachment",
        "DispatchCompute",
        "DispatchFragment",
        "DispatchGraph",
        "DispatchOpticalFlow",
        "DispatchSpirvGraph",
        "MarkBoundary",
        "OpticalFlowBindings",
        "PushConstantMap",
    ),
    "loader": ("from_dict", "load", "loads"),
    "model": ("Command", "Model", "Resource"),
    "scenario": ("Scenario", "check_references"),
    "schema": ("json_schema",),
    "shaders": (
        "Graph",
        "GraphConstant",
        "Shader",
        "ShaderSubstitution",
        "SpecializationConstant",
        "SpecializationConstantMap",
    ),
    "storage": ("Buffer", "Image", "MemoryGroup", "RawData", "Tensor"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Binding",
    "Buffer",
    "BufferBarrier",
    "ColorAttachment",
    "Command",
    "DispatchBarrier",
    "DispatchCompute",
    "DispatchFragment",
    "DispatchGraph",
    "DispatchOpticalFlow",
    "DispatchSpirvGraph",
    "Graph",
    "GraphConstant",
    "Image",
    "ImageBarrier",
    "MarkBoundary",
    "MemoryBarrier",
    "MemoryGroup",
    "Model",
    "OpticalFlowBindings",
    "PushConstantMap",
    "RawData",
    "Resource",
    "Scenario",
    "Shader",
    "ShaderSubstitution",
    "SpecializationConstant",
    "SpecializationConstantMap",
    "SubresourceRange",
    "Tensor",
    "TensorBarrier",
    "check_references",
    "from_dict",
    "json_schema",
    "load",
    "loads",
]


__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
