"""The operators of TOSA 1.0 as graphs of SPIR-V hold them: what they are given, what they give, in which shapes.

`Values` reads types and constants of a module, `Signatures` checks operators one by one and follows their shapes.
"""

from __future__ import annotations

from scenario_runner.tosa.fixed_shapes import Interface, with_shapes
from scenario_runner.tosa.operators import COUNT, Operator, operator
from scenario_runner.tosa.shapes import UNKNOWN, Shape
from scenario_runner.tosa.signature import Signatures
from scenario_runner.tosa.values import CONSTANTS, Kind, Values

__all__ = [
    "CONSTANTS",
    "COUNT",
    "UNKNOWN",
    "Interface",
    "Kind",
    "Operator",
    "Shape",
    "Signatures",
    "Values",
    "operator",
    "with_shapes",
]
