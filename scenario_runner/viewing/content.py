"""The contents of a file as channels of numbers, and their statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy

from scenario_runner.errors import FileError, UsageError
from scenario_runner.files.codec import all_codecs
from scenario_runner.files.source import file_error
from scenario_runner.viewing.element import Array, Element


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

    def index(self, flat: int, channel: int) -> tuple[int, ...]:
        """The index into the file's array of an element of a channel."""
        places = map(int, numpy.unravel_index(flat, self.shape))
        return (*places, self.first_channel + channel) if self.has_channel_axis else tuple(places)

    def select(self, wanted: str) -> Content:
        """One channel alone, by its name or number. Raises UsageError that lists what there is."""
        names = [channel.name.lower() for channel in self.channels]
        if wanted.lower() in names:
            found = names.index(wanted.lower())
        elif wanted.isascii() and wanted.isdigit() and len(wanted) < 10 and int(wanted) < len(names):
            found = int(wanted)
        else:
            shown = ", ".join(channel.name for channel in self.channels[:8]) + (", …" if len(names) > 8 else "")
            raise UsageError(f"--channel {wanted!r}: {self.path} has the channels {shown or 'of an empty array'}")
        return replace(self, channels=(self.channels[found],), first_channel=found)


def image(path: str, title: str, channels: tuple[Channel, ...]) -> Content:
    """An image of these channels, which share height and width."""
    return Content(path, title, channels, len(channels) > 1)


def no_level(path: str, count: int, level: int) -> FileError:
    """The error for a mip level that a file does not have."""
    has = f"{count} mip levels" if count > 1 else "one mip level"
    others = [codec.extension for codec in all_codecs() if codec.holds_levels]
    return file_error(
        path, f"has {has}, so that there is no level {level}", help=f"{' and '.join(others)} files may have more levels"
    )


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
