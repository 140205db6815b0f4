"""Where two dumps of a scenario differ: their contents compared in the order of the commands."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scenario_runner.files.codec import codec_of
from scenario_runner.files.source import file_error, reason_of
from scenario_runner.run.dump_index import DumpEntry, DumpIndex
from scenario_runner.viewing.difference import Difference, Tolerance, compare
from scenario_runner.viewing.element import ELEMENTS, Element
from scenario_runner.viewing.reading import read_content

if TYPE_CHECKING:
    from scenario_runner.viewing.content import Content

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Compared:
    """One resource after one command in both dumps; of an image one ``mip`` level where it has several.

    ``one`` and ``other`` are None where the files are the same bytes, which are not looked at.
    """

    entry: DumpEntry
    mip: int | None
    difference: Difference
    one: Content | None = None
    other: Content | None = None


@dataclass(frozen=True, slots=True)
class Scenarios:
    """What is not the same in both: ``commands`` has (number, kind in the first, kind in the second, None for none)."""

    commands: tuple[tuple[int, str | None, str | None], ...]
    only_one: tuple[DumpEntry, ...]
    only_other: tuple[DumpEntry, ...]

    @property
    def are_equal(self) -> bool:
        return not (self.commands or self.only_one or self.only_other)


def scenarios(one: DumpIndex, other: DumpIndex) -> Scenarios:
    """How the scenarios of two dumps, or what was dumped of them, differ."""
    kinds = [
        tuple(index.commands[number] if number < len(index.commands) else None for index in (one, other))
        for number in range(max(len(one.commands), len(other.commands)))
    ]
    first, second = ({entry.key for entry in index.entries} for index in (one, other))
    return Scenarios(
        tuple((number, kind[0], kind[1]) for number, kind in enumerate(kinds) if kind[0] != kind[1]),
        tuple(entry for entry in one.entries if entry.key not in second),
        tuple(entry for entry in other.entries if entry.key not in first),
    )


def compared(
    one: DumpIndex, other: DumpIndex, tolerance: Tolerance, elements: Mapping[str | None, Element]
) -> Iterator[Compared]:
    """What both dumps have, in order. ``elements`` say what the bytes of buffers are, by uid, or all others by None.

    Raises FileError for files that are not there, or not those of the index.
    """
    others = {entry.key: entry for entry in other.entries}
    for entry in one.entries:
        counterpart = others.get(entry.key)
        if counterpart is None:
            continue
        paths = [os.path.join(index.folder, each.file) for index, each in ((one, entry), (other, counterpart))]
        for path, each in zip(paths, (entry, counterpart), strict=True):
            _check(path, each.sha256)
        levels = entry.mips or 1 if entry.mip is None else 1
        for level in range(levels):
            mip = level if levels > 1 else entry.mip
            if entry.sha256 == counterpart.sha256:
                yield Compared(entry, mip, Difference())
                continue
            first, second = (
                read_content(path, mip=level, element=_element(path, entry, counterpart, elements)) for path in paths
            )
            yield Compared(entry, mip, compare(first, second, tolerance), first, second)


def _element(
    path: str, entry: DumpEntry, counterpart: DumpEntry, elements: Mapping[str | None, Element]
) -> Element | None:
    """What the items of a file are, where the file does not say so itself."""
    if not codec_of(path).is_array:
        return None
    if entry.format is not None:
        return ELEMENTS["float8_e5m2"] if "FLOAT8E5M2" in entry.format else None
    wanted = elements.get(entry.resource, elements.get(None))
    if wanted is None and entry.element == counterpart.element and entry.element is not None:
        wanted = ELEMENTS.get(entry.element)
    size = os.path.getsize(path)
    return wanted if wanted is not None and (size % wanted.size_bytes == 0 or entry.resource in elements) else None


def _check(path: str, sha256: str) -> None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise file_error(path, f"cannot be read: {reason_of(error)}") from error
    if digest.hexdigest() != sha256:
        raise file_error(path, "is not the file that the index of the dump lists: its SHA-256 is another one")
