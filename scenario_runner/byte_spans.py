"""Spans of bytes in one memory, from their first byte to the first one after them: which of them overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

Span = tuple[int, int]
_Owner = TypeVar("_Owner")


def overlap(one: Span, other: Span) -> bool:
    """Whether both have a byte in common."""
    return max(one[0], other[0]) < min(one[1], other[1])


def collisions(spans: Iterable[tuple[Span, _Owner]]) -> Iterator[tuple[_Owner, _Owner]]:
    """Owners of spans that overlap: each one with the one before it, in the order of their starts, that ends last."""
    furthest: tuple[Span, _Owner] | None = None
    for each in sorted(spans, key=lambda each: each[0][0]):
        if furthest is not None and overlap(each[0], furthest[0]):
            yield each[1], furthest[1]
        if furthest is None or each[0][1] > furthest[0][1]:
            furthest = each
