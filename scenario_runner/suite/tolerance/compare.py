"""Comparing the bytes of an output with what is expected, chunk by chunk."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner.suite.tolerance.elements import errors_of, wrong_elements
from scenario_runner.suite.tolerance.fast import FastCheck

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    import numpy

    from scenario_runner.suite.tolerance.planes import Plane
    from scenario_runner.suite.tolerance.rule import Rule
    from scenario_runner.viewing.element import Element

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

    class Source(Protocol):
        """What the expected bytes are read from."""

        def read_into(self, destination: memoryview, offset: int) -> None: ...


CHUNK_BYTES: Final = 1 << 18  # with the memory of `fast`, it stays in the caches of the processor
_CHUNK_ELEMENTS: Final = 1 << 16  # for which that memory has four bytes at least
_MOST_WORST: Final = 10


class Found(NamedTuple):
    """What a comparison gave: ``wrong`` of ``total`` elements, of which ``ignored`` do not count.

    ``worst`` lists (index, expected, actual) as text, the greatest error first; ``error`` is that error, infinite where
    a value is NaN or infinite on one side only. Both are of wrong elements only.
    """

    wrong: int
    total: int
    ignored: int = 0
    worst: tuple[tuple[str, str, str], ...] = ()
    error: float = 0.0


def equal_bytes(actual: memoryview, source: Source) -> bool:
    """Whether all bytes are equal; stops at the first chunk in which some are not."""
    size = len(actual)
    held = bytearray(min(size, CHUNK_BYTES))
    for start in range(0, size, CHUNK_BYTES):
        if size - start < len(held):
            held = bytearray(size - start)
        source.read_into(memoryview(held), start)
        if held != actual[start : start + len(held)]:  # compares memory, as memoryview itself does not
            return False
    return True


def compare(
    actual: memoryview, source: Source, planes: Sequence[Plane], rule: Rule, ignored: Array | None = None
) -> Found:
    """Count the elements that are wrong. ``ignored`` has a flag for each element of all planes, in order."""
    wrong, total = 0, sum(plane.element_count for plane in planes)
    for chunk in _chunks(actual, source, planes):
        if chunk.is_equal and (rule.nan != "error" or not chunk.element.is_float):
            continue
        wrong += len(_wrong(chunk, rule, ignored))
    return Found(wrong, total, 0 if ignored is None else int(ignored.sum()))


def details(
    actual: memoryview,
    source: Source,
    planes: Sequence[Plane],
    rule: Rule,
    found: Found,
    ignored: Array | None = None,
) -> Found:
    """The same with the worst of the wrong elements: those with the greatest absolute errors."""
    import numpy

    worst: list[tuple[float, int, tuple[str, str, str]]] = []
    for chunk in _chunks(actual, source, planes):
        where = _wrong(chunk, rule, ignored) if not chunk.is_equal or rule.nan == "error" else ()
        if not len(where):
            continue
        errors = errors_of(chunk.actual[where], chunk.expected[where], chunk.element)
        if len(where) > _MOST_WORST:
            most = numpy.argsort(-errors, kind="stable")[:_MOST_WORST]
            where, errors = where[most], errors[most]
        for at, error in zip(where, errors, strict=True):
            wanted, got = (chunk.element.text(values[at : at + 1]) for values in (chunk.expected, chunk.actual))
            position = chunk.first + int(at) * chunk.stride
            entry = (chunk.plane.place(position), wanted, got)
            worst.append((float(error), -chunk.plane.offset_bytes - position, entry))
        worst = heapq.nlargest(_MOST_WORST, worst)
    return found._replace(worst=tuple(entry for _, _, entry in worst), error=worst[0][0] if worst else 0.0)


class _Chunk(NamedTuple):
    """Elements ``first``, ``first + stride``, … of a plane; ``before`` are those of the planes before it."""

    plane: Plane
    element: Element
    actual: Array
    expected: Array
    first: int
    stride: int
    before: int
    is_equal: bool
    fast: list[FastCheck]


def _wrong(chunk: _Chunk, rule: Rule, ignored: Array | None) -> Array:
    """The indices of the elements of a chunk that are wrong and count."""
    suspects = None
    if not rule.is_bitwise and rule.nan != "error":
        size = len(chunk.actual)
        if not chunk.fast or chunk.fast[0].element is not chunk.element or chunk.fast[0].size < size:
            chunk.fast[:] = [FastCheck(chunk.element, rule, size)]
        suspects = chunk.fast[0].suspects(chunk.actual, chunk.expected)
        if not suspects.size:
            return suspects
    where = wrong_elements(chunk.actual, chunk.expected, chunk.element, rule, suspects)
    if ignored is not None and where.size:
        where = where[~ignored[chunk.before + chunk.first + where * chunk.stride]]
    return where


def _chunks(actual: memoryview, source: Source, planes: Sequence[Plane]) -> Iterator[_Chunk]:
    """Pieces of all planes; what they hold is valid until the next one is asked for."""
    import numpy

    before = 0
    fast: list[FastCheck] = []
    for plane in planes:
        if plane.element is None:
            expected = bytearray(plane.size_bytes)
            source.read_into(memoryview(expected), plane.offset_bytes)
            given = actual[plane.offset_bytes : plane.offset_bytes + plane.size_bytes]
            is_equal = expected == given
            pairs = list(zip(plane.channels(given), plane.channels(expected), strict=True))
            for number, (one, other) in enumerate(pairs):
                yield _Chunk(plane, one.element, one.raw, other.raw, number, len(pairs), before, is_equal, fast)
        else:
            step = min(CHUNK_BYTES, _CHUNK_ELEMENTS * plane.element.size_bytes)
            held = bytearray(min(step, plane.size_bytes))
            for start in range(0, plane.size_bytes, step):
                if plane.size_bytes - start < len(held):
                    held = bytearray(plane.size_bytes - start)
                offset = plane.offset_bytes + start
                source.read_into(memoryview(held), offset)
                given = actual[offset : offset + len(held)]
                element = plane.element
                a, e = numpy.frombuffer(given, element.dtype), numpy.frombuffer(held, element.dtype)
                yield _Chunk(plane, element, a, e, start // element.size_bytes, 1, before, held == given, fast)
        before += plane.element_count
