"""The contents of a file as channels of numbers: the kinds of numbers, how far two are apart, and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy

from scenario_runner.errors import UsageError
from scenario_runner.formats import ML_DTYPES, Format, ml_dtype

Array: TypeAlias = numpy.ndarray[Any, numpy.dtype[Any]]


class Element(NamedTuple):
    """A kind of number; ``dtype`` is the little-endian NumPy type that its bits are kept in.

    Values of packed formats have fewer bits than that type: of a float the last ``unused_bits`` are zero, of an integer
    the first ones are copies of its sign. Where NumPy has no such type, ``raw_dtype`` is that of raw bytes, which files
    have for it.
    """

    name: str
    dtype: str
    unused_bits: int = 0
    raw_dtype: str = ""

    @property
    def size_bytes(self) -> int:
        return int(self.dtype[2:])

    @property
    def is_float(self) -> bool:
        return "float" in self.name

    @property
    def peak(self) -> float:
        """The greatest value of an integer, 1 for floats and bool."""
        if self.is_float or self.name == "bool":
            return 1.0
        return float(int(numpy.iinfo(self.dtype).max) >> self.unused_bits)

    @property
    def type(self) -> Any:
        """The type of NumPy or of ml_dtypes that computes with the values."""
        return ml_dtype(self.numeric) if self.numeric in ML_DTYPES else self.dtype

    @property
    def numeric(self) -> str:
        """The name as formats have it, where it is one of `ML_DTYPES`."""
        return self.name.replace("_", "")

    @property
    def limits(self) -> Any:
        """The limits of a float, as `numpy.finfo` has them."""
        import ml_dtypes

        return ml_dtypes.finfo(self.type)  # type: ignore[no-untyped-call]

    def numbers(self, raw: Array) -> Array:
        """Values to compute with, exact: as they are, or as 32-bit floats where NumPy has no such type."""
        return raw.view(self.type).astype("<f4") if self.numeric in ML_DTYPES else raw

    def bits(self, raw: Array) -> Array:
        """The bits of values as unsigned integers."""
        return numpy.ascontiguousarray(raw).view(f"<u{self.size_bytes}")

    def steps(self, first: Array, second: Array) -> Array:
        """Count the values of this kind between each two (units in the last place); for floats that are not NaN."""
        values = []
        for raw in (first, second):
            bits = raw.view(f"<i{self.size_bytes}")
            sign = bits >> (8 * self.size_bytes - 1)  # 0 or -1
            values.append((bits & numpy.iinfo(bits.dtype).max ^ sign) - sign)  # both zeros are one value
        return distance(*values) >> self.unused_bits

    def encoded(self, values: Sequence[int | float]) -> bytes:
        """The bytes of numbers, rounded to the nearest (halfway cases to the even one).

        Raises ValueError for a number that no value of this kind is.
        """
        if not self.is_float:
            limits = numpy.iinfo("u1" if self.name == "bool" else self.dtype)
            least, greatest = int(limits.min), 1 if self.name == "bool" else int(limits.max)
            for value in values:
                if not least <= value <= greatest or value != int(value):
                    raise ValueError(f"{value!r:.60} is no value of {self.name}: {least} to {greatest}")
            return numpy.array([int(value) for value in values], self.dtype).tobytes()
        precise = numpy.asarray(values, "<f8")
        with numpy.errstate(over="ignore"):  # beyond the range lies infinity
            if self.name == "bfloat16":  # ml_dtypes rounds by way of 32-bit floats: with an odd last bit, it is right
                single = precise.astype("<f4")
                inexact = (single != precise) & (single.view("<u4") & 1 == 0)
                toward = numpy.where(precise > single, numpy.inf, -numpy.inf).astype("<f4")
                precise = numpy.where(inexact, numpy.nextafter(single, toward), single)
            encoded: bytes = precise.astype(self.type).tobytes()
            return encoded

    def text(self, raw: Array) -> str:
        """One value in decimal and its bits in hexadecimal."""
        value, bits = self.numbers(raw.reshape(1))[0], int(self.bits(raw.reshape(1))[0])
        return f"{value!s} (0x{bits:0{2 * self.size_bytes}x})"


ELEMENTS = {
    element.name: element
    for element in (
        Element("bool", "|b1"),
        Element("int8", "|i1"),
        Element("uint8", "|u1"),
        *(Element(f"{kind}{8 * size}", f"<{kind[0]}{size}") for size in (2, 4, 8) for kind in ("int", "uint", "float")),
        Element("bfloat16", "<u2", raw_dtype="<V2"),
        Element("float8_e4m3", "|u1", raw_dtype="|V1"),
        Element("float8_e5m2", "|u1"),  # no file tells it from the other one
    )
}


# Where two have one type, the first one: it is NumPy's own.
_BY_DTYPE = {(element.raw_dtype or element.dtype)[1:]: element for element in reversed(ELEMENTS.values())}
_BY_NUMERIC = {element.numeric: element for element in ELEMENTS.values() if element.numeric in ML_DTYPES}


def element_of(dtype: str) -> Element | None:
    """The numbers of a NumPy type such as "<f4" or "f4"; None where there are none."""
    return _BY_DTYPE.get(dtype.lstrip("<|"))


def element_of_format(format: Format) -> Element:
    """The numbers of a format whose items are one of `ELEMENTS`."""
    element = _BY_NUMERIC.get(format.numeric) or element_of(format.numpy_dtype or "")
    assert element is not None, "only formats of blocks have other items"
    return element


def distance(one: Array, other: Array) -> Array:
    """Absolute differences: exact, as unsigned integers, of integers of one type; in double precision otherwise."""
    if one.dtype == other.dtype and one.dtype.kind in "iu":
        exact: Array = (numpy.maximum(one, other) - numpy.minimum(one, other)).view(f"<u{one.dtype.itemsize}")
        return exact
    with numpy.errstate(all="ignore"):
        difference = one.astype("f8")
        difference -= other
        absolute: Array = numpy.abs(difference, out=difference)
        return absolute


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
