"""Compare the bytes of an output with the expected ones in pieces of bounded size, and find the wrong elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import numpy

from scenario_runner.suite.expectations.outputs import Content
from scenario_runner.suite.tolerance.planes import Plane
from scenario_runner.viewing.content import Array, Element, distance, errors_of

_NARROWER: Final = 1 - 1e-6  # keeps the rounding of a bound from making a wrong element right
_MANY: Final = 1 << 16  # fewer pairs of bytes are judged in less time than it takes to make the table of all


class Rule(NamedTuple):
    """Elements are right where their bits are equal; where any field differs from its default, as numbers.

    As numbers, an element is right where one of these holds:

    - both values are equal (0 equals -0);
    - both are finite, and ``|actual - expected| <= atol + rtol * |expected|``;
    - both are finite, ``|expected| > zero``, and they are at most ``ulp`` representable values apart;
    - both are finite, ``|expected| <= zero``, and ``|actual - expected| <= zero``;
    - ``denormals`` is "any", and one is a zero and the other a denormal value of the same sign;
    - NaN: both are NaN ("equal"), NaN is expected ("any"); a NaN is wrong with "error", also where it is expected.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulp: int = 0
    zero: float = 0.0
    denormals: Literal["exact", "any"] = "exact"
    nan: Literal["equal", "any", "error"] | None = None

    @property
    def is_bitwise(self) -> bool:
        """Return whether bits are compared, not numbers."""
        return self == _BITWISE


_BITWISE = Rule()


def wrong_elements(actual: Array, expected: Array, element: Element, rule: Rule) -> Array:
    """The indices of the wrong elements of a piece.

    Floats that are certainly right are told by their bits as integers (`_doubtful`), the others are judged in double
    precision.
    """
    if rule.is_bitwise:
        return numpy.flatnonzero(element.bits(actual) != element.bits(expected))
    if element.is_float:
        doubtful = _doubtful(actual, expected, element, rule)
        if doubtful.size <= actual.size // 4:  # to take out more of them would cost more
            return doubtful[~_of_elements(_right, actual, expected, doubtful, element, rule)]
    return numpy.flatnonzero(~_of_elements(_right, actual, expected, slice(None), element, rule))


def _doubtful(actual: Array, expected: Array, element: Element, rule: Rule) -> Array:
    """The indices of the floats that may be wrong; the others are certainly right.

    The bits without the sign count the steps (representable values) from zero. All steps of a binade have one size,
    which doubles from each to the next; so ``atol`` steps in the ``least_binade`` are half of that in the next one.
    Finite values of different sign are further apart by their bits than any bound: none is more than a binade has.
    """
    bounds, size = _bounds(element, rule), element.size_bytes
    sign, a, e = 1 << (8 * size - 1), actual.view(f"<i{size}"), expected.view(f"<i{size}")
    apart = a - e
    apart = numpy.abs(apart, out=apart).view(f"<u{size}")
    magnitudes = expected.view(apart.dtype) & (sign - 1)
    infinity, values = sign - (1 << bounds.fraction_bits), 1 << bounds.fraction_bits
    furthest, greatest = int(apart.max()), int(magnitudes.max())
    largest = max(greatest + bounds.most, int(a.max()), int(actual.view(apart.dtype).max()) - sign)
    if largest < infinity and not rule.zero:
        binade = max((greatest + furthest >> bounds.fraction_bits) - bounds.least_binade, 0)
        if furthest <= max(bounds.always, bounds.atol >> binade):
            return numpy.empty(0, numpy.intp)
        if furthest <= bounds.normal:
            small = numpy.flatnonzero(magnitudes < values)
            # the error and the value of a denormal are whole numbers of the smallest steps
            allowed = min(rule.rtol * _NARROWER, 1.0) * magnitudes[small]
            return numpy.compress(apart[small] > allowed, small)
    near = apart <= bounds.always
    if bounds.atol:
        binades = magnitudes + apart  # at least the magnitude of the actual value
        binades >>= bounds.fraction_bits
        numpy.maximum(binades, bounds.least_binade, out=binades)
        binades -= bounds.least_binade
        near |= apart <= numpy.right_shift(bounds.atol, binades, out=binades)
    if bounds.normal > bounds.always:
        near |= (apart <= bounds.normal) & (magnitudes >= values)
    if rule.zero:
        near &= magnitudes > bounds.zero_bits
    if largest >= infinity:  # its bits are next to the zero of the other sign; no bound reaches it from below
        near &= (magnitudes < infinity - bounds.most) & (a ^ e >= 0)
    return numpy.flatnonzero(~near)


def _right(actual: Array, expected: Array, element: Element, rule: Rule) -> Array:
    """Flags of the elements that are right as numbers."""
    with numpy.errstate(all="ignore"):  # about NaN that signal
        a, e = element.numbers(actual), element.numbers(expected)
        if element.is_float:
            a, e = a.astype("f8", copy=False), e.astype("f8", copy=False)
        errors = distance(a, e)
        if not element.is_float and not rule.rtol and not rule.zero:
            return numpy.asarray(errors <= max(math.floor(rule.atol), rule.ulp))
        magnitudes = numpy.abs(e.astype("f8", copy=False))
        if element.is_float or rule.rtol:
            right = errors <= rule.atol + rule.rtol * magnitudes
        else:
            right = errors <= math.floor(rule.atol)  # exact, also where a double is not
        if rule.ulp:
            few = (element.steps(actual, expected) if element.is_float else errors) <= rule.ulp
            right |= few & (magnitudes > rule.zero) if rule.zero else few
        if rule.zero:
            right |= (magnitudes <= rule.zero) & (errors <= rule.zero)
        if not element.is_float:
            return numpy.asarray(right)
        right &= numpy.isfinite(a) & numpy.isfinite(e)
        right |= a == e
        if rule.denormals == "any":
            small = numpy.maximum(numpy.abs(a), magnitudes) < _limits(element).smallest_normal
            right |= small & ((a == 0) | (e == 0)) & (numpy.signbit(a) == numpy.signbit(e))
        if rule.nan == "error":
            right &= ~numpy.isnan(a)
        else:
            right |= numpy.isnan(e) if rule.nan == "any" else numpy.isnan(a) & numpy.isnan(e)
    return numpy.asarray(right)


def _limits(element: Element) -> Any:
    """The limits of a float, as `numpy.finfo` has them."""
    import ml_dtypes

    return ml_dtypes.finfo(element.type)  # type: ignore[no-untyped-call]


class _Bounds(NamedTuple):
    """The steps by which two floats may differ and are certainly right: ``always``, or ``normal`` where the expected
    value is not denormal, or ``atol`` in the ``least_binade``. No number is greater than that of the values in a
    binade, from one power of two to the next."""

    always: int
    normal: int
    atol: int
    least_binade: int
    fraction_bits: int
    zero_bits: int

    @property
    def most(self) -> int:
        return max(self.always, self.normal, self.atol)


@lru_cache(8)
def _bounds(element: Element, rule: Rule) -> _Bounds:
    limits = _limits(element)
    values = 1 << limits.nmant
    # d steps from a normal value, which lead into the next binade at most, are an error of at most
    # d / values / (1 - d / (2 * values)) of the value
    near = min(rule.rtol * _NARROWER, 1.0) * values
    mantissa, exponent = math.frexp(rule.atol)
    exponent -= int(math.log2(limits.smallest_subnormal))  # in steps of denormal values
    greatest_binade = (1 << (8 * element.size_bytes - 1 - limits.nmant)) - 1
    least_binade = min(max(1, exponent - limits.nmant + 1), greatest_binade)
    return _Bounds(
        always=min(rule.ulp << element.unused_bits, values),
        normal=int(near / (1 + near / (2 * values))),
        atol=min(math.floor(math.ldexp(mantissa, exponent - least_binade + 1)), values),
        least_binade=least_binade,
        fraction_bits=limits.nmant,
        zero_bits=int.from_bytes(element.encoded([rule.zero]), "little"),
    )


def _of_elements(
    function: Callable[..., Array], actual: Array, expected: Array, at: Array | slice, element: Element, *more: Rule
) -> Array:
    """The result of a function for the elements at some indices; for bytes of large pieces from a table."""
    if element.is_float and element.size_bytes == 1 and actual.size >= _MANY:
        values: Array = _table(function, element, *more)[expected[at].astype("u2") << 8 | actual[at]]
        return values
    return function(actual[at], expected[at], element, *more)


@lru_cache(8)
def _table(function: Callable[..., Array], element: Element, *more: Rule) -> Array:
    """The results for all pairs of bytes; an index has the actual value in the low byte, the expected one in the
    other."""
    values = numpy.arange(256, dtype="u1")
    return function(numpy.tile(values, 256), numpy.repeat(values, 256), element, *more)


def element_errors(actual: Array, expected: Array, element: Element) -> Array:
    """Absolute errors of elements in double precision; infinite where only one of the two is finite, or is NaN."""
    errors = errors_of(element.numbers(actual), element.numbers(expected))
    return numpy.where(numpy.isnan(errors), numpy.inf, errors)


PIECE_BYTES: Final = 1 << 18  # with what is computed of it, stays in the caches of the processor
_WORST_MAX: Final = 10


class Mismatch(NamedTuple):
    """The result of a comparison: ``wrong`` of ``total`` elements, of which ``ignored`` do not count.

    ``worst`` lists (index, expected, actual) as text, the greatest error first; ``error`` is that error, infinite where
    a value is NaN or infinite on one side only. Both are of wrong elements only.
    """

    wrong: int
    total: int
    ignored: int = 0
    worst: tuple[tuple[str, str, str], ...] = ()
    error: float = 0.0


class _Piece(NamedTuple):
    """Elements ``first``, ``first + stride``, … of a plane; ``before`` are those of the planes before it.

    ``expected`` is valid until the next piece is asked for.
    """

    plane: Plane
    element: Element
    actual: Array
    expected: Array
    first: int
    stride: int
    before: int


def compare(
    actual: memoryview, source: Content, planes: Sequence[Plane], rule: Rule, ignored: Array | None = None
) -> Mismatch:
    """Count the wrong elements, and list the worst. ``ignored`` has a flag for each element of all planes, in order."""
    count = 0
    worst: list[tuple[float, tuple[str, str, str]]] = []
    for piece in _pieces(actual, source, planes, with_equal=rule.nan == "error"):
        wrong = wrong_elements(piece.actual, piece.expected, piece.element, rule)
        if ignored is not None:
            wrong = wrong[~ignored[piece.before + piece.first + wrong * piece.stride]]
        if wrong.size:
            count += wrong.size
            worst = sorted(worst + _worst(piece, wrong, worst), key=lambda pair: -pair[0])[:_WORST_MAX]
    return Mismatch(
        count,
        sum(plane.element_count for plane in planes),
        0 if ignored is None else int(ignored.sum()),
        tuple(texts for _, texts in worst),
        worst[0][0] if worst else 0.0,
    )


def _worst(
    piece: _Piece, wrong: Array, others: list[tuple[float, tuple[str, str, str]]]
) -> list[tuple[float, tuple[str, str, str]]]:
    """The errors and texts of the worst of the wrong elements of a piece, as far as they are worse than the others."""
    errors = _of_elements(element_errors, piece.actual, piece.expected, wrong, piece.element)
    if len(others) == _WORST_MAX:
        greater = errors > others[-1][0]
        wrong, errors = wrong[greater], errors[greater]
    greatest = numpy.argsort(-errors, kind="stable")[:_WORST_MAX]
    worst = []
    for at, error in zip(wrong[greatest].tolist(), errors[greatest].tolist(), strict=True):
        expected, actual = (piece.element.text(values[at : at + 1]) for values in (piece.expected, piece.actual))
        worst.append((error, (piece.plane.place(piece.first + at * piece.stride), expected, actual)))
    return worst


def _pieces(actual: memoryview, source: Content, planes: Sequence[Plane], *, with_equal: bool) -> Iterator[_Piece]:
    """Pieces of all planes; those with equal bytes may be left out."""
    before = 0
    held = bytearray()
    for plane in planes:
        first = 0
        for part in plane.split(PIECE_BYTES):
            if len(held) != part.size_bytes:
                held = bytearray(part.size_bytes)
            source.read_into(memoryview(held), part.offset_bytes)
            raw = actual[part.offset_bytes : part.offset_bytes + part.size_bytes]
            if held != raw or with_equal:  # compares memory, as memoryview itself does not
                if part.element is not None:
                    a, e = (numpy.frombuffer(data, part.element.dtype) for data in (raw, held))
                    yield _Piece(plane, part.element, a, e, first, 1, before)
                else:
                    pairs = list(zip(part.channels(raw), part.channels(held), strict=True))
                    for number, (one, other) in enumerate(pairs):
                        yield _Piece(plane, one.element, one.raw, other.raw, first + number, len(pairs), before)
            first += part.element_count
        before += plane.element_count
