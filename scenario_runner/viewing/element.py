"""The kinds of numbers that files hold: how their bits become values, and how far two of them are apart.

Sources: IEEE 754; the "OCP 8-bit Floating Point Specification"; bfloat16 is the upper half of a 32-bit float.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Element:
    """A kind of number; ``dtype`` is the little-endian NumPy type that its bits are kept in.

    Values of packed formats have fewer bits than that type: of a float the last ``unused_bits`` are zero, of an integer
    the first ones are copies of its sign.
    """

    name: str
    dtype: str
    unused_bits: int = 0

    @property
    def size_bytes(self) -> int:
        return int(self.dtype[2:])

    @property
    def is_float(self) -> bool:
        return "float" in self.name

    @property
    def peak(self) -> float:
        """The greatest value of an integer, 1 for floats and bool."""
        import numpy

        if self.is_float or self.name == "bool":
            return 1.0
        return float(int(numpy.iinfo(self.dtype).max) >> self.unused_bits)

    def numbers(self, raw: Array) -> Array:
        """Values to compute with, exact: as they are, or as 32-bit floats where NumPy has no such type."""
        import numpy

        if self.name == "bfloat16":
            return (raw.astype("<u4") << 16).view("<f4")
        if self.name == "float8_e5m2":
            return (raw.astype("<u2") << 8).view("<f2").astype("<f4")
        if self.name == "float8_e4m3":
            return numpy.asarray(_e4m3_values(), "<f4")[raw]
        return raw

    def bits(self, raw: Array) -> Array:
        """The bits of values as unsigned integers."""
        import numpy

        return numpy.ascontiguousarray(raw).view(f"<u{self.size_bytes}")

    def steps(self, first: Array, second: Array) -> Array:
        """How many values of this kind lie between each two (units in the last place); for floats that are not NaN."""
        import numpy

        ranks = []
        for raw in (first, second):
            bits = self.bits(raw).astype("<u8")
            half = numpy.uint64(1 << (8 * self.size_bytes - 1))
            # Negative numbers count down from zero; both zeros are one value.
            ranks.append(numpy.where(bits < half, bits + half, half - (bits - half)))
        apart = numpy.where(ranks[0] > ranks[1], ranks[0] - ranks[1], ranks[1] - ranks[0])
        return apart >> numpy.uint64(self.unused_bits)

    def encoded(self, values: Sequence[int | float]) -> bytes:
        """The bytes of numbers, rounded to the nearest (halfway cases to the even one).

        Raises ValueError for a number that no value of this kind is.
        """
        import numpy

        if not self.is_float:
            least, greatest = (0, 1) if self.name == "bool" else _limits(self.dtype)
            for value in values:
                if not least <= value <= greatest or value != int(value):
                    raise ValueError(f"{value!r:.60} is no value of {self.name}: {least} to {greatest}")
            return numpy.array([int(value) for value in values], self.dtype).tobytes()
        precise = numpy.asarray(values, "<f8")
        with numpy.errstate(over="ignore"):  # beyond the range lies infinity
            if self.name == "bfloat16" or "float8" in self.name:
                return _rounded(self, precise)
            return precise.astype(self.dtype).tobytes()

    @property
    def least_normal(self) -> float:
        """The smallest magnitude that is not denormal; only floats have one."""
        import numpy

        known = {"bfloat16": 2.0**-126, "float8_e4m3": 2.0**-6, "float8_e5m2": 2.0**-14}
        return known.get(self.name) or float(numpy.finfo(self.dtype).smallest_normal)

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
        Element("bfloat16", "<u2"),
        Element("float8_e4m3", "|u1"),
        Element("float8_e5m2", "|u1"),
    )
}


def element_of(kind: str, size_bytes: int) -> Element | None:
    """The numbers of NumPy's ``kind`` and size, or None; raw bytes (V) are what files hold for bfloat16 and float8."""
    if kind == "V":
        return {1: ELEMENTS["float8_e4m3"], 2: ELEMENTS["bfloat16"]}.get(size_bytes)
    letter = {"b": "bool", "i": "int", "u": "uint", "f": "float"}.get(kind)
    if letter is None:
        return None
    return ELEMENTS.get(letter if letter == "bool" else f"{letter}{8 * size_bytes}")


def _limits(dtype: str) -> tuple[int, int]:
    import numpy

    limits = numpy.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _rounded(element: Element, values: Array) -> bytes:
    """The bits of the nearest values of a type that NumPy does not have."""
    import numpy

    magnitudes, count = _magnitudes(element.name)
    above = numpy.clip(numpy.searchsorted(magnitudes, numpy.abs(values)), 1, count - 1)
    low, high = magnitudes[above - 1], magnitudes[above]
    middle = low + (high - low) / 2
    is_high = (numpy.abs(values) > middle) | ((numpy.abs(values) == middle) & (above % 2 == 0))
    bits = numpy.where(is_high, above, above - 1)
    if element.name == "float8_e4m3":  # has no infinities: what would round to one is NaN
        bits = numpy.where(bits == count - 1, 127, bits)
    bits = numpy.where(numpy.isnan(values), _NAN_BITS[element.name], bits)
    bits = bits | (numpy.signbit(values).astype(bits.dtype) << (8 * element.size_bytes - 1))
    encoded: bytes = bits.astype(f"<u{element.size_bytes}").tobytes()
    return encoded


_NAN_BITS = {"bfloat16": 0x7FC0, "float8_e4m3": 0x7F, "float8_e5m2": 0x7E}


@cache
def _magnitudes(name: str) -> tuple[Array, int]:
    """All values from zero up, by their bits, then the one that would come next instead of infinity."""
    import numpy

    element = ELEMENTS[name]
    every = numpy.arange(1 << (8 * element.size_bytes - 1), dtype=element.dtype)
    with numpy.errstate(invalid="ignore"):  # about NaN that signal
        values = element.numbers(every).astype("<f8")
    finite = values[numpy.isfinite(values)]
    return numpy.append(finite, 2 * finite[-1] - finite[-2]), len(finite) + 1


@cache
def _e4m3_values() -> tuple[float, ...]:
    """float8 E4M3: four bits of exponent with the bias 7, no infinities, NaN where all bits but the sign are ones."""
    values = []
    for bits in range(256):
        exponent, fraction = bits >> 3 & 15, bits & 7
        if bits & 127 == 127:
            value = float("nan")
        elif exponent:
            value = (1 + fraction / 8) * 2.0 ** (exponent - 7)
        else:
            value = fraction / 8 * 2.0**-6
        values.append(-value if bits & 128 else value)
    return tuple(values)
