"""The spellings of enum values in the dialects of the format, and the one that the program uses. Standard library only.

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


def canonical(value: str) -> str:
    """Our spelling of an enum value."""
    return VALUES.get(value, value)
