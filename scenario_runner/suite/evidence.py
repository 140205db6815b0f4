"""Files about an output that failed: what was expected, what came instead, and the error, as arrays and pictures."""

from __future__ import annotations

import math
import os
import zlib
from typing import TYPE_CHECKING, Any, Final

from scenario_runner.suite.output_file import extension_of, write_output

if TYPE_CHECKING:
    import numpy

    from scenario_runner.suite.expectations.binding import Bound
    from scenario_runner.suite.tolerance.planes import Plane
    from scenario_runner.viewing.content import Content

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

_LONGEST_NAME: Final = 120
_MOST_TEXELS: Final = 2048  # of a picture, each way: larger ones are shrunk


def item_folder(item_id: str) -> str:
    """The folder of an item below that of the results: its id, with what no file system takes replaced."""
    parts = [_part(part) for part in item_id.replace("\\", "/").split("/") if part not in ("", ".")]
    return os.path.join(*parts) if parts else "_"


def _part(name: str) -> str:
    plain = "".join(letter if letter.isalnum() or letter in "-_.~ " else "_" for letter in name)
    plain = "__" if plain == ".." else plain.rstrip(". ") or "_"
    if plain == name and len(os.fsencode(plain)) <= _LONGEST_NAME:
        return plain
    return f"{plain[: _LONGEST_NAME // 2]}~{zlib.crc32(name.encode(errors='surrogatepass')):08x}"


def write_evidence(bound: Bound, actual: memoryview, results_folder: str, item_id: str) -> dict[str, str]:
    """Write the files of one output, and return their paths relative to ``results_folder``, by what they show.

    "expected" and "actual" are pictures of an image, else arrays; then the arrays are "expected_array" and
    "actual_array". "error" is a picture, or an array of absolute errors. Raises FileError.
    """
    folder = item_folder(item_id)
    stem = os.path.join(folder, *bound.output.file_name.split("/"))
    files: dict[str, str] = {}
    contents = {"actual": actual}
    if bound.expected.sha256 is None:
        contents["expected"] = _expected(bound)
    is_picture = _is_picture(bound.planes)
    for what, data in contents.items():
        path = f"{stem}.{what}{extension_of(bound.output)}"
        write_output(os.path.join(results_folder, path), bound.output, bound.element, data)
        files[f"{what}_array" if is_picture else what] = path
    if "expected" in contents:
        files.update(_write_errors(bound, contents["actual"], contents["expected"], results_folder, stem))
    elif is_picture:
        files.update(_write_pictures({"actual": _content(bound.planes[0], actual)}, results_folder, stem))
    return {what: path.replace(os.sep, "/") for what, path in files.items()}


def _expected(bound: Bound) -> memoryview:
    held = memoryview(bytearray(bound.output.size_bytes))
    with bound.opened() as content:
        content.read_into(held, 0)
    return held


def _is_picture(planes: tuple[Plane, ...]) -> bool:
    """Whether a picture shows more than the numbers do: two sides of some length."""
    (plane, *_) = planes
    if not plane.element_count:
        return False
    return plane.image is not None or (len(plane.shape) > 1 and min(plane.shape[-2:]) > 1)


def _content(plane: Plane, data: memoryview) -> Content:
    from scenario_runner.viewing.content import Channel, Content, image
    from scenario_runner.viewing.texels import channels_of

    piece = data[plane.offset_bytes : plane.offset_bytes + plane.size_bytes]
    if plane.image is not None and plane.part is not None:
        return image("", "", channels_of(plane.image.uid, plane.image.format, plane.part, piece))
    (channel,) = plane.channels(piece)
    return Content("a.npy", "", (Channel("all", channel.raw.reshape(plane.shape), channel.element),), False, (0,))


def _write_errors(
    bound: Bound, actual: memoryview, expected: memoryview, results_folder: str, stem: str
) -> dict[str, str]:
    from scenario_runner.files.npy import write_npy
    from scenario_runner.suite.tolerance.elements import errors_of
    from scenario_runner.viewing.difference import error_map
    from scenario_runner.viewing.picture import heat

    plane = bound.planes[0]
    if not _is_picture(bound.planes):
        (a,), (e,) = plane.channels(actual[: plane.size_bytes]), plane.channels(expected[: plane.size_bytes])
        errors = errors_of(a.raw, e.raw, a.element)
        path = f"{stem}.error.npy"
        write_npy(os.path.join(results_folder, path), "<f8", plane.shape, [errors.tobytes()])
        return {"error": path}
    contents = {"expected": _content(plane, expected), "actual": _content(plane, actual)}
    files = _write_pictures(contents, results_folder, stem)
    errors = error_map(contents["actual"], contents["expected"])
    finite = errors[_finite(errors)]
    greatest = float(finite.max()) if finite.size else 1.0
    return files | _write_picture(heat(errors, greatest if greatest > 0 else 1.0), "error", results_folder, stem)


def _finite(errors: Array) -> Array:
    import numpy

    return numpy.isfinite(errors)


def _write_pictures(contents: dict[str, Content], results_folder: str, stem: str) -> dict[str, str]:
    """Pictures of contents with the range of the first one's values."""
    from scenario_runner.viewing.picture import picture_of, value_range

    limits = value_range(next(iter(contents.values())))
    if not all(map(math.isfinite, limits)):
        limits = (0.0, 1.0)
    files: dict[str, str] = {}
    for what, content in contents.items():
        files |= _write_picture(picture_of(content, limits), what, results_folder, stem)
    return files


def _write_picture(picture: Array, what: str, results_folder: str, stem: str) -> dict[str, str]:
    from scenario_runner.viewing.picture import shrunk, write_picture

    path = f"{stem}.{what}.png"
    write_picture(os.path.join(results_folder, path), shrunk(picture, _MOST_TEXELS, _MOST_TEXELS))
    return {what: path}
