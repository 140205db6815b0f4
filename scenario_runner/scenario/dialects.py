"""The spellings of one thing in the dialects of the format, and the one that the program uses. Standard library only.

The dialects are the published test description, a later snapshot of its runner's source and the released runner.
All of them are accepted.
"""

from __future__ import annotations

VALUES: dict[str, str] = {
    "ACCESS_MEMORY_WRITE": "memory_write",
    "ACCESS_MEMORY_READ": "memory_read",
    "ACCESS_GRAPH_WRITE": "graph_write",
    "ACCESS_GRAPH_READ": "graph_read",
    "ACCESS_COMPUTE_SHADER_WRITE": "compute_shader_write",
    "ACCESS_COMPUTE_SHADER_READ": "compute_shader_read",
    "GRAPH": "graph",
    "COMPUTE": "compute",
    "GRAPHICS": "graphics",
    "ALL": "all",
    "IMAGE_LAYOUT_TENSOR_ALIASING": "tensor_aliasing",
    "IMAGE_LAYOUT_GENERAL": "general",
    "IMAGE_LAYOUT_UNDEFINED": "undefined",
}
"""Enum values: another dialect's spelling → ours."""

RESOURCES: dict[str, tuple[str, str]] = {
    "image": ("images", "Image"),
    "tensor": ("tensors", "Tensor"),
    "buffer": ("buffers", "Buffer"),
    "raw_data": ("raw_data", "RawData"),
    "shader": ("shaders", "Shader"),
    "graph": ("graphs", "Graph"),
    "graph_constant": ("graphs", "GraphConstant"),
    "memory_barrier": ("barriers", "MemoryBarrier"),
    "buffer_barrier": ("barriers", "BufferBarrier"),
    "image_barrier": ("barriers", "ImageBarrier"),
    "tensor_barrier": ("barriers", "TensorBarrier"),
}
"""The key of a resource in the file → the module and the class of its model."""

COMMANDS: dict[str, tuple[str, str]] = {
    "dispatch_compute": ("compute", "DispatchCompute"),
    "dispatch_graph": ("graph_commands", "DispatchGraph"),
    "dispatch_vgf": ("graph_commands", "DispatchGraph"),
    "dispatch_spirv_graph": ("graph_commands", "DispatchSpirvGraph"),
    "dispatch_data_graph": ("graph_commands", "DispatchSpirvGraph"),
    "dispatch_fragment": ("fragment", "DispatchFragment"),
    "dispatch_optical_flow": ("optical_flow", "DispatchOpticalFlow"),
    "dispatch_barrier": ("barriers", "DispatchBarrier"),
    "pipeline_barrier": ("barriers", "DispatchBarrier"),
    "mark_boundary": ("boundary", "MarkBoundary"),
    "frame_boundary": ("boundary", "MarkBoundary"),
}
"""The key of a command in the file, old and new names alike → the module and the class of its model."""


def canonical(value: str) -> str:
    """Our spelling of an enum value."""
    return VALUES.get(value, value)
