"""Whether a whole chunk of elements is certainly right, by a few passes that stay in the processor's cache.

The answer "no" means nothing: then `elements` looks at each element. Bounds are taken a little narrower than asked for,
so that no rounding in here makes a wrong element right. (Where rtol times an expected value is denormal in single
precision, the product may be off by half of the smallest denormal value.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy

    from scenario_runner.suite.tolerance.rule import Rule
    from scenario_runner.viewing.element import Element

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

_NARROWER: Final = 1 - 1e-6  # several times the rounding of single precision
_EXPONENTS: Final = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F80_0000, "float64": 0x7FF0_0000_0000_0000}


class FastCheck:
    """Asked chunk by chunk, with memory for chunks of up to ``size`` elements that is used again."""

    def __init__(self, element: Element, rule: Rule, size: int) -> None:
        import numpy

        self._rule = rule
        self.element = element
        self.size = size
        self._is_single = element.is_float and element.size_bytes < 8
        self._bounded = bool(rule.atol or rule.rtol)
        kind = "<f4" if self._is_single else "<f8"
        self._errors = numpy.empty(size, kind)
        self._allowed = numpy.empty(size, kind)
        self._steps = (
            numpy.empty((2, size), f"<i{element.size_bytes}")
            if rule.ulp and not rule.zero and element.name in _EXPONENTS
            else None
        )

    def are_right(self, actual: Array, expected: Array) -> bool:
        """Whether every element is right, as far as that can be told quickly."""
        import numpy

        if not self.element.is_float:
            return self._integers(actual, expected)
        with numpy.errstate(all="ignore"):
            if self._bounded and self._near(actual, expected):
                return True
            return self._steps is not None and self._few_steps(actual, expected)

    def _near(self, actual: Array, expected: Array) -> bool:
        import numpy

        count = actual.size
        errors, allowed = self._errors[:count], self._allowed[:count]
        a, e = self.element.numbers(actual), self.element.numbers(expected)
        if a.dtype != errors.dtype:  # half precision
            a, e = a.astype(errors.dtype), e.astype(errors.dtype)
        numpy.subtract(a, e, out=errors)
        numpy.abs(errors, out=errors)
        if self._rule.rtol:
            numpy.multiply(e, self._rule.rtol * _NARROWER, out=allowed, casting="same_kind")
            numpy.abs(allowed, out=allowed)
            numpy.subtract(errors, allowed, out=errors)
        # a NaN, also one of infinite values, is the greatest of all and not within any bound
        return bool(errors.max() <= self._rule.atol * _NARROWER)

    def _few_steps(self, actual: Array, expected: Array) -> bool:
        import numpy

        assert self._steps is not None
        count = actual.size
        steps, other = self._steps[0, :count], self._steps[1, :count]
        a, e = actual.view(steps.dtype), expected.view(steps.dtype)
        numpy.bitwise_xor(a, e, out=other)
        if other.min() < 0:  # the signs differ
            return False
        numpy.subtract(a, e, out=steps)
        if steps.max() > self._rule.ulp or steps.min() < -self._rule.ulp:
            return False
        exponent = _EXPONENTS[self.element.name]
        numpy.bitwise_and(e, (1 << (8 * self.element.size_bytes - 1)) - 1, out=other)
        return bool(other.max() < exponent - self._rule.ulp)  # so that both are finite

    def _integers(self, actual: Array, expected: Array) -> bool:
        import numpy

        if not self._rule.atol or actual.dtype.kind == "b":
            return False
        apart = numpy.maximum(actual, expected) - numpy.minimum(actual, expected)
        return bool(apart.view(f"u{actual.dtype.itemsize}").max() <= self._rule.atol)
