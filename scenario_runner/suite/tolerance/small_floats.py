"""Which floats of 8 or 16 bits are certainly right, from their bits as integers: NumPy is slow with such floats.

The bits of a float without its sign count the steps to it from zero. Within a binade (the values from one power of two
to the next) all steps have one size, which doubles from binade to binade, so that s steps between two values of one
sign are an error of at most s times the step at the greater one.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from scenario_runner.suite.tolerance.elements import wrong_elements

if TYPE_CHECKING:
    import numpy

    from scenario_runner.suite.tolerance.rule import Rule
    from scenario_runner.viewing.element import Element

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

FRACTION: Final = {"float8_e4m3": 3, "float8_e5m2": 2, "float16": 10, "bfloat16": 7}
"""The number of bits of the fraction, of the types that this is about."""
_PAUSE: Final = 31  # chunks


class StepsCheck:
    """Asked chunk by chunk, of up to ``size`` elements each. ``not_finite`` are the bits of the least magnitude that is
    not finite; ``narrower`` is what bounds are multiplied with, so that no rounding matters."""

    def __init__(self, element: Element, rule: Rule, size: int, not_finite: int, narrower: float) -> None:
        import numpy

        self._fraction = FRACTION[element.name]
        self._not_finite = not_finite
        self._sign = 1 << (8 * element.size_bytes - 1)
        self._kind = f"u{element.size_bytes}"
        self._steps, self._magnitudes, self._room = numpy.empty((3, size), self._kind)
        self._right = numpy.empty(size, bool)
        self._near = self._near_steps(rule.rtol * narrower)
        # atol in steps of the least binade
        self._atol_steps = rule.atol * narrower / (element.least_normal / (1 << self._fraction))
        self._pause = 0

    def _near_steps(self, rtol: float) -> int:
        """So many steps from a normal value stay within ``rtol`` of it.

        With f bits of fraction, d steps (at most 2^f) lead into the next binade at most, so that the error is at most
        d 2^-f / (1 - d 2^-(f+1)) of the value."""
        values = 1 << self._fraction  # of a binade
        allowed = min(rtol, 1.0) * values
        return min(int(allowed / (1 + allowed / (2 * values))), self._sign - self._not_finite)

    def _allowed(self, most: int) -> int:
        """So many steps from values whose magnitudes have no more than these bits stay within ``atol``.

        A value and one of the other sign are 2^(n-1) - d steps apart, of their n bits, where their magnitudes have a
        distance of d: more than are allowed."""
        steps = math.ldexp(self._atol_steps, 1 - max(most >> self._fraction, 1))
        return math.floor(min(steps, self._sign - 1 - most))

    def far(self, actual: Array, expected: Array) -> Array | None:
        """The indices of the elements that are not certainly within the bounds of rtol or atol; None where bits do not
        tell enough."""
        import numpy

        if self._pause:
            self._pause -= 1
            return None
        count = actual.size
        a, e = actual.view(self._kind), expected.view(self._kind)
        steps, magnitudes, room = (each[:count] for each in (self._steps, self._magnitudes, self._room))
        right = self._right[:count]
        numpy.subtract(a, e, out=steps)
        signed = steps.view(f"i{steps.itemsize}")
        numpy.abs(signed, out=signed)
        numpy.bitwise_and(e, self._sign - 1, out=room)
        greatest = int(steps.max())
        if greatest <= self._near and int(room.max()) + greatest < self._not_finite:
            # only a denormal value can be wrong, and one so near a NaN of the other sign
            numpy.less(room, 1 << self._fraction, out=right)
            if not self._atol_steps:
                denormal = numpy.flatnonzero(right)
                return denormal[steps[denormal] > 0]
            if not right.any():
                return numpy.empty(0, numpy.intp)
        numpy.bitwise_and(a, self._sign - 1, out=magnitudes)
        numpy.maximum(magnitudes, room, out=magnitudes)
        most = int(magnitudes.max())
        if self._atol_steps:
            if most < self._not_finite and greatest <= self._allowed(most):
                return numpy.empty(0, numpy.intp)
            self._pause = _PAUSE  # the next ones are probably like this one
            return None
        numpy.less_equal(steps, self._near, out=right)
        right &= room >= 1 << self._fraction
        right |= steps == 0
        if most >= self._not_finite:
            right &= magnitudes < self._not_finite
        return numpy.flatnonzero(numpy.logical_not(right, out=right))


def wrong_bytes(actual: Array, expected: Array, element: Element, rule: Rule) -> Array:
    """The indices of the elements of one byte that are wrong, looked up among all pairs."""
    import numpy

    pairs = expected.astype("u2")
    numpy.left_shift(pairs, 8, out=pairs)
    numpy.bitwise_or(pairs, actual.astype("u2"), out=pairs)
    return numpy.flatnonzero(_wrong_pairs(element, rule).take(pairs, mode="wrap"))


@lru_cache(8)
def _wrong_pairs(element: Element, rule: Rule) -> Array:
    """Whether each pair is wrong; its index has the actual value in the low byte, and the expected one in the other."""
    import numpy

    values = numpy.arange(256, dtype="u1")
    wrong = numpy.zeros(1 << 16, bool)
    wrong[wrong_elements(numpy.tile(values, 256), numpy.repeat(values, 256), element, rule)] = True
    return wrong
