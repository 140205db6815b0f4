"""Element planes in an output or in a region of it, and masks over planes.

A buffer or a tensor is a single plane; each image part is a plane.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from operator import add
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
    ``element``; `channels` unpacks them. ``label`` names the part if an output has several. In a plane of a region,
    ``origin`` is the place of the first element in the output, and ``letters`` are the channels on the last axis.
    """

    label: str
    offset_bytes: int
    size_bytes: int
    shape: tuple[int, ...]
    element: Element | None
    image: ImagePlan | None = None
    part: ImagePart | None = None
    origin: tuple[int, ...] = ()
    letters: str = ""

    @property
    def element_count(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def has_texels(self) -> bool:
        """Return whether the first two axes are the rows and columns of an image."""
        return self.image is not None or bool(self.letters)

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
        if self.letters and self.element is not None:
            array = numpy.frombuffer(data, self.element.dtype).reshape(self.shape)
            numbers = map(self.letters.index, _sorted(self.letters))
            return [Channel(self.letters[at], array[..., at].reshape(-1), self.element) for at in numbers]
        if self.image is None or self.part is None:
            return self.elements(data)
        part = self.part
        raw = numpy.frombuffer(data, "u1")
        channels = channels_of(self.image.uid, self.image.format, part.aspect, part.width, part.height, raw)
        return [channel._replace(raw=channel.raw.reshape(-1)) for channel in channels]

    def flags_of(self, flags: Array, number: int) -> Array:
        """Return a channel's flags, numbered as in `channels`. Unpacked texels' flags are in memory order."""
        if not self.has_texels:
            return flags
        if self.element is not None:
            order = self.letters if self.image is None else self.image.format.channels
            number = order.index(_sorted(order)[number])
        return flags[number :: self.shape[2]]

    def place(self, flat: int) -> str:
        """Return the plane's label, an element's index in the output, and the channel of a region, as text."""
        places = [int(place) for place in numpy.unravel_index(flat, self.shape)]
        channel = f" {self.letters[places.pop()]}" if self.letters else ""
        places = list(map(add, places, self.origin)) if self.origin else places
        return f"{self.label} {places}{channel}" if self.label else f"{places}{channel}"


def _sorted(letters: str) -> list[str]:
    return [letter for letter in "RGBADS" if letter in letters]


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


class Region(NamedTuple):
    """A part of an output, and the planes of the part: bytes of a buffer, or texels and channels of a mip level.

    ``level`` has the planes of the whole mip level, and ``rect`` is (x, y, width, height). Both are empty for bytes
    that begin at ``start_bytes``. Normalized channels have values in double precision.
    """

    planes: tuple[Plane, ...]
    start_bytes: int = 0
    level: tuple[Plane, ...] = ()
    rect: tuple[int, ...] = ()
    is_normalized: bool = False

    def cut(self, data: memoryview) -> memoryview:
        """Return the bytes of the planes from the bytes of the whole output."""
        if not self.level:
            return data[self.start_bytes : self.start_bytes + self.planes[0].size_bytes]
        x, y, width, height = self.rect
        whole = self.level[0].shape[:2]
        found = {}
        for letter, channel in channels_of_level(self.level, data).items():
            texels = channel._replace(raw=channel.raw.reshape(whole)[y : y + height, x : x + width])
            found[letter] = _normalized(texels, letter, self.level[0]) if self.is_normalized else texels.raw
        return self.joined(found)

    def joined(self, channels: Mapping[str, Array]) -> memoryview:
        """Return the bytes of the planes from the texels of single channels."""
        arrays = (numpy.stack([channels[letter] for letter in plane.letters], -1) for plane in self.planes)
        return memoryview(b"".join(array.tobytes() for array in arrays))


def channels_of_level(level: Sequence[Plane], data: memoryview) -> dict[str, Channel]:
    """Return the channels of a mip level by letter: R, G, B, A, D or S."""
    return {
        channel.name[0].upper(): channel
        for plane in level
        for channel in plane.channels(data[plane.offset_bytes : plane.offset_bytes + plane.size_bytes])
    }


def _normalized(channel: Channel, letter: str, plane: Plane) -> Array:
    """Return values from 0 to 1, or for SNORM from -1 (Vulkan specification, "Conversion from Normalized Fixed-Point").

    Colours of SRGB become linear (Khronos Data Format Specification, "sRGB EOTF").
    """
    values = numpy.maximum(channel.numbers.astype("<f8") / channel.peak, -1.0)
    if plane.image is not None and plane.image.format.numeric == "srgb" and letter != "A":
        values = numpy.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return values


def region_of_bytes(start_bytes: int, size_bytes: int, element: Element) -> Region:
    """Return the region of a buffer with elements of a type."""
    shape, origin = (size_bytes // element.size_bytes,), (start_bytes // element.size_bytes,)
    return Region((Plane("", 0, size_bytes, shape, element, origin=origin),), start_bytes)


def region_of_texels(
    level: tuple[Plane, ...], rect: tuple[int, ...], letters: str, elements: Mapping[str, Element], is_normalized: bool
) -> Region:
    """Return the region of a mip level. Channels of one type share a plane (height, width, channels)."""
    x, y, width, height = rect
    groups = [letters] if len({elements[letter] for letter in letters}) == 1 else list(letters)
    label = f"level {level[0].part.level}" if level[0].part is not None and level[0].part.level else ""
    planes: list[Plane] = []
    offset = 0
    for group in groups:
        element, shape = elements[group[0]], (height, width, len(group))
        size = prod(shape) * element.size_bytes
        planes.append(Plane(label, offset, size, shape, element, origin=(y, x), letters=group))
        offset += size
    return Region(tuple(planes), 0, level, rect, is_normalized)


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
    for axis in ((0, 1) if plane.has_texels else (-2, -1)) if border else ():
        lines = numpy.moveaxis(flags, axis, 0)
        lines[:border] = lines[-border:] = True
    if flags.size and flags.all():
        raise ValueError("every element of the output is ignored")
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
    if covered.size == plane.element_count and (not plane.has_texels or shape == trimmed(plane.shape)):
        return covered.reshape(plane.shape)
    if plane.has_texels and shape == trimmed(texels):
        return numpy.broadcast_to(covered.reshape(*texels, 1), plane.shape)
    raise ValueError(f"the mask has the shape {covered.shape}, but the output has {plane.shape}")
