"""When an element is right."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Rule(NamedTuple):
    """Elements are right where their bits are equal; where any field differs from its default, as numbers.

    As numbers, an element is right where one of these holds:

    - both values are equal (0 equals -0);
    - both are finite, and ``|actual - expected| <= atol + rtol * |expected|``;
    - both are finite, ``|expected| > zero``, and they are at most ``ulp`` representable values apart;
    - both are finite, ``|expected| <= zero``, and ``|actual - expected| <= zero``;
    - ``denormals`` is "any", and one is a zero and the other a denormal value of the same sign;
    - NaN: both are NaN ("equal"), NaN is expected ("any"); a NaN is wrong with "error", also where it is expected.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulp: int = 0
    zero: float = 0.0
    denormals: Literal["exact", "any"] = "exact"
    nan: Literal["equal", "any", "error"] | None = None

    @property
    def is_bitwise(self) -> bool:
        """Whether bits are compared, not numbers."""
        return self == _BITWISE


_BITWISE = Rule()
