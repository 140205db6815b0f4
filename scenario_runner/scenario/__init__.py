"""The scenario as the user wrote it: the models of every resource and command, the loader and the reference checks. No
GPU.

``load`` and ``loads`` give a frozen `Scenario`; ``Scenario(resources=..., commands=...)`` builds one in code from the
models. Names are imported when they are first used, because pydantic is the costliest import of a plain run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from scenario_runner.scenario.scenario import Scenario
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
    "from_dict",
    "json_schema",
    "load",
    "loads",
]

# The first module that has a name is where it comes from; those that every planning imports are asked first.
_MODULES = ("scenario", "loader", "model", "storage", "shaders", "commands", "barriers", "schema")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            value = getattr(import_module(f"{__name__}.{module}"), name, None)
            if value is not None:
                globals()[name] = value
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
