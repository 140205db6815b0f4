"""Shaders embedded in TOSA custom operations: their attributes, and whether shader and attributes agree.

`parse_attributes` gives the attributes of one operation, `check_shaders` compiles shaders and compares each with its
attributes. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.lazy_names import lazy_names

if TYPE_CHECKING:
    from scenario_runner.custom_shader.attributes import (
        Attributes,
        Origin,
        PushConstant,
        SamplerSettings,
        ValueType,
        View,
    )
    from scenario_runner.custom_shader.checking import CheckedShader, check_shaders
    from scenario_runner.custom_shader.domain import DOMAIN
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

_HOME = {
    "Attributes": "attributes",
    "CheckedShader": "checking",
    "DOMAIN": "domain",
    "Origin": "attributes",
    "PushConstant": "attributes",
    "SamplerSettings": "attributes",
    "ValueType": "attributes",
    "View": "attributes",
    "check_shaders": "checking",
    "examine_attributes": "parsing",
    "laid_out": "push_constants",
    "parse_attributes": "parsing",
}

__getattr__ = lazy_names(__name__, _HOME)
