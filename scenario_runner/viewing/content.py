"""The contents of a file as channels of numbers: the kinds of numbers, how far two are apart, and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy

from scenario_runner.elements import Array, Element, distance
from scenario_runner.errors import UsageError

_MOST_COLORS = 4


def unequal(one: Array, other: Array) -> Array:
    """Compare numbers, exactly also 64-bit integers with floats; NaN differs from everything."""
    if one.dtype.kind == "f" and other.dtype.kind in "iu":
        one, other = other, one
    with numpy.errstate(all="ignore"):  # about NaN that signal
        if other.dtype.kind != "f" or one.dtype.kind not in "iu" or one.dtype.itemsize < 8:
            return numpy.asarray(one != other)
        # NumPy would compare the integers as floats, which are too coarse
        floats = other.astype("f8")
        fits = (floats >= float(numpy.iinfo(one.dtype).min)) & (floats < float(numpy.iinfo(one.dtype).max))
        fits &= floats == numpy.floor(floats)
        return numpy.asarray(~(fits & (numpy.where(fits, floats, 0).astype(one.dtype) == one)))


def errors_of(one: Array, other: Array) -> Array:
    """Absolute differences in double precision: 0 where both are equal or NaN, NaN where one of them is."""
    differs = unequal(one, other) & ~(numpy.isnan(one) & numpy.isnan(other))
    return numpy.where(differs, distance(one, other), 0.0)


def trimmed(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without its outer axes of length 1."""
    start = next((at for at, length in enumerate(shape) if length != 1), len(shape))
    return tuple(shape[start:])


def has_colors(shape: Sequence[int]) -> bool:
    """Return whether the last axis of a tensor counts colours, as in (batch, height, width, channels): it is a short
    one."""
    return len(shape) > 2 and shape[-1] <= _MOST_COLORS


class Channel(NamedTuple):
    """One channel: ``raw`` has the axes of the content without the channel's own.

    ``full_range`` is the least and the greatest value of a normalized colour, None for numbers that have no such range.
    """

    name: str
    raw: Array
    element: Element
    full_range: tuple[int, int] | None = None

    @property
    def numbers(self) -> Array:
        """The values, to compute with."""
        return self.element.numbers(self.raw)

    @property
    def peak(self) -> float:
        """The greatest value that it can have: that of its type or range, 1 for floats."""
        return self.element.peak if self.full_range is None else float(self.full_range[1])


@dataclass(frozen=True, slots=True)
class Content:
    """The content of one file.

    ``title`` says so in a few words. ``channels`` are those of an image, or the last axis of an array of three or more
    axes; ``has_channel_axis`` tells that an index into the file's array ends with the number of the channel.
    """

    path: str
    title: str
    channels: tuple[Channel, ...]
    has_channel_axis: bool
    first_channel: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes that all channels share."""
        return tuple(self.channels[0].raw.shape) if self.channels else (0,)

    def fits(self, other: Content) -> bool:
        """Return whether both have as many channels of one shape, but for outer axes of length 1."""
        return trimmed(self.shape) == trimmed(other.shape) and len(self.channels) == len(other.channels)

    def index(self, flat: int, channel: int) -> tuple[int, ...]:
        """The index into the file's array of an element of a channel."""
        places = map(int, numpy.unravel_index(flat, self.shape))
        return (*places, self.first_channel + channel) if self.has_channel_axis else tuple(places)

    def select(self, name: str) -> Content:
        """One channel alone, by its name or number. Raises UsageError that lists what there is."""
        names = [channel.name.lower() for channel in self.channels]
        if name.lower() in names:
            index = names.index(name.lower())
        elif name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(names):
            index = int(name)
        else:
            shown = ", ".join(channel.name for channel in self.channels[:8]) + (", …" if len(names) > 8 else "")
            raise UsageError(f"--channel {name!r}: {self.path} has the channels {shown or 'of an empty array'}")
        return replace(self, channels=(self.channels[index],), first_channel=index)


_CORNER = 4


class Statistics(NamedTuple):
    """Least, greatest and mean of the values that are finite (None where there are none), and how many are not."""

    least: Any
    greatest: Any
    mean: float | None
    nan_count: int
    infinite_count: int


def statistics_of(channel: Channel) -> Statistics:
    """Summarise all values of a channel; the mean is computed in double precision."""
    values = channel.numbers
    nan_count, infinite_count = int(numpy.isnan(values).sum()), int(numpy.isinf(values).sum())
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
