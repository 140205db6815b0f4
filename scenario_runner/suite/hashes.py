"""Hashes of what a result depends on: the files of an item, this program, and its options."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from scenario_runner.files.source import read_file
from scenario_runner.scenario.syntax import declared_files
from scenario_runner.suite.discovery import expected_folder
from scenario_runner.suite.records import Hashes, Item

_MOST_KEPT: Final = 20_000
_MISSING: Final = "missing"
_INCLUDE_OPTION: Final = re.compile(r"""(?:^|\s)-I(?:\s+([^\s"']+)|([^\s"']+))""")
_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_NO_SOURCES: Final = (".npy", ".dds", ".png", ".spv", ".vgf")
_MOST_BYTES_AT_ONCE: Final = 1 << 20  # no source has more


def program_hash(options: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the source of this program and of the options that affect a run."""
    package = Path(__file__).resolve().parents[1]
    hash = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode())
    for path in sorted(package.rglob("*.py")):
        hash.update(f"{path.relative_to(package).as_posix()}\n".encode())
        hash.update(path.read_bytes())
    return hash.hexdigest()


def item_hashes(item: Item, program: str) -> Hashes:
    """Hash an item as its files are now, with the hash of the ``program``. An unreadable file counts as missing; a file
    is read again only if its size or its times change.

    A scenario depends on the files that it names as sources and on those that shader sources include; expectations
    depend on the files that they name and on those in the folder ``expected``.
    """
    text, check = content(item.path), content(item.expectations)
    scenario = _MISSING if text is None else hashlib.sha256(text).hexdigest()
    inputs = _of_files(_inputs(item.path, text or b""))
    expected = _of_files(_expected(item.path, text or b"", check or b""), check or b"")
    return Hashes(scenario, inputs, expected, program)


class _Source(NamedTuple):
    """The SHA-256 of a file, and the names that it includes if it is a source."""

    digest: bytes
    includes: tuple[str, ...]


_NONE: Final = _Source(b"", ())
_known: dict[tuple[int, ...], _Source] = {}  # by what identifies a file, and changes with its content


def files_of(item: Item) -> Iterator[tuple[str, str]]:
    """List the files that a run of an item reads, with their SHA-256: the scenario, its expectations, and the files
    that these name. Unreadable files are left out."""
    text, check = content(item.path) or b"", content(item.expectations) or b""
    for path in filter(None, (item.path, item.expectations)):
        yield path, file_hash(path)
    for path, digest in (*_inputs(item.path, text), *_expected(item.path, text, check)):
        if digest:
            yield path, digest.hex()


def inputs_of(item: Item) -> Iterator[str]:
    """List the files that an item only reads: the sources that its scenario names, and masks."""
    text, check = content(item.path) or b"", content(item.expectations) or b""
    folder = os.path.dirname(item.path)
    yield from declared_files(text.decode("utf-8", "replace"), folder).reads
    for name in (*_named(text, "mask"), *_named(check, "mask")):
        yield os.path.join(folder, name)


def file_hash(path: str) -> str:
    """Return the SHA-256 of a file's content; empty if it cannot be read."""
    return _source(path).digest.hex()


def _inputs(path: str, text: bytes) -> Iterator[tuple[str, bytes]]:
    """List the files that a scenario names and those that they include, with their digests."""
    folder = os.path.dirname(path)
    waiting = list(declared_files(text.decode("utf-8", "replace"), folder).reads)
    dirs = [os.path.join(folder, include_dir) for include_dir in _include_dirs(text)]
    known = set(waiting)
    while waiting:
        path = waiting.pop()
        digest, includes = _source(path)
        yield path, digest
        for name in includes:
            places = (os.path.join(include_dir, name) for include_dir in (os.path.dirname(path), *dirs))
            included = next(filter(os.path.isfile, places), None)
            if included is not None and included not in known:
                known.add(included)
                waiting.append(included)


def _include_dirs(text: bytes) -> Iterator[str]:
    yield from _named(text, "include_dirs")
    for options in _named(text, "build_options"):
        for apart, joined in _INCLUDE_OPTION.findall(options):
            yield apart or joined


def _expected(path: str, *texts: bytes) -> Iterator[tuple[str, bytes]]:
    """List the files that expectations name and those in the folder ``expected``, with their digests."""
    folder = os.path.dirname(path)
    for text in texts:
        for name in _named(text, "file", "mask"):
            named = os.path.join(folder, name)
            yield named, _source(named).digest
    yield from _below(expected_folder(path))


def _below(folder: str) -> Iterator[tuple[str, bytes]]:
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir():
            yield entry.path, b""
            yield from _below(entry.path)
        else:
            yield entry.path, _source(entry.path).digest


def _of_files(files: Iterator[tuple[str, bytes]], text: bytes = b"") -> str:
    """Hash the names and digests of files, in their order, and a text."""
    parts = (part for path, digest in files for part in (os.fsencode(os.path.basename(path)), digest))
    return hashlib.sha256(b"\n".join((*parts, text))).hexdigest()


def _named(text: bytes, *keys: str) -> list[str]:
    """List the strings under these keys, anywhere in a JSON text, and those in arrays under them."""
    names: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        for key, value in pairs:
            texts = value if isinstance(value, list) else [value]
            names.extend(text for text in texts if key in keys and isinstance(text, str) and "\0" not in text)

    if any(key.encode() in text for key in keys):
        with suppress(ValueError, RecursionError):  # the run reports it
            json.loads(text, object_pairs_hook=note)
    return names


def content(path: str | None) -> bytes | None:
    """Read a file; None if there is none, or it cannot be read."""
    try:
        if path is not None and os.path.isfile(path):
            return read_file(path)
    except (OSError, ValueError):
        pass
    return None


def _source(path: str) -> _Source:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for, and a device may have no end
            return _NONE
        is_source = not path.endswith(_NO_SOURCES)
        # scenarios name the same file by different paths
        known = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, is_source
        source = _known.get(known)
        if source is None:
            source = _read(path, status.st_size, is_source=is_source)
            if len(_known) >= _MOST_KEPT:
                _known.clear()
            _known[known] = source
        return source
    except (OSError, ValueError):
        return _NONE


def _read(path: str, size_bytes: int, *, is_source: bool) -> _Source:
    with open(path, "rb", buffering=0) as file:
        if size_bytes > _MOST_BYTES_AT_ONCE:
            return _Source(hashlib.file_digest(file, "sha256").digest(), ())
        content = file.readall()
    has_includes = is_source and b"include" in content
    names = (name.decode("utf-8", "replace") for name in _INCLUDE.findall(content)) if has_includes else ()
    return _Source(hashlib.sha256(content).digest(), tuple(names))
