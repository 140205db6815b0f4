"""Metrics: what each can be computed of, its default bounds, and the pairs of channels that it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import numpy

from scenario_runner.suite.tolerance.planes import Plane
from scenario_runner.text import distinct
from scenario_runner.viewing.element import Array

_PIECE: Final = 1 << 16


class Pair(NamedTuple):
    """One channel: its values and the expected ones, flat and of one type.

    ``peak`` is the greatest value that it can have: that of its type, 1 for floats. ``shape`` is (height, width) of an
    image, else that of all values. Elements that do not count (``counts`` is false) are as expected in ``actual``.
    """

    name: str
    actual: Array
    expected: Array
    peak: float
    shape: tuple[int, ...]
    counts: Array | None = None

    @property
    def number(self) -> int:
        """The number of elements that count."""
        return self.actual.size if self.counts is None else int(self.counts.sum())

    def pieces(self) -> Iterator[tuple[Array, Array]]:
        """The elements that count, actual and expected, in double precision and in pieces of bounded size."""
        for start in range(0, self.actual.size, _PIECE):
            a, e = self.actual[start : start + _PIECE], self.expected[start : start + _PIECE]
            if self.counts is not None:
                counts = self.counts[start : start + _PIECE]
                a, e = a[counts], e[counts]
            yield a.astype("f8"), e.astype("f8")


def pairs_of(
    planes: Sequence[Plane],
    actual: memoryview,
    expected: memoryview,
    ignored: Array | None,
    *,
    without_nan: bool = False,
) -> list[Pair]:
    """The channels of all planes; ``without_nan`` leaves out elements where NaN is expected."""
    found: list[Pair] = []
    before = 0
    for plane in planes:
        part = slice(plane.offset_bytes, plane.offset_bytes + plane.size_bytes)
        flags = None if ignored is None else ignored[before : before + plane.element_count]
        before += plane.element_count
        shape = plane.shape if plane.image is None else plane.shape[:2]
        pairs = zip(plane.channels(actual[part]), plane.channels(expected[part]), strict=True)
        for number, (a, e) in enumerate(pairs):
            with numpy.errstate(invalid="ignore"):  # about NaN that signal
                values, wanted = a.element.numbers(a.raw), e.element.numbers(e.raw)
            counts = None
            if flags is not None:
                counts = ~plane.flags_of(flags, number)
            if without_nan and a.element.is_float and numpy.isnan(wanted).any():
                is_number = ~numpy.isnan(wanted)
                counts = is_number if counts is None else counts & is_number
                wanted = numpy.where(is_number, wanted, 0)
            if counts is not None:
                values = numpy.where(counts, values, wanted)
            found.append(Pair(a.name, values, wanted, a.peak, tuple(shape), counts))
    return found


class Metric(NamedTuple):
    """One metric; `measures` has the function of this name, which computes it of pairs of channels.

    A likeness is better where it is greater; other metrics are errors. ``defaults`` are the bounds (warning, failure)
    without which the user must give some. ``images`` tells that it is one of images, whose sides are at least
    ``least_side`` texels, ``package`` what must be installed for it.
    """

    name: str
    is_likeness: bool = False
    defaults: tuple[float, float] | None = None
    images: bool = False
    least_side: int = 1
    package: str | None = None

    def value(self, pairs: Sequence[Pair]) -> float:
        """The metric of channels. Raises ValueError with the reason where these values have none."""
        measures = import_module("scenario_runner.suite.tolerance.measures")
        return float(getattr(measures, self.name)(pairs))

    def misfits(self, planes: Sequence[Plane]) -> Iterator[tuple[str, str, str | None]]:
        """The reasons why it cannot be computed of an output: code, message and help."""
        if self.images:
            (plane, *others) = planes
            if plane.image is None:
                yield "SR-EXPECT-009", "is a metric of images; this output is none", None
            elif others:
                message = f"is a metric of one picture; this output has {len(planes)} (mip levels, depth and stencil)"
                yield "SR-EXPECT-009", message, None
            elif min(plane.shape[:2]) < self.least_side:
                size = f"{plane.shape[1]}x{plane.shape[0]}"
                yield "SR-EXPECT-009", f"needs {self.least_side} texels each way; this image has {size}", None
            elif self.package and plane.shape[2] < 3:
                yield "SR-EXPECT-009", f"needs three channels; this image has {plane.shape[2]}", None
        if self.package and find_spec(self.package.replace("-", "_")) is None:
            message = f"needs the package {self.package!r}, which is not installed"
            yield "SR-EXPECT-010", message, "pip install 'scenario-runner[compare]'"


METRICS: Final = {
    metric.name: metric
    for metric in (
        Metric("rmse"),
        Metric("psnr", is_likeness=True),
        Metric("ssim", is_likeness=True, images=True, least_side=11),
        Metric("histogram_emd"),
        Metric("flip", images=True, package="flip-evaluator"),
        Metric("rel_l2", defaults=(3e-6, 1.5e-5)),
        Metric("cosine", is_likeness=True, defaults=(0.999999, 0.999995)),
        Metric("scale_error", defaults=(2e-6, 1e-5)),
        Metric("wasserstein_rel", defaults=(2e-7, 1e-6)),
        Metric("atol_p999", defaults=(3e-6, 1e-5)),
    )
}
"""By the names that expectations use."""


def verdict(metric: Metric, bounds: Any, value: float) -> tuple[str, str]:
    """Judge a value under the bounds of the expectations: "Pass", "Warn" or "Fail", and a sentence if not Pass."""
    warn, limit = bounds.warn, bounds.min if metric.is_likeness else bounds.max
    if warn is None and limit is None and metric.defaults is not None:
        warn, limit = metric.defaults
    for status, bound in (("Fail", limit), ("Warn", warn)):
        if bound is None:
            continue
        is_within = value >= bound if metric.is_likeness else value <= bound
        if not is_within:  # a NaN is within nothing
            wanted = "at least" if metric.is_likeness else "at most"
            found, expected = distinct(value, bound)
            return status, f"{metric.name} is {found}, expected {wanted} {expected}"
    return "Pass", ""
