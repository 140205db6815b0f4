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


CHUNK_BYTES: Final = 1 << 18  # what is known of it stays in the caches of the processor
_MOST_WAITING: Final = 1 << 16  # elements
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
    total = sum(plane.element_count for plane in planes)
    waiting = _Waiting(rule, ignored)
    for chunk in _chunks(actual, source, planes):
        if chunk.is_equal and (rule.nan != "error" or not chunk.element.is_float):
            continue
        waiting.add(chunk, _suspects(chunk, rule))
    return Found(waiting.wrong(), total, 0 if ignored is None else int(ignored.sum()))


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


class _Waiting:
    """Suspects of many chunks that are looked at together: looking at a few costs as much as at hundreds.

    Life cycle: suspects are added; `wrong` looks at all that wait, and says how many were wrong and count."""

    def __init__(self, rule: Rule, ignored: Array | None) -> None:
        self._rule = rule
        self._ignored = ignored
        self._element: Element | None = None
        # actual and expected values, and their places where some do not count
        self._parts: list[tuple[Array, Array, Array]] = []
        self._count = self._wrong = 0

    def add(self, chunk: _Chunk, suspects: Array | None) -> None:
        """Those at some indices of a chunk, or None for all; what it holds is copied."""
        import numpy

        if suspects is not None and not suspects.size:
            return
        if self._element is not chunk.element or self._count > _MOST_WAITING:
            self.wrong()
            self._element = chunk.element
        where = numpy.arange(chunk.actual.size) if suspects is None else suspects
        places = where if self._ignored is None else chunk.before + chunk.first + where * chunk.stride
        self._parts.append((chunk.actual[where], chunk.expected[where], places))
        self._count += where.size

    def wrong(self) -> int:
        """How many were wrong until now."""
        import numpy

        if self._parts and self._element is not None:
            actual, expected, places = (numpy.concatenate(each) for each in zip(*self._parts, strict=True))
            where = wrong_elements(actual, expected, self._element, self._rule)
            count = where.size if self._ignored is None else int((~self._ignored[places[where]]).sum())
            self._wrong += count
            self._parts, self._count = [], 0
        return self._wrong


def _suspects(chunk: _Chunk, rule: Rule) -> Array | None:
    """The indices of the elements of a chunk that may be wrong; None for all."""
    if rule.is_bitwise or rule.nan == "error":
        return None
    size = len(chunk.actual)
    if not chunk.fast or chunk.fast[0].element is not chunk.element or chunk.fast[0].size < size:
        chunk.fast[:] = [FastCheck(chunk.element, rule, size)]
    return chunk.fast[0].suspects(chunk.actual, chunk.expected)


def _wrong(chunk: _Chunk, rule: Rule, ignored: Array | None) -> Array:
    """The indices of the elements of a chunk that are wrong and count."""
    where = wrong_elements(chunk.actual, chunk.expected, chunk.element, rule, _suspects(chunk, rule))
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
            held = bytearray(min(CHUNK_BYTES, plane.size_bytes))
            for start in range(0, plane.size_bytes, CHUNK_BYTES):
                if plane.size_bytes - start < len(held):
                    held = bytearray(plane.size_bytes - start)
                offset = plane.offset_bytes + start
                source.read_into(memoryview(held), offset)
                given = actual[offset : offset + len(held)]
                element = plane.element
                a, e = numpy.frombuffer(given, element.dtype), numpy.frombuffer(held, element.dtype)
                yield _Chunk(plane, element, a, e, start // element.size_bytes, 1, before, held == given, fast)
        before += plane.element_count
