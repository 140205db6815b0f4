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
    from scenario_runner.scenario.bindings import Binding
    from scenario_runner.scenario.boundary import MarkBoundary
    from scenario_runner.scenario.buffers import Buffer
    from scenario_runner.scenario.compute import DispatchCompute
    from scenario_runner.scenario.entry import Command, Resource
    from scenario_runner.scenario.fragment import ColorAttachment, DispatchFragment
    from scenario_runner.scenario.graph_commands import DispatchGraph, DispatchSpirvGraph, PushConstantMap
    from scenario_runner.scenario.graphs import Graph, GraphConstant, ShaderSubstitution, SpecializationConstantMap
    from scenario_runner.scenario.images import Image
    from scenario_runner.scenario.loader import from_dict, load, loads
    from scenario_runner.scenario.memory import MemoryGroup
    from scenario_runner.scenario.model import Model
    from scenario_runner.scenario.optical_flow import DispatchOpticalFlow, OpticalFlowBindings
    from scenario_runner.scenario.raw_data import RawData
    from scenario_runner.scenario.references import check_references
    from scenario_runner.scenario.scenario import Scenario
    from scenario_runner.scenario.schema import json_schema
    from scenario_runner.scenario.shaders import Shader, SpecializationConstant
    from scenario_runner.scenario.tensors import Tensor

_HOME = {
    "Binding": "bindings",
    "Buffer": "buffers",
    "BufferBarrier": "barriers",
    "ColorAttachment": "fragment",
    "Command": "entry",
    "DispatchBarrier": "barriers",
    "DispatchCompute": "compute",
    "DispatchFragment": "fragment",
    "DispatchGraph": "graph_commands",
    "DispatchOpticalFlow": "optical_flow",
    "DispatchSpirvGraph": "graph_commands",
    "Graph": "graphs",
    "GraphConstant": "graphs",
    "Image": "images",
    "ImageBarrier": "barriers",
    "MarkBoundary": "boundary",
    "MemoryBarrier": "barriers",
    "MemoryGroup": "memory",
    "Model": "model",
    "OpticalFlowBindings": "optical_flow",
    "PushConstantMap": "graph_commands",
    "RawData": "raw_data",
    "Resource": "entry",
    "Scenario": "scenario",
    "Shader": "shaders",
    "ShaderSubstitution": "graphs",
    "SpecializationConstant": "shaders",
    "SpecializationConstantMap": "graphs",
    "SubresourceRange": "barriers",
    "Tensor": "tensors",
    "TensorBarrier": "barriers",
    "check_references": "references",
    "from_dict": "loader",
    "json_schema": "schema",
    "load": "loader",
    "loads": "loader",
}

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
