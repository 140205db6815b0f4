"""Which elements of a chunk are not certainly right, by a few passes that stay in the processor's cache.

`elements` looks at those that are left. Bounds are taken a little narrower than asked for, so that no rounding in here
makes a wrong element right. (Where rtol times an expected value is denormal in single precision, the product may be off
by half of the smallest denormal value.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy

    from scenario_runner.suite.tolerance.rule import Rule
    from scenario_runner.viewing.element import Element

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

_NARROWER: Final = 1 - 1e-6  # several times the rounding of single precision
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
    """Asked chunk by chunk, with memory for chunks of up to ``size`` elements that is used again."""

    def __init__(self, element: Element, rule: Rule, size: int) -> None:
        import numpy

        self.element = element
        self.size = size
        self._rule = rule
        kind = "<f4" if element.size_bytes < 8 else "<f8"
        self._errors = numpy.empty(size, kind)
        self._allowed = numpy.empty(size, kind)
        self._steps = numpy.empty((2, size), f"<i{element.size_bytes}")

    def suspects(self, actual: Array, expected: Array) -> Array:
        """The indices of the elements that may be wrong."""
        import numpy

        rule = self._rule
        right: Array | None = None
        with numpy.errstate(all="ignore"):  # about NaN and infinity
            if not self.element.is_float:
                if rule.atol and self.element.name != "bool":
                    right = self._near_integers(actual, expected)
            else:
                if rule.atol or rule.rtol:
                    right = self._near(actual, expected)
                if rule.ulp and (right is None or not right.all()):
                    few = self._few_steps(actual, expected)
                    right = few if right is None else right | few
        if right is None:
            return numpy.arange(actual.size)
        return numpy.flatnonzero(~right) if not right.all() else numpy.empty(0, numpy.intp)

    def _near(self, actual: Array, expected: Array) -> Array:
        import numpy

        count = actual.size
        errors, allowed = self._errors[:count], self._allowed[:count]
        a, e = self.element.numbers(actual), self.element.numbers(expected)
        if a.dtype != errors.dtype:  # half precision
            a, e = a.astype(errors.dtype), e.astype(errors.dtype)
        numpy.subtract(a, e, out=errors)
        numpy.abs(errors, out=errors)
        if self._rule.rtol:
            numpy.multiply(e, self._rule.rtol * _NARROWER, out=allowed)
            numpy.abs(allowed, out=allowed)
            numpy.subtract(errors, allowed, out=errors)
        # what infinity less infinity gives is NaN, and not within any bound
        near: Array = errors <= self._rule.atol * _NARROWER
        return near

    def _few_steps(self, actual: Array, expected: Array) -> Array:
        import numpy

        count = actual.size
        steps, other = self._steps[0, :count], self._steps[1, :count]
        a, e = actual.view(steps.dtype), expected.view(steps.dtype)
        numpy.bitwise_xor(a, e, out=other)
        few: Array = other >= 0  # the signs are equal, so that the difference of the bits counts steps
        numpy.subtract(a, e, out=steps)
        few &= steps <= self._rule.ulp
        few &= steps >= -self._rule.ulp
        numpy.bitwise_and(e, (1 << (8 * self.element.size_bytes - 1)) - 1, out=other)
        few &= other < _NOT_FINITE[self.element.name] - self._rule.ulp  # so that both are finite
        if self._rule.zero:
            few &= numpy.abs(self.element.numbers(expected)) > self._rule.zero * (2 - _NARROWER)
        return few

    def _near_integers(self, actual: Array, expected: Array) -> Array:
        import numpy

        apart = numpy.maximum(actual, expected) - numpy.minimum(actual, expected)
        near: Array = apart.view(f"u{actual.dtype.itemsize}") <= self._rule.atol
        return near
