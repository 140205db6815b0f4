"""Pictures of numbers: arrays and images as 8-bit colours, shrunk to the display size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from scenario_runner.files.codec_table import create_image
from scenario_runner.files.elements import Array
from scenario_runner.files.vk_formats import format_named
from scenario_runner.view.contents import Channel, Content, statistics_of

NAN_COLOR = (255, 0, 255)
IGNORED_COLOR = (40, 60, 110)  # of texels where errors are ignored
_MOST_COLORS = 3


def shown_channels(content: Content) -> tuple[Channel, ...]:
    """Choose the channels that a picture shows.

    A picture shows up to three channels, and alpha. For four channels without alpha it shows the first three, for more
    channels only the first channel. The fourth channel of an array may be anything: as alpha it could hide the others.
    """
    channels = content.channels
    if len(channels) == _MOST_COLORS + 1:
        return channels if _is_alpha(channels[-1], content) else channels[:_MOST_COLORS]
    return channels if len(channels) <= _MOST_COLORS else channels[:1]


def value_range(content: Content) -> tuple[float, float]:
    """Return the default values for black and white.

    For normalized colours these are the ends of the range, otherwise the least and greatest finite value. If all values
    are equal, zero is the other end.
    """
    colors = [channel for channel in shown_channels(content) if not _is_alpha(channel, content)]
    if colors and all(channel.full_range is not None for channel in colors):
        return 0.0, float(max(channel.full_range[1] for channel in colors if channel.full_range))
    statistics = [statistic for statistic in map(statistics_of, colors) if statistic.least is not None]
    least = min((float(statistic.least) for statistic in statistics), default=0.0)
    greatest = max((float(statistic.greatest) for statistic in statistics), default=0.0)
    if least == greatest:
        return min(least, 0.0), max(greatest, 0.0)
    return least, greatest


def picture_of(content: Content, limits: tuple[float, float]) -> Array:
    """Return 8-bit colours of the shape (height, width, 3), or (height, width, 4) with alpha.

    ``limits`` are the values for black and white in the channel with the most bits; for fewer bits they are scaled.
    The outer axes of an array lie under each other; a one-dimensional array is a row. NaN is magenta.
    """

    channels = shown_channels(content)
    shape = content.shape
    width = shape[-1] if shape else 1
    height = int(numpy.prod(shape[:-1], dtype=numpy.int64)) if shape else 1
    colors = [channel for channel in channels if not _is_alpha(channel, content)]
    picture = numpy.zeros((height, width, 3 + (len(colors) < len(channels))), numpy.uint8)
    no_number = numpy.zeros((height, width), bool)
    greatest = max((channel.full_range[1] for channel in colors if channel.full_range), default=1)
    for number, channel in enumerate(colors):
        values = channel.numbers.reshape(height, width)
        share = channel.full_range[1] / greatest if channel.full_range else 1.0  # 31/63 for the red of R5G6B5
        shade = _shades(values, (limits[0] * share, limits[1] * share), channel)
        no_number |= numpy.isnan(values)
        picture[..., number : number + 1 if len(colors) > 1 else 3] = shade[..., None]
    if picture.shape[2] > 3:
        alpha = channels[-1]
        opaque = alpha.full_range or (0, alpha.element.peak)
        picture[..., 3] = _shades(alpha.numbers.reshape(height, width), opaque, alpha)
    picture[no_number, :3] = NAN_COLOR
    return picture


def heat_map(errors: Array, greatest: float) -> Array:
    """Colour errors of the shape (height, width): black for none, then red, yellow, and white at ``greatest``."""
    with numpy.errstate(all="ignore"):
        share = numpy.clip(errors / (greatest or 1.0), 0, 1)
    share = numpy.where((errors > 0) & ~(share > 0.2), 0.2, share)  # makes the smallest difference visible
    colors = numpy.clip(numpy.nan_to_num(share)[..., None] * 3 - numpy.arange(3), 0, 1)
    picture: Array = (colors * 255).astype(numpy.uint8)
    picture[numpy.isnan(errors)] = NAN_COLOR
    return picture


def shrink(picture: Array, width: int, height: int, *, brightest: bool = False) -> Array:
    """Shrink a picture to at most this size and keep the proportions.

    Texels that fall together become their mean, or with ``brightest`` their maximum in each channel, so that no single
    error of `heat_map` is lost.
    """

    old_height, old_width = picture.shape[:2]
    scale = max(old_width / width, old_height / height, 1.0)
    if scale == 1.0 or not picture.size:
        return picture
    sizes = (max(1, int(old_height / scale)), max(1, int(old_width / scale)))
    result: Array = picture if brightest else picture.astype(numpy.float32)
    for axis, (size, count) in enumerate(zip(sizes, (old_height, old_width), strict=True)):
        edges = numpy.arange(size) * count // size
        result = (numpy.maximum if brightest else numpy.add).reduceat(result, edges, axis=axis)
        if not brightest:
            result /= numpy.diff(numpy.append(edges, count)).reshape(-1, *[1] * (2 - axis))
    return result if brightest else (result + 0.5).astype(numpy.uint8)


def write_picture(path: str, picture: Array) -> None:
    """Write 8-bit colours of three or four channels as a .png file. Raises FileError."""
    height, width, count = picture.shape
    format = format_named("VK_FORMAT_R8G8B8_UNORM" if count == 3 else "VK_FORMAT_R8G8B8A8_UNORM")
    with create_image(path, format, width, height, (picture.nbytes,)) as writer:
        writer.write(picture.tobytes())


def _shades(values: Array, limits: Sequence[float], channel: Channel) -> Array:
    least, greatest = limits
    with numpy.errstate(all="ignore"):  # the cast complains about signaling NaN
        precise: Array = values.astype(numpy.float64 if channel.element.size_bytes > 2 else numpy.float32)
        share = (precise - least) / ((greatest - least) or 1.0)
    shades: Array = (numpy.clip(numpy.nan_to_num(share, posinf=1.0, neginf=0.0), 0, 1) * 255 + 0.5).astype("u1")
    return shades


def _is_alpha(channel: Channel, content: Content) -> bool:
    return channel.name == "A" and len(content.channels) > 1
