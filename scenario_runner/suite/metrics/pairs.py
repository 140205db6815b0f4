"""What metrics are computed of: the channels of an output, each beside the expected one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy

    from scenario_runner.suite.tolerance.planes import Plane

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

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
        """How many elements count."""
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
    import numpy

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
            peak = a.element.peak if a.full_range is None else float(a.full_range[1])
            found.append(Pair(a.name, values, wanted, peak, tuple(shape), counts))
    return found
