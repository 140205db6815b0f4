"""Comparing the bytes of an output with what is expected, in pieces of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner.suite.tolerance.elements import ElementCheck, errors_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    import numpy

    from scenario_runner.suite.tolerance.elements import Rule
    from scenario_runner.suite.tolerance.planes import Plane
    from scenario_runner.viewing.element import Element

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

    class Source(Protocol):
        """What the expected bytes are read from."""

        def read_into(self, destination: memoryview, offset: int) -> None: ...


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
    actual: memoryview, source: Source, planes: Sequence[Plane], rule: Rule, ignored: Array | None = None
) -> Mismatch:
    """Count the wrong elements, and list the worst. ``ignored`` has a flag for each element of all planes, in order."""
    count = 0
    checks: dict[Element, ElementCheck] = {}
    worst: list[tuple[float, tuple[str, str, str]]] = []
    for piece in _pieces(actual, source, planes, with_equal=rule.nan == "error"):
        check = checks.get(piece.element)
        if check is None or check.size < piece.actual.size:
            check = checks[piece.element] = ElementCheck(piece.element, rule, piece.actual.size)
        wrong = check.wrong(piece.actual, piece.expected)
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
    import numpy

    errors = errors_of(piece.actual[wrong], piece.expected[wrong], piece.element)
    if len(others) == _WORST_MAX:
        greater = errors > others[-1][0]
        wrong, errors = wrong[greater], errors[greater]
    greatest = numpy.argsort(-errors, kind="stable")[:_WORST_MAX]
    found = []
    for at, error in zip(wrong[greatest].tolist(), errors[greatest].tolist(), strict=True):
        expected, actual = (piece.element.text(values[at : at + 1]) for values in (piece.expected, piece.actual))
        found.append((error, (piece.plane.place(piece.first + at * piece.stride), expected, actual)))
    return found


def _pieces(actual: memoryview, source: Source, planes: Sequence[Plane], *, with_equal: bool) -> Iterator[_Piece]:
    """Pieces of all planes; those with equal bytes may be left out."""
    import numpy

    before = 0
    held = bytearray()
    for plane in planes:
        first = 0
        for part in plane.split(PIECE_BYTES):
            if len(held) != part.size_bytes:
                held = bytearray(part.size_bytes)
            source.read_into(memoryview(held), part.offset_bytes)
            given = actual[part.offset_bytes : part.offset_bytes + part.size_bytes]
            if held != given or with_equal:  # compares memory, as memoryview itself does not
                if part.element is not None:
                    a, e = (numpy.frombuffer(data, part.element.dtype) for data in (given, held))
                    yield _Piece(plane, part.element, a, e, first, 1, before)
                else:
                    pairs = list(zip(part.channels(given), part.channels(held), strict=True))
                    for number, (one, other) in enumerate(pairs):
                        yield _Piece(plane, one.element, one.raw, other.raw, first + number, len(pairs), before)
            first += part.element_count
        before += plane.element_count
