"""Errors of numbers relative to their magnitude, under the names (and with the bounds) of Arm's compare_outputs.

With a the actual and e the expected values, as vectors of n elements in double precision::

    rel_l2          = |a - e| / |e|
    cosine          = (a . e) / (|a| |e|)
    scale_error     = |(a . e) / (e . e) - 1|        how far the factor that best maps e to a is from 1
    wasserstein_rel = mean |sort(a) - sort(e)| / mean |e|
    atol_p999       = the 99.9th percentile of |a_i - e_i|, interpolated linearly

Where all of e is zero, the errors are 0 if all of a is zero too, else infinite; the cosine is 1 or 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.suite.metrics.pairs import Pair

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[Any]]


def rel_l2(pairs: Sequence[Pair]) -> float:
    """The norm of the error relative to that of the expected values."""
    error, _, expected, _ = _sums(pairs)
    return _ratio(math.sqrt(error), math.sqrt(expected))


def cosine(pairs: Sequence[Pair]) -> float:
    """The cosine of the angle between both."""
    _, actual, expected, product = _sums(pairs)
    if not actual or not expected:
        return float(actual == expected)
    return min(1.0, product / math.sqrt(actual) / math.sqrt(expected))


def scale_error(pairs: Sequence[Pair]) -> float:
    """How far the factor between both is from 1."""
    _, actual, expected, product = _sums(pairs)
    return abs(product / expected - 1) if expected else _ratio(actual, expected)


def wasserstein_rel(pairs: Sequence[Pair]) -> float:
    """The distance of both distributions of values, relative to the mean magnitude."""
    import numpy

    actual, expected = _values(pairs)
    if not actual.size:
        return 0.0
    distance = float(numpy.abs(numpy.sort(actual) - numpy.sort(expected)).mean())
    return _ratio(distance, float(numpy.abs(expected).mean()))


def atol_p999(pairs: Sequence[Pair]) -> float:
    """The absolute error that one element of a thousand exceeds."""
    import numpy

    actual, expected = _values(pairs)
    return float(numpy.percentile(numpy.abs(actual - expected), 99.9)) if actual.size else 0.0


def _ratio(error: float, magnitude: float) -> float:
    return error / magnitude if magnitude else math.inf if error else 0.0


def _check(actual: Array, expected: Array) -> None:
    import numpy

    for what, values in (("the output", actual), ("what is expected", expected)):
        if not numpy.isfinite(values).all():
            raise ValueError(f"{what} has values that are not finite")


def _sums(pairs: Sequence[Pair]) -> tuple[float, float, float, float]:
    """Sums of the squared errors, of the squares of both, and of their products. Raises ValueError."""
    sums = [0.0, 0.0, 0.0, 0.0]
    for pair in pairs:
        for actual, expected in pair.pieces():
            _check(actual, expected)
            error = actual - expected
            for at, (one, other) in enumerate(
                ((error, error), (actual, actual), (expected, expected), (actual, expected))
            ):
                sums[at] += float(one @ other)
    return sums[0], sums[1], sums[2], sums[3]


def _values(pairs: Sequence[Pair]) -> tuple[Array, Array]:
    """All elements that count. Raises ValueError."""
    import numpy

    pieces = [piece for pair in pairs for piece in pair.pieces()]
    empty = [numpy.zeros(0)]
    actual, expected = (numpy.concatenate(empty + [each[side] for each in pieces]) for side in (0, 1))
    _check(actual, expected)
    return actual, expected
