"""Image files: whether they hold what the scenario declares, and their texels in and out, whatever their format."""

from __future__ import annotations

import os

from scenario_runner.files.codec import cannot_hold, codec_of
from scenario_runner.files.image_reader import ImageHeader, ImageReader
from scenario_runner.files.image_writer import ImageWriter
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.formats import Format


def check_source(path: str | os.PathLike[str], format: Format, width: int, height: int, mip_count: int = 1) -> int:
    """Check the header of an image file against what a scenario declares, and return how many mip levels it holds.

    Nothing but the header is read. A file may have fewer levels than declared, not more. A file of D32_SFLOAT_S8_UINT
    serves R32_SFLOAT and D32_SFLOAT, with its depths. Raises `FileError` that shows both sides.
    """
    with open_image(path, format, width, height, mip_count) as reader:
        return reader.mip_count


def open_image(
    path: str | os.PathLike[str], format: Format, width: int, height: int, mip_count: int = 1
) -> ImageReader:
    """Open an image file as an image that was declared so; as `check_source`. Close the reader after use."""
    return codec_of(path).open_image(os.fspath(path), format, width, height, mip_count)


def stored_levels(path: str | os.PathLike[str], mip_count: int) -> int:
    """How many levels of an image of ``mip_count`` levels a file of this name takes. Raises `FileError`."""
    return mip_count if codec_of(path).holds_levels else 1


def check_destination(path: str | os.PathLike[str], format: Format) -> None:
    """Raise `FileError` when texels of ``format`` cannot be written to a file of this name; touches no file."""
    reason = codec_of(path).why_not(format)
    if reason is not None:
        raise cannot_hold(path, format, reason)


def create_image(
    path: str | os.PathLike[str],
    format: Format,
    width: int,
    height: int,
    planes: tuple[int, ...],
    *,
    create: CreateOutput = OutputFile,
) -> ImageWriter:
    """A file that an image of these ``planes`` is written to as its bytes come; see `ImageWriter`."""
    check_destination(path, format)
    return codec_of(path).create_image(os.fspath(path), format, width, height, planes, create)


def read_image_header(path: str | os.PathLike[str]) -> ImageHeader:
    """What an image file holds, for showing it. Raises `FileError`, also for arrays whose shape is not an image's."""
    return codec_of(path).read_header(os.fspath(path))
