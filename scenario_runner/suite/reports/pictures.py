"""Files of outputs as PNG pictures that a browser shows: the file itself, or a picture of what it holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner.errors import ScenarioRunnerError

if TYPE_CHECKING:
    import numpy

    from scenario_runner.viewing.content import Content

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

SIDE_MAX: Final = 1024
"""Width and height of a picture that is made; a larger image is shown smaller."""

_SOURCE_SIZE_MAX: Final = 64 << 20  # bytes of a file to make a picture of
_PNG_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"


class Picture(NamedTuple):
    """A PNG file, and whether it is smaller than the image that it shows."""

    data: bytes
    shrunk: bool = False


def pictures_of(files: Mapping[str, str], size_max: int) -> dict[str, Picture]:
    """PNG pictures of the files that hold images, by what they show: "expected", "actual", "error".

    A PNG file of no more than ``size_max`` bytes is taken as it is. Of other files with two axes or more a picture is
    made, with the same limits of black and white for "expected" and "actual", and one of their differences where there
    is no "error". What cannot be read, or makes a larger picture than ``size_max``, has none.
    """
    found = {}
    contents: dict[str, Content] = {}
    for what, path in files.items():
        data = _png(path, size_max)
        if data is not None:
            found[what] = Picture(data)
        elif what in ("expected", "actual"):
            content = _content(path)
            if content is not None:
                contents[what] = content
    if contents:
        made = _made(contents, has_error="error" in found)
        found |= {what: picture for what, picture in made.items() if len(picture.data) <= size_max}
    return found


def _png(path: str, size_max: int) -> bytes | None:
    try:
        with open(path, "rb") as file:
            data = file.read(size_max + 1)
    except (OSError, ValueError):
        return None
    return data if data.startswith(_PNG_SIGNATURE) and len(data) <= size_max else None


def _content(path: str) -> Content | None:
    from scenario_runner.viewing.reading import read_content

    try:
        if os.path.getsize(path) > _SOURCE_SIZE_MAX:
            return None
        content = read_content(path)
    except (ScenarioRunnerError, OSError, ValueError):
        return None
    return content if len(content.shape) > 1 and min(content.shape[-2:]) > 1 else None


def _made(contents: Mapping[str, Content], *, has_error: bool) -> dict[str, Picture]:
    from scenario_runner.viewing.difference import compare, error_map
    from scenario_runner.viewing.picture import heat, picture_of, value_range

    ranges = [value_range(content) for content in contents.values()]
    limits = min(least for least, _ in ranges), max(greatest for _, greatest in ranges)
    made = {what: _encoded(picture_of(content, limits)) for what, content in contents.items()}
    if not has_error and len(contents) == 2:
        actual, expected = contents["actual"], contents["expected"]
        difference = compare(actual, expected)
        if difference.mismatch is None and not difference.is_equal:
            greatest = float(difference.absolute.value) if difference.absolute else 1.0
            made["error"] = _encoded(heat(error_map(actual, expected), greatest if greatest < float("inf") else 1.0))
    return made


def _encoded(picture: Array) -> Picture:
    import imageio.v3

    from scenario_runner.viewing.picture import shrunk

    smaller = shrunk(picture, SIDE_MAX, SIDE_MAX)
    data = imageio.v3.imwrite("<bytes>", smaller, plugin="pillow", extension=".png", is_batch=False)
    return Picture(data, smaller.shape != picture.shape)
