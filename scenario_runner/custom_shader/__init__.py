"""Shaders embedded in TOSA custom operations: their attributes, and whether shader and attributes agree.

`parse_attributes` gives the attributes of one operation, `check_shaders` compiles shaders and compares each with its
attributes.
"""

from __future__ import annotations

from scenario_runner.custom_shader.attributes import (
    DOMAIN,
    Attributes,
    Origin,
    PushConstant,
    SamplerSettings,
    ValueType,
    View,
)
from scenario_runner.custom_shader.checking import CheckedShader, check_shaders
from scenario_runner.custom_shader.parsing import examine_attributes, parse_attributes
from scenario_runner.custom_shader.push_constants import laid_out

__all__ = [
    "DOMAIN",
    "Attributes",
    "CheckedShader",
    "Origin",
    "PushConstant",
    "SamplerSettings",
    "ValueType",
    "View",
    "check_shaders",
    "examine_attributes",
    "laid_out",
    "parse_attributes",
]
