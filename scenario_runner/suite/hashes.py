"""Hashes of everything that decides a result: the files of an item, the source of this program, and options."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from scenario_runner.errors import SandboxError
from scenario_runner.errors.text import Json
from scenario_runner.files.input import is_model, read_file
from scenario_runner.files.json_text import LimitError
from scenario_runner.files.parameters import replaced
from scenario_runner.files.sandbox import allows, around, check_path, open_file
from scenario_runner.run.named_files import NamedFiles, named_files
from scenario_runner.suite.discovery import MODEL_KEYS, expected_folder, inputs_folder
from scenario_runner.suite.outcomes import Hashes, Item

_MOST_KEPT: Final = 20_000
READ_KEYS: Final = ("mask", "expected", "bounds", "convert")
"""Keys of expectations that name files which no update writes."""
_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_MOST_BYTES_AT_ONCE: Final = 1 << 20  # sources are smaller


def program_hash(options: Mapping[str, Json]) -> str:
    """Return the SHA-256 of this program's source and of options that affect a run."""
    package = Path(__file__).resolve().parents[1]
    hash = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode())
    for path in sorted(package.rglob("*.py")):
        hash.update(f"{path.relative_to(package).as_posix()}\n".encode())
        hash.update(path.read_bytes())
    return hash.hexdigest()


def item_hashes(item: Item, program: str) -> Hashes:
    """Hash the present files of an item. ``program`` is the hash of the program.

    A scenario depends on named sources and on files that shaders include. A model depends on named files and on the
    folder of inputs. Expectations depend on named files, on the folder ``expected`` and on the defaults of the suite.
    Unreadable files and files outside of a sandbox count as empty. An unchanged file is read only once.
    """
    with around(item.path, *item.defaults):
        text, check = texts_of(item)
        scenario = file_hash(item.path) if is_model(item.path) else hashlib.sha256(text).hexdigest()
        inputs = _of_files(_inputs(item.path, text, check))
        expected = _of_files(_expected(item, text, check), check)
    return Hashes(scenario, inputs, expected, program)


def texts_of(item: Item) -> tuple[bytes, bytes]:
    """Read the scenario and the expectations, with values of parameters. The text of a model is empty."""
    text = b"" if is_model(item.path) else content(item.path)
    return _with_values(text, item.parameters), _with_values(content(item.expectations), item.parameters)


def _with_values(text: bytes, parameters: Mapping[str, object]) -> bytes:
    if b"${" not in text:
        return text
    with suppress(LimitError):  # the run reports it
        return replaced(text.decode("utf-8", "replace"), parameters).encode()
    return text


class _Source(NamedTuple):
    """The SHA-256 of a file, and the names of files that it includes."""

    digest: bytes
    includes: tuple[str, ...]


_known: dict[tuple[int, ...], _Source] = {}  # by identity, size and times of a file


def dependencies(item: Item) -> list[tuple[str, str]]:
    """Return paths and SHA-256 of all files read by an item's run. Missing and unreadable files have no hash."""
    with around(item.path, *item.defaults):
        text, check = texts_of(item)
        own = [(path, file_hash(path)) for path in (item.path, item.expectations) if path]
        named = (*_inputs(item.path, text, check), *_expected(item, text, check))
        return own + [(path, digest.hex()) for path, digest in named]


def sources_of(
    path: str, more: Sequence[str] = (), parameters: Mapping[str, object] | None = None
) -> list[tuple[str, str]]:
    """Return paths and SHA-256 of the files that a run reads besides expectations, as in `dependencies`.

    ``more`` are files for a model. ``parameters`` are values for a scenario.
    """
    with around(path, *more):
        text = b"" if is_model(path) else _with_values(content(path), parameters or {})
        named = [(source, digest.hex()) for source, digest in _inputs(path, text, b"", more)]
        return [(path, file_hash(path)), *named]


def expected_files(item: Item) -> list[str]:
    """Return the paths of all expected files: named ones, and the folder of expected files. Raises SandboxError."""
    with around(item.path, *item.defaults):
        files = list(_expected(item, *texts_of(item)))
        for path, _ in files:
            check_path(path)
    return [path for path, digest in files if digest]


def inputs_of(item: Item) -> list[str]:
    """Return the paths of files that no update writes: sources, masks, and files for TOSA's rules."""
    with around(item.path, *item.defaults):
        text, check = texts_of(item)
        folder = os.path.dirname(item.path)
        sources = _sources(item.path, named_files(text, folder), check)
        return [*sources, *(os.path.join(folder, name) for each in (text, check) for name in _named(each, *READ_KEYS))]


def file_hash(path: str) -> str:
    """Return the SHA-256 of a file, or "" if the file is unreadable."""
    return _source(path).digest.hex()


def _sources(path: str, named: NamedFiles, check: bytes) -> Iterator[str]:
    """Yield the paths of files that a scenario names, or that expectations give to a model."""
    folder = os.path.dirname(path)
    yield from named.reads
    if is_model(path):
        yield from (os.path.join(folder, name) for name in _named(check, *MODEL_KEYS))
        yield from _below(inputs_folder(path))


def _inputs(path: str, text: bytes, check: bytes, more: Sequence[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Yield the paths and digests of sources and included files.

    If an included file does not exist, all searched paths are yielded.
    """
    named = named_files(text, os.path.dirname(path))
    waiting = [*more, *_sources(path, named, check)]
    known = set(waiting)
    includes = _included("\n".join(named.texts).encode("utf-8", "surrogatepass"))
    while True:
        for name in includes:
            places = [os.path.join(folder, name) for folder in (os.path.dirname(path), *named.include_dirs)]
            included = next((place for place in places if allows(place) and os.path.isfile(place)), None)
            new = [place for place in ([included] if included else places) if place not in known]
            known.update(new)
            waiting += new
        if not waiting:
            return
        path = waiting.pop()
        digest, includes = _source(path)
        yield path, digest


def _expected(item: Item, *texts: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the paths and digests of expected files and of the suite's defaults."""
    folder = os.path.dirname(item.path)
    named = (os.path.join(folder, name) for text in texts for name in _named(text, "file", *READ_KEYS))
    for path in (*named, *_below(expected_folder(item.path)), *item.defaults):
        yield path, _source(path).digest


def _below(folder: str) -> Iterator[str]:
    """Yield the files below a folder in a fixed order. The folder need not exist."""
    for below, folders, names in os.walk(folder, followlinks=True) if allows(folder) else ():
        folders[:] = sorted(name for name in folders if allows(os.path.join(below, name)))
        yield from (os.path.join(below, name) for name in sorted(names))


def _of_files(files: Iterator[tuple[str, bytes]], text: bytes = b"") -> str:
    """Hash the names and digests of files in order, and a text."""
    parts = (
        part for path, digest in files for part in (os.path.basename(path).encode("utf-8", "surrogatepass"), digest)
    )
    return hashlib.sha256(b"\n".join((*parts, text))).hexdigest()


def _named(text: bytes, *keys: str) -> list[str]:
    """Return the strings under some keys anywhere in a JSON text, also inside of an array or object under a key."""
    names: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> dict[str, object]:
        for key, value in pairs:
            texts = value if isinstance(value, list) else value.values() if isinstance(value, dict) else [value]
            names.extend(text for text in texts if key in keys and isinstance(text, str) and "\0" not in text)
        return dict(pairs)

    if any(key.encode() in text for key in keys):
        with suppress(ValueError, RecursionError):  # the run reports invalid JSON
            json.loads(text, object_pairs_hook=note)
    return names


def content(path: str | None) -> bytes:
    """Read a file. The content is empty if the file is missing or unreadable."""
    with suppress(OSError, ValueError):
        if path is not None and allows(path) and os.path.isfile(path):
            return read_file(path)
    return b""


def _source(path: str) -> _Source:
    with suppress(OSError, ValueError, SandboxError):
        check_path(path)
        status = os.stat(path)
        # scenarios name the same file by different paths
        known = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        if stat.S_ISREG(status.st_mode):  # reading a pipe would wait, and a device may be endless
            if known not in _known:
                if len(_known) >= _MOST_KEPT:
                    _known.clear()
                _known[known] = _read(path, status.st_size)
            return _known[known]
    return _Source(b"", ())


def _read(path: str, size_bytes: int) -> _Source:
    if size_bytes > _MOST_BYTES_AT_ONCE:
        with open(open_file(path), "rb") as file:
            return _Source(hashlib.file_digest(file, "sha256").digest(), ())
    content = read_file(path)
    return _Source(hashlib.sha256(content).digest(), _included(content))


def _included(text: bytes) -> tuple[str, ...]:
    names = _INCLUDE.findall(text) if b"include" in text else ()
    return tuple(name.decode("utf-8", "replace") for name in names)
