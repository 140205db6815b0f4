"""Files about a failed output: expected content, actual content and errors, as arrays and pictures."""

from __future__ import annotations

import math
import os
import zlib
from contextlib import suppress
from dataclasses import replace
from glob import escape, glob
from typing import Final

import numpy

from scenario_runner.compare.differences import error_map
from scenario_runner.compare.planes import Plane
from scenario_runner.compare.wrong_elements import compare, element_errors
from scenario_runner.files.elements import Array
from scenario_runner.files.npy import write_npy
from scenario_runner.plan.sources import ArraySource
from scenario_runner.suite.expectations.outputs import extension_of, write_output
from scenario_runner.suite.expectations.rules import Bound
from scenario_runner.view.contents import Content, has_colors, is_decodable
from scenario_runner.view.picture import IGNORED_COLOR, heat_map, picture_of, shrink, value_range, write_picture

_LONGEST_NAME: Final = 120
_SHOWN: Final = ("expected", "actual", "error", "expected_array", "actual_array")  # in this order
_MOST_TEXELS: Final = 2048  # larger pictures shrink to this width and height


def item_folder(item_id: str) -> str:
    """Return the folder of an item, relative to the results: the id without characters that file systems refuse."""
    parts = [_part(part) for part in item_id.replace("\\", "/").split("/") if part not in ("", ".")]
    return os.path.join(*parts) if parts else "_"


def _part(name: str) -> str:
    plain = "".join(letter if letter.isalnum() or letter in "-_.~ " else "_" for letter in name)
    plain = "__" if plain == ".." else plain.rstrip(". ") or "_"
    if plain == name and len(os.fsencode(plain)) <= _LONGEST_NAME:
        return plain
    return f"{plain[: _LONGEST_NAME // 2]}~{zlib.crc32(name.encode(errors='surrogatepass')):08x}"


def remove_evidence(bound: Bound, results_folder: str, item_id: str) -> None:
    """Remove files about an output from an earlier run, and empty folders."""
    stem = os.path.join(results_folder, item_folder(item_id), *bound.output.file_name.split("/"))
    with suppress(OSError):
        for what in ("expected", "actual", "error"):
            for path in glob(f"{escape(stem)}.{what}.*"):
                os.remove(path)
        folder = os.path.dirname(stem)
        while folder != results_folder:
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def write_evidence(
    bound: Bound, actual: memoryview, results_folder: str, item_id: str, bytes_max: int
) -> dict[str, str]:
    """Write files about an output, and return the paths by content, relative to ``results_folder``. Raises FileError.

    For an image, "expected" and "actual" are pictures, "expected_array" and "actual_array" are arrays. Otherwise
    "expected" and "actual" are arrays. "error" is a picture, or an array of absolute errors. Pictures show the first
    wrong level or aspect. Arrays beyond ``bytes_max`` in total are left out.
    """
    stem = "/".join([item_folder(item_id), bound.output.file_name])
    files: dict[str, str] = {}

    def path_of(what: str, name: str) -> str:
        files[what] = f"{stem}.{name}"
        return os.path.join(results_folder, *files[what].split("/"))

    contents = {"expected": bound.expected_bytes()} if bound.expected.sha256 is None else {}
    contents["actual"] = bound.cut(actual)
    plane = _wrong_plane(bound, contents)
    pictures = _pictures(bound, plane, contents) if _is_picture(plane) else {}
    for what, picture in pictures.items():
        write_picture(path_of(what, f"{what}.png"), shrink(picture, _MOST_TEXELS, _MOST_TEXELS))
    for what in sorted(contents):  # actual before expected content, if there is no room for both
        data = contents[what]
        if len(data) <= bytes_max:
            bytes_max -= len(data)
            extension = extension_of(bound.output) if bound.region is None else ".npy"
            path = path_of(f"{what}_array" if pictures else what, f"{what}{extension}")
            if bound.region is None:
                write_output(path, bound.output, bound.element, data)
            elif plane.element is not None:
                part = data[plane.offset_bytes : plane.offset_bytes + plane.size_bytes]
                write_npy(path, plane.element.raw_dtype or plane.element.dtype, plane.shape, [part])
    if not pictures and "expected" in contents and plane.image is None and 8 * plane.element_count <= bytes_max:
        start, end = plane.offset_bytes, plane.offset_bytes + plane.size_bytes
        (a,), (e,) = (plane.elements(contents[what][start:end]) for what in ("actual", "expected"))
        errors = element_errors(a.raw, e.raw, a.element)
        ignored = bound.ignored()
        if ignored is not None:
            errors[ignored] = 0
        write_npy(path_of("error", "error.npy"), "<f8", plane.shape, [errors.tobytes()])
    return {what: files[what] for what in _SHOWN if what in files}


def _wrong_plane(bound: Bound, contents: dict[str, memoryview]) -> Plane:
    """Return the first part of an output with wrong elements, or the first part."""
    first, *others = zip(bound.planes, bound.compared_planes, strict=True)
    if others and "expected" in contents:
        expected = ArraySource(contents["expected"], bound.output.name)
        for plane, compared in (first, *others):
            if compare(contents["actual"], expected, (compared,), bound.rule).wrong:
                return plane
    return first[0]


def _is_picture(plane: Plane) -> bool:
    """Return whether a plane gives a useful picture, with two sides longer than 1."""
    if not plane.element_count:
        return False
    if plane.image is not None:
        return is_decodable(plane.image.format)
    sides = plane.shape[-3:-1] if plane.has_texels or _has_colors(plane) else plane.shape[-2:]
    return len(plane.shape) > 1 and min(sides) > 1


def _has_colors(plane: Plane) -> bool:
    return not plane.has_texels and has_colors(plane.shape)


def _layers(plane: Plane, flat: Array) -> list[Array]:
    """Split a flat array of a plane or image channel into pictures."""
    array = flat.reshape(plane.shape[:2] if plane.has_texels else plane.shape)
    return list(numpy.moveaxis(array, -1, 0)) if _has_colors(plane) else [array]


def _content(plane: Plane, data: memoryview) -> Content:
    channels = plane.channels(data[plane.offset_bytes : plane.offset_bytes + plane.size_bytes])
    layers = tuple(channel._replace(raw=raw) for channel in channels for raw in _layers(plane, channel.raw))
    return Content("", "", layers, len(layers) > 1)


def _pictures(bound: Bound, plane: Plane, contents: dict[str, memoryview]) -> dict[str, Array]:
    """Draw contents in the range of the expected values, and the errors."""
    shown = _visible({what: _content(plane, contents[what]) for what in contents})
    limits = value_range(next(iter(shown.values())))
    if not all(map(math.isfinite, limits)):
        limits = (0.0, 1.0)
    pictures = {what: picture_of(content, limits) for what, content in shown.items()}
    if "expected" in shown:
        pictures["error"] = _error_picture(bound, plane, shown)
    return pictures


def _visible(shown: dict[str, Content]) -> dict[str, Content]:
    """Drop an alpha channel of zeros, which would hide everything: many shaders leave alpha zero."""
    alphas = [picture.channels[-1] for picture in shown.values() if len(picture.channels) > 1]
    if len(alphas) < len(shown) or any(alpha.name != "A" or alpha.raw.any() for alpha in alphas):
        return shown
    return {what: replace(picture, channels=picture.channels[:-1]) for what, picture in shown.items()}


def _error_picture(bound: Bound, plane: Plane, shown: dict[str, Content]) -> Array:
    """Draw errors as colours. Ignored elements have a special colour, and do not change the scale."""
    actual, expected, ignored = shown["actual"], shown["expected"], bound.ignored()
    covered = numpy.zeros(actual.shape, bool)
    if ignored is not None:
        numbers = range(len(actual.channels) if plane.has_texels else 1)
        flags = [flag for number in numbers for flag in _layers(plane, plane.flags_of(ignored, number))]
        covered = numpy.all(flags, axis=0)
        pairs = zip(actual.channels, expected.channels, flags, strict=True)
        right = tuple(a._replace(raw=numpy.where(flag, e.raw, a.raw)) for a, e, flag in pairs)
        actual = replace(actual, channels=right)
    errors = error_map(actual, expected)
    covered = covered.reshape(errors.shape)
    finite = errors[numpy.isfinite(errors) & ~covered]
    greatest = float(finite.max()) if finite.size else 1.0
    errors[covered] = 0
    picture = heat_map(errors, greatest if greatest > 0 else 1.0)
    picture[covered] = IGNORED_COLOR
    return shrink(picture, _MOST_TEXELS, _MOST_TEXELS, brightest=True)
