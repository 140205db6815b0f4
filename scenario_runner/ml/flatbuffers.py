"""Functions that read FlatBuffers and copy their parts. A table begins with the distance to the vtable."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias


class DamagedError(Exception):
    """An offset leads out of the file. The message ends a sentence that begins with the file's path."""

    def __init__(self, message: str = "is damaged or was cut short") -> None:
        super().__init__(message)


class Tables:
    """A FlatBuffer with checks of every offset. The position of an absent field, table, vector or string is 0."""

    def __init__(self, part: Callable[[int, int], bytes | memoryview], size_bytes: int) -> None:
        """``part`` returns bytes by offset and size; the range lies within ``size_bytes``."""
        self._part = part
        self._size_bytes = size_bytes
        self._elements_left = size_bytes  # damaged vectors may overlap

    def part(self, at: int, size: int) -> bytes:
        """Return ``size`` bytes at a position."""
        if not 0 <= at <= self._size_bytes - size:
            raise DamagedError
        return bytes(self._part(at, size))

    def number(self, at: int, format: str = "I") -> int:
        """Return the number at a position; ``format`` is a letter of `struct`."""
        return int(struct.unpack(f"<{format}", self.part(at, struct.calcsize(format)))[0])

    def field(self, table: int, index: int) -> int:
        """Return the position of a table's field."""
        vtable = table - self.number(table, "i")
        entry = 4 + 2 * index
        offset = self.number(vtable + entry, "H") if entry < self.number(vtable, "H") else 0
        return table + offset if offset else 0

    def value(self, table: int, index: int, format: str = "I") -> int:
        """Return the number in a field, 0 if it is absent."""
        field = self.field(table, index)
        return self.number(field, format) if field else 0

    def at(self, field: int) -> int:
        """Return the position that a field refers to."""
        return field + self.number(field) if field else 0

    def child(self, table: int, index: int) -> int:
        """Return the table, vector or string in a field."""
        return self.at(self.field(table, index))

    def vector(self, table: int, index: int) -> tuple[int, int]:
        """Return the position of a vector's first element, and the number of elements."""
        vector = self.child(table, index)
        return vector + 4, self.number(vector) if vector else 0

    def elements(self, table: int, index: int) -> Iterator[int]:
        """Yield the tables or strings in a vector."""
        start, count = self.vector(table, index)
        for i in range(count):
            self._elements_left -= 1
            if self._elements_left < 0:
                raise DamagedError
            yield self.at(start + 4 * i)

    def numbers(self, table: int, index: int) -> tuple[int, ...]:
        """Return the elements of a 32-bit integer vector."""
        start, count = self.vector(table, index)
        return struct.unpack(f"<{count}i", self.part(start, 4 * count)) if count else ()

    def content(self, vector: int) -> bytes:
        """Return the bytes of a vector or string."""
        return self.part(vector + 4, self.number(vector)) if vector else b""

    def text(self, string: int) -> str:
        """Return a string."""
        return self.content(string).decode(errors="replace")

    def texts(self, table: int, index: int) -> tuple[str, ...]:
        """Return the strings in a vector."""
        return tuple(self.text(string) for string in self.elements(table, index))


class Union(NamedTuple):
    """A field that may refer to several kinds of tables.

    ``layouts`` maps the number in the preceding field to the table's layout. A number without an entry stands for a
    table without references.
    """

    layouts: "Mapping[int, Layout]"


Layout: TypeAlias = "int | list[Layout] | Mapping[int, Layout] | Union"
"""The references in a part of a file: for a table the fields that are references, for a vector of references the layout
of an element in a list, for a string or other vector the size of an element."""


def copy_reachable(file: Tables, layout: Layout, kept: Mapping[int, Sequence[int]]) -> bytes:
    """Copy the parts that are reachable from the root.

    ``kept`` replaces the elements of some vectors: it maps vector positions to element positions.
    """
    copy = bytearray(file.part(0, 8))  # the reference to the root, and the identifier

    def refer(field: int, at: int, layout: Layout) -> None:
        """Copy the part at a file position, and let a field of the copy refer to it."""
        offsets = at - file.number(at, "i") if isinstance(layout, Mapping) else 0
        copy.extend(bytes(len(copy) % 2))
        offsets_copy = len(copy)
        if offsets:
            copy.extend(file.part(offsets, file.number(offsets, "H")))
        copy.extend(bytes((at - len(copy)) % 8))  # keeps the alignment
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
