"""Read FlatBuffers, and copy parts: a table begins with the distance to the table of the offsets of its fields."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias


class DamagedError(Exception):
    """An offset leads out of the file: the end of a sentence that begins with its path."""

    def __init__(self, message: str = "is damaged or was cut short") -> None:
        super().__init__(message)


class Tables:
    """A FlatBuffer. Every offset is checked; the position of an absent field, table, vector or string is 0."""

    def __init__(self, part: Callable[[int, int], bytes | memoryview], size_bytes: int) -> None:
        """``part`` gives so many bytes from an offset on, which lie within ``size_bytes``."""
        self._part = part
        self._size_bytes = size_bytes
        self._elements_left = size_bytes  # damaged vectors may overlap

    def part(self, at: int, size: int) -> bytes:
        """``size`` bytes at a position."""
        if not 0 <= at <= self._size_bytes - size:
            raise DamagedError
        return bytes(self._part(at, size))

    def number(self, at: int, format: str = "I") -> int:
        """The number at a position; ``format`` is a letter of `struct`."""
        return int(struct.unpack(f"<{format}", self.part(at, struct.calcsize(format)))[0])

    def field(self, table: int, index: int) -> int:
        """The position of a field of a table."""
        vtable = table - self.number(table, "i")
        entry = 4 + 2 * index
        offset = self.number(vtable + entry, "H") if entry < self.number(vtable, "H") else 0
        return table + offset if offset else 0

    def value(self, table: int, index: int, format: str = "I") -> int:
        """The number in a field, 0 where it is absent."""
        field = self.field(table, index)
        return self.number(field, format) if field else 0

    def at(self, field: int) -> int:
        """The position that a field refers to."""
        return field + self.number(field) if field else 0

    def child(self, table: int, index: int) -> int:
        """The table, vector or string in a field."""
        return self.at(self.field(table, index))

    def vector(self, table: int, index: int) -> tuple[int, int]:
        """The position of the elements of a vector, and their number."""
        vector = self.child(table, index)
        return vector + 4, self.number(vector) if vector else 0

    def elements(self, table: int, index: int) -> Iterator[int]:
        """The tables or strings in a vector."""
        start, count = self.vector(table, index)
        for i in range(count):
            self._elements_left -= 1
            if self._elements_left < 0:
                raise DamagedError
            yield self.at(start + 4 * i)

    def numbers(self, table: int, index: int) -> tuple[int, ...]:
        """The elements of a vector of 32-bit integers."""
        start, count = self.vector(table, index)
        return struct.unpack(f"<{count}i", self.part(start, 4 * count)) if count else ()

    def content(self, vector: int) -> bytes:
        """The bytes of a vector or string."""
        return self.part(vector + 4, self.number(vector)) if vector else b""

    def text(self, string: int) -> str:
        """A string."""
        return self.content(string).decode(errors="replace")

    def texts(self, table: int, index: int) -> tuple[str, ...]:
        """A vector of strings."""
        return tuple(self.text(string) for string in self.elements(table, index))


class Union(NamedTuple):
    """The tables that a field may refer to, by the number in the field before it; the others have no references."""

    layouts: "Mapping[int, Layout]"


Layout: TypeAlias = "int | list[Layout] | Mapping[int, Layout] | Union"
"""The references in a part of a file: the fields of a table that are references, the element of a vector of references,
or the size of an element of a string or of another vector."""


def copy_reachable(file: Tables, layout: Layout, kept: Mapping[int, Sequence[int]]) -> bytes:
    """Copy what the root refers to, so that the rest of the file takes no space.

    ``kept`` are the positions of the elements that the vectors at some positions have in the copy.
    """
    copy = bytearray(file.part(0, 8))  # the reference to the root, and the identifier

    def refer(field: int, at: int, layout: Layout) -> None:
        """Copy the part at a position of the file, and let a field of the copy refer to it."""
        offsets = at - file.number(at, "i") if isinstance(layout, Mapping) else 0
        copy.extend(bytes(len(copy) % 2))
        offsets_copy = len(copy)
        if offsets:
            copy.extend(file.part(offsets, file.number(offsets, "H")))
        copy.extend(bytes((at - len(copy)) % 8))  # the alignment is as it was
        start = len(copy)
        struct.pack_into("<I", copy, field, start - field)
        if isinstance(layout, int):
            copy.extend(file.part(at, 4 + file.number(at) * layout) + b"\0")
        elif isinstance(layout, list):
            elements = kept.get(at)
            if elements is None:
                elements = [file.at(at + 4 * number) for number in range(1, file.number(at) + 1)]
            copy.extend(struct.pack("<I", len(elements)) + bytes(4 * len(elements)))
            for number, element in enumerate(elements, 1):
                refer(start + 4 * number, element, layout[0])
        elif isinstance(layout, Mapping):
            copy.extend(file.part(at, file.number(offsets + 2, "H")))
            struct.pack_into("<i", copy, start, start - offsets_copy)
            for index, child in layout.items():
                if position := file.field(at, index):
                    union = child.layouts if isinstance(child, Union) else None
                    of_child = child if union is None else union.get(file.value(at, index - 1, "B"), {})
                    refer(start + position - at, file.at(position), of_child)

    refer(0, file.number(0), layout)
    return bytes(copy)
