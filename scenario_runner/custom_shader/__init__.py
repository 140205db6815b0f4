"""Shaders embedded in TOSA custom operations: their attributes, and whether shader and attributes agree.

`parse_attributes` gives the attributes of one operation, `check_shaders` compiles shaders and compares each with its
attributes. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.kinds import lazy_names

if TYPE_CHECKING:
    from scenario_runner.custom_shader.agreement import CheckedShader, check_shaders
    from scenario_runner.custom_shader.attributes import (
        DOMAIN,
        Attributes,
        Origin,
        PushConstant,
        SamplerSettings,
        ValueType,
        View,
    )
    from scenario_runner.custom_shader.parsing import examine_attributes, parse_attributes
    from scenario_runner.custom_shader.variables import laid_out

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

_HOME = {
    "Attributes": "attributes",
    "CheckedShader": "agreement",
    "DOMAIN": "attributes",
    "Origin": "attributes",
    "PushConstant": "attributes",
    "SamplerSettings": "attributes",
    "ValueType": "attributes",
    "View": "attributes",
    "check_shaders": "agreement",
    "examine_attributes": "parsing",
    "laid_out": "variables",
    "parse_attributes": "parsing",
}

__getattr__ = lazy_names(__name__, _HOME)
