"""Memory layouts of the data types in Amber scripts: where each number of an element lies.

::

    vec3<float>, std140 or std430     struct { float a; vec2 b; }
    x y z .                           a . b b
    0 4 8 12 ─▶ next element at 16    0 4 8 12
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy

from scenario_runner.errors.text import Json
from scenario_runner.files.vk_formats import Format, find_format, name_of_channels

Layout = Literal["std140", "std430"]
Number = int | float
Bytes = numpy.ndarray[tuple[int], numpy.dtype[numpy.uint8]]

SCALARS: Final = {
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": "float16",
    "float": "float32",
    "double": "float64",
}
"""The scalar types of AmberScript, with the types in scenarios."""
_TYPE: Final = re.compile(
    r"(?:vec(?P<size>[2-4])<|mat(?P<columns>[2-4])x(?P<rows>[2-4])<)?(?P<scalar>\w+)>?(?P<array>\[\])?"
)
_ALIGNED_COMPONENTS: Final = (0, 1, 2, 4, 4)  # by the number of components
_STD140_BYTES: Final = 16
_MOST_NUMBERS: Final = 1 << 16  # in a struct
NUMERIC_KINDS: Final = {"i": "SINT", "u": "UINT", "f": "SFLOAT"}


class Element(NamedTuple):
    """The layout of an element: offset and type of each number, and the end of the last number.

    ``format`` is the VkFormat of a scalar, a vector or a texel.
    """

    numbers: tuple[tuple[int, str], ...]
    end: int
    alignment: int
    format: Format | None = None

    @property
    def size_bytes(self) -> int:
        """The distance between two elements."""
        return _rounded(self.end, self.alignment)

    @property
    def dtype(self) -> str | None:
        """The type of all numbers, if an element with padding is an array of this type."""
        types = {dtype for _, dtype in self.numbers}
        dtype = types.pop() if len(types) == 1 else "uint8"
        return dtype if not types and self.size_bytes % numpy.dtype(dtype).itemsize == 0 else None

    @property
    def numpy_dtype(self) -> numpy.dtype[numpy.void]:
        """The element as a record with a field for each number."""
        offsets, types = zip(*self.numbers, strict=True)
        names = [str(offset) for offset in offsets]
        return numpy.dtype({"names": names, "formats": types, "offsets": offsets, "itemsize": self.size_bytes})

    def pack(self, values: Sequence[Number]) -> Bytes:
        """Return the bytes of elements; missing numbers of the last element are 0."""
        count = len(self.numbers)
        elements = numpy.zeros(-(-len(values) // count), self.numpy_dtype)
        for index, (offset, dtype) in enumerate(self.numbers):
            column = values[index::count]
            elements[str(offset)][: len(column)] = wrapped(column, dtype)
        return elements.view(numpy.uint8)

    def fill(self, count: int, value: Number) -> Bytes:
        """Return the bytes of ``count`` elements with a single value."""
        return numpy.tile(self.pack([value] * len(self.numbers)), count)

    def runs(self, start: int, values: Sequence[Number]) -> Iterator[tuple[int, str, list[Number]]]:
        """Yield runs of values with a single type and without padding: offset, type and values."""
        end, type_of_run = -1, ""
        run: list[Number] = []
        for index, value in enumerate(values):
            element, member = divmod(index, len(self.numbers))
            offset, dtype = self.numbers[member]
            offset += start + element * self.size_bytes
            if run and (offset, dtype) != (end, type_of_run):
                yield end - len(run) * numpy.dtype(type_of_run).itemsize, type_of_run, run
                run = []
            run.append(value)
            end, type_of_run = offset + numpy.dtype(dtype).itemsize, dtype
        yield end - len(run) * numpy.dtype(type_of_run).itemsize, type_of_run, run


Structs = dict[str, dict[Layout, Element]]
"""Structs of a script by name, in each layout."""


def element_of(name: str, layout: Layout, structs: Structs) -> Element | None:
    """Return the layout of a data type, a format or a struct; None for an unknown name."""
    if name in structs:
        return structs[name][layout]
    format = find_format(f"VK_FORMAT_{name}")
    if format is not None:
        return of_format(format)
    match = _TYPE.fullmatch(name)
    if match is None or match["scalar"] not in SCALARS:
        return None
    rows, columns = int(match["rows"] or match["size"] or 1), int(match["columns"] or 1)
    return of_numbers(SCALARS[match["scalar"]], rows, columns, layout, is_array=bool(match["array"]))


def of_numbers(dtype: str, rows: int, columns: int, layout: Layout, *, is_array: bool = False) -> Element:
    """Return the layout of a scalar, a vector or a matrix of columns."""
    item = numpy.dtype(dtype).itemsize
    alignment = item * _ALIGNED_COMPONENTS[rows]
    if layout == "std140" and (columns > 1 or is_array):
        alignment = _rounded(alignment, _STD140_BYTES)
    numbers = tuple((column * alignment + row * item, dtype) for column in range(columns) for row in range(rows))
    end = (columns - 1) * alignment + rows * item
    format = None
    if columns == 1:
        format = find_format(name_of_channels(rows, 8 * item, NUMERIC_KINDS[numpy.dtype(dtype).kind]))
    return Element(numbers, end, alignment, format)


def of_format(format: Format) -> Element:
    """Return the layout of texels in a buffer. Three components have the size of four."""
    dtype = numpy.dtype(format.numpy_dtype or "uint8")
    count = format.numpy_items if format.numpy_dtype else format.block_size_bytes
    numbers = tuple((index * dtype.itemsize, dtype.name) for index in range(count))
    return Element(numbers, len(numbers) * dtype.itemsize, dtype.itemsize * (4 if len(numbers) == 3 else 1), format)


def struct_of(
    members: Iterable[tuple[str, int | None]], stride: int | None, layout: Layout, structs: Structs
) -> Element:
    """Return the layout of a struct. Members have a type and an offset; None is for the next place.

    Raises ValueError for an unknown type, a struct without members, a small stride, and too many numbers.
    """
    numbers: list[tuple[int, str]] = []
    end, alignment = 0, _STD140_BYTES if layout == "std140" else 1
    for type, offset in members:
        element = element_of(type, layout, structs)
        if element is None:
            raise ValueError(f"unknown type {type!r}")
        start = _rounded(end, element.alignment) if offset is None else offset
        numbers += [(start + place, dtype) for place, dtype in element.numbers]
        is_vector = element.format is not None and not type.endswith("[]")
        end = start + (element.end if is_vector else element.size_bytes)
        alignment = max(alignment, element.alignment)
    if not 0 < len(numbers) <= _MOST_NUMBERS:
        raise ValueError(f"the struct has {len(numbers)} numbers, expected 1 to {_MOST_NUMBERS}")
    if len({place for place, _ in numbers}) < len(numbers):
        raise ValueError("two members of the struct begin at the same byte")
    if stride is not None and stride < end:
        raise ValueError(f"the stride of {stride} bytes is less than the {end} bytes of the struct")
    return Element(tuple(numbers), end, alignment) if stride is None else Element(tuple(numbers), stride, 1)


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def wrapped(values: Iterable[Number], dtype: str) -> numpy.ndarray[tuple[int], numpy.dtype[numpy.generic]]:
    """Return numbers in a type; integers wrap around."""
    type = numpy.dtype(dtype)
    if numpy.issubdtype(type, numpy.floating):
        with numpy.errstate(over="ignore"):
            return numpy.array(list(values), numpy.float64).astype(type)
    mask = (1 << 8 * type.itemsize) - 1
    return numpy.array([int(value) & mask for value in values], f"u{type.itemsize}").view(type)


def as_json(values: Iterable[Number], dtype: str) -> list[Json]:
    """Return numbers in a type as JSON: floats with the fewest digits; NaN and infinities are texts."""
    numbers = wrapped(values, dtype)
    if not numpy.issubdtype(numbers.dtype, numpy.floating):
        return list[Json](numbers.tolist())
    return [float(str(number)) if numpy.isfinite(number) else str(number) for number in numbers]
