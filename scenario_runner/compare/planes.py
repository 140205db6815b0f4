"""Element planes in an output, and masks over planes.

A buffer or a tensor is a single plane; each image part is a plane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy

from scenario_runner.errors import file_error
from scenario_runner.files.codec import ArrayCodec
from scenario_runner.files.codec_table import codec_of
from scenario_runner.files.elements import ELEMENTS, Array, Element, element_of_format, is_numeric, read_array
from scenario_runner.plan.graph_records import TensorPlan
from scenario_runner.plan.image_records import ImagePlan
from scenario_runner.plan.plan import ResourcePlan
from scenario_runner.plan.records import BufferPlan, ImagePart
from scenario_runner.view.contents import Channel, channels_of, read_content, trimmed


class Plane(NamedTuple):
    """A part of an output's bytes with a single element type.

    ``shape`` counts elements, for an image (height, width, channels). Texels packed into integers or blocks have no
    ``element``; `channels` unpacks them. ``label`` names the part if an output has several.
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
        """Yield parts with about ``size_bytes`` bytes. Packed texels stay a single part."""
        if self.element is None:
            yield self
            return
        for start in range(0, self.size_bytes, size_bytes):
            size = min(size_bytes, self.size_bytes - start)
            shape = (size // self.element.size_bytes,)
            yield self._replace(offset_bytes=self.offset_bytes + start, size_bytes=size, shape=shape)

    def elements(self, data: memoryview | bytearray) -> list[Channel]:
        """Return flat channels: a single channel with all elements, or several for packed texels."""
        if self.element is not None:
            return [Channel("", numpy.frombuffer(data, self.element.dtype), self.element)]
        return self.channels(data)

    def channels(self, data: memoryview | bytearray) -> list[Channel]:
        """Return flat channels, for an image in the order R, G, B, A."""
        if self.image is None or self.part is None:
            return self.elements(data)
        part = self.part
        raw = numpy.frombuffer(data, "u1")
        channels = channels_of(self.image.uid, self.image.format, part.aspect, part.width, part.height, raw)
        return [channel._replace(raw=channel.raw.reshape(-1)) for channel in channels]

    def flags_of(self, flags: Array, number: int) -> Array:
        """Return a channel's flags, numbered as in `channels`. Unpacked texels' flags are in memory order."""
        if self.image is None:
            return flags
        if self.element is not None:
            order = self.image.format.channels
            number = order.index([letter for letter in "RGBA" if letter in order][number])
        return flags[number :: self.shape[2]]

    def place(self, flat: int) -> str:
        """Return the plane's label and an element's index as text."""
        text = str([int(place) for place in numpy.unravel_index(flat, self.shape)])
        return f"{self.label} {text}" if self.label else text


def planes_of(
    resource: ResourcePlan, size_bytes: int, element: Element, *, with_blocks: bool = False
) -> tuple[Plane, ...]:
    """Return the planes in a resource's first ``size_bytes``. ``element`` is the type in a buffer or tensor.

    ``with_blocks`` keeps compressed texel blocks: 64-bit words, (rows, columns, words in a block).
    """
    if isinstance(resource, BufferPlan):
        return (Plane("", 0, size_bytes, (size_bytes // element.size_bytes,), element),)
    if isinstance(resource, TensorPlan):
        return (Plane("", 0, size_bytes, tuple(resource.shape), element),)
    format, parts = resource.format, [part for part in resource.parts if part.end_bytes <= size_bytes]
    planes = []
    for part in parts:
        names = [f"level {part.level}"] if len(parts) > 1 else []
        names += [part.aspect] if names and len(format.aspects) > 1 else []
        plane = Plane(" ".join(names), part.offset_bytes, part.size_bytes, (), None, resource, part)
        if with_blocks and format.is_compressed:
            size = format.block_size_bytes
            shape = (part.row_count, part.row_size_bytes // size, size // 8)
            plane = plane._replace(label=" ".join([*names, "block"]), element=ELEMENTS["uint64"], image=None)
        elif {"depth", "stencil"} & {*format.aspects}:
            shape = (part.height, part.width, 1)
        elif format.is_packed or format.is_compressed or format.numpy_dtype is None:
            shape = (part.height, part.width, len(format.channels) - (format.is_packed and "E" in format.channels))
        else:
            shape = (part.height, part.width, format.numpy_items)
            plane = plane._replace(element=element_of_format(format))
        planes.append(plane._replace(shape=shape))
    return tuple(planes)


def ignored_elements(planes: Sequence[Plane], mask: str | None, border: int) -> Array:
    """Return a flag for each element in the only plane. Elements with a true flag are not compared.

    A mask has the elements' shape, or an image's (height, width). Raises FileError if the mask cannot be read,
    and ValueError with a reason if it does not fit, or leaves nothing to compare.
    """
    if len(planes) != 1:
        raise ValueError(f"the output has {len(planes)} parts (mip levels, depth and stencil), expected one")
    (plane,) = planes
    flags = numpy.zeros(plane.shape, bool)
    if mask is not None:
        flags |= _spread(_covered(mask), plane)
    if border and len(plane.shape) < 2:
        raise ValueError(f"the output has the shape {plane.shape}: there are no rows and columns with a border")
    for axis in ((0, 1) if plane.image is not None else (-2, -1)) if border else ():
        lines = numpy.moveaxis(flags, axis, 0)
        lines[:border] = lines[-border:] = True
    if flags.size and flags.all():
        raise ValueError("no element of the output counts")
    return flags.reshape(-1)


def _covered(path: str) -> Array:
    """Return true flags for a mask's nonzero elements."""
    if isinstance(codec_of(path), ArrayCodec):
        array = read_array(path)
        if not is_numeric(array):
            raise file_error(path, f"is a mask of the type {array.dtype.str!r}, expected numbers or bool")
        return numpy.asarray(array != 0)
    content = read_content(path)
    colors = [channel.raw for channel in content.channels if channel.name != "A"]
    return numpy.asarray(numpy.any([color != 0 for color in colors], axis=0))


def _spread(covered: Array, plane: Plane) -> Array:
    """Broadcast a mask over a plane's elements. Outer axes with length 1 do not count."""
    shape, texels = trimmed(covered.shape), plane.shape[:2]
    if covered.size == plane.element_count and (plane.image is None or shape == trimmed(plane.shape)):
        return covered.reshape(plane.shape)
    if plane.image is not None and shape == trimmed(texels):
        return numpy.broadcast_to(covered.reshape(*texels, 1), plane.shape)
    raise ValueError(f"the mask has the shape {covered.shape}, but the output has {plane.shape}")
