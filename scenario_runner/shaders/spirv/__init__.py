"""Reads SPIR-V modules: entry points and their interfaces. Pure Python, without GPU or compiler.

``read_module(data)`` returns a `Module`. ``module.entry_points[0].interface`` has the descriptors, push constants,
workgroup size and workgroup memory. `block_layout.check_layout` checks a block against Vulkan's layout rules, and
`describe.describe` describes a module in JSON.
"""

from scenario_runner.shaders.spirv.interface import DescriptorBinding, Interface
from scenario_runner.shaders.spirv.module import EntryPoint, GraphEntryPoint, Module, read_module
from scenario_runner.shaders.spirv.types import Image, Scalar, Struct, Tensor, Type

__all__ = [
    "DescriptorBinding",
    "EntryPoint",
    "GraphEntryPoint",
    "Image",
    "Interface",
    "Module",
    "Scalar",
    "Struct",
    "Tensor",
    "Type",
    "read_module",
]
