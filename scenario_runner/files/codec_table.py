"""The table of file formats, and the codec for a file.

To add a format, write a codec in a new file and add the codec to `CODECS`.
"""

import os
from collections.abc import Sequence
from typing import Any, Final

from scenario_runner.errors import file_error
from scenario_runner.files.codec import Codec, ContentReader, ContentWriter
from scenario_runner.files.dds import DdsCodec
from scenario_runner.files.npy import NpyCodec
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.png_codec import PngCodec
from scenario_runner.files.vk_formats import Format

CODECS: Final[tuple[Codec, ...]] = (NpyCodec(), DdsCodec(), PngCodec())
"""All codecs. If several can hold a content, the program chooses the first."""
_BY_EXTENSION: Final = {codec.extension: codec for codec in CODECS}


def is_known(path: str | os.PathLike[str]) -> bool:
    """Return whether the extension of a file belongs to a codec."""
    return os.path.splitext(path)[1].lower() in _BY_EXTENSION


def codec_of(path: str | os.PathLike[str], resource: str = "image") -> Codec:
    """Return the codec for a file with this name and a resource of this kind. Raises `FileError`.

    A file without extension that holds a buffer or a tensor has the first suitable codec.
    """
    extension = os.path.splitext(path)[1]
    if not extension and resource != "image":
        return codec_for(resource)
    codec = _BY_EXTENSION.get(extension.lower())
    if codec is not None and resource in codec.resources:
        return codec
    expected = ", ".join(repr(codec.extension) for codec in CODECS if resource in codec.resources)
    expected = f"one of an image: {expected}" if resource == "image" else f"{expected} for a {resource}"
    raise file_error(os.fspath(path), f"has the extension {extension!r}, expected {expected}", code="SR-FILE-004")


def codec_for(resource: str, format: Format | None = None, mip_count: int = 1) -> Codec:
    """Choose the codec for a resource of this kind; an image has a format and mip levels.

    Without a codec that holds all of an image, return the first codec for images.
    """
    suitable = [codec for codec in CODECS if resource in codec.resources]
    return next((codec for codec in suitable if format is None or codec.holds(format, mip_count)), suitable[0])


def open_image(
    path: str | os.PathLike[str], format: Format, width: int, height: int, mip_count: int = 1
) -> ContentReader[Any]:
    """Open an image file and check the header against the image that the scenario declares.

    A file may have fewer levels than the declaration, not more. A file of D32_SFLOAT_S8_UINT can serve R32_SFLOAT and
    D32_SFLOAT with its depths. Raises `FileError` with both sides.
    """
    check_image_format(path, format)
    return codec_of(path).open_image(os.fspath(path), format, width, height, mip_count)


def stored_levels(path: str | os.PathLike[str], mip_count: int) -> int:
    """Return how many of ``mip_count`` levels a file with this name stores. Raises `FileError`."""
    return mip_count if codec_of(path).holds_levels else 1


def check_image_format(path: str | os.PathLike[str], format: Format) -> None:
    """Raise `FileError` if a file with this name cannot hold texels in ``format``. The file is not touched."""
    reason = codec_of(path).why_not(format)
    if reason is not None:
        others = [codec.extension for codec in CODECS if codec.why_not(format) is None]
        message = f"cannot hold texels of the format {format.name!r}: {reason}"
        help = f"choose the name of a {' or '.join(others)} file" if others else None
        raise file_error(os.fspath(path), message, help=help, code="SR-FILE-004")


def create_image(
    path: str | os.PathLike[str],
    format: Format,
    width: int,
    height: int,
    planes: Sequence[int],
    *,
    create: CreateOutput = OutputFile,
) -> ContentWriter:
    """Create a file for an image. The caller then writes the bytes in order.

    ``planes`` has the sizes in bytes of all parts: for each level the aspects of the format.
    """
    check_image_format(path, format)
    return codec_of(path).create_image(os.fspath(path), format, width, height, planes, create)
