"""The earth mover's distance between the histograms of two pictures: which colours they have, wherever these are.

::

    histogram_emd = max over channels of  sum_i |A_i - E_i| / (255 n)

A and E are the cumulative histograms of the n values of a channel in 256 bins of equal width over the range that values
of its type can have, for floats over 0 to 1 (values beyond fall into the first and the last bin). 0 means equal
histograms, 1 that all is at one end of the range where it should be at the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from scenario_runner.suite.metrics.pairs import Pair

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

_BINS: Final = 256


def histogram_emd(pairs: Sequence[Pair]) -> float:
    """The distance of the worst channel. NaN where a value is NaN."""
    return max((_distance(pair) for pair in pairs), default=0.0)


def _distance(pair: Pair) -> float:
    import numpy

    least = -pair.peak - 1 if pair.actual.dtype.kind == "i" and pair.peak > 1 else 0.0
    width = (pair.peak - least + (pair.actual.dtype.kind in "iu")) / _BINS
    difference = numpy.zeros(_BINS, numpy.int64)
    for actual, expected in pair.pieces():
        if numpy.isnan(actual).any() or numpy.isnan(expected).any():
            return math.nan
        difference += _histogram(actual, least, width) - _histogram(expected, least, width)
    return float(numpy.abs(difference.cumsum()).sum()) / ((_BINS - 1) * pair.number) if pair.number else 0.0


def _histogram(values: Array, least: float, width: float) -> Array:
    import numpy

    bins = numpy.clip(numpy.floor((values - least) / width), 0, _BINS - 1)
    return numpy.bincount(bins.astype(numpy.intp), minlength=_BINS)
