"""Layouts of buffers' and push constants' blocks: what no device allows, and what takes a feature.

Source: Vulkan specification, "Shader Interfaces", section "Offset and Stride Assignment".
"""

from typing import NamedTuple

from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.spirv import Block, Interface
from scenario_runner.spirv.layout import RELAXED, RELAXED_STD140, SCALAR, check_layout


class LayoutNeeds(NamedTuple):
    """A device feature that a block's layout takes, and the block in words."""

    structure: str
    member: str
    what: str


_SCALAR_BLOCKS = ("VkPhysicalDeviceVulkan12Features", "scalarBlockLayout")
_STD430_UNIFORMS = ("VkPhysicalDeviceVulkan12Features", "uniformBufferStandardLayout")


def check_blocks(interface: Interface, uid: str, pointer: str) -> tuple[list[Diagnostic], list[LayoutNeeds]]:
    """What is wrong with the blocks that an entry point of the shader ``uid`` uses, and the features that they take."""
    found: list[Diagnostic] = []
    needs: list[LayoutNeeds] = []
    blocks: dict[tuple[int, bool], tuple[Block, str]] = {}
    for binding in interface.bindings:
        if binding.block is not None:
            uniform = binding.kind == "uniform_buffer"
            blocks[binding.block.struct.id, uniform] = (binding.block, binding.kind)
    if interface.push_constants is not None:
        blocks[interface.push_constants.struct.id, False] = (interface.push_constants, "push_constants")
    for block, kind in blocks.values():
        uniform = kind == "uniform_buffer"
        if kind != "storage_buffer" and block.runtime_stride_bytes is not None:
            words = kind.replace("_", " ")
            message = f"shader {uid!r}: {words} {block.name!r} ends in a runtime array, which only storage buffers may"
            found.append(error("SR-LAYOUT-001", pointer, message))
        what = f"the layout of {kind.replace('_', ' ')} {block.name!r} in shader {uid!r}"
        if not check_layout(block, RELAXED_STD140 if uniform else RELAXED):
            continue
        if uniform and not check_layout(block, RELAXED):
            needs.append(LayoutNeeds(*_STD430_UNIFORMS, what))
            continue
        problems = check_layout(block, SCALAR)
        if not problems:
            needs.append(LayoutNeeds(*_SCALAR_BLOCKS, what))
        for problem in problems:
            if "Offset decoration" in problem or "without a" in problem:
                found.append(error("SR-LAYOUT-001", pointer, f"shader {uid!r}: {problem}"))
            elif "overlaps" in problem or "smaller than" in problem:
                found.append(warning("SR-LAYOUT-003", pointer, f"shader {uid!r}: {problem}"))
            else:
                found.append(warning("SR-LAYOUT-002", pointer, f"shader {uid!r}: {problem}"))
    return found, needs
