"""The rule for equal numbers within tolerances, and the comparison of an output with expected bytes, piece by piece."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import numpy

from scenario_runner.compare.planes import Plane
from scenario_runner.files.elements import Array, Element, distance
from scenario_runner.plan.records import Source
from scenario_runner.view.contents import Channel

_NARROWER: Final = 1 - 1e-6  # rounding the bounds must not accept a wrong element
_DENORMAL_ROUNDING: Final = 1e-44  # seven times the least single-precision value
_CERTAIN_ATOL_MAX: Final = 1e30  # adding any single-precision value gives a finite number
_TABLE_MIN: Final = 1 << 16  # elements; for fewer, a table for all byte pairs does not pay


class Rule(NamedTuple):
    """Rule for right elements: with default fields the bits must be equal, otherwise the numbers.

    A number is right if any condition holds:

    - both values are equal (0 equals -0);
    - both are finite, and ``|actual - expected| <= atol + rtol * |expected|``;
    - both are finite, ``|expected| > zero``, and they are at most ``ulp`` representable values apart;
    - both are finite, ``|expected| <= zero``, and ``|actual - expected| <= zero``;
    - ``denormals`` is "any", with a zero on one side and a denormal value with the same sign on the other;
    - NaN: both are NaN ("equal"), NaN is expected ("any"); a NaN is wrong with "error", also where it is expected.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulp: int = 0
    zero: float = 0.0
    denormals: Literal["exact", "any"] = "exact"
    nan: Literal["equal", "any", "error"] | None = None


BITWISE: Final = Rule()
EQUAL: Final = Rule(nan="equal")
"""The rule for equal numbers: both zeros are equal, and NaN equals NaN."""


def wrong_elements(
    actual: Array, expected: Array, element: Element, rule: Rule, expected_element: Element | None = None
) -> Array:
    """Return the indices of a piece's wrong elements.

    Expected elements may have another type, except under `BITWISE`. Then ``ulp`` counts only between integers.
    """
    if expected_element is not None and expected_element != element:
        return numpy.flatnonzero(~_right(actual, expected, element, rule, expected_element))
    if rule == BITWISE:
        return numpy.flatnonzero(element.bits(actual) != element.bits(expected))
    if not element.is_float:
        return numpy.flatnonzero(~_right(actual, expected, element, rule, element))
    if element.size_bytes == 1 and actual.size >= _TABLE_MIN:
        return numpy.flatnonzero(_wrong_bytes(element, rule)[expected.astype("u2") << 8 | actual])
    doubtful = numpy.flatnonzero(~_certainly_right(actual, expected, element, rule))
    return doubtful[~_right(actual[doubtful], expected[doubtful], element, rule, element)]


def _certainly_right(actual: Array, expected: Array, element: Element, rule: Rule) -> Array:
    """Return flags for floats surely right despite rounding, in the element's or single precision.

    This is several times as fast as `_right`, which judges the other floats.
    """
    precision = "f8" if element.size_bytes == 8 else "f4"
    a, e = (element.numbers(raw).astype(precision, copy=False) for raw in (actual, expected))
    with numpy.errstate(all="ignore"):  # infinite values
        magnitudes = numpy.abs(e)
        bounds = magnitudes * numpy.asarray(min(rule.rtol, 1.0) * _NARROWER, precision)
        bounds += numpy.asarray(min(rule.atol, _CERTAIN_ATOL_MAX) * _NARROWER - _DENORMAL_ROUNDING, precision)
        right = numpy.abs(a - e) < bounds  # false for infinite values
        right |= a == e
        if rule.ulp:
            near = element.steps(actual, expected) <= rule.ulp
            near &= numpy.isfinite(a) & numpy.isfinite(e)
            right |= near & (magnitudes * numpy.asarray(_NARROWER, precision) > rule.zero) if rule.zero else near
    return numpy.asarray(right)


def _right(actual: Array, expected: Array, element: Element, rule: Rule, expected_element: Element) -> Array:
    """Return flags for right elements. Floats are compared in double precision, integers exactly."""
    has_floats = element.is_float or expected_element.is_float
    with numpy.errstate(all="ignore"):  # about signaling NaN
        a, e = element.numbers(actual), expected_element.numbers(expected)
        errors = distance(a, e)
        if not has_floats and not rule.rtol and not rule.zero:
            return numpy.asarray(errors <= max(math.floor(rule.atol), rule.ulp))
        magnitudes = numpy.abs(e.astype("f8", copy=False))
        if has_floats or rule.rtol:
            right = errors <= rule.atol + rule.rtol * magnitudes
        else:
            right = errors <= math.floor(rule.atol)  # exact, also where a double is not
        if rule.ulp and (element == expected_element or not has_floats):
            near = (element.steps(actual, expected) if has_floats else errors) <= rule.ulp
            right |= near & (magnitudes > rule.zero) if rule.zero else near
        if rule.zero:
            right |= (magnitudes <= rule.zero) & (errors <= rule.zero)
        if not has_floats:
            return numpy.asarray(right)
        right &= numpy.isfinite(a) & numpy.isfinite(e)
        right |= (errors == 0) | numpy.isinf(e) & (a == e)
        if rule.denormals == "any":
            denormal = numpy.maximum(numpy.abs(a), magnitudes) < element.limits.smallest_normal
            right |= denormal & ((a == 0) | (e == 0)) & (numpy.signbit(a) == numpy.signbit(e))
        if rule.nan == "error":
            right &= ~numpy.isnan(a)
        else:
            right |= numpy.isnan(e) if rule.nan == "any" else numpy.isnan(a) & numpy.isnan(e)
    return numpy.asarray(right)


@lru_cache(8)
def _wrong_bytes(element: Element, rule: Rule) -> Array:
    """Return flags for all wrong pairs of one-byte floats, indexed by ``expected << 8 | actual``."""
    values = numpy.arange(256, dtype="u1")
    return ~_right(numpy.tile(values, 256), numpy.repeat(values, 256), element, rule, element)


def element_errors(actual: Array, expected: Array, element: Element, expected_element: Element | None = None) -> Array:
    """Return absolute errors in double precision. Errors are infinite if only one side is finite or NaN."""
    a, e = element.numbers(actual), (expected_element or element).numbers(expected)
    with numpy.errstate(all="ignore"):
        errors = distance(a, e).astype("f8", copy=False)
        errors[(numpy.isnan(a) & numpy.isnan(e)) | (numpy.isinf(e) & (a == e))] = 0.0
    return numpy.where(numpy.isnan(errors), numpy.inf, errors)


PIECE_BYTES: Final = 1 << 17  # a piece and all temporary arrays fit into the processor's caches
_READ_BYTES: Final = 1 << 20  # at once; a source may open a file for each read
WORST_MAX: Final = 10
"""Most elements in a list of worst elements."""


def worst_first(errors: Array, most: int = WORST_MAX) -> list[int]:
    """Return the indices of the greatest errors, in descending order; equal errors keep their order."""
    return list(numpy.argsort(-errors, kind="stable")[:most].tolist())


class Mismatch(NamedTuple):
    """The result of a comparison: ``wrong``, ``ignored`` and ``total`` element counts.

    ``worst`` lists wrong elements as texts (index, expected, actual), the greatest error first. ``error`` is the
    greatest error among them, infinite for a NaN or an infinity on one side only. ``measured_error`` is the greatest
    error of all compared elements, or 0 unless `compare` measured it.
    """

    wrong: int
    total: int
    ignored: int = 0
    worst: tuple[tuple[str, str, str], ...] = ()
    error: float = 0.0
    measured_error: float = 0.0


def compare(
    actual: memoryview,
    source: Source,
    planes: Sequence[Plane],
    rule: Rule,
    ignored: Array | None = None,
    *,
    measures: bool = False,
) -> Mismatch:
    """Count the wrong elements, and list the worst. ``ignored`` has flags for all planes' elements, in order.

    ``measures`` also measures right elements, which takes as long as the comparison.
    """
    count, before, greatest = 0, 0, 0.0
    worst: list[tuple[float, tuple[str, str, str]]] = []
    for plane in planes:
        for a, e, first, stride in _pieces(actual, source, plane, with_equal=rule.nan == "error"):
            wrong = wrong_elements(a.raw, e.raw, a.element, rule)
            if measures:
                errors = element_errors(a.raw, e.raw, a.element)
                if ignored is not None:
                    errors = errors[~ignored[before + first + numpy.arange(errors.size) * stride]]
                greatest = max(greatest, float(errors.max(initial=0.0)))
            if ignored is not None:
                wrong = wrong[~ignored[before + first + wrong * stride]]
            if not wrong.size:
                continue
            count += wrong.size
            errors = element_errors(a.raw[wrong], e.raw[wrong], a.element)
            if len(worst) == WORST_MAX:
                greater = errors > worst[-1][0]
                wrong, errors = wrong[greater], errors[greater]
            for at in worst_first(errors):
                index = int(wrong[at])
                worst.append((float(errors[at]), (plane.place(first + index * stride), e.text(index), a.text(index))))
            worst = sorted(worst, key=lambda pair: -pair[0])[:WORST_MAX]
        before += plane.element_count
    ignored_count = 0 if ignored is None else int(ignored.sum())
    worst_error = worst[0][0] if worst else 0.0
    return Mismatch(count, before, ignored_count, tuple(texts for _, texts in worst), worst_error, greatest)


def _pieces(
    actual: memoryview, source: Source, plane: Plane, *, with_equal: bool
) -> Iterator[tuple[Channel, Channel, int, int]]:
    """Yield a plane's pieces: actual elements, expected elements, the first element's number, and the stride.

    Expected elements are valid until the next piece is read. Pieces with equal bytes may be left out.
    """
    first = 0
    held = bytearray()
    for block in plane.split(_READ_BYTES):
        if len(held) != block.size_bytes:
            held = bytearray(block.size_bytes)
        source.read_into(memoryview(held), block.offset_bytes)
        raw = actual[block.offset_bytes : block.offset_bytes + block.size_bytes]
        if held == raw and not with_equal:  # compares memory, as memoryview itself does not
            first += block.element_count
            continue
        for part in block.split(PIECE_BYTES):
            start = part.offset_bytes - block.offset_bytes
            bytes_of_part = slice(start, start + part.size_bytes)
            channels = (part.elements(data[bytes_of_part]) for data in (raw, memoryview(held)))
            pairs = list(zip(*channels, strict=True))
            yield from ((a, e, first + number, len(pairs)) for number, (a, e) in enumerate(pairs))
            first += part.element_count
