"""Output metrics, computed from channel pairs: formulas, bounds and requirements.

Squared errors::

    rmse = sqrt(mean((actual - expected)^2))                    over all elements, in units of their values
    psnr = -10 log10(mean(((actual - expected) / peak)^2))      in dB; infinite where nothing differs

Numbers' errors relative to a magnitude, with the names and bounds of Arm's compare_outputs. The actual values a and
the expected values e are vectors with n elements in double precision::

    rel_l2          = |a - e| / |e|
    cosine          = (a . e) / (|a| |e|)
    scale_error     = |(a . e) / (e . e) - 1|        for the factor (a . e) / (e . e) that maps e to a best
    wasserstein_rel = mean |sort(a) - sort(e)| / mean |e|
    atol_p999       = the 99.9th percentile of |a_i - e_i|, interpolated linearly

If e is all zero, the errors are 0 if a is all zero, else infinite; the cosine is 1 or 0.

The earth mover's distance compares two pictures' histograms, so places do not count::

    histogram_emd = max over channels:  sum_i |A_i - E_i| / (255 n)

A and E are the cumulative histograms for n values in 256 equal bins. The bins span the type's range, or 0 to 1 for
floats; values beyond fall into the first and the last bin. The distance is 0 for equal histograms. It is 1 if all
values lie at the range's wrong end.

Structural similarity (SSIM) of two pictures. Source: Wang, Bovik, Sheikh, Simoncelli, "Image Quality Assessment: From
Error Visibility to Structural Similarity" (2004). Windows have 11x11 texels, weighted by a Gaussian of standard
deviation 1.5; K1 = 0.01, K2 = 0.03::

    ssim(x, y) = (2 mx my + C1) (2 sxy + C2) / ((mx^2 + my^2 + C1) (sx^2 + sy^2 + C2)),  C = (K peak)^2

The result is the mean over all complete windows and all channels.

FLIP tells how different two pictures look to a viewer who flips between them. NVIDIA's package flip-evaluator computes
it. Sources: Andersson et al., "FLIP: A Difference Evaluator for Alternating Images" (2020), and for float formats the
variant for high dynamic range (2021). Colours in other formats count as sRGB. The result is the mean over all texels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy

from scenario_runner.compare.planes import Plane
from scenario_runner.errors.installation import requirement
from scenario_runner.errors.text import distinct
from scenario_runner.files.elements import Array

_PIECE: Final = 1 << 16  # elements; a piece and all temporary arrays fit into the processor's caches


class Pair(NamedTuple):
    """A channel's actual and expected values, flat and with a common type.

    ``peak`` is the greatest possible value: the type's maximum, 1 for floats. ``shape`` is (height, width) for an
    image. Elements with a false flag in ``counts`` are excluded, and equal on both sides.
    """

    name: str
    actual: Array
    expected: Array
    peak: float
    shape: tuple[int, ...]
    counts: Array | None = None

    def pieces(self) -> Iterator[tuple[Array, Array]]:
        """Yield actual and expected elements in double precision, in pieces, without excluded elements."""
        for start in range(0, self.actual.size, _PIECE):
            part = slice(start, start + _PIECE)
            counts = slice(None) if self.counts is None else self.counts[part]
            yield self.actual[part][counts].astype("f8"), self.expected[part][counts].astype("f8")


def pairs_of(
    planes: Sequence[Plane], actual: memoryview, expected: memoryview, ignored: Array | None, without_nan: bool = False
) -> list[Pair]:
    """Return all planes' channels. ``without_nan`` excludes elements with an expected NaN."""
    result: list[Pair] = []
    before = 0
    for plane in planes:
        part = slice(plane.offset_bytes, plane.offset_bytes + plane.size_bytes)
        flags = None if ignored is None else ignored[before : before + plane.element_count]
        before += plane.element_count
        shape = plane.shape[:2] if plane.has_texels else plane.shape
        pairs = zip(plane.channels(actual[part]), plane.channels(expected[part]), strict=True)
        for number, (a, e) in enumerate(pairs):
            with numpy.errstate(invalid="ignore"):  # about signaling NaN
                values, reference = a.numbers, e.numbers
            counts = None if flags is None else ~plane.flags_of(flags, number)
            if without_nan and a.element.is_float and numpy.isnan(reference).any():
                is_number = ~numpy.isnan(reference)
                counts = is_number if counts is None else counts & is_number
                reference = numpy.where(is_number, reference, 0)
            if counts is not None:
                values = numpy.where(counts, values, reference)
            result.append(Pair(a.name, values, reference, a.peak, tuple(shape), counts))
    return result


def rmse(pairs: Sequence[Pair]) -> float:
    """Return the root of the mean squared error over all channels' elements."""
    return math.sqrt(_mean_square(pairs, relative=False))


def psnr(pairs: Sequence[Pair]) -> float:
    """Return the peak signal-to-noise ratio in dB."""
    noise = _mean_square(pairs, relative=True)
    return math.inf if noise == 0 else -10 * math.log10(noise)


def _mean_square(pairs: Sequence[Pair], *, relative: bool) -> float:
    total, count = 0.0, 0
    with numpy.errstate(all="ignore"):  # infinity less infinity
        for pair in pairs:
            for actual, expected in pair.pieces():
                error = actual - expected
                total += float(error @ error) / (pair.peak**2 if relative else 1)
                count += error.size
    return total / count if count else 0.0


def rel_l2(pairs: Sequence[Pair]) -> float:
    """Return the error's norm divided by the expected values' norm."""
    error, _, expected, _ = _sums(pairs)
    return _ratio(math.sqrt(error), math.sqrt(expected))


def cosine(pairs: Sequence[Pair]) -> float:
    """Return the cosine for the angle between actual and expected values."""
    _, actual, expected, product = _sums(pairs)
    if not actual or not expected:
        return float(actual == expected)
    return min(1.0, product / math.sqrt(actual) / math.sqrt(expected))


def scale_error(pairs: Sequence[Pair]) -> float:
    """Return how far the best factor between expected and actual values is from 1."""
    _, actual, expected, product = _sums(pairs)
    return abs(product / expected - 1) if expected else _ratio(actual, expected)


def wasserstein_rel(pairs: Sequence[Pair]) -> float:
    """Return the mean distance between the sorted values, relative to the mean expected magnitude."""
    actual, expected = _values(pairs)
    if not actual.size:
        return 0.0
    distance = float(numpy.abs(numpy.sort(actual) - numpy.sort(expected)).mean())
    return _ratio(distance, float(numpy.abs(expected).mean()))


def atol_p999(pairs: Sequence[Pair]) -> float:
    """Return the absolute error's 99.9th percentile: an element in a thousand exceeds it."""
    actual, expected = _values(pairs)
    return float(numpy.percentile(numpy.abs(actual - expected), 99.9)) if actual.size else 0.0


def _ratio(error: float, magnitude: float) -> float:
    return error / magnitude if magnitude else math.inf if error else 0.0


def _pieces(pairs: Sequence[Pair]) -> Iterator[tuple[Array, Array]]:
    """Yield all channels' pieces. Raises ValueError for values other than finite numbers."""
    for actual, expected in chain.from_iterable(pair.pieces() for pair in pairs):
        _check(actual, expected)
        yield actual, expected


def _check(actual: Array, expected: Array) -> None:
    for side, values in (("the output", actual), ("the expected content", expected)):
        if not numpy.isfinite(values).all():
            raise ValueError(f"{side} has values that are not finite")


def _sums(pairs: Sequence[Pair]) -> tuple[float, float, float, float]:
    """Return the sums over squared errors, actual squares, expected squares, and products. Raises ValueError."""
    sums = [0.0, 0.0, 0.0, 0.0]
    for actual, expected in _pieces(pairs):
        error = actual - expected
        products = (error @ error, actual @ actual, expected @ expected, actual @ expected)
        sums = [total + float(product) for total, product in zip(sums, products, strict=True)]
    return sums[0], sums[1], sums[2], sums[3]


def _values(pairs: Sequence[Pair]) -> tuple[Array, Array]:
    """Return all actual and all expected elements, without excluded ones. Raises ValueError."""
    pieces = [(numpy.zeros(0), numpy.zeros(0)), *_pieces(pairs)]
    actual, expected = map(numpy.concatenate, zip(*pieces, strict=True))
    return actual, expected


_BINS: Final = 256


def histogram_emd(pairs: Sequence[Pair]) -> float:
    """Return the worst channel's distance, or NaN if a value is NaN."""
    return max(map(_distance, pairs), default=0.0)


def _distance(pair: Pair) -> float:
    kind = pair.actual.dtype.kind
    limits = (-pair.peak - 1 if kind == "i" and pair.peak > 1 else 0.0, pair.peak + (kind in "iu"))
    difference, count = numpy.zeros(_BINS, numpy.int64), 0
    for actual, expected in pair.pieces():
        if numpy.isnan(actual).any() or numpy.isnan(expected).any():
            return math.nan
        for values, sign in ((actual, 1), (expected, -1)):
            difference += sign * numpy.histogram(numpy.clip(values, *limits), _BINS, limits)[0]
        count += actual.size
    return float(numpy.abs(difference.cumsum()).sum()) / ((_BINS - 1) * count) if count else 0.0


_SIDE: Final = 11
_SIGMA: Final = 1.5
_ROWS: Final = 256  # window rows at a time


def ssim(pairs: Sequence[Pair]) -> float:
    """Return the similarity: 1 for equal pictures, NaN if a value is not finite."""
    total, count = 0.0, 0
    with numpy.errstate(all="ignore"):  # infinite values
        for pair in pairs:
            height, width = pair.shape
            count += (height - _SIDE + 1) * (width - _SIDE + 1)
            for top in range(0, height - _SIDE + 1, _ROWS):
                rows = slice(top, min(top + _ROWS + _SIDE - 1, height))
                x, y = (array.reshape(height, width)[rows].astype("f8") for array in (pair.actual, pair.expected))
                total += float(_similarities(x, y, pair.peak).sum())
    return total / count  # once: quotients for equal pictures would not add up to 1


def _similarities(x: Array, y: Array, peak: float) -> Array:
    first, second = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    mean_x, mean_y = _weighted(x), _weighted(y)
    variances = _weighted(x * x) - mean_x**2 + _weighted(y * y) - mean_y**2
    covariance = _weighted(x * y) - mean_x * mean_y
    above = (2 * mean_x * mean_y + first) * (2 * covariance + second)
    return numpy.asarray(above / ((mean_x**2 + mean_y**2 + first) * (variances + second)))


def _weighted(values: Array) -> Array:
    """Return each window's weighted mean, first along columns, then along rows."""
    weights = numpy.exp(-((numpy.arange(_SIDE) - _SIDE // 2) ** 2) / (2 * _SIGMA**2))
    weights /= weights.sum()
    height, width = values.shape
    rows = sum(weight * values[at : height - _SIDE + 1 + at] for at, weight in enumerate(weights))
    return numpy.asarray(sum(weight * rows[:, at : width - _SIDE + 1 + at] for at, weight in enumerate(weights)))


_LUMINANCES = (0.2126, 0.7152, 0.0722)  # red, green and blue
# For a darker expected picture the package ends the process, or returns 0. This is twice the package's own limit.
_LEAST_LUMINANCE = 2.0**-22


def flip(pairs: Sequence[Pair]) -> float:
    """Return the mean difference: 0 for equal pictures, at most 1.

    Raises ValueError for values other than finite numbers, and for floats differing from a black expected picture.
    """

    actual, expected = (_picture(pairs, side) for side in (0, 1))
    _check(actual, expected)
    if (actual == expected).all():
        return 0.0
    import flip_evaluator

    kind = "HDR" if numpy.issubdtype(pairs[0].actual.dtype, numpy.floating) else "LDR"
    if kind == "HDR" and (expected.astype("f8") @ _LUMINANCES).max() < _LEAST_LUMINANCE:
        raise ValueError("the expected picture is black at every exposure: choose another metric")
    _, mean, _ = flip_evaluator.evaluate(expected, actual, kind, computeMeanError=True, applyMagma=False)
    return float(mean)


def _picture(pairs: Sequence[Pair], side: int) -> Array:
    colors = [(pair.expected if side else pair.actual).astype("f4") / pair.peak for pair in pairs[:3]]
    return numpy.stack([color.reshape(pairs[0].shape) for color in colors], axis=-1).astype("f4")


class Metric(NamedTuple):
    """A metric. ``value`` computes it from channel pairs, or raises ValueError with a reason.

    A greater likeness is better; other metrics are errors. ``defaults`` are bounds for a warning and a failure; without
    them, the user must give bounds. A metric of ``images`` needs at least ``least_side`` texels on each side.
    ``package`` must be installed.
    """

    value: Callable[[Sequence[Pair]], float]
    is_likeness: bool = False
    defaults: tuple[float, float] | None = None
    images: bool = False
    least_side: int = 1
    package: str | None = None

    @property
    def limit(self) -> str:
        """The key for the failure bound."""
        return "min" if self.is_likeness else "max"

    def is_within(self, value: float, bound: float) -> bool:
        """Return whether a value is no worse than a bound. NaN is worse than any bound."""
        return value >= bound if self.is_likeness else value <= bound

    def misfits(self, planes: Sequence[Plane]) -> Iterator[tuple[str, str, str | None]]:
        """Yield reasons why the metric cannot be computed from an output: code, message and help."""
        if self.images:
            (plane, *others) = planes
            if not plane.has_texels:
                yield "SR-EXPECT-009", "is a metric of images, but this output is not an image", None
            elif others:
                message = f"compares one picture, but this output has {len(planes)} (mip levels, depth and stencil)"
                yield "SR-EXPECT-009", message, None
            elif min(plane.shape[:2]) < self.least_side:
                size = f"{plane.shape[1]}x{plane.shape[0]}"
                yield "SR-EXPECT-009", f"needs {self.least_side} texels each way, but this image has {size}", None
            elif self.package and plane.shape[2] < 3:
                yield "SR-EXPECT-009", f"needs three channels, but this image has {plane.shape[2]}", None
        if self.package and find_spec(self.package.replace("-", "_")) is None:
            message = f"needs the package {self.package!r}, which is not installed"
            newest = requirement(self.package).newest_python
            yield "SR-EXPECT-010", message, f"pip install {self.package} (wheels exist up to CPython {newest})"


def verdict(metric: Metric, bounds: Any, value: float) -> tuple[str, str]:
    """Judge a value by the expected bounds. Return "Pass", "Warn" or "Fail", and a sentence about the value."""
    warn, limit = bounds.warn, getattr(bounds, metric.limit)
    if warn is None and limit is None and metric.defaults is not None:
        warn, limit = metric.defaults
    for status, bound in (("Fail", limit), ("Warn", warn)):
        if bound is not None and not metric.is_within(value, bound):
            shown, expected = distinct(value, bound)
            name, direction = metric.value.__name__, "least" if metric.is_likeness else "most"
            return status, f"{name} is {shown}, expected at {direction} {expected}"
    return "Pass", ""
