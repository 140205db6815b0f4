"""Metrics that follow from the squared errors.

::

    rmse = sqrt(mean((actual - expected)^2))                    over all elements, in units of their values
    psnr = -10 log10(mean(((actual - expected) / peak)^2))      in dB; infinite where nothing differs
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scenario_runner.suite.metrics.pairs import Pair


def rmse(pairs: Sequence[Pair]) -> float:
    """The root of the mean squared error over the elements of all channels."""
    return math.sqrt(_mean_square(pairs, relative=False))


def psnr(pairs: Sequence[Pair]) -> float:
    """The peak signal-to-noise ratio in dB, errors relative to the greatest value that a channel can have."""
    noise = _mean_square(pairs, relative=True)
    return math.inf if noise == 0 else -10 * math.log10(noise)


def _mean_square(pairs: Sequence[Pair], *, relative: bool) -> float:
    import numpy

    total, count = 0.0, 0
    with numpy.errstate(all="ignore"):  # infinity less infinity
        for pair in pairs:
            squares = 0.0
            for actual, expected in pair.pieces():
                error = actual - expected
                squares += float(error @ error)
            total += squares / pair.peak**2 if relative else squares
            count += pair.number
    return total / count if count else 0.0
