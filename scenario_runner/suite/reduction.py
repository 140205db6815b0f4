"""Reduction: the smallest scenario that still fails as a given one does.

::

    pack into a temporary folder ──▶ how does it fail? ──▶ less of it, as long as it fails alike

What is tried are other texts of the scenario in that folder; the folder of the user's file is only read. Parts of a
list are removed by delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from scenario_runner.elements import ELEMENTS
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.npy import read_array
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.plan.shaders import compile_request
from scenario_runner.program import Program
from scenario_runner.scenario import Scenario
from scenario_runner.scenario.loader import loads
from scenario_runner.scenario.writing import new_name
from scenario_runner.shaders.compile import compile_all
from scenario_runner.suite.discovery import SUITE_FILE, expectations_file, expected_folder
from scenario_runner.suite.expectations.model import SOURCES
from scenario_runner.suite.expectations.reading import expected_files
from scenario_runner.suite.failures import Failure, Trial
from scenario_runner.suite.packing import pack
from scenario_runner.temporary import temporary_folder

_Part = TypeVar("_Part")
Path = tuple[Any, ...]
"""The place of a value in a scenario: keys and indexes."""

SPIRV_REDUCE: Final = "spirv-reduce"
_NO_SIZES: Final = frozenset({"set", "id", "value", "frame_id", "src"})  # keys of numbers that are not halved
_NOT_DATA: Final = frozenset({"shader", "graph"})
# spirv-reduce asks a program about each module; this one asks us.
_ASKING: Final = '#!/bin/sh\necho "try: $1"\nread -r code\nexit "$code"\n'
_LONGEST_S: Final = 3600.0


class Counts(NamedTuple):
    """The size of a scenario."""

    commands: int
    resources: int
    size_bytes: int


def minimal(parts: Sequence[_Part], fails: Callable[[list[_Part]], bool]) -> list[_Part]:
    """Return parts of which none can be left out: without it, ``fails`` is false."""
    kept, size = list(parts), len(parts)
    while size:
        at, before = 0, len(kept)
        while at < len(kept):
            rest = kept[:at] + kept[at + size :]
            if fails(rest):
                kept = rest
            else:
                at += size
        size = min(size // 2, len(kept)) if size > 1 else int(len(kept) < before)
    return kept


class OutOfTimeError(Exception):
    """The time limit of a reduction has come."""


class Reduction:
    """Life cycle: made with a packed copy of the scenario; `find_failure`; `run`, which any exception may
    end; `write_files`, with the smallest scenario until then."""

    def __init__(
        self, path: str, trial: Trial, limit_s: float | None, show: Callable[[str], None], compiler: CompilerOptions
    ) -> None:
        """``path`` is that of the copy. ``show`` is called with the name of each step, and after each try."""
        self.path = path
        self._trial, self._show, self._compiler = trial, show, compiler
        self._end_s = time.monotonic() + (limit_s or float("inf"))
        self._known: dict[str, bool] = {}
        self._check: dict[str, Any] = {}
        self._step = ""
        self.tries = 0
        self.notes: list[str] = []
        self.sources: dict[str, bytes] = {}
        """The text of each shader that is a module now, by the name of its file."""
        with open(self.path, "rb") as file:
            tree = json.load(file)
        self.tree = {"resources": tree.get("resources", []), "commands": tree.get("commands", [])}
        self._take_expectations(tree)
        self.original = self.counts
        self.failure: Failure | None = None

    @property
    def counts(self) -> Counts:
        """The size of the smallest scenario so far."""
        return Counts(len(self.tree["commands"]), len(self.tree["resources"]), len(json.dumps(self.tree)))

    def set_tolerances(self, **tolerances: float) -> None:
        """Accept errors of all outputs, as a suite.json says it."""
        _write_json(os.path.join(os.path.dirname(self.path), SUITE_FILE), {"tolerances": tolerances})

    def find_failure(self) -> Failure | None:
        """Run the whole scenario; the failure that is to stay, None if there is none. Raises errors of the driver."""
        self._show("first runs")
        if not self._trial.has_expectations:
            self._expect_only("")
        self._write(self.tree)
        self.first = self.failure = self._trial.first(self.path, self.tree)
        if self.failure is not None and self._trial.has_expectations:
            self._expect_only(self.failure.output)
        return self.failure

    def run(self) -> None:
        """Make the scenario smaller until nothing can be left out, or the time is over."""
        try:
            self._remove_parts()
            self._reduce_shaders()
            self._remove_parts()
        except OutOfTimeError:
            self.notes.append("the time limit came before the end")

    def write_files(self) -> None:
        """Write the smallest scenario with its expectations."""
        self._write(self.tree)
        self._trial.complete(self.path, self.tree)

    # Trying

    def _fails(self, tree: dict[str, Any]) -> bool:
        """Return whether a scenario fails as the first one does; then it is the smallest one so far."""
        text = json.dumps(tree)
        if text not in self._known:
            self._known[text] = False
            if self._is_valid(tree):
                if time.monotonic() > self._end_s:
                    raise OutOfTimeError
                self.tries += 1
                self._write(tree)
                assert self.first is not None
                failure = self._trial.try_once(self.path, tree, self.first)
                self._known[text] = failure is not None and self._is_complete(text)
                self.failure = failure if self._known[text] else self.failure
        if self._known[text]:
            self.tree = tree
        self._show(self._step)
        return self._known[text]

    def _is_valid(self, tree: Mapping[str, Any]) -> bool:
        """Return whether it is a scenario, which is cheap to know."""
        try:
            self._scenario(tree)
        except ScenarioRunnerError:
            return False
        return True

    def _is_complete(self, text: str) -> bool:
        """Return whether the content in place of files can be written, which a script or `validate` need not notice."""
        if '"fill"' in text:
            with temporary_folder() as folder:
                try:
                    pack([self.path], folder)
                except ScenarioRunnerError:
                    return False
        return True

    def _scenario(self, tree: Mapping[str, Any]) -> Scenario:
        return loads(json.dumps(tree), self.path)

    def _write(self, tree: Mapping[str, Any]) -> None:
        _write_json(self.path, tree)
        check = dict(self._check)
        if self.failure is not None and self.failure.output:  # others of which nothing is expected must say so
            bodies = [body for entry in tree["resources"] for body in entry.values()]
            uids = [body["uid"] for body in bodies if "dst" in body]
            expected = check.get("outputs", {self.failure.output: {}})
            check["outputs"] = {**{uid: {"unchecked": True} for uid in uids}, **expected}
        if check:
            _write_json(self._check_path, check)
        else:
            with suppress(FileNotFoundError):
                os.unlink(self._check_path)

    # Expectations

    def _take_expectations(self, tree: Mapping[str, Any]) -> None:
        """Take the expectations out of the scenario, or out of the file beside it."""
        stem = expected_folder(self.path).removesuffix("expected")
        self._check_path = expectations_file(self.path) or f"{stem}check.json"
        if "expect" in tree:
            self._check = tree["expect"]
        elif os.path.exists(self._check_path):
            with open(self._check_path, "rb") as file:
                self._check = json.load(file)

    def _expect_only(self, name: str) -> None:
        """Leave the expectation of one output, or none for "": all others would keep their resources."""
        folder = expected_folder(self.path)
        stored = expected_files(folder).get(name, [])
        with suppress(FileNotFoundError):
            os.rename(folder, f"{folder}.kept")
        for part in (self._check, *self._check.get("when", ())):
            outputs = part.pop("outputs", {})
            if name in outputs:
                part["outputs"] = {name: outputs[name]}
        if name:
            entry = self._check.setdefault("outputs", {}).setdefault(name, {})
            if stored and not any(key in entry for key in SOURCES):
                moved = f"{folder}.kept{stored[0].removeprefix(folder)}"
                entry["file"] = os.path.relpath(moved, os.path.dirname(self.path))

    # Parts of the scenario

    def _remove_parts(self) -> None:
        """Remove commands, resources, keys and bindings, replace data and halve numbers, until nothing changes."""
        before = None
        while before != self.tree:
            before = self.tree
            for step, work in {
                "commands": lambda: self._shorten("commands"),
                "resources": self._remove_resources,
                "keys and bindings": self._remove_keys,
                "data": self._replace_data,
                "sizes": self._halve,
            }.items():
                self._step = step
                work()

    def _shorten(self, name: str) -> None:
        minimal(self.tree[name], lambda kept: self._fails({**self.tree, name: kept}))

    def _remove_resources(self) -> None:
        """Remove the resources that nothing uses in one try, then others."""
        used = set(_texts(self.tree["commands"]))
        waiting = list(self.tree["resources"])
        while users := [entry for entry in waiting if not used.isdisjoint(_uids(entry))]:
            waiting = [entry for entry in waiting if entry not in users]
            used.update(_texts(users))
        self._fails({**self.tree, "resources": [entry for entry in self.tree["resources"] if entry not in waiting]})
        self._shorten("resources")

    def _remove_keys(self) -> None:
        whole = self.tree
        paths = [path for path, _ in _values(whole) if len(path) > 3 and path[-1] != "uid" and "src" not in path[:-1]]
        minimal(paths, lambda kept: self._fails(_without(whole, set(paths).difference(kept))))

    def _replace_data(self) -> None:
        """Replace files of data by one number again and again: the first one of the file, or 1."""
        for index, entry in enumerate(self.tree["resources"]):
            ((kind, body),) = entry.items()
            if kind in _NOT_DATA or not isinstance(body.get("src"), str):
                continue
            for content in _fills(os.path.join(os.path.dirname(self.path), body["src"]), kind):
                if self._fails(_with(self.tree, ("resources", index, kind, "src"), content)):
                    break

    def _halve(self) -> None:
        """Make numbers smaller: all that are equal together, then each alone; to 1 at once, or by halves."""
        groups: dict[int, list[Path]] = {}
        for path, value in _values(self.tree):
            if type(value) is int and value > 1 and _NO_SIZES.isdisjoint(path):
                groups.setdefault(value, []).append(path)
        for value in sorted(groups, reverse=True):
            alone = [[path] for path in groups[value]] if len(groups[value]) > 1 else []
            for paths in (groups[value], *alone):
                if not self._fails(self._with_number(paths, 1)):
                    while (half := _at(self.tree, paths[0]) // 2) > 1 and self._fails(self._with_number(paths, half)):
                        pass

    def _with_number(self, paths: Sequence[Path], number: int) -> dict[str, Any]:
        tree = self.tree
        for path in paths:
            tree = _with(tree, path, number)
        return tree

    # Shaders

    def _reduce_shaders(self) -> None:
        """Remove lines of the shaders' texts, and then instructions of their modules."""
        self._step = "shaders"
        tool = shutil.which(SPIRV_REDUCE)
        if tool is None:
            self.notes.append(f"shaders are not reduced further: {SPIRV_REDUCE} is not installed (package spirv-tools)")
        for index, entry in enumerate(self.tree["resources"]):
            if "shader" not in entry:
                continue
            shader: Any = self._scenario(self.tree).resources[index]
            if shader.type != "SPIR-V":
                self._remove_lines(index, shader.type)
            if tool is not None:
                self._reduce_module(index, tool)

    def _remove_lines(self, index: int, type: str) -> None:
        body = self.tree["resources"][index]["shader"]
        if isinstance(body["src"], str):
            with open(
                os.path.join(os.path.dirname(self.path), body["src"]), encoding="utf-8", errors="surrogateescape"
            ) as file:
                lines = file.read().split("\n")
        else:
            lines = body["src"]["text"]

        def fails(kept: list[str]) -> bool:
            tree = self._with_shader(index, {"type": type, "src": {"text": kept}})
            return self._compiled(tree, index) is not None and self._fails(tree)

        if self._compiled(self.tree, index) is not None:
            minimal(lines, fails)

    def _compiled(self, tree: Mapping[str, Any], index: int) -> bytes | None:
        """The module of a shader; None where its text is wrong, which a try in another process says ten times later."""
        with suppress(ScenarioRunnerError):
            scenario = self._scenario(tree)
            shader: Any = scenario.resources[index]
            return compile_all([compile_request(scenario, shader)], **self._compiler._asdict())[0]
        return None

    def _with_shader(self, index: int, changes: dict[str, Any], without: Sequence[str] = ()) -> dict[str, Any]:
        body = {key: value for key, value in self.tree["resources"][index]["shader"].items() if key not in without}
        tree: dict[str, Any] = _with(self.tree, ("resources", index, "shader"), body | changes)
        return tree

    def _reduce_module(self, index: int, tool: str) -> None:
        """Let spirv-reduce make the module of a shader smaller, which replaces the shader's text."""
        folder = os.path.dirname(self.path)
        shader: Any = self._scenario(self.tree).resources[index]
        own = os.path.join(folder, f"module{index}")
        os.mkdir(own)
        original = os.path.join(own, "original.spv")
        before = self.tree
        if shader.type == "SPIR-V":
            shutil.copyfile(os.path.join(folder, shader.src), original)
        elif (module := self._compiled(self.tree, index)) is None:
            return
        else:
            with open(original, "wb") as file:
                file.write(module)

        def fails(path: str) -> bool:
            changes = {"type": "SPIR-V", "src": os.path.relpath(path, folder)}
            return self._fails(self._with_shader(index, changes, ("build_options", "include_dirs")))

        try:
            if fails(original):
                _ask_about_each(tool, own, fails)
        finally:  # the end of the time limit, or an interrupt, keeps what is reduced
            self._keep_module(index, shader, original, before)

    def _keep_module(self, index: int, shader: Any, original: str, before: dict[str, Any]) -> None:
        """Name the smallest module after its shader, or return to the scenario ``before`` if none is smaller."""
        folder = os.path.dirname(self.path)
        body = self.tree["resources"][index]["shader"]
        if self.tree is before or os.path.getsize(os.path.join(folder, body["src"])) >= os.path.getsize(original):
            self.tree = before
            return
        name = new_name("reduced", body["uid"], ".spv", set(os.listdir(folder)))
        os.rename(os.path.join(folder, body["src"]), os.path.join(folder, name))
        self.tree = self._with_shader(index, {"src": name})
        if shader.type != "SPIR-V":
            extension = {"HLSL": ".hlsl"}.get(shader.type, ".glsl")
            self.sources[name.removesuffix(".spv") + extension] = str(shader.text).encode("utf-8", "surrogateescape")


def _ask_about_each(tool: str, folder: str, fails: Callable[[str], bool]) -> None:
    """Call ``fails`` with the path of each module that spirv-reduce makes of ``original.spv``."""
    asking = os.path.join(folder, "ask.sh")
    with open(asking, "w", encoding="ascii") as file:
        file.write(_ASKING)
    os.chmod(asking, 0o700)
    command = [tool, "original.spv", "-o", "smallest.spv", "--", "./ask.sh"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with Program(command, _LONGEST_S, cwd=folder, **pipes) as program:
        assert program.stdin is not None
        for line in program.stdout or ():
            if line.startswith(b"try: "):
                name = line.removeprefix(b"try: ").decode().rstrip("\n")
                program.stdin.write(b"0\n" if fails(os.path.join(folder, name)) else b"1\n")
                program.stdin.flush()


def _fills(path: str, kind: str) -> Iterator[dict[str, Any]]:
    """Contents of one number for a resource, in place of a .npy file. Empty for files of pictures."""
    with suppress(ScenarioRunnerError):
        array = read_array(path)
        typed: dict[str, Any] = {}
        if kind in ("buffer", "raw_data"):
            typed = {"dtype": array.dtype.name} if array.dtype.name in ELEMENTS else {"dtype": "uint8"}
            if kind == "raw_data":
                typed["count"] = array.size
        numbers = array.reshape(-1)[:1].tolist() if array.dtype.kind in "biuf" else []
        yield from ({"fill": number, **typed} for number in dict.fromkeys([*numbers, 1]))


def _write_json(path: str, tree: Any) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(json.dumps(tree, indent=2) + "\n")


def _uids(entry: Mapping[str, Any]) -> list[str]:
    return [body["uid"] for body in entry.values()]


def _texts(value: Any) -> Iterator[str]:
    """Yield all strings in a JSON value."""
    return (text for _, text in _values(value) if isinstance(text, str))


def _values(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield all values inside of a JSON value with their places."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*path, key), part
        yield from _values(part, (*path, key))


def _at(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def _with(tree: Any, path: Path, value: Any) -> Any:
    """Return a copy of a JSON value with another value at a place."""
    if not path:
        return value
    copied = tree.copy()
    copied[path[0]] = _with(tree[path[0]], path[1:], value)
    return copied


def _without(tree: Any, paths: set[Path]) -> Any:
    """Return a copy of a JSON value without the values at these places."""
    copied = json.loads(json.dumps(tree))
    for path in sorted(paths, reverse=True):
        del _at(copied, path[:-1])[path[-1]]
    return copied
