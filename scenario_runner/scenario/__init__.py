"""Scenarios as data: the pydantic models of all resources and commands, the loader and the reference checks.

``load`` and ``loads`` return a frozen `Scenario`. ``Scenario(resources=..., commands=...)`` builds a scenario in
code from the models. No code here needs a GPU.
"""

from scenario_runner.scenario.commands import (
    Binding,
    BoundResource,
    Copy,
    CopyPlace,
    DispatchBarrier,
    DispatchCompute,
    DispatchGraph,
    DispatchOpticalFlow,
    DispatchSpirvGraph,
    Fill,
    MarkBoundary,
    OpticalFlowBindings,
    PushConstantMap,
)
from scenario_runner.scenario.drawing import (
    ColorAttachment,
    DepthAttachment,
    DepthBias,
    DispatchFragment,
    IndexBuffer,
    VertexAttribute,
    Viewport,
)
from scenario_runner.scenario.entries import Command, Model, Resource
from scenario_runner.scenario.loader import from_dict, load, loads
from scenario_runner.scenario.resources import (
    Buffer,
    BufferBarrier,
    Image,
    ImageBarrier,
    MemoryBarrier,
    MemoryGroup,
    RawData,
    SubresourceRange,
    Tensor,
    TensorBarrier,
)
from scenario_runner.scenario.scenario import Scenario
from scenario_runner.scenario.shaders import (
    Graph,
    GraphConstant,
    Shader,
    ShaderSubstitution,
    SpecializationConstant,
    SpecializationConstantMap,
)

__all__ = [
    "Binding",
    "BoundResource",
    "Buffer",
    "BufferBarrier",
    "ColorAttachment",
    "Command",
    "Copy",
    "CopyPlace",
    "DepthAttachment",
    "DepthBias",
    "DispatchBarrier",
    "DispatchCompute",
    "DispatchFragment",
    "DispatchGraph",
    "DispatchOpticalFlow",
    "DispatchSpirvGraph",
    "Fill",
    "Graph",
    "GraphConstant",
    "Image",
    "ImageBarrier",
    "IndexBuffer",
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
    "VertexAttribute",
    "Viewport",
    "from_dict",
    "load",
    "loads",
]
