"""Reduction: the smallest scenario that still fails as a given scenario does.

::

    pack into a temporary folder ──▶ how does it fail? ──▶ remove parts while it fails alike

The reduction changes the scenario in that folder and only reads the folder of the user's file. Delta debugging removes
parts of lists (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.text import Json
from scenario_runner.files.elements import ELEMENTS, is_numeric, read_array
from scenario_runner.files.json_text import changed, value_at
from scenario_runner.plan.shader_modules import compile_request, read_spirv
from scenario_runner.processes.programs import Program
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.reduce.failures import Failure, Trial
from scenario_runner.reduce.packing import pack
from scenario_runner.scenario import Scenario
from scenario_runner.scenario.inline_contents import file_of
from scenario_runner.scenario.loader import loads
from scenario_runner.scenario.writing import new_name
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import read_source
from scenario_runner.suite.discovery import SUITE_FILE, expected_folder
from scenario_runner.suite.expectations.outputs import Output, expected_files, outputs_of_scenario

_Part = TypeVar("_Part")
Path = tuple[str | int, ...]
"""The place of a value in a scenario: keys and indexes."""

SPIRV_REDUCE: Final = "spirv-reduce"
_NO_SIZES: Final = frozenset({"set", "id", "value", "frame_id", "src"})  # keys of numbers that must not be halved
_NOT_DATA: Final = frozenset({"shader", "graph"})
# spirv-reduce asks a program about each module. This script passes the question to this process.
_ASKING: Final = '#!/bin/sh\necho "try: $1"\nread -r code\nexit "$code"\n'
_LONGEST_S: Final = 3600.0


class Counts(NamedTuple):
    """The size of a scenario."""

    commands: int
    resources: int
    size_bytes: int


def minimal(parts: Sequence[_Part], fails: Callable[[list[_Part]], bool]) -> list[_Part]:
    """Remove parts while ``fails`` stays true. Return the remaining parts: ``fails`` needs them all."""
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
    """The reduction has exceeded the time limit."""


class Reduction:
    """The reduction of a packed copy of a scenario.

    Call `find_failure`, then `run`, which an exception may end at any point, then `write_files`, which writes the
    smallest scenario so far.
    """

    def __init__(self, path: str, trial: Trial, limit_s: float | None) -> None:
        """``path`` is the path of the copy."""
        self.path = path
        self._folder = os.path.dirname(path)
        self._trial = trial
        self._end_s = time.monotonic() + (limit_s or float("inf"))
        self._known: dict[str, bool] = {}
        self._texts: dict[str, tuple[str, bytes]] = {}  # by module name: the replaced source text
        self.step = "first runs"
        self.tries = 0
        self.notes: list[str] = []
        tree = _read_json(path)
        self.tree = {"resources": tree.get("resources", []), "commands": tree.get("commands", [])}
        self._check_path = f"{expected_folder(path).removesuffix('expected')}check.json"
        self._check: dict[str, Json] = tree.get("expect") or (
            _read_json(self._check_path) if os.path.exists(self._check_path) else {}
        )
        self.original = self.counts
        self.first: Failure | None = None
        self.failure: Failure | None = None

    @property
    def counts(self) -> Counts:
        """The size of the smallest scenario so far."""
        return Counts(len(self.tree["commands"]), len(self.tree["resources"]), len(json.dumps(self.tree)))

    @property
    def sources(self) -> dict[str, bytes]:
        """The source texts of shaders replaced by modules, by file name."""
        used = [entry["shader"]["src"] for entry in self.tree["resources"] if "shader" in entry]
        return dict(text for module, text in self._texts.items() if module in used)

    def set_tolerances(self, **tolerances: float) -> None:
        """Write a suite.json that compares all outputs as numbers with these tolerances."""
        path = os.path.join(self._folder, SUITE_FILE)
        suite = _read_json(path) if os.path.exists(path) else {}
        _write_json(path, {**suite, "tolerances": {"nan": "equal", **tolerances}})

    def find_failure(self) -> Failure | None:
        """Run the whole scenario. Return the failure to preserve, or None. Raises errors of the driver."""
        if not self._trial.has_expectations:
            self._expect_only("")
        self._write(self.tree)
        self.first = self.failure = self._trial.first(self.path, self.tree)
        if self.failure is not None and self._trial.has_expectations and not self.failure.is_of_expectations:
            self._expect_only(self.failure.output)
        return self.failure

    def run(self, on_smaller: Callable[[], None]) -> None:
        """Make the scenario smaller until every part is needed or the time is over.

        ``on_smaller`` is called after each step that made the scenario smaller.
        """
        self._on_smaller = on_smaller
        try:
            self._remove_parts()
            self._do("shaders", self._reduce_shaders)
            self._remove_parts()
        except OutOfTimeError:
            self.notes.append("the time limit came before the end")

    def write_files(self) -> None:
        """Write the smallest scenario and that scenario's expectations."""
        self._write(self.tree)
        self._trial.complete(self.path, self.tree)

    # Trying

    def _fails(self, tree: dict[str, object]) -> bool:
        """Return whether a scenario fails as the original scenario did. Such a scenario is the smallest so far."""
        text = json.dumps(tree)
        if text not in self._known:
            self._known[text] = self._is_valid(tree) and self._try(tree, text)
        if self._known[text]:
            self.tree = tree
        return self._known[text]

    def _try(self, tree: dict[str, object], text: str) -> bool:
        if time.monotonic() > self._end_s:
            raise OutOfTimeError
        self.tries += 1
        self._write(tree)
        assert self.first is not None
        failure = self._trial.try_once(self.path, tree, self.first)
        if failure is None or ('"fill"' in text and not self._can_be_packed()):
            return False
        self.failure = failure
        return True

    def _is_valid(self, tree: Mapping[str, object]) -> bool:
        """Return whether the JSON is a valid scenario, which is cheap to know."""
        with suppress(ScenarioRunnerError):
            self._scenario(tree)
            return True
        return False

    def _can_be_packed(self) -> bool:
        """Return whether inline contents can be written to files; a script or `validate` may not notice that."""
        with temporary_folder() as folder, suppress(ScenarioRunnerError):
            pack([self.path], folder)
            return True
        return False

    def _scenario(self, tree: Mapping[str, object]) -> Scenario:
        return loads(json.dumps(tree), self.path)

    def _outputs(self, tree: Mapping[str, object]) -> Iterable[Output]:
        return outputs_of_scenario(self._scenario(tree), self._check.get("repeat", 1)).values()

    def _write(self, tree: Mapping[str, object]) -> None:
        _write_json(self.path, tree)
        check, name = dict(self._check), self.failure.output if self.failure is not None else ""
        if name:  # outputs without expectations must be marked as unchecked
            others = [output.name for output in self._outputs(tree) if "/" in name or not output.is_frame]
            unchecked = {other: {"unchecked": True} for other in others if other != name}
            check["outputs"] = {**unchecked, **check.get("outputs", {})}
        if check:
            _write_json(self._check_path, check)
        else:
            with suppress(FileNotFoundError):
                os.unlink(self._check_path)

    def _expect_only(self, name: str) -> None:
        """Drop the expectations of other outputs (for "": of all outputs), which would keep resources."""
        stored = expected_files(expected_folder(self.path))
        for output in self._outputs(self.tree):
            for path in stored.get(output.file_name, ()) if output.name != name else ():
                os.unlink(path)
        for part in (self._check, *self._check.get("when", ())):
            expected = part.pop("outputs", {})
            if name in expected:
                part["outputs"] = {name: expected[name]}

    # Parts of the scenario

    def _remove_parts(self) -> None:
        """Remove commands, resources, keys and bindings, replace data and halve numbers, until nothing changes."""
        before = None
        while before != self.tree:
            before = self.tree
            self._do("commands", lambda: self._shorten("commands"))
            self._do("resources", lambda: self._shorten("resources"))
            self._do("keys and bindings", self._remove_keys)
            self._do("data", self._replace_data)
            self._do("sizes", self._halve)

    def _do(self, step: str, work: Callable[[], None]) -> None:
        self.step, before = step, self.tree
        work()
        if self.tree != before:
            self._on_smaller()

    def _shorten(self, name: str) -> None:
        minimal(self.tree[name], lambda kept: self._fails({**self.tree, name: kept}))

    def _remove_keys(self) -> None:
        whole = self.tree
        paths = [path for path, _ in _values(whole) if len(path) > 3 and path[-1] != "uid" and "src" not in path[:-1]]
        minimal(paths, lambda kept: self._fails(_changed(whole, set(paths).difference(kept))))

    def _replace_data(self) -> None:
        """Fill each resource with a single number instead of a file: the file's first number, or 1."""
        for index, entry in enumerate(self.tree["resources"]):
            ((kind, body),) = entry.items()
            if kind in _NOT_DATA or not isinstance(body.get("src"), str):
                continue
            for content in _fills(os.path.join(self._folder, body["src"]), kind):
                if self._fails(_changed(self.tree, [("resources", index, kind, "src")], content)):
                    break

    def _halve(self) -> None:
        """Reduce numbers to 1, or halve them. Equal numbers are tried together, then each alone."""
        groups: dict[int, list[Path]] = {}
        for path, value in _values(self.tree):
            if type(value) is int and value > 1 and _NO_SIZES.isdisjoint(path):
                groups.setdefault(value, []).append(path)
        for value in sorted(groups, reverse=True):
            alone = [[path] for path in groups[value]] if len(groups[value]) > 1 else []
            for paths in (groups[value], *alone):
                if self._fails(_changed(self.tree, paths, 1)):
                    continue
                while (half := value_at(self.tree, paths[0]) // 2) > 1:
                    if not self._fails(_changed(self.tree, paths, half)):
                        break

    # Shaders

    def _reduce_shaders(self) -> None:
        """Remove lines from the texts of shaders, then instructions from their modules."""
        tool = shutil.which(SPIRV_REDUCE)
        if tool is None:
            self.notes.append(f"shaders are not reduced further: {SPIRV_REDUCE} is not installed (package spirv-tools)")
        for index, entry in enumerate(self.tree["resources"]):
            if "shader" in entry:
                self._remove_lines(index)
                if tool is not None:
                    self._reduce_module(index, tool)

    def _remove_lines(self, index: int) -> None:
        shader = self._shader(self.tree, index)

        def fails(kept: list[str]) -> bool:
            tree = self._with_shader(index, {"type": shader.type, "src": {"text": kept}})
            return self._module(tree, index) is not None and self._fails(tree)

        if shader.type != "SPIR-V" and self._module(self.tree, index) is not None:
            minimal(self._text(shader).split("\n"), fails)

    def _shader(self, tree: Mapping[str, Json], index: int) -> Any:
        return self._scenario(tree).resources[index]

    def _text(self, shader: Any) -> str:
        path = os.path.join(self._folder, file_of(shader) or "")
        return str(shader.text or read_source(path).decode("utf-8", "surrogateescape"))

    def _module(self, tree: Mapping[str, Json], index: int) -> bytes | None:
        """Return the module of a shader, or None for a wrong text. This check is ten times faster than a run."""
        with suppress(ScenarioRunnerError):
            scenario = self._scenario(tree)
            shader: Any = scenario.resources[index]
            if shader.type == "SPIR-V":
                return read_spirv(scenario, shader)[0]
            return compile_all([compile_request(scenario, shader)], **self._trial.compiler._asdict())[0]
        return None

    def _with_shader(self, index: int, changes: dict[str, object]) -> dict[str, object]:
        body = self.tree["resources"][index]["shader"] | changes
        kept = {key: value for key, value in body.items() if value is not None}
        tree: dict[str, object] = _changed(self.tree, [("resources", index, "shader")], kept)
        return tree

    def _reduce_module(self, index: int, tool: str) -> None:
        """Replace a shader by a module that spirv-reduce has made smaller."""
        before, module = self.tree, self._module(self.tree, index)
        if module is None:
            return
        own = os.path.join(self._folder, f"module{index}")
        os.mkdir(own)
        with open(os.path.join(own, "original.spv"), "wb") as file:
            file.write(module)

        def fails(name: str) -> bool:
            src = f"module{index}/{name}"
            return self._fails(
                self._with_shader(index, {"type": "SPIR-V", "src": src, "build_options": None, "include_dirs": None})
            )

        try:
            if fails("original.spv"):
                _ask_about_each(tool, own, fails)
        finally:  # also after the time limit or an interrupt
            self._keep_module(index, before, len(module))

    def _keep_module(self, index: int, before: dict[str, object], size_bytes: int) -> None:
        """Name the smallest module after the shader. If no module is smaller, restore the scenario ``before``."""
        body = self.tree["resources"][index]["shader"]
        path = "" if self.tree is before else os.path.join(self._folder, body["src"])
        if not path or os.path.getsize(path) >= size_bytes:
            self.tree = before
            return
        shader = self._shader(before, index)
        name = new_name("reduced", body["uid"], ".spv", {name.casefold() for name in os.listdir(self._folder)})
        os.rename(path, os.path.join(self._folder, name))
        self.tree = self._with_shader(index, {"src": name})
        if shader.type != "SPIR-V":
            extension = ".hlsl" if shader.type == "HLSL" else ".glsl"
            text = self._text(shader).encode("utf-8", "surrogateescape")
            self._texts[name] = f"{os.path.splitext(name)[0]}{extension}", text


def _ask_about_each(tool: str, folder: str, fails: Callable[[str], bool]) -> None:
    """Call ``fails`` with the name of each module that spirv-reduce makes of ``original.spv``."""
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
                program.stdin.write(b"0\n" if fails(line[len(b"try: ") : -1].decode()) else b"1\n")
                program.stdin.flush()


def _fills(path: str, kind: str) -> Iterator[dict[str, object]]:
    """Yield single-number contents that can replace a .npy file; yield nothing for image files."""
    with suppress(ScenarioRunnerError):
        array = read_array(path)
        typed: dict[str, object] = {}
        if kind in ("buffer", "raw_data"):
            typed = {"dtype": array.dtype.name} if array.dtype.name in ELEMENTS else {"dtype": "uint8"}
            if kind == "raw_data":
                typed["count"] = array.size
        numbers = array.reshape(-1)[:1].tolist() if is_numeric(array) else []
        yield from ({"fill": number, **typed} for number in dict.fromkeys([*numbers, 1]))


def _read_json(path: str) -> dict[str, Json]:
    with open(path, "rb") as file:
        tree: dict[str, Json] = json.load(file)
    return tree


def _write_json(path: str, tree: Json) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(json.dumps(tree, indent=2) + "\n")


def _values(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield all values inside a JSON value with their paths."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*path, key), part
        yield from _values(part, (*path, key))


def _changed(tree: Json, paths: Iterable[Path], value: Json = None) -> Json:
    """Return a copy of a JSON value with ``value`` at these paths; None removes the paths."""
    for path in sorted(paths, reverse=True):
        tree = changed(tree, path, value)
    return tree
