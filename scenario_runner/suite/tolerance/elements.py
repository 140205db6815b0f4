"""Which elements are wrong, exactly. All arrays are flat and hold what `Element.dtype` says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scenario_runner.viewing.difference import distance, unequal

if TYPE_CHECKING:
    import numpy

    from scenario_runner.suite.tolerance.rule import Rule
    from scenario_runner.viewing.element import Element

    Array = numpy.ndarray[Any, numpy.dtype[Any]]


def wrong_elements(actual: Array, expected: Array, element: Element, rule: Rule, where: Array | None = None) -> Array:
    """The indices of the elements that are wrong, among those at the indices ``where`` (None: among all)."""
    import numpy

    if where is None:
        where = numpy.arange(actual.size)
    else:
        actual, expected = actual[where], expected[where]
    differ = element.bits(actual) != element.bits(expected)
    if not rule.is_bitwise:
        if rule.nan == "error" and element.is_float:
            differ |= numpy.isnan(element.numbers(actual))
        at = numpy.flatnonzero(differ)
        differ[at] = ~_right(actual[at], expected[at], element, rule)
    wrong: Array = where[differ]
    return wrong


def _right(actual: Array, expected: Array, element: Element, rule: Rule) -> Array:
    """Whether elements whose bits differ are right as numbers."""
    import numpy

    with numpy.errstate(all="ignore"):  # about NaN that signal
        a, e = element.numbers(actual), element.numbers(expected)
        right = ~unequal(a, e)
        finite = numpy.isfinite(a) & numpy.isfinite(e) if element.is_float else numpy.ones(a.shape, bool)
        errors, magnitudes = distance(a, e), numpy.abs(e.astype("f8"))
        if element.is_float or rule.rtol:
            right |= finite & (errors <= rule.atol + rule.rtol * magnitudes)
        else:
            right |= errors <= math.floor(rule.atol)  # exact, also where a double is not
        if rule.ulp and element.is_float:
            far = finite if not rule.zero else finite & (magnitudes > rule.zero)
            right[far] |= element.steps(actual[far], expected[far]) <= rule.ulp
        if rule.zero:
            right |= finite & (magnitudes <= rule.zero) & (errors <= rule.zero)
        if not element.is_float:
            return numpy.asarray(right)
        if rule.denormals == "any":
            small = (numpy.abs(a) < element.least_normal) & (magnitudes < element.least_normal)
            right |= small & ((a == 0) | (e == 0)) & (numpy.signbit(a) == numpy.signbit(e))
        if rule.nan == "error":
            right &= ~numpy.isnan(a)
        elif rule.nan == "any":
            right |= numpy.isnan(e)
        else:
            right |= numpy.isnan(a) & numpy.isnan(e)
    return numpy.asarray(right)


def errors_of(actual: Array, expected: Array, element: Element) -> Array:
    """Absolute errors of elements in double precision; infinite where only one of the two is finite, or is NaN."""
    import numpy

    with numpy.errstate(all="ignore"):
        a, e = element.numbers(actual), element.numbers(expected)
        errors = numpy.where(unequal(a, e), distance(a, e), 0).astype("f8")
        both_nan = numpy.isnan(a) & numpy.isnan(e) if element.is_float else False
        return numpy.where(both_nan, 0.0, numpy.where(numpy.isnan(errors), numpy.inf, errors))
