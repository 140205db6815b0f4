"""Any resource, any command: the unions over all models."""

from __future__ import annotations

from scenario_runner.scenario.barriers import BufferBarrier, DispatchBarrier, ImageBarrier, MemoryBarrier, TensorBarrier
from scenario_runner.scenario.boundary import MarkBoundary
from scenario_runner.scenario.buffers import Buffer
from scenario_runner.scenario.compute import DispatchCompute
from scenario_runner.scenario.fragment import DispatchFragment
from scenario_runner.scenario.graph_commands import DispatchGraph, DispatchSpirvGraph
from scenario_runner.scenario.graphs import Graph, GraphConstant
from scenario_runner.scenario.images import Image
from scenario_runner.scenario.optical_flow import DispatchOpticalFlow
from scenario_runner.scenario.raw_data import RawData
from scenario_runner.scenario.shaders import Shader
from scenario_runner.scenario.tensors import Tensor

Resource = (
    Image
    | Tensor
    | Buffer
    | RawData
    | Shader
    | Graph
    | GraphConstant
    | MemoryBarrier
    | BufferBarrier
    | ImageBarrier
    | TensorBarrier
)
Command = (
    DispatchCompute
    | DispatchGraph
    | DispatchSpirvGraph
    | DispatchFragment
    | DispatchOpticalFlow
    | DispatchBarrier
    | MarkBoundary
)
