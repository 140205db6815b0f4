"""Reads SPIR-V modules: entry points and what they want from outside. Pure Python, no GPU, no compiler.

``read_module(data)`` gives a `Module`; ``module.entry_points[0].interface`` its descriptors, push constants, workgroup
size and workgroup memory. `layout.check_layout` checks a block against Vulkan's layout rules, and `describe.describe`
makes a module ready for JSON; neither is imported before it is needed.
"""

from __future__ import annotations

from scenario_runner.spirv.blocks import Block
from scenario_runner.spirv.entry_point import EntryPoint
from scenario_runner.spirv.graph import GraphConstant, GraphEntryPoint, GraphResource
from scenario_runner.spirv.interface import DescriptorBinding, Interface
from scenario_runner.spirv.module import Module, read_module
from scenario_runner.spirv.specialization import SpecConstant
from scenario_runner.spirv.types import Image, Member, Scalar, Struct, Tensor, Type

__all__ = [
    "Block",
    "DescriptorBinding",
    "EntryPoint",
    "GraphConstant",
    "GraphEntryPoint",
    "GraphResource",
    "Image",
    "Interface",
    "Member",
    "Module",
    "Scalar",
    "SpecConstant",
    "Struct",
    "Tensor",
    "Type",
    "read_module",
]
