"""Differences between two files, two dumps of a scenario or two folders of results."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

import numpy

from scenario_runner.compare.metrics import Pair, psnr
from scenario_runner.compare.wrong_elements import EQUAL, Rule, element_errors, wrong_elements
from scenario_runner.errors import file_error
from scenario_runner.errors.text import reason_of
from scenario_runner.files.codec import ArrayCodec
from scenario_runner.files.codec_table import CODECS, codec_of, is_known
from scenario_runner.files.elements import ELEMENTS, Array, Element, distance
from scenario_runner.run.dump_files import DumpEntry, DumpIndex
from scenario_runner.view.contents import Channel, Content, read_content


class Error(NamedTuple):
    """The greatest error of some kind, and the index of the element."""

    value: float
    index: tuple[int, ...]  # type: ignore[assignment]  # hides the tuple method


@dataclass(slots=True)
class Difference:
    """The result of `compare`.

    ``count`` of ``total`` elements are wrong by the rule; ``tolerated`` elements differ and are right. ``first`` is the
    index of the first wrong element and both values. ``errors`` has the greatest errors of elements with numbers on
    both sides: "absolute", "relative" to the expected magnitude, and "ulp" for floats with equal types. ``nan_counts``
    counts NaN only in the first content, only in the second, and in both. ``psnr`` in dB is for images with finite
    differences. ``box`` encloses the wrong elements: (top, left, bottom, right), inclusive, over the last two axes.
    ``mismatch`` tells why nothing could be compared.
    """

    count: int = 0
    tolerated: int = 0
    total: int = 0
    first: tuple[tuple[int, ...], str, str] | None = None
    errors: dict[str, Error] = field(default_factory=dict)
    nan_counts: tuple[int, int, int] = (0, 0, 0)
    psnr: float | None = None
    box: tuple[int, int, int, int] | None = None
    mismatch: str | None = None

    @property
    def is_equal(self) -> bool:
        return self.mismatch is None and not self.count


def compare(expected: Content, actual: Content, rule: Rule = EQUAL) -> Difference:
    """Compare values as numbers. Outer axes with length 1 do not count."""
    if not expected.fits(actual):
        return Difference(mismatch=f"{expected.title} against {actual.title}")
    result = Difference(total=len(expected.channels) * math.prod(expected.shape))
    pairs, places = list(_pairs(expected, actual)), list[Array]()
    nan_counts = numpy.zeros(3, int)
    for number, (e, a) in enumerate(pairs):
        nan, actual_nan = numpy.isnan(e.numbers), numpy.isnan(a.numbers)
        nan_counts += [numpy.count_nonzero(where) for where in (nan & ~actual_nan, actual_nan & ~nan, nan & actual_nan)]
        unequal = wrong_elements(a.raw, e.raw, a.element, EQUAL, e.element)
        wrong = unequal[wrong_elements(a.raw[unequal], e.raw[unequal], a.element, rule, e.element)]
        numbers_at = unequal[~(nan | actual_nan)[unequal]]
        for name, error in _errors(e, a, numbers_at).items() if numbers_at.size else ():
            worst = int(error.argmax())
            if name not in result.errors or error[worst] > result.errors[name].value:
                result.errors[name] = Error(error[worst].item(), expected.index(int(numbers_at[worst]), number))
        result.tolerated += unequal.size - wrong.size
        places.append(wrong)
    result.nan_counts = (int(nan_counts[0]), int(nan_counts[1]), int(nan_counts[2]))
    result.count = sum(where.size for where in places)
    if result.count:
        at, number = min((int(where[0]), number) for number, where in enumerate(places) if where.size)
        e, a = pairs[number]
        result.first = expected.index(at, number), e.text(at), a.text(at)
        result.box = _box(expected.shape, numpy.concatenate(places))
    is_image = expected.has_channel_axis or not isinstance(codec_of(expected.path), ArrayCodec)
    if is_image and result.errors and not any(result.nan_counts[:2]):
        noise = psnr([Pair(e.name, a.numbers, e.numbers, e.peak, e.raw.shape, _finite(e, a)) for e, a in pairs])
        result.psnr = noise if math.isfinite(noise) else None
    return result


def _finite(e: Channel, a: Channel) -> Array:
    """Return flags for elements finite on at least one side."""
    return numpy.isfinite(e.numbers) | numpy.isfinite(a.numbers)


def error_map(expected: Content, actual: Content) -> Array:
    """Return the greatest absolute error over all channels, (height, width). NaN on only one side gives NaN."""
    width = expected.shape[-1] if expected.shape else 1
    errors = numpy.zeros(math.prod(expected.shape))
    for e, a in _pairs(expected, actual):
        errors = numpy.maximum(errors, element_errors(a.raw, e.raw, a.element, e.element))
        errors[numpy.isnan(e.numbers) != numpy.isnan(a.numbers)] = numpy.nan
    return errors.reshape(-1, width) if errors.size else errors.reshape(0, max(width, 1))


def _errors(e: Channel, a: Channel, where: Array) -> dict[str, Array]:
    """Return errors of each kind, for elements with numbers on both sides."""
    raw, expected_raw = a.raw[where], e.raw[where]
    expected = e.element.numbers(expected_raw)
    absolute = distance(a.element.numbers(raw), expected)
    with numpy.errstate(all="ignore"):
        relative = numpy.where(numpy.isfinite(absolute), absolute / numpy.abs(expected.astype("f8")), numpy.inf)
    errors = {"absolute": absolute, "relative": relative}
    if a.element == e.element and a.element.is_float:
        errors["ulp"] = a.element.steps(raw, expected_raw)
    return errors


def _pairs(expected: Content, actual: Content) -> Iterator[tuple[Channel, Channel]]:
    """Yield flat pairs of channels: by name if both files have the same names, otherwise by order."""
    by_name = {channel.name: channel for channel in actual.channels}
    names = [channel.name for channel in expected.channels]
    has_same = set(names) == by_name.keys() and len(names) == len(by_name)
    for e, a in zip(expected.channels, map(by_name.__getitem__, names) if has_same else actual.channels, strict=True):
        yield e._replace(raw=e.raw.reshape(-1)), a._replace(raw=a.raw.reshape(-1))


def _box(shape: tuple[int, ...], where: Array) -> tuple[int, int, int, int] | None:
    if len(shape) < 2:
        return None
    rows, columns = where // shape[-1] % shape[-2], where % shape[-1]
    return int(rows.min()), int(columns.min()), int(rows.max()), int(columns.max())


class Compared(NamedTuple):
    """A resource after a command, in the files ``one`` and ``other`` of two dumps.

    An image with several mip levels has a comparison for each ``mip``.
    """

    entry: DumpEntry
    mip: int | None
    difference: Difference
    one: str
    other: str
    level: int
    elements: tuple[Element | None, Element | None]

    def contents(self) -> tuple[Content, Content]:
        """Read the ``level`` of both files, with ``elements`` as types. Raises FileError."""
        pairs = zip((self.one, self.other), self.elements, strict=True)
        first, second = (read_content(path, mip=self.level, element=element) for path, element in pairs)
        return first, second


class Scenarios(NamedTuple):
    """Differences between two scenarios.

    ``commands`` lists (number, kind in the first, kind in the second); the kind of a missing command is None.
    """

    commands: tuple[tuple[int, str | None, str | None], ...]
    only_one: tuple[DumpEntry, ...]
    only_other: tuple[DumpEntry, ...]

    @property
    def are_equal(self) -> bool:
        return not (self.commands or self.only_one or self.only_other)


def scenarios(one: DumpIndex, other: DumpIndex) -> Scenarios:
    """Compare two dumps' commands and entries."""
    kinds = enumerate(zip_longest(one.commands, other.commands))
    first, second = ({entry.key for entry in index.entries} for index in (one, other))
    return Scenarios(
        tuple((number, kind, other_kind) for number, (kind, other_kind) in kinds if kind != other_kind),
        tuple(entry for entry in one.entries if entry.key not in second),
        tuple(entry for entry in other.entries if entry.key not in first),
    )


def compared(
    one: DumpIndex, other: DumpIndex, rule: Rule, elements: Mapping[str | None, Element]
) -> Iterator[Compared]:
    """Compare two dumps' common entries in order. The first dump has the expected content.

    ``elements`` maps uids to buffer types, and None to all other buffers' type. Raises FileError for a file
    that is missing or has changed since the index was written.
    """
    others = {entry.key: entry for entry in other.entries}
    for entry in one.entries:
        counterpart = others.get(entry.key)
        if counterpart is None:
            continue
        paths = os.path.join(one.folder, entry.file), os.path.join(other.folder, counterpart.file)
        for path, sha256 in zip(paths, (entry.sha256, counterpart.sha256), strict=True):
            _check(path, sha256)
        levels = entry.mips or 1 if entry.mip is None else 1
        for level in range(levels):
            mip = level if levels > 1 else entry.mip
            first, second = (_element_of_dump(path, entry, counterpart, elements) for path in paths)
            pair = Compared(entry, mip, Difference(), *paths, level, (first, second))
            if entry.sha256 != counterpart.sha256:
                pair = pair._replace(difference=compare(*pair.contents(), rule))
            yield pair


def _element_of_dump(
    path: str, entry: DumpEntry, counterpart: DumpEntry, elements: Mapping[str | None, Element]
) -> Element | None:
    """Return the element type for a dumped file without a type."""
    if not isinstance(codec_of(path), ArrayCodec):
        return None
    if entry.format is not None:
        return ELEMENTS["float8_e5m2"] if "FLOAT8E5M2" in entry.format else None
    element = elements.get(entry.resource, elements.get(None))
    if element is None and entry.element == counterpart.element and entry.element is not None:
        element = ELEMENTS.get(entry.element)
    size = os.path.getsize(path)
    return element if element is not None and (size % element.size_bytes == 0 or entry.resource in elements) else None


def _check(path: str, sha256: str) -> None:
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256")
    except OSError as error:
        raise file_error(path, f"cannot be read: {reason_of(error)}") from error
    if digest.hexdigest() != sha256:
        raise file_error(path, "has changed since the dump was written: the SHA-256 in the index differs")


def folder_pairs(one: str, other: str) -> tuple[list[str], list[str], list[str]]:
    """Return comparable files' sorted relative paths: in both folders, only in ``one``, only in ``other``.

    Hidden files and folders do not count. Raises FileError for an unreadable folder, or if there are no such files.
    """
    first, second = _files(one), _files(other)
    if not first and not second:
        known = ", ".join(codec.extension for codec in CODECS)
        raise file_error(one, f"and {other!r} hold none of the files that can be compared: {known}")
    return sorted(first & second), sorted(first - second), sorted(second - first)


def _files(folder: str) -> set[str]:
    def fail(error: OSError) -> None:
        raise file_error(error.filename or folder, f"cannot be opened: {reason_of(error)}") from error

    files = set()
    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if name[:1] != "."]
        for name in names:
            if name[:1] != "." and is_known(name):
                files.add(os.path.relpath(os.path.join(place, name), folder))
    return files
