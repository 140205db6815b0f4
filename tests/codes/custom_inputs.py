"""Inputs for the codes of custom operations: attributes, and shaders that do not agree with them."""

from __future__ import annotations

import json
from typing import Any

from scenario_runner.custom_shader import examine_attributes
from scenario_runner.errors import error_class
from tests.codes.case import Case, Codes, Input
from tests.custom_shader.attributes import ATTRIBUTES


def attributes(change: dict[str, Any]) -> Input:
    """Attributes that are right but for ``change``."""

    def found(case: Case) -> Codes:
        text = json.dumps(ATTRIBUTES | change)
        _, found = examine_attributes(text, operation="scale", operands=1, results=1)
        assert all(each.line and each.column and each.message for each in found)
        assert all(error_class(each.code).exit_code == 3 for each in found if each.severity == "error")
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
}
