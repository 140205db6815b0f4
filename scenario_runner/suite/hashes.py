"""Hashes of what a result depends on: the files of an item, this program, and its options."""

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
_READ: Final = ("mask", "expected", "bounds", "convert")  # keys of expectations with files that no update writes
_INCLUDE_OPTION: Final = re.compile(r"""(?:^|\s)-I(?:\s+([^\s"']+)|([^\s"']+))""")
_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
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
    """Hash an item as its files are now, with the hash of the ``program``. Unreadable files count as empty; a file is
    read again only if its size or its times change.

    A scenario depends on the files that it names as sources and on those that shader sources include; expectations
    depend on the files that they name and on those in the folder ``expected``.
    """
    text, check = content(item.path), content(item.expectations)
    inputs = _of_files(_inputs(item.path, text))
    expected = _of_files(_expected(item.path, text, check), check)
    return Hashes(hashlib.sha256(text).hexdigest(), inputs, expected, program)


class _Source(NamedTuple):
    """The SHA-256 of a file, and the names that it includes if it is a source."""

    digest: bytes
    includes: tuple[str, ...]


_known: dict[tuple[int, ...], _Source] = {}  # by what identifies a file, and changes with its content


def files_of(item: Item) -> Iterator[tuple[str, str]]:
    """List the files that a run of an item reads, with their SHA-256: the scenario, its expectations, and the files
    that these name. Unreadable files are left out."""
    text, check = content(item.path), content(item.expectations)
    for path in filter(None, (item.path, item.expectations)):
        yield path, file_hash(path)
    for path, digest in (*_inputs(item.path, text), *_expected(item.path, text, check)):
        if digest:
            yield path, digest.hex()


def expected_files(item: Item) -> list[str]:
    """List the files that the expectations of an item name, and those in the folder of expected files."""
    text, check = content(item.path), content(item.expectations)
    return [path for path, digest in _expected(item.path, text, check) if digest]


def inputs_of(item: Item) -> Iterator[str]:
    """List the files that an item only reads: the sources that its scenario names, masks, and files of TOSA's rules."""
    text, check = content(item.path), content(item.expectations)
    folder = os.path.dirname(item.path)
    yield from declared_files(text.decode("utf-8", "replace"), folder).reads
    for name in (*_named(text, *_READ), *_named(check, *_READ)):
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
    texts = "\n".join(_named(text, "text")).encode("utf-8", "surrogatepass")  # of shaders
    includes = _included(texts)
    while True:
        for name in includes:
            places = (os.path.join(include_dir, name) for include_dir in (os.path.dirname(path), *dirs))
            included = next(filter(os.path.isfile, places), None)
            if included is not None and included not in known:
                known.add(included)
                waiting.append(included)
        if not waiting:
            return
        path = waiting.pop()
        digest, includes = _source(path)
        yield path, digest


def _include_dirs(text: bytes) -> Iterator[str]:
    yield from _named(text, "include_dirs")
    for options in _named(text, "build_options"):
        for apart, joined in _INCLUDE_OPTION.findall(options):
            yield apart or joined


def _expected(path: str, *texts: bytes) -> Iterator[tuple[str, bytes]]:
    """List the files that expectations name and those in the folder ``expected``, with their digests."""
    folder = os.path.dirname(path)
    for text in texts:
        for name in _named(text, "file", *_READ):
            named = os.path.join(folder, name)
            yield named, _source(named).digest
    for below, folders, names in os.walk(expected_folder(path), followlinks=True):
        folders.sort()
        for name in sorted(names):
            expected = os.path.join(below, name)
            yield expected, _source(expected).digest


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


def content(path: str | None) -> bytes:
    """Read a file; empty if there is none, or it cannot be read."""
    with suppress(OSError, ValueError):
        if path is not None and os.path.isfile(path):
            return read_file(path)
    return b""


def _source(path: str) -> _Source:
    with suppress(OSError, ValueError):
        status = os.stat(path)
        # scenarios name the same file by different paths
        known = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        if stat.S_ISREG(status.st_mode):  # a pipe would be waited for, and a device may have no end
            if known not in _known:
                if len(_known) >= _MOST_KEPT:
                    _known.clear()
                _known[known] = _read(path, status.st_size)
            return _known[known]
    return _Source(b"", ())


def _read(path: str, size_bytes: int) -> _Source:
    with open(path, "rb", buffering=0) as file:
        if size_bytes > _MOST_BYTES_AT_ONCE:
            return _Source(hashlib.file_digest(file, "sha256").digest(), ())
        content = file.readall()
    return _Source(hashlib.sha256(content).digest(), _included(content))


def _included(text: bytes) -> tuple[str, ...]:
    names = _INCLUDE.findall(text) if b"include" in text else ()
    return tuple(name.decode("utf-8", "replace") for name in names)
