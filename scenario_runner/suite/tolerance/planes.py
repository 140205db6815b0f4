"""Planes of elements in an output (one for a buffer or tensor, one for each part of an image), and masks over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy

from scenario_runner.files.codec import codec_of
from scenario_runner.files.npy import read_array
from scenario_runner.files.source import file_error
from scenario_runner.plan.plan import ResourcePlan
from scenario_runner.plan.records import ImagePart
from scenario_runner.plan.special_records import ImagePlan
from scenario_runner.viewing.content import ELEMENTS, Array, Channel, Element, element_of_format
from scenario_runner.viewing.reading import channels_of, read_content


class Plane(NamedTuple):
    """A part of an output's bytes with elements of one kind.

    ``shape`` counts elements, for an image (height, width, channels). Texels that are packed into integers or blocks
    have no ``element``: their channels are taken out (`channels`). ``label`` names the part where there are several.
    """

    label: str
    offset_bytes: int
    size_bytes: int
    shape: tuple[int, ...]
    element: Element | None
    image: ImagePlan | None = None
    part: ImagePart | None = None

    @property
    def element_count(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def split(self, size_bytes: int) -> Iterator[Plane]:
        """Parts of about ``size_bytes`` bytes, in order; whole rows where channels are taken out."""
        if self.element is not None:
            for start in range(0, self.size_bytes, size_bytes):
                size = min(size_bytes, self.size_bytes - start)
                shape = (size // self.element.size_bytes,)
                yield self._replace(offset_bytes=self.offset_bytes + start, size_bytes=size, shape=shape)
            return
        assert self.image is not None
        assert self.part is not None
        part, block_height = self.part, self.image.format.block_extent[1]
        step = max(1, size_bytes // part.row_size_bytes)
        for row in range(0, part.row_count, step):
            count = min(step, part.row_count - row)
            height = min(count * block_height, part.height - row * block_height)
            yield self._replace(
                offset_bytes=self.offset_bytes + row * part.row_size_bytes,
                size_bytes=count * part.row_size_bytes,
                shape=(height, *self.shape[1:]),
                part=part._replace(height=height, row_count=count),
            )

    def elements(self, data: memoryview | bytearray) -> list[Channel]:
        """The bytes of this plane as flat channels: one of all elements where each has bytes of its own."""
        if self.element is not None:
            return [Channel("", numpy.frombuffer(data, self.element.dtype), self.element)]
        return self.channels(data)

    def channels(self, data: memoryview | bytearray) -> list[Channel]:
        """The bytes of this plane as flat channels; those of an image in the order R, G, B, A."""
        if self.image is None or self.part is None:
            return self.elements(data)
        part = self.part
        raw = numpy.frombuffer(data, "u1")
        channels = channels_of(self.image.uid, self.image.format, part.aspect, part.width, part.height, raw)
        return [channel._replace(raw=channel.raw.reshape(-1)) for channel in channels]

    def flags_of(self, flags: Array, number: int) -> Array:
        """The flags of one of the `channels`; those of all elements are in the order of memory where each element has
        bytes of its own."""
        if self.image is None:
            return flags
        if self.element is not None:
            order = self.image.format.channels
            number = order.index([letter for letter in "RGBA" if letter in order][number])
        return flags[number :: self.shape[2]]

    def place(self, flat: int) -> str:
        """The index of an element as text, behind the label of the plane."""
        text = str([int(place) for place in numpy.unravel_index(flat, self.shape)])
        return f"{self.label} {text}" if self.label else text


def planes_of(resource: ResourcePlan, size_bytes: int, element: Element) -> tuple[Plane, ...]:
    """The planes of the first ``size_bytes`` of a resource. ``element`` is what a buffer or a tensor holds."""
    if resource.kind == "buffer":
        return (Plane("", 0, size_bytes, (size_bytes // element.size_bytes,), element),)
    if resource.kind == "tensor":
        return (Plane("", 0, size_bytes, tuple(resource.shape), element),)
    parts = [part for part in resource.parts if part.end_bytes <= size_bytes]
    return tuple(_of_part(resource, part, len(parts) > 1) for part in parts)


def blocks_of(image: ImagePlan, size_bytes: int) -> tuple[Plane, ...]:
    """The planes of a compressed image that is not decoded: words of 64 bits, (rows, columns, words of a block)."""
    block = image.format.block_size_bytes
    parts = [part for part in image.parts if part.end_bytes <= size_bytes]
    return tuple(
        Plane(
            f"{_label(image, part)} block" if len(parts) > 1 else "block",
            part.offset_bytes,
            part.size_bytes,
            (part.row_count, part.row_size_bytes // block, block // 8),
            ELEMENTS["uint64"],
        )
        for part in parts
    )


def _label(image: ImagePlan, part: ImagePart) -> str:
    return f"level {part.level}" + (f" {part.aspect}" if len(image.format.aspects) > 1 else "")


def _of_part(image: ImagePlan, part: ImagePart, is_one_of_many: bool) -> Plane:
    format = image.format
    label = _label(image, part) if is_one_of_many else ""
    element = None
    count = len(format.channels)
    if "depth" in format.aspects or "stencil" in format.aspects:
        count = 1
    elif not format.is_packed and not format.is_compressed and format.numpy_dtype is not None:
        element = element_of_format(format)
        count = format.numpy_items
    elif format.is_packed:
        count -= "E" in format.channels
    shape = (part.height, part.width, count)
    return Plane(label, part.offset_bytes, part.size_bytes, shape, element, image, part)


def ignored_elements(planes: Sequence[Plane], mask: str | None, border: int) -> Array:
    """A flag for each element of one plane: true where it does not count.

    A mask has the shape of the elements, or of an image without its channels. Raises FileError where it cannot be read,
    and ValueError with the reason where it does not fit, or leaves nothing to compare.
    """
    if len(planes) != 1:
        raise ValueError(f"the output has {len(planes)} parts (mip levels, depth and stencil), expected one")
    (plane,) = planes
    flags = numpy.zeros(plane.shape, bool)
    if mask is not None:
        flags |= _spread(_covered(mask), plane)
    if border:
        rows, columns = (0, 1) if plane.image is not None else (-2, -1)
        if len(plane.shape) < 2:
            raise ValueError(f"the output has the shape {plane.shape}: there are no rows and columns with a border")
        inner = [slice(None)] * len(plane.shape)
        for axis in (rows, columns):
            inner[axis] = slice(border, max(border, plane.shape[axis] - border))
        outside = numpy.ones(plane.shape, bool)
        outside[tuple(inner)] = False
        flags |= outside
    if flags.size and flags.all():
        raise ValueError("no element of the output counts")
    return flags.reshape(-1)


def _covered(path: str) -> Array:
    """The elements where a mask is not zero, in its own shape."""
    if codec_of(path).is_array:
        array = read_array(path)
        if array.dtype.kind not in "biuf":
            raise file_error(path, f"is a mask of the type {array.dtype.str!r}, expected numbers or bool")
        return numpy.asarray(array != 0)
    content = read_content(path)
    colors = [channel.raw for channel in content.channels if channel.name != "A"]
    return numpy.asarray(numpy.any([color != 0 for color in colors], axis=0))


def _spread(covered: Array, plane: Plane) -> Array:
    """A mask over all elements of a plane."""
    shape = covered.shape
    while len(shape) > 1 and len(shape) > len(plane.shape) and shape[0] == 1:
        shape = shape[1:]
    covered = covered.reshape(shape)
    if shape == plane.shape:
        return covered
    if plane.image is not None and shape == plane.shape[:2]:
        return numpy.broadcast_to(covered[..., None], plane.shape)
    if covered.size == plane.element_count and plane.image is None:
        return covered.reshape(plane.shape)
    raise ValueError(f"the mask has the shape {covered.shape}, but the output has {plane.shape}")
