"""Kinds of numbers in arrays: types, bits, and conversion between numbers in JSON and bytes."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy

from scenario_runner.files.npy import NpyReader, unsupported
from scenario_runner.files.vk_formats import ML_DTYPES, Format, ml_dtype

Array: TypeAlias = numpy.ndarray[Any, numpy.dtype[Any]]
_HUGE: Final = 1 << 1024  # beyond all floats


class Element(NamedTuple):
    """A kind of number, with bits in the little-endian NumPy type ``dtype``.

    Values of packed formats have fewer bits than ``dtype``: in a float the last ``unused_bits`` are zero, in an integer
    the first bits repeat the sign. For a kind that NumPy lacks, ``raw_dtype`` is the type of raw bytes in files.
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
        """The greatest value of an integer type; 1 for floats and bool."""
        if self.is_float or self.name == "bool":
            return 1.0
        return float(int(numpy.iinfo(self.dtype).max) >> self.unused_bits)

    @property
    def type(self) -> Any:
        """The type of NumPy or ml_dtypes that computes with the values."""
        return ml_dtype(self.numeric) if self.numeric in ML_DTYPES else self.dtype

    @property
    def numeric(self) -> str:
        """The name in the spelling of formats and `ML_DTYPES`."""
        return self.name.replace("_", "")

    @property
    def limits(self) -> Any:
        """The limits of a float, like `numpy.finfo`."""
        import ml_dtypes

        return ml_dtypes.finfo(self.type)  # type: ignore[no-untyped-call]

    def numbers(self, raw: Array) -> Array:
        """Return exact values to compute with: unchanged, or as 32-bit floats if NumPy lacks the type."""
        return raw.view(self.type).astype("<f4") if self.numeric in ML_DTYPES else raw

    def bits(self, raw: Array) -> Array:
        """Return the bits of values as unsigned integers."""
        return numpy.ascontiguousarray(raw).view(f"<u{self.size_bytes}")

    def steps(self, first: Array, second: Array) -> Array:
        """Count the units in the last place between each two floats that are not NaN."""
        values = []
        for raw in (first, second):
            bits = raw.view(f"<i{self.size_bytes}")
            sign = bits >> (8 * self.size_bytes - 1)  # 0 or -1
            values.append((bits & numpy.iinfo(bits.dtype).max ^ sign) - sign)  # both zeros become 0
        return distance(*values) >> self.unused_bits

    def encoded(self, values: Sequence[int | float]) -> bytes:
        """Encode numbers, rounded to the nearest value (halfway cases to even).

        Raises ValueError for a number out of range, and for a fraction if the type is an integer.
        """
        if not self.is_float:
            limits = numpy.iinfo("u1" if self.name == "bool" else self.dtype)
            least, greatest = int(limits.min), 1 if self.name == "bool" else int(limits.max)
            for value in values:
                if not least <= value <= greatest:
                    raise ValueError(f"{value!r:.60} is not in the range of {self.name}, {least} to {greatest}")
                if value != int(value):
                    raise ValueError(f"{value!r:.60} is not an integer, so {self.name} cannot hold it")
            return numpy.array([int(value) for value in values], self.dtype).tobytes()
        precise = numpy.asarray(values, "<f8")
        with numpy.errstate(over="ignore"):  # numbers beyond the range become infinity
            if self.name == "bfloat16":  # ml_dtypes rounds through 32-bit floats; an odd last bit prevents errors
                single = precise.astype("<f4")
                inexact = (single != precise) & (single.view("<u4") & 1 == 0)
                toward = numpy.where(precise > single, numpy.inf, -numpy.inf).astype("<f4")
                precise = numpy.where(inexact, numpy.nextafter(single, toward), single)
            encoded: bytes = precise.astype(self.type).tobytes()
            return encoded

    def text(self, raw: Array) -> str:
        """Format a value in decimal, with the bits in hexadecimal."""
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
        Element("float8_e5m2", "|u1"),  # files cannot distinguish it from float8_e4m3
    )
}

# If two elements share a type, the first element counts: it is NumPy's own.
_BY_DTYPE = {(element.raw_dtype or element.dtype)[1:]: element for element in reversed(ELEMENTS.values())}
_BY_NUMERIC = {element.numeric: element for element in ELEMENTS.values() if element.numeric in ML_DTYPES}


def read_array(path: str | os.PathLike[str]) -> Array:
    """Read a .npy file into a new C-order little-endian array. Raises `FileError`."""
    with NpyReader(path) as reader:
        header = reader.header
        try:
            dtype = numpy.dtype(header.descr).newbyteorder("<")
        except TypeError as error:  # long doubles of another machine
            raise unsupported(reader.source.path, f"holds items of the type {header.descr!r}: {error}") from error
        array = numpy.empty(header.shape, dtype)
        reader.read_into(array.reshape(-1).view("u1").data)
    return array


def element_of(dtype: str) -> Element | None:
    """Return the element for a NumPy type such as "<f4" or "f4", or None."""
    return _BY_DTYPE.get(dtype.lstrip("<|"))


def element_of_format(format: Format) -> Element:
    """Return the element for the items of a format."""
    element = _BY_NUMERIC.get(format.numeric) or element_of(format.numpy_dtype or "")
    assert element is not None, "the format is not compressed"
    return element


def is_numeric(array: Array) -> bool:
    """Return whether NumPy itself computes with the items: Booleans, integers and floats."""
    return array.dtype.kind in "biuf"


def distance(one: Array, other: Array) -> Array:
    """Return absolute differences, which are 0 only for equal numbers.

    They are unsigned integers if a single integer type holds both arrays, else doubles that are rounded once.
    """
    common = numpy.result_type(one, other)
    if numpy.issubdtype(common, numpy.integer):
        one, other = one.astype(common, copy=False), other.astype(common, copy=False)
        exact: Array = (numpy.maximum(one, other) - numpy.minimum(one, other)).view(f"<u{common.itemsize}")
        return exact
    with numpy.errstate(all="ignore"):
        (high, low), (other_high, other_low) = _halves(one), _halves(other)
        return numpy.asarray(numpy.abs((high - other_high) + (low - other_low)))


def _halves(numbers: Array) -> tuple[Array, Array | float]:
    """Split numbers into sums of two doubles, since a single double cannot hold a 64-bit integer."""
    if not numpy.issubdtype(numbers.dtype, numpy.integer) or numbers.dtype.itemsize < 8:
        return numbers.astype("f8"), 0.0
    low = numbers & numbers.dtype.type(0xFFFFFFFF)
    return (numbers - low).astype("f8"), low.astype("f8")


def encoded(values: object, element: Element, count: int) -> bytes:
    """Encode numbers from JSON as ``count`` elements; a single number stands for all elements.

    Raises ValueError with a reason for an unfit value or a wrong count.
    """
    if not isinstance(values, list):
        try:
            return encoded([values], element, 1) * count
        except OverflowError:
            raise ValueError(f"{count} elements of {element.name} are more than fit into any memory") from None
    if len(values) != count:
        raise ValueError(f"there are {len(values)} values, but the output has {count} elements of {element.name}")
    texts = {at: value for at, value in enumerate(values) if isinstance(value, str)}
    numbers = [0 if at in texts else value if abs(value) < _HUGE else math.inf for at, value in enumerate(values)]
    data = bytearray(element.encoded(numbers))
    is_finite = numpy.isfinite(element.numbers(numpy.frombuffer(data, element.dtype)))
    if not is_finite.all():  # also for a number like 1e999 in JSON
        raise ValueError(f"{values[int(is_finite.argmin())]!r:.60} is out of the range of {element.name}")
    for at, text in texts.items():
        data[at * element.size_bytes : (at + 1) * element.size_bytes] = _special(text, element)
    return bytes(data)


def decoded(data: memoryview, element: Element, like: object) -> Any:
    """Decode elements to numbers for JSON, the inverse of `encoded`.

    The numbers are nested as in ``like``, or in a flat list if ``like`` has another size.
    """
    shape = numpy.array(like, object).shape
    raw = numpy.frombuffer(data, element.dtype)
    numbers = element.numbers(raw)
    is_single = numbers.dtype == numpy.float32  # single precision has shorter exact texts than double precision
    values = [float(str(number)) for number in numbers] if is_single else numbers.tolist()
    for at, value in enumerate(values):
        if isinstance(value, float) and not math.isfinite(value):
            values[at] = _text(value, raw[at : at + 1], element)
    return numpy.array(values, object).reshape(shape).tolist() if math.prod(shape) == len(values) and shape else values


def _text(value: float, raw: Array, element: Element) -> str:
    """Format a value that JSON cannot represent. A NaN with a non-default payload becomes hexadecimal bits."""
    text = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    bits = f"0x{int(element.bits(raw)[0]):0{2 * element.size_bytes}x}"
    return text if _special(text, element) == raw.tobytes() else bits


def _special(text: str, element: Element) -> bytes:
    """Encode a text such as "nan" or "0x7fc0" as a value. Raises ValueError."""
    if text.startswith("0x"):
        bits = int(text, 16)
        if bits >> 8 * element.size_bytes:
            raise ValueError(f"{text!r} has more bits than {element.name}")
        return bits.to_bytes(element.size_bytes, "little")
    if not element.is_float:
        raise ValueError(f"{text!r} is not an integer, so {element.name} cannot hold it")
    return element.encoded([float(text)])


# SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
_INCREMENT, _FIRST_FACTOR, _SECOND_FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = 2**64 - 1


def generated(element: Element, rule: tuple[Any, ...], first: int, count: int) -> bytes:
    """Compute ``count`` items by a rule, starting with item ``first``.

    Rules are ("series", start, step) and ("random", seed, low, high). Integers are computed modulo 2^64, floats in
    double precision and then rounded to the nearest value.
    """
    number = numpy.arange(first, first + count, dtype="<u8")
    kind, *arguments = rule
    numbers: Array
    if kind == "series":
        start, step = arguments
        if element.is_float:
            return element.encoded(start + step * number.astype("<f8"))
        numbers = number * _word(step) + _word(start)
        return bytes(numbers.astype(element.dtype))
    seed, low, high = arguments
    bits: Array = (number + _word(1)) * _word(_INCREMENT) + _word(seed)
    bits = (bits ^ bits >> _word(30)) * _word(_FIRST_FACTOR)
    bits = (bits ^ bits >> _word(27)) * _word(_SECOND_FACTOR)
    bits ^= bits >> _word(31)
    if element.is_float:
        return element.encoded(low + (high - low) * ((bits >> _word(11)).astype("<f8") * 2.0**-53))
    span = high - low + 1
    numbers = (bits if span > _MASK else bits % _word(span)) + _word(low)
    return bytes(numbers.astype(element.dtype))


def _word(value: int) -> Any:
    return numpy.uint64(value & _MASK)
