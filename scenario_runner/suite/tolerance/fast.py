"""Which elements of a chunk are not certainly right, by a few passes that stay in the processor's cache.

`elements` looks at those that are left. Bounds are taken a little narrower than asked for, so that no rounding in here
makes a wrong element right. Most passes write into memory that is used again: new memory of this size would cost more
than they do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from scenario_runner.suite.tolerance.small_floats import FRACTION, StepsCheck, wrong_bytes

if TYPE_CHECKING:
    import numpy

    from scenario_runner.suite.tolerance.rule import Rule
    from scenario_runner.viewing.element import Element

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

_NARROWER: Final = 1 - 1e-6  # several times the rounding of single precision
_MANY: Final = 128  # one in so many elements is looked at again sooner than all are in another way
# The bits of the least magnitude that is not finite.
_NOT_FINITE: Final = {
    "float8_e4m3": 0x7F,
    "float8_e5m2": 0x7C,
    "float16": 0x7C00,
    "bfloat16": 0x7F80,
    "float32": 0x7F80_0000,
    "float64": 0x7FF0_0000_0000_0000,
}


class FastCheck:
    """Asked chunk by chunk, of up to ``size`` elements each."""

    def __init__(self, element: Element, rule: Rule, size: int) -> None:
        import numpy

        self.element = element
        self.size = size
        self._rule = rule
        kind = "<f4" if element.size_bytes < 8 else "<f8"
        self._errors, self._allowed = numpy.empty((2, size), kind)
        atol = numpy.dtype(kind).type(min(rule.atol * _NARROWER, float(numpy.finfo(kind).max)))
        self._atol = numpy.nextafter(atol, atol.dtype.type(0))  # not rounded up: to infinity, or from denormal values
        self._steps = numpy.empty(size, f"<i{element.size_bytes}")
        self._small: StepsCheck | None = None
        if element.name in FRACTION and (rule.atol or rule.rtol):
            self._small = StepsCheck(element, rule, size, _NOT_FINITE[element.name], _NARROWER)
        self._zero_bits = 0
        if rule.zero and element.is_float:  # magnitudes with more bits than these are larger
            with numpy.errstate(over="ignore"):
                rounded = element.encoded([rule.zero * (2 - _NARROWER)])
            self._zero_bits = int.from_bytes(rounded, "little") + 1

    def suspects(self, actual: Array, expected: Array) -> Array:
        """The indices of the elements that may be wrong."""
        if self._small is None:
            return self._suspects(actual, expected)
        far = self._small.far(actual, expected)
        if far is None:
            return self._suspects(actual, expected)
        return far if far.size <= actual.size // _MANY else far[self._suspects(actual[far], expected[far])]

    def _suspects(self, actual: Array, expected: Array) -> Array:
        import numpy

        rule = self._rule
        none = numpy.empty(0, numpy.intp)
        right: Array | None = None
        with numpy.errstate(all="ignore"):  # about NaN and infinity
            if not self.element.is_float:
                if rule.atol and self.element.name != "bool":
                    apart = self._apart(actual, expected)
                    most = math.floor(rule.atol)
                    if apart.max() <= most:
                        return none
                    right = apart <= most
            else:
                if self.element.size_bytes == 1:
                    is_near = rule.ulp and self._small is None and self._few_steps(actual, expected) is None
                    return none if is_near else wrong_bytes(actual, expected, self.element, rule)
                if rule.atol or rule.rtol:
                    errors = self._errors_beyond_rtol(actual, expected)
                    greatest = errors.max()  # a NaN would be the greatest, and within no bound
                    if greatest < 0 or 0 < self._atol >= greatest:
                        return none
                    right = errors <= self._atol if self._atol else (errors < 0) | self._are_equal(actual, expected)
                if rule.ulp:
                    few = self._few_steps(actual, expected)
                    if few is None:
                        return none
                    right = few if right is None else right | few
        return numpy.arange(actual.size) if right is None else numpy.flatnonzero(~right)

    def _are_equal(self, actual: Array, expected: Array) -> Array:
        """Where the bits are; a difference of 0 from what rtol allows may be a denormal product that was rounded up."""
        equal: Array = self.element.bits(actual) == self.element.bits(expected)
        return equal

    def _errors_beyond_rtol(self, actual: Array, expected: Array) -> Array:
        """|actual - expected| - rtol |expected|; NaN where a value is not finite."""
        import numpy

        count = actual.size
        errors, allowed = self._errors[:count], self._allowed[:count]
        e = self._numbers(expected, allowed)
        numpy.subtract(self._numbers(actual, errors), e, out=errors)
        numpy.abs(errors, out=errors)
        if self._rule.rtol:
            numpy.multiply(e, self._rule.rtol * _NARROWER, out=allowed)
            numpy.abs(allowed, out=allowed)
            numpy.subtract(errors, allowed, out=errors)
        return errors

    def _numbers(self, raw: Array, room: Array) -> Array:
        """The values in the type of ``room``: as they are, or in there."""
        import numpy

        if raw.dtype == room.dtype:
            return raw
        if self.element.name == "bfloat16":
            bits = room.view("<u4")
            numpy.copyto(bits, raw)
            numpy.left_shift(bits, 16, out=bits)
        elif self.element.name == "float16":
            steps, bits = self._steps[: raw.size], room.view("<i4")
            numpy.bitwise_and(raw.view("<i2"), 0x7FFF, out=steps)
            if steps.max() >= _NOT_FINITE["float16"]:
                numpy.copyto(room, raw)
            else:  # the same faster: the bits at their places, and the exponent with the other bias
                numpy.copyto(bits, raw.view("<i2"))
                numpy.left_shift(bits, 13, out=bits)
                numpy.bitwise_and(bits.view("<u4"), 0x8FFF_FFFF, out=bits.view("<u4"))
                numpy.multiply(room, 2.0**112, out=room)
        else:
            numpy.copyto(room, self.element.numbers(raw))
        return room

    def _few_steps(self, actual: Array, expected: Array) -> Array | None:
        """Where a few steps lead from one to the other: None where they do everywhere."""
        import numpy

        ulp, steps = self._rule.ulp, self._steps[: actual.size]
        kind = steps.dtype
        a, e = actual.view(kind), expected.view(kind)
        rank = f"<u{kind.itemsize}"
        if ulp >= 1 << (8 * kind.itemsize - 2):
            return self._few_steps_each(a, e)
        numpy.bitwise_xor(a, e, out=steps)
        if steps.min() >= 0:  # the signs are equal, so that the difference of the bits counts steps
            numpy.bitwise_and(e, numpy.iinfo(kind).max, out=steps)
            are_far = not self._rule.zero or steps.min() > self._zero_bits
            if are_far and steps.max() < _NOT_FINITE[self.element.name] - ulp:  # so that both are finite
                numpy.subtract(a, e, out=steps)
                numpy.add(steps, ulp, out=steps)
                if steps.view(rank).max() <= 2 * ulp:
                    return None
        return self._few_steps_each(a, e)

    def _few_steps_each(self, a: Array, e: Array) -> Array:
        """The same of each element; both are bits as signed integers."""
        import numpy

        ulp, steps = self._rule.ulp, self._steps[: a.size]
        numpy.subtract(a, e, out=steps)
        few: Array = (a ^ e) >= 0
        few &= (steps <= ulp) & (steps >= -ulp)
        few &= (e & numpy.iinfo(steps.dtype).max) < _NOT_FINITE[self.element.name] - ulp
        if self._rule.zero:
            expected = self._numbers(e.view(self.element.dtype), self._allowed[: a.size])
            few &= numpy.abs(expected) > self._rule.zero * (2 - _NARROWER)
        return few

    def _apart(self, actual: Array, expected: Array) -> Array:
        """Exact differences of integers."""
        import numpy

        apart = self._steps[: actual.size].view(actual.dtype)
        least = self._allowed[: actual.size].view(f"V{self._allowed.itemsize}")
        smaller = numpy.ndarray(actual.size, actual.dtype, least)
        numpy.maximum(actual, expected, out=apart)
        numpy.minimum(actual, expected, out=smaller)
        numpy.subtract(apart, smaller, out=apart)
        return apart.view(f"<u{actual.dtype.itemsize}")
