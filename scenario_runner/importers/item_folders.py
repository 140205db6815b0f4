"""Tests of other programs as item folders of a suite.

::

    test ──prepare──▶ Prepared ──write──▶ temporary folder ──rename──▶ SUITE/name of the test
                       digest                                          scenario.json, check.json, import.json, files

An importer gives the function ``prepare``. It reads a test and returns a digest of the sources. A folder with the same
digest in ``import.json`` is kept. Importers put the files together with an `ItemWriter`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Final, Literal, NamedTuple

import numpy
from pydantic import ConfigDict, ValidationError

from scenario_runner.errors import FileError, ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json, numbered, reason_of
from scenario_runner.files.input import CHECK_FILE, SCENARIO_FILE, read_file
from scenario_runner.importers.memory_layouts import as_json
from scenario_runner.processes import temporary
from scenario_runner.scenario.json_model import ModelBase

RECORD: Final = "import.json"
CODE: Final = "SR-IMPORT-001"
MOST_TEST_BYTES: Final = 4 << 20
"""The greatest size of a file with a test."""
_MOST_INLINE: Final = 64
"""The most numbers that a scenario has in the text; more become a file."""
_LONGEST_STEM: Final = 100
JsonObject = dict[str, Json]

Outcome = Literal["imported", "expected error", "not supported", "error"]


class FoundTest(NamedTuple):
    """A test of another program: the name of the item, and the file or folder with the test."""

    name: str
    path: str


class Prepared(NamedTuple):
    """A test before the item is written.

    ``write`` fills a folder. It returns the outcome, and the reason for "not supported" and "expected error".
    """

    digest: str
    write: Callable[[str], tuple[Outcome, str]]


class Imported(NamedTuple):
    """The outcome of a test. ``reason`` explains "not supported" and "expected error", ``error`` explains "error".

    ``kept`` is set if the folder existed already.
    """

    name: str
    outcome: Outcome
    reason: str = ""
    error: ScenarioRunnerError | None = None
    kept: bool = False


class _Record(ModelBase):
    """The record in an item folder: the digest of the sources, and the import's outcome."""

    model_config = ConfigDict(extra="ignore")

    digest: str
    outcome: Outcome
    reason: str


def file_error(path: str, message: str, help: str | None = None, *, line: int | None = None) -> FileError:
    """Make the error for a test that cannot be imported."""
    return FileError(Diagnostic(CODE, "error", None, message, help, path=path, line=line))


def read_source(path: str, most_bytes: int = MOST_TEST_BYTES) -> bytes:
    """Read a file of a test. Raises FileError, also for a file of more than ``most_bytes``."""
    try:
        return read_file(path, most_bytes)
    except (OSError, ValueError) as error:
        raise file_error(path, f"cannot be read: {reason_of(error)}") from None


def decoded(content: bytes) -> str:
    """Return the text of a test, without a byte order mark."""
    return content.decode("utf-8-sig", "replace")


def find_files(paths: Iterable[str], extensions: tuple[str, ...]) -> Iterator[FoundTest | FileError]:
    """Yield each file, and the files with these extensions below each folder, sorted by name.

    A file in a folder is named by the path below the folder. A repeated name is an error, and so is a path without
    tests. Folders of imported items are left out.
    """
    names: dict[str, str] = {}
    for path in paths:
        root = os.path.dirname(path) if os.path.isfile(path) else path
        files = [path] if os.path.isfile(path) else sorted(_files_below(path, extensions))
        if not files:
            expected = " or ".join(extensions)
            message = f"has no file that ends in {expected}" if os.path.isdir(path) else "is not a file or folder"
            yield file_error(path, message, "name the tests, or folders with tests")
        for file in files:
            name = os.path.relpath(file, root or os.curdir).replace(os.sep, "/")
            if name in names:
                message = f"has the same name {name!r} as the test in {names[name]}"
                yield file_error(file, message, "import it into another suite")
            else:
                names[name] = file
                yield FoundTest(name, file)


def _files_below(root: str, extensions: tuple[str, ...]) -> Iterator[str]:
    for folder, below, files in os.walk(root):
        if RECORD in files:
            below.clear()
        else:
            yield from (os.path.join(folder, file) for file in files if file.endswith(extensions))


def import_tests(
    tests: Sequence[FoundTest], output: str, jobs: int, prepare: Callable[[FoundTest], Prepared], *, code: str = CODE
) -> Iterator[Imported]:
    """Write a folder of the suite ``output`` for each test, and yield the outcomes as they come.

    A folder appears complete or not at all. ``code`` is the error code if the system refuses a file, or if another
    folder is in the way.
    """
    pool = ThreadPoolExecutor(jobs)
    try:
        work = partial(_outcome, output=output, prepare=prepare, code=code)
        for future in as_completed([pool.submit(work, test) for test in tests]):
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _outcome(test: FoundTest, output: str, prepare: Callable[[FoundTest], Prepared], code: str) -> Imported:
    try:
        return _imported(test, os.path.join(output, test.name), prepare(test), code)
    except ScenarioRunnerError as error:
        return Imported(test.name, "error", error=error.at(path=test.path))
    except OSError as error:
        problem = Diagnostic(code, "error", None, reason_of(error), path=error.filename or test.path)
        return Imported(test.name, "error", error=FileError(problem))


def _imported(test: FoundTest, target: str, prepared: Prepared, code: str) -> Imported:
    record = _record_of(target)
    if record and record.digest == prepared.digest:
        return Imported(test.name, record.outcome, record.reason, kept=True)
    if record is None and os.path.lexists(target):
        message = "is in the way: it was not imported"
        raise FileError(Diagnostic(code, "error", None, message, "choose another --output", path=target))
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    with temporary.temporary_folder(parent) as folder:
        outcome, reason = prepared.write(folder)
        write_json(folder, RECORD, {"digest": prepared.digest, "outcome": outcome, "reason": reason})
        if record:
            shutil.rmtree(target)
        os.rename(folder, target)
    return Imported(test.name, outcome, reason)


def _record_of(target: str) -> _Record | None:
    """Read the record of an imported folder; None for any other folder."""
    try:
        with open(os.path.join(target, RECORD), "rb") as file:
            return _Record.model_validate_json(file.read())
    except (OSError, ValidationError):
        return None


def write_not_supported(folder: str, reason: str) -> tuple[Outcome, str]:
    """Write an item that ends as NotSupported, and return the outcome of the test."""
    write_json(folder, SCENARIO_FILE, {"resources": [], "commands": []})
    write_json(folder, CHECK_FILE, {"not_supported": reason})
    return "not supported", reason


def write_json(folder: str, name: str, content: dict[str, object]) -> None:
    """Write a JSON file of an item."""
    write_file(folder, name, json.dumps(content, indent=1).encode())


def write_file(folder: str, name: str, content: bytes) -> None:
    """Write a file of an item."""
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)


def filled(keys: JsonObject) -> JsonObject:
    """Return the keys with a value that is not empty."""
    return {key: value for key, value in keys.items() if value}


class ItemWriter:
    """The parts of an item. Files are written to ``folder`` at once; `finish` writes the scenario and expectations.

    ``taken`` are names of later resources.
    """

    def __init__(self, folder: str, taken: Iterable[str] = ()) -> None:
        self.folder = folder
        self.commands: list[Json] = []
        self.outputs: dict[str, list[JsonObject]] = {}
        self.resources: dict[str, tuple[str, JsonObject]] = {}
        self._taken = {name.casefold() for name in taken}

    def new_name(self, stem: str, extension: str = "") -> str:
        """Return a name that no resource and no file has."""
        name = numbered(stem, extension, lambda name: name.casefold() in self._taken)
        self._taken.add(name.casefold())
        return name

    def file_name(self, stem: str, extension: str) -> str:
        """Return the name of a new file."""
        return self.new_name(re.sub(r"[^\w.-]|^\.", "_", stem)[:_LONGEST_STEM], extension)

    def write(self, stem: str, extension: str, content: bytes) -> str:
        """Write a file, and return the name."""
        name = self.file_name(stem, extension)
        write_file(self.folder, name, content)
        return name

    def save(self, stem: str, array: numpy.ndarray) -> str:
        """Write an array, and return the name of the file."""
        name = self.file_name(stem, ".npy")
        numpy.save(os.path.join(self.folder, name), array)
        return name

    def source(self, stem: str, numbers: numpy.ndarray, *, may_fill: bool = True) -> Json:
        """Return the content of a resource for ``src``: numbers in the scenario, or the name of a new file."""
        dtype, count = numbers.dtype.name, len(numbers)
        items = numbers.view(numpy.uint8).reshape(count, -1)
        if numbers.dtype.kind == "f" and numpy.isnan(numbers).any():
            return self.save(stem, numbers)  # the text "nan" has no payload
        if may_fill and count > 1 and (items == items[0]).all():
            return {"fill": as_json(numbers[:1], dtype)[0], "dtype": dtype}
        if count <= _MOST_INLINE:
            return {"values": as_json(numbers, dtype), "dtype": dtype}
        return self.save(stem, numbers)

    def add(self, kind: str, uid: str, keys: JsonObject) -> JsonObject:
        """Add a resource unless the uid is known, and return the keys of the resource."""
        return self.resources.setdefault(uid, (kind, {"uid": uid} | keys))[1]

    def add_sampler(self, uid: str, keys: JsonObject) -> None:
        """Add an image without content, which carries a sampler."""
        image: JsonObject = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 1, 1, 1], "shader_access": "readonly"}
        self.add("image", uid, image | keys)

    def add_command(self, kind: str, keys: JsonObject) -> None:
        """Add a command."""
        self.commands.append({kind: keys})

    def finish(self, check: JsonObject) -> None:
        """Write the scenario and the expectations. Each output gets a file, except captured frames."""
        for uid in self.outputs:
            if uid in self.resources:
                self.resources[uid][1]["dst"] = self.file_name(f"{uid}_output", ".npy")
        resources: list[Json] = [{kind: keys} for kind, keys in self.resources.values()]
        outputs: JsonObject = {
            uid: list[Json](rules) if len(rules) > 1 else rules[0] for uid, rules in self.outputs.items()
        }
        write_json(self.folder, SCENARIO_FILE, {"resources": resources, "commands": self.commands})
        write_json(self.folder, CHECK_FILE, filled({"outputs": outputs} | check))
