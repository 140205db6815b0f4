"""Attributes of a small shader that doubles its input, right in every way."""

from __future__ import annotations

from typing import Any

SOURCE = """#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) readonly buffer In { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Out { float y[]; };
layout(push_constant) uniform Push { float scale; float bias; };
void main() { y[gl_GlobalInvocationID.x] = scale * x[gl_GlobalInvocationID.x] + bias; }
"""


def resource(name: str, binding: int, descriptor: str = "STORAGE_BUFFER", format: str = "R32_SFLOAT") -> dict[str, Any]:
    """The required keys of one input or output."""
    return {
        f"{name}_vkformat": f"VK_FORMAT_{format}",
        f"{name}_vkdescriptortype": f"VK_DESCRIPTOR_TYPE_{descriptor}",
        f"{name}_binding": binding,
        f"{name}_descriptorset": 0,
    }


ATTRIBUTES: dict[str, Any] = {
    "entry_point": "main",
    "workgroup_sizes": [4, 1, 1],
    "shader_language": "GLSL",
    "shader_code": SOURCE,
    "push_constants": "scale: 4, bias: 4",
    **resource("input_0", 0),
    **resource("output_0", 1),
}
