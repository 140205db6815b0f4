"""What is in a channel, in a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy

    from scenario_runner.viewing.content import Channel

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

_CORNER = 4


class Statistics(NamedTuple):
    """Least, greatest and mean of the values that are finite (None where there are none), and how many are not."""

    least: Any
    greatest: Any
    mean: float | None
    nan_count: int
    infinite_count: int


def statistics_of(channel: Channel) -> Statistics:
    """Of all values of a channel; the mean is computed in double precision."""
    import numpy

    values = channel.numbers
    nan_count = infinite_count = 0
    if channel.element.is_float:
        nan_count = int(numpy.isnan(values).sum())
        infinite_count = int(numpy.isinf(values).sum())
        if nan_count or infinite_count:
            values = values[numpy.isfinite(values)]
    if not values.size:
        return Statistics(None, None, None, nan_count, infinite_count)
    with numpy.errstate(over="ignore"):
        mean = float(values.mean(dtype=numpy.float64))
    return Statistics(values.min(), values.max(), mean, nan_count, infinite_count)


def corner(channel: Channel) -> Array:
    """The first values of the first rows, at most four each way: two axes, the outer ones at 0."""
    values = channel.raw
    if values.ndim < 2:
        values = values.reshape(1, -1)
    if not values.size:
        return values.reshape(0, 0)
    values = values[(0,) * (values.ndim - 2)]
    return channel.element.numbers(values[:_CORNER, :_CORNER])
