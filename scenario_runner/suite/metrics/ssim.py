"""Structural similarity of two pictures.

Source: Wang, Bovik, Sheikh, Simoncelli, "Image Quality Assessment: From Error Visibility to Structural Similarity"
(2004): windows of 11x11 texels weighted by a Gaussian of standard deviation 1.5, K1 = 0.01, K2 = 0.03::

    ssim(x, y) = (2 mx my + C1) (2 sxy + C2) / ((mx^2 + my^2 + C1) (sx^2 + sy^2 + C2)),  C = (K peak)^2

The result is the mean over all windows that lie inside the picture, of each channel, and then over the channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from scenario_runner.suite.metrics.pairs import Pair

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

_SIDE: Final = 11
_SIGMA: Final = 1.5
_ROWS: Final = 256  # of windows at a time


def ssim(pairs: Sequence[Pair]) -> float:
    """1 where both pictures are equal; NaN where a value is not finite."""
    return sum(_of_channel(pair) for pair in pairs) / len(pairs)


def _of_channel(pair: Pair) -> float:
    import numpy

    height, width = pair.shape
    actual, expected = pair.actual.reshape(height, width), pair.expected.reshape(height, width)
    total = 0.0
    with numpy.errstate(all="ignore"):  # infinite values
        for top in range(0, height - _SIDE + 1, _ROWS):
            rows = slice(top, min(top + _ROWS + _SIDE - 1, height))
            total += float(_similarities(actual[rows].astype("f8"), expected[rows].astype("f8"), pair.peak).sum())
    return total / ((height - _SIDE + 1) * (width - _SIDE + 1))


def _similarities(x: Array, y: Array, peak: float) -> Array:
    first, second = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    mean_x, mean_y = _weighted(x), _weighted(y)
    variances = _weighted(x * x) - mean_x**2 + _weighted(y * y) - mean_y**2
    covariance = _weighted(x * y) - mean_x * mean_y
    above = (2 * mean_x * mean_y + first) * (2 * covariance + second)
    below = (mean_x**2 + mean_y**2 + first) * (variances + second)
    result: Array = above / below
    return result


def _weighted(values: Array) -> Array:
    """The weighted means of all windows: of rows, then of columns."""
    import numpy

    weights = numpy.exp(-((numpy.arange(_SIDE) - _SIDE // 2) ** 2) / (2 * _SIGMA**2))
    weights /= weights.sum()
    height, width = values.shape
    rows = sum(weight * values[at : height - _SIDE + 1 + at] for at, weight in enumerate(weights))
    return numpy.asarray(sum(weight * rows[:, at : width - _SIDE + 1 + at] for at, weight in enumerate(weights)))
