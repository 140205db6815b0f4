"""Shaders embedded in TOSA custom operations: their attributes, and whether shader and attributes agree.

`parse_attributes` gives the attributes of one operation, `check_shaders` compiles shaders and compares each with its
attributes. Both are imported when they are first used: converting a model needs them while the converter works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.kinds import lazy_names

if TYPE_CHECKING:
    from scenario_runner.custom_shader.agreement import check_shaders
    from scenario_runner.custom_shader.parsing import parse_attributes

__all__ = ["check_shaders", "parse_attributes"]

__getattr__ = lazy_names(__name__, {"check_shaders": "agreement", "parse_attributes": "parsing"})
