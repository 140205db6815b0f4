"""What is said of samples, and when two sets of them differ by more than noise. Standard library only.

Times are skewed and have outliers, so everything is built on medians: the median absolute deviation (MAD) stands for
the spread, and 1.4826 times it for a standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

MIN_SAMPLES: Final = 5
"""Fewer samples than this say nothing about noise."""
_MAD_TO_SIGMA: Final = 1.4826
# The standard error of a median is this many times that of a mean (of normally distributed values).
_MEDIAN_ERROR: Final = math.sqrt(math.pi / 2)
# Chance alone exceeds so many standard errors in one of 300 comparisons, of normally and of exponentially distributed
# samples. The MAD of few samples is often much too small: then it takes more of them (found by drawing 60,000 pairs).
_SIGMAS: Final = 3.0
_SIGMAS_OF_FEW: Final = 15.0


class Summary(NamedTuple):
    """Of ``number`` samples in nanoseconds; ``mad`` is their median absolute deviation from the median."""

    number: int
    min: float
    median: float
    p95: float
    mad: float

    @property
    def spread_percent(self) -> float:
        """The median absolute deviation in percent of the median."""
        return 100 * self.mad / self.median if self.median else 0.0

    @property
    def error(self) -> float:
        """The standard error of the median, in nanoseconds."""
        return _MEDIAN_ERROR * _MAD_TO_SIGMA * self.mad / math.sqrt(self.number)


def quantile(ordered: Sequence[float], part: float) -> float:
    """The value below which ``part`` of the ordered samples lie, between two samples by their distance."""
    at = part * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def summary(samples: Sequence[float]) -> Summary:
    """The summary of at least one sample."""
    ordered = sorted(samples)
    median = quantile(ordered, 0.5)
    mad = quantile(sorted(abs(each - median) for each in ordered), 0.5)
    return Summary(len(ordered), ordered[0], median, quantile(ordered, 0.95), mad)


class Change(NamedTuple):
    """From ``before`` to ``after``; ``noise`` is the difference of medians in nanoseconds that chance explains.

    ``verdict`` is "slower", "faster", "same", or "unknown" with too few samples.
    """

    before: Summary
    after: Summary
    noise: float
    verdict: str

    @property
    def percent(self) -> float:
        """The change of the median in percent."""
        return 100 * (self.after.median / self.before.median - 1) if self.before.median else 0.0


def compare(before: Summary, after: Summary, *, threshold_percent: float, resolution_ns: float) -> Change:
    """Whether two medians differ by more than noise.

    They do where the difference is greater than three standard errors of it (more with few samples), than
    ``threshold_percent`` of the earlier median, and than ``resolution_ns``, below which the clock cannot tell times
    apart.
    """
    fewest = max(min(before.number, after.number), MIN_SAMPLES)
    noise = (_SIGMAS + _SIGMAS_OF_FEW / (fewest - 2)) * math.hypot(before.error, after.error)
    difference = after.median - before.median
    bound = max(noise, before.median * threshold_percent / 100, resolution_ns)
    if min(before.number, after.number) < MIN_SAMPLES:
        verdict = "unknown"
    elif abs(difference) <= bound:
        verdict = "same"
    else:
        verdict = "slower" if difference > 0 else "faster"
    return Change(before, after, noise, verdict)
