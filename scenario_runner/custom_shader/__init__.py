"""Shaders embedded in TOSA custom operations: their attributes, and whether shader and attributes agree."""

from __future__ import annotations

from scenario_runner.custom_shader.attributes import DOMAIN, Attributes, PushConstant, SamplerSettings, View
from scenario_runner.custom_shader.parsing import examine_attributes, parse_attributes

__all__ = [
    "DOMAIN",
    "Attributes",
    "PushConstant",
    "SamplerSettings",
    "View",
    "examine_attributes",
    "parse_attributes",
]
