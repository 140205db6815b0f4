"""Results in notebooks: HTML of at most 100 kB, without scripts, in the notebook's colours."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import imageio.v3
import numpy

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.elements import ELEMENTS, Array, element_of_format
from scenario_runner.plan.accesses import Accesses
from scenario_runner.plan.plan import Plan
from scenario_runner.plan.records import BufferPlan
from scenario_runner.scenario.scenario_html import (
    FIRST_VALUES,
    MOST_ARRAYS,
    MOST_BYTES,
    MOST_CHANNELS,
    cell_text,
    joined,
    listing,
    row_of,
    table_of,
)
from scenario_runner.view.contents import Channel, Content, channels_of, has_colors, statistics_of
from scenario_runner.view.picture import picture_of, shrink, value_range

_MOST_OF_TEXT: Final = 5_000  # for an array without a picture
_SIDES: Final = (320, 160, 80, 40, 20)  # longest sides of a picture to try, in texels, until the picture fits
_ENLARGED: Final = 128  # smaller pictures grow to this side
_FAINT: Final = 8  # out of 255
_MOST_TEXELS: Final = 1024  # longest side before a picture is shrunk; other texels are skipped
_MOST_ELEMENTS: Final = 1 << 22  # for statistics
_BUFFER: Final = ("uint8", "int32", "float32")  # for a buffer without a single number type in shaders
_HEADING: Final = ("", "first values", "least", "greatest", "mean", "NaN", "infinite")


class Holder(Protocol):
    """Arrays by uid: a result, or a frame's captures."""

    def __getitem__(self, uid: str) -> Array: ...

    def array(self, uid: str, dtype: str) -> Array:
        """Return a resource's bytes as numbers with a given type."""


def arrays_html(
    headline: str, arrays: Sequence[tuple[str, Holder, str]], plan: Plan, notes: Mapping[str, Sequence[object]]
) -> str:
    """Show notes, then arrays (label, holder, uid) as statistics; images and 2-D tensors also as pictures."""
    parts = [f"<b>{cell_text(headline)}</b>"]
    for title, lines in notes.items():
        parts += listing(title, lines)
    left = len(arrays)
    for label, holder, uid in arrays[:MOST_ARRAYS]:
        room = MOST_BYTES - sum(map(len, parts)) - _MOST_OF_TEXT
        if room < 0:
            break
        parts.append(_array(label, holder, plan, uid, room // min(left, MOST_ARRAYS)))
        left -= 1
    return joined(parts, left, "array")


def _array(label: str, arrays: Holder, plan: Plan, uid: str, room: int) -> str:
    """Show an array, with a picture in at most ``room`` bytes."""
    array, resource = arrays[uid], plan.resources[uid]
    kind = f"{resource.kind} {resource.format.name}" if resource.format else resource.kind
    title = f"<b>{cell_text(uid, 120)}</b> {label}{kind}, {array.dtype} {array.shape}"
    try:
        with numpy.errstate(all="ignore"):  # signalling NaNs
            channels = _channels(arrays, plan, uid)
            picture = _picture(channels, is_image=resource.is_image, room=room)
            rows = [row_of(_row(channel)) for channel in channels[:MOST_CHANNELS]]
    except ScenarioRunnerError as error:  # undecodable blocks
        return f"<div>{title}<br>{cell_text(str(error))}</div>"
    return f"<div style='margin:4px 0 12px'>{title}<br>{picture}{table_of(_HEADING, rows)}</div>"


def _channels(arrays: Holder, plan: Plan, uid: str) -> tuple[Channel, ...]:
    """Split a resource into channels: colours, all tensor elements, or a buffer as a known type or several types."""
    resource = plan.resources[uid]
    data = arrays.array(uid, "u1")
    if resource.is_image:
        part = resource.part(0)
        data = data[part.offset_bytes : part.end_bytes]
        return channels_of(uid, resource.format, part.aspect, part.width, part.height, data)
    if isinstance(resource, BufferPlan):
        seen = Accesses(plan).elements().get(uid)
        names = (seen,) if seen in ELEMENTS else _BUFFER
        elements = [ELEMENTS[name] for name in names if data.size >= ELEMENTS[name].size_bytes]
        elements = elements or [ELEMENTS["uint8"]]
        whole = [data.size // element.size_bytes * element.size_bytes for element in elements]
        pairs = zip(elements, whole, strict=True)
        return tuple(Channel(element.name, data[:size].view(element.dtype), element) for element, size in pairs)
    element = element_of_format(resource.format)
    array = data.view(element.dtype).reshape(resource.shape)
    if not has_colors(array.shape):
        return (Channel("", array, element),)
    return tuple(Channel(str(number), array[..., number], element) for number in range(array.shape[-1]))


def _row(channel: Channel) -> tuple[str, ...]:
    """Return a channel's first values and statistics; a large channel counts every nth value."""
    flat = channel.raw.reshape(-1)
    step = -(-flat.size // _MOST_ELEMENTS) or 1
    first = channel._replace(raw=numpy.ascontiguousarray(flat[:FIRST_VALUES])).numbers
    statistics = statistics_of(channel._replace(raw=numpy.ascontiguousarray(flat[::step])))
    name = f"{channel.name} (1 of {step} values)" if step > 1 else channel.name
    values = " ".join(map(_number, first)) + (" …" if flat.size > FIRST_VALUES else "")
    least, greatest, mean = ("-" if value is None else _number(value) for value in statistics[:3])
    return (name, values, least, greatest, mean, *map(str, statistics[3:]))


def _number(value: object) -> str:
    return f"{float(value):.6g}" if isinstance(value, float | numpy.floating) else str(value)


def _picture(channels: tuple[Channel, ...], *, is_image: bool, room: int) -> str:
    """Show the first plane as an <img> element; nothing without two sides or enough room."""
    shape: tuple[int, ...] = channels[0].raw.shape if channels else ()
    if len(shape) < 2 or not channels[0].raw.size or not (is_image or min(shape[-2:]) > 1):
        return ""
    width, height = shape[-1], shape[-2]
    steps = [slice(None, None, -(-side // _MOST_TEXELS)) for side in (height, width)]
    plane: tuple[int | slice, ...] = (*[0] * (len(shape) - 2), *steps)
    shown = [channel._replace(raw=numpy.ascontiguousarray(channel.raw[plane])) for channel in channels]
    content = Content("", "", tuple(shown), True)
    limits = value_range(content)
    whole = picture_of(content, limits)
    if not (whole[..., 3:] > _FAINT).any():  # an unset alpha would hide the colours
        whole = whole[..., :3]
    for side in _SIDES:
        picture = shrink(whole, side, side)
        text = base64.b64encode(_png(picture)).decode()
        if len(text) < room:
            break
    else:
        return ""
    scale = max(1.0, _ENLARGED / max(picture.shape[:2]))
    size = f"width:{picture.shape[1] * scale:.0f}px;height:{picture.shape[0] * scale:.0f}px;image-rendering:pixelated"
    about = f"{width}x{height}" + (f", the first of {shape[:-2]}" if max(shape[:-2], default=1) > 1 else "")
    return (
        f"<img style='{size};max-width:none' src='data:image/png;base64,{text}' alt='{about}'>"
        f"<br>{about}; black is {limits[0]:g}, white is {limits[1]:g}"
    )


def _png(picture: Array) -> bytes:
    data: bytes = imageio.v3.imwrite("<bytes>", picture, plugin="pillow", extension=".png", is_batch=False)
    return data
