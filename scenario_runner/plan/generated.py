"""Content that a scenario defines itself, made in pieces when it is read."""

from __future__ import annotations

from typing import Any, NamedTuple

_BLOCK_BYTES = 64 << 10
_ITEMS_AT_ONCE = 1 << 16

# SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
_INCREMENT, _FIRST_FACTOR, _SECOND_FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = 2**64 - 1


class GeneratedSource(NamedTuple):
    """``content_bytes`` of items of the kind ``element`` (`elements.ELEMENTS`), then zeros up to ``size_bytes``.

    The items repeat ``pattern``, or follow from their numbers by ``rule``: ("series", start, step) or ("random", seed,
    low, high). ``descr`` and ``shape`` are those of an array that holds them. Nothing is kept in memory but a pattern.
    """

    element: str
    descr: str
    shape: tuple[int, ...]
    size_bytes: int
    content_bytes: int
    pattern: bytes = b""
    rule: tuple[Any, ...] = ()
    levels: int = 1
    divisible: bool = True

    def read_into(self, destination: memoryview, offset: int = 0) -> None:
        """Fill ``destination`` with the bytes from ``offset`` on."""
        count = max(0, min(len(destination), self.content_bytes - offset))
        (self._compute if self.rule else self._repeat)(destination[:count], offset)
        destination[count:] = bytes(len(destination) - count)

    def kept(self) -> GeneratedSource:
        """The same with its bytes in memory."""
        data = bytearray(self.size_bytes)
        self.read_into(memoryview(data))
        return self._replace(pattern=bytes(data), content_bytes=self.size_bytes, rule=())

    def _repeat(self, destination: memoryview, offset: int) -> None:
        size = len(self.pattern)
        block = memoryview(self.pattern * min(-(-_BLOCK_BYTES // size), -(-(len(destination) + size) // size)))
        done = 0
        while done < len(destination):
            start = (offset + done) % size
            part = block[start : start + len(destination) - done]
            destination[done : done + len(part)] = part
            done += len(part)

    def _compute(self, destination: memoryview, offset: int) -> None:
        from scenario_runner.files.elements import ELEMENTS

        item_size = ELEMENTS[self.element].size_bytes
        done = 0
        while done < len(destination):
            first, skipped = divmod(offset + done, item_size)
            most = min(_ITEMS_AT_ONCE, -(-(len(destination) - done + skipped) // item_size))
            part = self._items(first, most)[skipped:][: len(destination) - done]
            destination[done : done + len(part)] = part
            done += len(part)

    def _items(self, first: int, count: int) -> bytes:
        """The bytes of ``count`` items from number ``first`` on.

        Integers are computed modulo 2^64, floats in double precision and rounded to the nearest value of their type.
        """
        import numpy

        from scenario_runner.files.elements import ELEMENTS

        element = ELEMENTS[self.element]
        number = numpy.arange(first, first + count, dtype="<u8")
        kind, *arguments = self.rule
        numbers: Any
        if kind == "series":
            start, step = arguments
            if element.is_float:
                return element.encoded(start + step * number.astype("<f8"))
            numbers = number * _word(step) + _word(start)
            return bytes(numbers.astype(element.dtype))
        seed, low, high = arguments
        bits: Any = (number + _word(1)) * _word(_INCREMENT) + _word(seed)
        bits = (bits ^ bits >> _word(30)) * _word(_FIRST_FACTOR)
        bits = (bits ^ bits >> _word(27)) * _word(_SECOND_FACTOR)
        bits ^= bits >> _word(31)
        if element.is_float:
            return element.encoded(low + (high - low) * ((bits >> _word(11)).astype("<f8") * 2.0**-53))
        span = high - low + 1
        numbers = (bits if span > _MASK else bits % _word(span)) + _word(low)
        return bytes(numbers.astype(element.dtype))


def _word(value: int) -> Any:
    import numpy

    return numpy.uint64(value & _MASK)
