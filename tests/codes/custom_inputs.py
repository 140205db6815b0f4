"""Inputs for the codes of custom operations: attributes, and shaders that do not agree with them."""

from __future__ import annotations

from typing import Any

from scenario_runner.custom_shader.attributes import ValueType
from scenario_runner.errors import error_class
from tests.codes.case import Case, Codes, Input
from tests.custom_shader.attributes import SOURCE, examined, resource

TWO_WORKGROUPS = {"workgroup_sizes": [2, 1, 1]}


def attributes(change: dict[str, Any], *, element: str | None = None) -> Input:
    """Attributes that are right but for ``change``, and an operation whose values have this type of elements."""

    def found(case: Case) -> Codes:
        types = element and ([ValueType((8,), element)], [ValueType((8,), element)])
        found = examined(TWO_WORKGROUPS | change, types=types or None)
        for each in found:
            assert each.line
            assert each.column
            assert each.pointer
            assert error_class(each.code).exit_code == 3
        return {each.code for each in found}

    return found


INPUTS: dict[str, Input] = {
    "SR-CUSTOM-001": attributes({"shader_language": ""}),
    "SR-CUSTOM-002": attributes({"input_00_binding": 0}),
    "SR-CUSTOM-003": attributes({"input_1_binding": 2}),
    "SR-CUSTOM-004": attributes({"output_0_binding": 0}),
    "SR-CUSTOM-005": attributes({"shader_language": "SPIR-V"}),
    "SR-CUSTOM-006": attributes({"push_constants": "scale 4"}),
    "SR-CUSTOM-007": attributes({"push_constant": "scale: 4"}),
    "SR-CUSTOM-008": attributes({"entry_point": "scale"}),
    "SR-CUSTOM-009": attributes({"input_0_binding": 7}),
    "SR-CUSTOM-010": attributes({"shader_code": SOURCE.replace("* x[gl_GlobalInvocationID.x]", "")}),
    "SR-CUSTOM-011": attributes({"input_0_vkdescriptortype": "VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER"}),
    "SR-CUSTOM-012": attributes({"input_0_vkformat": "VK_FORMAT_R16_SFLOAT"}),
    "SR-CUSTOM-013": attributes(resource("input_0", 1) | resource("output_0", 0)),
    "SR-CUSTOM-014": attributes({"workgroup_sizes": [4, 1, 1]}),
    "SR-CUSTOM-015": attributes({"push_constants": "bias: 4, scale: 4"}),
    "SR-CUSTOM-016": attributes(resource("input_0", 0, "TENSOR_ARM"), element="f16"),
    "SR-CUSTOM-017": attributes({"push_constants": ""}),
    "SR-CUSTOM-018": attributes({"shader_code": SOURCE.replace("void main", '#include "a.glsl"\nvoid main')}),
}
