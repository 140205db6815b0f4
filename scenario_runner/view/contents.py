"""A file's contents as numeric channels, with statistics.

A file holds an image of any format, or an array. A viewer may reinterpret the bytes of an array.

Source: Vulkan specification, "Formats" (bits of packed formats, small floats, the shared exponent of E5B9G9R9).
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy

from scenario_runner.errors import FileError, UsageError, file_error
from scenario_runner.files.codec import ArrayCodec, Codec
from scenario_runner.files.codec_table import CODECS, codec_of
from scenario_runner.files.dds import format_header
from scenario_runner.files.elements import ELEMENTS, Array, Element, element_of, element_of_format, read_array
from scenario_runner.files.npy import read_header
from scenario_runner.files.vk_formats import Format, format_named

_MOST_COLORS = 4
_CORNER = 4
_UNDECODABLE = ("VK_FORMAT_BC4_SNORM_BLOCK",)  # by Pillow


class Channel(NamedTuple):
    """A channel; ``raw`` has all axes of the content but the channel axis.

    ``full_range`` is the least and greatest value of a normalized colour; None for other numbers.
    """

    name: str
    raw: Array
    element: Element
    full_range: tuple[int, int] | None = None

    @property
    def numbers(self) -> Array:
        """The values as numbers to compute with."""
        return self.element.numbers(self.raw)

    @property
    def peak(self) -> float:
        """The greatest possible value: the end of the range, or the maximum of an integer type; 1 for floats."""
        return self.element.peak if self.full_range is None else float(self.full_range[1])

    def text(self, at: int) -> str:
        """Return an element's value as text; elements are counted in memory order."""
        return self.element.text(self.raw.reshape(-1)[at : at + 1])


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file; ``title`` describes it in a few words.

    ``channels`` are the channels of an image, or the last axis of an array with three or more axes. With
    ``has_channel_axis`` an index into the file's array ends with the channel number.
    """

    path: str
    title: str
    channels: tuple[Channel, ...]
    has_channel_axis: bool
    first_channel: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes that all channels share."""
        return tuple(self.channels[0].raw.shape) if self.channels else (0,)

    def fits(self, other: Content) -> bool:
        """Return whether both have equally many channels of the same shape, ignoring outer axes of length 1."""
        return trimmed(self.shape) == trimmed(other.shape) and len(self.channels) == len(other.channels)

    def index(self, flat: int, channel: int) -> tuple[int, ...]:
        """Return the index of an element in the file's array."""
        places = map(int, numpy.unravel_index(flat, self.shape))
        return (*places, self.first_channel + channel) if self.has_channel_axis else tuple(places)

    def select(self, name: str) -> Content:
        """Return the content with only this channel (a name or number). Raises UsageError with all channel names."""
        names = [channel.name.lower() for channel in self.channels]
        if name.lower() in names:
            index = names.index(name.lower())
        elif name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(names):
            index = int(name)
        else:
            shown = ", ".join(channel.name for channel in self.channels[:8]) + (", …" if len(names) > 8 else "")
            raise UsageError(f"--channel {name!r}: {self.path} has the channels {shown or 'of an empty array'}")
        return replace(self, channels=(self.channels[index],), first_channel=index)


def trimmed(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape without outer axes of length 1."""
    start = next((at for at, length in enumerate(shape) if length != 1), len(shape))
    return tuple(shape[start:])


def has_colors(shape: Sequence[int]) -> bool:
    """Return whether the last axis of a tensor is short enough for colours, as in (batch, height, width, channels)."""
    return len(shape) > 2 and shape[-1] <= _MOST_COLORS


class Statistics(NamedTuple):
    """Least, greatest and mean of the finite values (None without such values), and counts of the others."""

    least: Any
    greatest: Any
    mean: float | None
    nan_count: int
    infinite_count: int


def statistics_of(channel: Channel) -> Statistics:
    """Summarize the values of a channel; the mean has double precision."""
    values = channel.numbers
    nan_count, infinite_count = int(numpy.isnan(values).sum()), int(numpy.isinf(values).sum())
    if nan_count or infinite_count:
        values = values[numpy.isfinite(values)]
    if not values.size:
        return Statistics(None, None, None, nan_count, infinite_count)
    with numpy.errstate(over="ignore"):
        mean = float(values.mean(dtype=numpy.float64))
    return Statistics(values.min(), values.max(), mean, nan_count, infinite_count)


def corner(channel: Channel) -> Array:
    """Return the first values of the first rows, at most 4 by 4. The outer axes are at index 0."""
    values = channel.raw
    if values.ndim < 2:
        values = values.reshape(1, -1)
    if not values.size:
        return values.reshape(0, 0)
    values = values[(0,) * (values.ndim - 2)]
    return channel.element.numbers(values[:_CORNER, :_CORNER])


def read_content(
    path: str, *, mip: int = 0, element: Element | None = None, shape: tuple[int, ...] | None = None
) -> Content:
    """Read a file: level ``mip`` of an image, or an array.

    ``element`` and ``shape`` reinterpret the bytes of a .npy file. A single -1 in ``shape`` takes the rest.
    Raises FileError, and UsageError for an option that this kind of file does not have.
    """
    codec = codec_of(path)
    if not isinstance(codec, ArrayCodec):
        if element is not None or shape is not None:
            raise UsageError(f"{path}: --dtype and --shape reinterpret .npy files; an image names the format itself")
        return read_image(path, codec, mip)
    if mip:
        raise _no_level(path, 1, mip)
    return _read_array(path, element, shape)


def _no_level(path: str, count: int, level: int) -> FileError:
    has = f"{count} mip levels" if count > 1 else "one mip level"
    others = " and ".join(codec.extension for codec in CODECS if codec.holds_levels)
    return file_error(path, f"has {has}, but no level {level}", help=f"{others} files may have more")


def _read_array(path: str, element: Element | None, shape: tuple[int, ...] | None) -> Content:
    header = read_header(path)
    stored = element or element_of(f"{header.kind}{header.item_size_bytes}")
    if stored is None:
        raise file_error(
            path,
            f"holds items of the type {header.descr!r}, expected integers, floats, bool or raw bytes of one or two",
            help="choose a type for the bytes with --dtype",
        )
    if header.data_size_bytes % stored.size_bytes:
        raise file_error(
            path, f"holds {header.data_size_bytes} bytes, which are not a whole number of {stored.name} elements"
        )
    array = read_array(path).reshape(-1).view(stored.dtype)
    if shape is None:
        shape = header.shape if stored.size_bytes == header.item_size_bytes else (-1,)
    try:
        array = array.reshape(shape)
    except ValueError as error:
        shape_text = "x".join("?" if length == -1 else str(length) for length in shape)
        raise file_error(os.fspath(path), f"holds {array.size} elements, which are not {shape_text}") from error
    title = f"{stored.name}, shape {tuple(array.shape)}"
    if array.ndim < 3:
        return Content(path, title, (Channel("all", array, stored),), False)
    full_range = _range_of_texels(array) if element is None else None
    channels = tuple(Channel(str(number), array[..., number], stored, full_range) for number in range(array.shape[-1]))
    return Content(path, title, channels, True)


def content_of(name: str, array: Array, element: Element | None = None) -> Content:
    """Return an array in memory as single-channel content. Raises TypeError unless the items are numbers."""
    array = numpy.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    element = element or next((known for known in ELEMENTS.values() if numpy.dtype(known.type) == array.dtype), None)
    if element is None:
        array, element = array.astype("<f8", casting="same_kind"), ELEMENTS["float64"]
    channel = Channel("all", array.view(element.dtype), element)
    return Content(f"{name}.npy", f"{element.name}, shape {array.shape}", (channel,), False)


def _range_of_texels(array: Array) -> tuple[int, int] | None:
    """Return the range of 8-bit or 16-bit colours if an array has the shape of a written image, else None."""
    is_image = array.ndim == 4 and array.shape[0] == 1 and 1 <= array.shape[3] <= 4
    if not is_image or not numpy.issubdtype(array.dtype, numpy.unsignedinteger) or array.dtype.itemsize > 2:
        return None
    return 0, (1 << 8 * array.dtype.itemsize) - 1


def read_image(path: str, codec: Codec, mip: int) -> Content:
    """Read a level of an image file. Raises FileError."""
    format, file_width, file_height, count = codec.read_header(path)
    assert format is not None, "files of images name a format"
    if mip >= count:
        raise _no_level(path, count, mip)
    width, height = max(1, file_width >> mip), max(1, file_height >> mip)
    channels: tuple[Channel, ...] = ()
    with codec.open_image(path, format, file_width, file_height, count) as reader:
        for aspect in format.aspects:
            data = numpy.empty(reader.level_size_bytes(mip, aspect), "u1")
            reader.read_into(data.data, mip, aspect=aspect)
            channels += channels_of(path, format, aspect, width, height, data)
    name, channel_names = codec.shown_format(format)
    title = f"{width}x{height} texels of {name}"
    if count > 1:
        title += f", level {mip} of {count}"
    if format.is_compressed:
        title += ", decoded to 8 bits a channel"
    if channel_names is not None:
        channels = tuple(channel._replace(name=name) for channel, name in zip(channels, channel_names, strict=True))
    return Content(path, title, channels, len(channels) > 1)


def is_decodable(format: Format) -> bool:
    """Return whether the channels of a format can be shown."""
    return format.name not in _UNDECODABLE


def has_numbers(format: Format) -> bool:
    """Return whether channels have the stored numbers. Pillow decodes signed and float blocks to screen colours."""
    return not format.is_compressed or format.numeric in ("unorm", "srgb")


def channels_of(name: str, format: Format, aspect: str, width: int, height: int, data: Array) -> tuple[Channel, ...]:
    """Return the channels of an image aspect from the bytes of a Vulkan copy. Raises FileError."""
    if format.is_compressed:
        return _decoded(name, format, width, height, data.tobytes())
    if aspect == "stencil":
        return (Channel("stencil", data.reshape(height, width), ELEMENTS["uint8"]),)
    assert format.numpy_dtype is not None
    array = data.view(format.numpy_dtype).reshape(height, width, -1)
    if aspect == "depth" and format.numpy_dtype == "<u4":
        return (Channel("depth", array[..., 0] & 0xFF_FFFF, _narrow("uint32", 8)),)
    if aspect == "depth":
        return (Channel("depth", array[..., 0], element_of_format(format)),)
    if format.is_packed:
        return _unpacked(format, array[..., 0])
    element = element_of_format(format)
    is_color = format.numeric in ("unorm", "srgb")
    channels = {
        name: Channel(name, array[..., number], element, (0, (1 << bits) - 1) if is_color else None)
        for number, (name, bits) in enumerate(zip(format.channels, format.channel_bits, strict=True))
    }
    return tuple(channels[name] for name in "RGBA" if name in channels)


@cache
def _narrow(name: str, unused_bits: int) -> Element:
    """Return the element for a field of a packed texel; equal arguments give the same object."""
    return ELEMENTS[name]._replace(unused_bits=unused_bits)


def _unpacked(format: Format, packed: Array) -> tuple[Channel, ...]:
    """Return the channels of packed texels, a single integer each; ``channel_bits`` count from the highest bit down."""
    fields: dict[str, tuple[Array, int]] = {}
    offset = sum(format.channel_bits)
    for name, bits in zip(format.channels, format.channel_bits, strict=True):
        offset -= bits
        fields[name] = (packed >> offset & ((1 << bits) - 1), bits)
    channels = []
    for name in "RGBA":
        if name not in fields:
            continue
        field, bits = fields[name]
        size = 8 if bits <= 8 else 16
        full_range = None
        if "E" in fields:  # fractions of nine bits without a hidden bit; the shared exponent has the bias 15
            element = ELEMENTS["float32"]
            values = numpy.ldexp(field.astype("<f4"), fields["E"][0].astype("<i4") - 15 - bits)
        elif format.numeric == "ufloat":  # a half float without the sign and the last bits of the fraction
            element = _narrow("float16", 15 - bits)
            values = (field << element.unused_bits).astype("<u2").view(element.dtype)
        elif format.numeric in ("snorm", "sscaled", "sint"):
            element = _narrow(f"int{size}", size - bits)
            values = (field << element.unused_bits).astype(f"<u{size // 8}").view(element.dtype) >> element.unused_bits
        else:
            element = _narrow(f"uint{size}", size - bits)
            values = field.astype(element.dtype)
            if format.numeric in ("unorm", "srgb"):
                full_range = (0, (1 << bits) - 1)
        channels.append(Channel(name, values, element, full_range))
    return tuple(channels)


def _decoded(path: str, format: Format, width: int, height: int, data: bytes) -> tuple[Channel, ...]:
    """Let Pillow decode a mip level's blocks to 8-bit channels."""
    from PIL import Image

    plain = format_named(format.name.replace("_SRGB_", "_UNORM_"))  # Pillow lacks some sRGB formats
    help = "let a shader copy the texels into an uncompressed image"
    error = file_error(path, f"holds blocks of {format.name!r}, which cannot be shown", help=help)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about large images: the file size has confirmed the extent
            with Image.open(io.BytesIO(format_header(plain, width, height, 1) + data), formats=("DDS",)) as picture:
                array = numpy.asarray(picture).reshape(height, width, -1)
    except Exception as failure:  # Pillow raises any error of a parser
        raise error from failure
    if array.dtype != numpy.uint8 or array.shape[2] < len(format.channels):
        raise error
    return tuple(
        Channel(name, array[..., number], ELEMENTS["uint8"], (0, 255)) for number, name in enumerate(format.channels)
    )
