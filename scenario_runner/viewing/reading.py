"""Reading files into `Content`, by what their codec says: images, or arrays whose items a viewer may reinterpret."""

from __future__ import annotations

import os
from math import prod
from typing import TYPE_CHECKING, Any

from scenario_runner.errors import UsageError
from scenario_runner.files.codec import codec_of
from scenario_runner.files.source import file_error
from scenario_runner.viewing.content import Channel, Content, no_level
from scenario_runner.viewing.element import Element, element_of

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[Any]]


def read_content(
    path: str, *, mip: int = 0, element: Element | None = None, shape: tuple[int, ...] | None = None
) -> Content:
    """Read a file. ``mip`` is the level of a .dds file; ``element`` and ``shape`` say what the bytes of a .npy are.

    One length of ``shape`` may be -1: whatever is left. Raises FileError, and UsageError for options that the kind of
    file does not have.
    """
    codec = codec_of(path)
    if not codec.is_array:
        if element is not None or shape is not None:
            raise UsageError(f"--dtype and --shape are for .npy files; {path} says itself what it holds")
        from scenario_runner.viewing.texels import read_image

        return read_image(path, codec, mip)
    if mip:
        raise no_level(path, 1, mip)
    return _read_array(path, element, shape)


def _read_array(path: str, element: Element | None, shape: tuple[int, ...] | None) -> Content:
    from scenario_runner.files.npy import read_array, read_header

    header = read_header(path)
    stored = element_of(header.kind, header.item_size_bytes)
    if stored is None and element is None:
        raise file_error(
            path,
            f"holds items of the type {header.descr!r}, expected integers, floats, bool or raw bytes of one or two",
            help="--dtype says what the bytes are",
        )
    array = read_array(path)
    if element is not None:
        if header.data_size_bytes % element.size_bytes:
            raise file_error(
                path, f"holds {header.data_size_bytes} bytes, which are not a whole number of {element.name} elements"
            )
        resized = element.size_bytes != header.item_size_bytes
        array = array.reshape(-1).view(element.dtype)
        if shape is None and not resized:
            array = array.reshape(header.shape)
        stored = element
    else:
        assert stored is not None
        array = array.view(stored.dtype)
    if shape is not None:
        array = array.reshape(_whole_shape(path, shape, array.size))
    assert stored is not None
    title = f"{stored.name}, shape {tuple(array.shape)}"
    if array.ndim < 3:
        return Content(path, title, (Channel("all", array, stored),), False, (0,))
    full_range = _range_of_texels(array) if element is None else None
    channels = tuple(Channel(str(number), array[..., number], stored, full_range) for number in range(array.shape[-1]))
    return Content(path, title, channels, True, tuple(range(array.shape[-1])))


def _range_of_texels(array: Array) -> tuple[int, int] | None:
    """The range of colours of 8 or 16 bits, where an array has the shape in which a run writes images."""
    is_image = array.ndim == 4 and array.shape[0] == 1 and 1 <= array.shape[3] <= 4
    if not is_image or array.dtype.kind != "u" or array.dtype.itemsize > 2:
        return None
    return 0, (1 << 8 * array.dtype.itemsize) - 1


def _whole_shape(path: str, shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """``shape`` with its -1 replaced. Raises FileError where it does not have ``count`` elements."""
    known = prod(length for length in shape if length != -1)
    if -1 in shape and known and count % known == 0:
        return tuple(count // known if length == -1 else length for length in shape)
    if -1 in shape or known != count:
        wanted = "x".join("?" if length == -1 else str(length) for length in shape)
        raise file_error(os.fspath(path), f"holds {count} elements, which are not {wanted}")
    return shape
