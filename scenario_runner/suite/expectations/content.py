"""Expected content: the bytes that an output must have, from a file or from values, read in pieces."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from scenario_runner.files.codec import codec_of
from scenario_runner.files.npy import NpyReader
from scenario_runner.files.source import file_error
from scenario_runner.plan.plan import ResourcePlan
from scenario_runner.plan.special_records import ImagePlan
from scenario_runner.viewing.element import ELEMENTS, Element, element_of, trimmed

_ELEMENT_OF_NUMERIC = {"bfloat16": "bfloat16", "float8e4m3": "float8_e4m3", "float8e5m2": "float8_e5m2"}


class Content(NamedTuple):
    """Bytes that can be read: ``read_into`` fills its first argument with those from an offset on, or raises FileError.

    ``element`` is what they are where the content itself says so. It is closed at the end of a ``with`` block.
    """

    read_into: Callable[[memoryview, int], None]
    element: Element | None = None
    close: Callable[[], None] = lambda: None

    def __enter__(self) -> Content:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def held_content(data: bytes | memoryview, element: Element | None) -> Content:
    """Bytes in memory."""
    view = memoryview(data)

    def read_into(destination: memoryview, offset: int) -> None:
        destination[:] = view[offset : offset + len(destination)]

    return Content(read_into, element)


def open_content(path: str, resource: ResourcePlan, size_bytes: int) -> Content:
    """The content of a file as an output would have it. Raises FileError where it has another type or shape."""
    if resource.kind == "image":
        return _image_content(path, resource, size_bytes)
    codec_of(path, resource.kind)
    reader = NpyReader(path)
    try:
        _check(path, reader, resource, size_bytes)
    except BaseException:
        reader.close()
        raise
    element = element_of(reader.header.kind, reader.header.item_size_bytes)

    def read_into(destination: memoryview, offset: int) -> None:
        reader.read_into(destination, offset, len(destination))

    return Content(read_into, element, reader.close)


def _image_content(path: str, plan: ImagePlan, size_bytes: int) -> Content:
    """The parts of an image, one after the other, from an image file."""
    parts = [part for part in plan.parts if part.end_bytes <= size_bytes]
    levels = len(parts) // len(plan.format.aspects)
    image = codec_of(path).open_image(path, plan.format, plan.width, plan.height, plan.mips)
    if image.mip_count < levels:
        image.close()
        message = f"has {image.mip_count} of the {levels} mip levels of the output"
        raise file_error(path, message, help="a .dds file holds all of them", code="SR-FILE-002")

    def read_into(destination: memoryview, offset: int) -> None:
        end = offset + len(destination)
        for part in parts:
            first, last = max(offset, part.offset_bytes), min(end, part.end_bytes)
            if first < last:
                piece = destination[first - offset : last - offset]
                image.read_into(piece, part.level, first - part.offset_bytes, last - first, part.aspect)

    return Content(read_into, None, image.close)


def _check(path: str, reader: NpyReader, resource: ResourcePlan, size_bytes: int) -> None:
    header = reader.header
    if resource.kind == "tensor":
        known = element_of_tensor(resource)
        found = element_of(header.kind, header.item_size_bytes)
        fits = found == known or (header.kind in "Vui" and header.item_size_bytes == known.size_bytes)
        if not fits or trimmed(header.shape) != trimmed(resource.shape):
            raise file_error(
                path,
                f"holds {header.descr!r} of shape {header.shape}, but the output is {known.name} of shape"
                f" {tuple(resource.shape)}",
                code="SR-FILE-002",
            )
    if header.data_size_bytes != size_bytes:
        message = f"holds {header.data_size_bytes} bytes, but the output has {size_bytes} bytes"
        raise file_error(path, message, code="SR-FILE-002")


def element_of_tensor(resource: Any) -> Element:
    """The type of a tensor's elements."""
    name = _ELEMENT_OF_NUMERIC.get(resource.format.numeric)
    if name is not None:
        return ELEMENTS[name]
    dtype: str = resource.format.numpy_dtype
    found = element_of(dtype[1], int(dtype[2:]))
    assert found is not None, "every format of a tensor has elements of one kind"
    return found


def encoded(values: Any, element: Element, count: int) -> bytes:
    """Nested arrays of numbers as the bytes of ``count`` elements; one number stands for all of them.

    Raises ValueError with the reason where a value does not fit, or where there is another number of them.
    """
    flat = _flat(values)
    if not isinstance(values, list):
        return encoded([values], element, 1) * count
    if len(flat) != count:
        raise ValueError(f"there are {len(flat)} values, but the output has {count} elements of {element.name}")
    for each in flat:
        if isinstance(each, int | float) and not _is_within(each, element):
            raise ValueError(f"{each!r:.60} is beyond the values of {element.name}")
    if any(isinstance(each, str) for each in flat):
        return b"".join(_one(each, element) for each in flat)
    return element.encoded(flat)


def _is_within(number: float, element: Element) -> bool:
    """Return whether a number does not become infinity or NaN. That of JSON may be infinite itself: 1e999."""
    if not element.is_float:
        return abs(number) < math.inf
    if abs(number) <= 1:
        return True
    if abs(number) >= 1 << 1024:  # of integers, which have no bound
        return False
    return bool(numpy.isfinite(element.numbers(numpy.frombuffer(element.encoded([number]), element.dtype)))[0])


def decoded(data: memoryview, element: Element, shape: tuple[int, ...]) -> Any:
    """The opposite of `encoded`: numbers in nested arrays of a shape, in one array where it does not fit."""
    raw = numpy.frombuffer(data, element.dtype)
    numbers = element.numbers(raw)
    is_single = numbers.dtype == numpy.float32  # has shorter texts that it reads back than double precision has
    values = [float(str(number)) for number in numbers] if is_single else numbers.tolist()
    flat: list[Any] = [
        _text(value, raw[at : at + 1], element) if isinstance(value, float) and not math.isfinite(value) else value
        for at, value in enumerate(values)
    ]
    if math.prod(shape) != len(flat) or len(shape) < 2:
        return flat
    for length in reversed(shape[1:]):
        flat = [flat[at : at + length] for at in range(0, len(flat), length)]
    return flat


def _text(value: float, raw: Any, element: Element) -> str:
    """The text of a value that is no number of JSON; NaN with other bits than "nan" has are those bits."""
    text = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return text if _one(text, element) == raw.tobytes() else f"0x{int(element.bits(raw)[0]):0{2 * element.size_bytes}x}"


def _flat(values: Any) -> list[Any]:
    level = [values]
    while level and isinstance(level[0], list):
        level = [inner for each in level for inner in each]
    return level


def _one(value: Any, element: Element) -> bytes:
    if isinstance(value, str) and value.startswith("0x"):
        bits = int(value, 16)
        if bits >> 8 * element.size_bytes:
            raise ValueError(f"{value!r} has more bits than {element.name}")
        return bits.to_bytes(element.size_bytes, "little")
    if isinstance(value, str) and not element.is_float:
        raise ValueError(f"{value!r} is no value of {element.name}")
    return element.encoded([float(value) if isinstance(value, str) else value])
