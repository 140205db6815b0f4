"""Attributes of a small shader that doubles its input, right in every way."""

import json
from typing import Any

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.tosa.attribute_parsing import examine_attributes
from scenario_runner.tosa.shader_agreement import check_shaders

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


def text_of(change: dict[str, Any]) -> str:
    """The text of the attributes with a change; the value "..." leaves a key out."""
    changed = {key: value for key, value in (ATTRIBUTES | change).items() if value != "..."}
    return json.dumps(changed, indent=2)


def examined(
    change: dict[str, Any], *, operands: int | None = 1, results: int | None = 1, types: Any = None
) -> list[Diagnostic]:
    """Return all findings in the changed attributes, with those about the shader if the attributes are readable."""
    text = text_of(change)
    attributes, found = examine_attributes(text, "scale", (operands, results))
    if attributes is not None:
        found = [*found, *check_shaders([attributes], [types])[0].findings]
    return found


def messages(found: list[Diagnostic]) -> list[str]:
    """Each finding with its code and pointer, without its place in the text."""
    return [f"{each.code} {each.pointer}: {each.message}" for each in found]
