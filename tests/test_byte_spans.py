"""Which spans of bytes overlap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scenario_runner.byte_data import Span, collisions, overlap

spans = st.tuples(st.integers(0, 30), st.integers(0, 9)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(spans, spans)
def test_spans_overlap_where_they_share_a_byte(one: Span, other: Span) -> None:
    """Spans overlap if and only if the sets of their bytes do; an empty one overlaps nothing."""
    assert overlap(one, other) == bool(set(range(*one)) & set(range(*other)))


@given(st.lists(spans))
def test_each_span_that_begins_in_another_one_is_found_once(given: list[Span]) -> None:
    """A span is reported if and only if it shares bytes with one before it in the order of their starts."""
    found = list(collisions((span, number) for number, span in enumerate(given)))
    order = sorted(range(len(given)), key=lambda number: given[number][0])
    expected = [
        number
        for position, number in enumerate(order)
        if any(set(range(*given[number])) & set(range(*given[before])) for before in order[:position])
    ]
    assert [later for later, _ in found] == expected
    assert all(overlap(given[later], given[earlier]) for later, earlier in found)
