"""From a file or text to a `Scenario`."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scenario_runner.errors import ScenarioError, UsageError, read_error
from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.errors.text import Json
from scenario_runner.files.input import (
    LOWERING_HELP,
    MAX_SCENARIO_BYTES,
    MODEL_EXTENSIONS,
    ParameterizedFile,
    framework_file,
    is_stream,
    read_file,
)
from scenario_runner.files.json_text import LimitError, check_values, faults, has_null, parse, places_of
from scenario_runner.files.parameters import is_value, replaced, unset, unused, with_parameters
from scenario_runner.scenario.entries import built
from scenario_runner.scenario.kinds import COMMANDS, RESOURCES, Kind
from scenario_runner.scenario.scenario import MAX_PROBLEMS, NO_FILE, Scenario, check_entries, limited

# Codes whose place is a key, not its value.
_ABOUT_KEYS = ("SR-JSON-003", "SR-JSON-006")


def as_scenario(scenario: object) -> Scenario:
    """The scenario that a path or data like the JSON stands for; a `Scenario` itself.

    Raises as `load` does, and UsageError for anything else, such as a model of a framework.
    """
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, Mapping):
        return from_dict(scenario)
    if not isinstance(scenario, str | os.PathLike):
        message = f"expected a path, a Scenario or a mapping, got an object of type {type(scenario).__name__}"
        if any(base.__module__.startswith(("torch.", "executorch.")) for base in type(scenario).__mro__):
            raise UsageError(f"{message}: a model of PyTorch has to be lowered to VGF first", help=LOWERING_HELP)
        raise UsageError(message)
    return load(scenario)


def load(path: str | os.PathLike[str], parameters: Mapping[str, object] | None = None) -> Scenario:
    """Read a scenario file. Files that it names are not opened.

    Relative paths start from its folder; in what comes from standard input or a pipe, from the current folder.
    ``parameters`` are numbers, booleans, strings or lists by the names that stand for them in the file (``${n}``).
    Raises `FileError` when the file cannot be read, and `ScenarioError` with every problem when it is wrong.
    """
    if isinstance(path, ParameterizedFile):
        parameters = path.parameters
    name = os.fspath(path)
    streamed = is_stream(name)
    try:
        content = read_file(name, MAX_SCENARIO_BYTES)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise _too_large(f"more than {MAX_SCENARIO_BYTES >> 20} MiB", name) from error
        raise read_error(name, "cannot read the scenario", error) from error
    return loads(content, name, os.getcwd() if streamed else None, parameters)


def from_dict(tree: Mapping[str, object], path: str | None = None, base_dir: str = ".") -> Scenario:
    """A scenario from data of the shape that the JSON has: ``{"resources": [{"buffer": {...}}], "commands": []}``.

    The fields for code, such as ``data`` and ``source``, may be given as well. ``path`` is named in messages; relative
    paths start from ``base_dir``. Raises `ScenarioError` with everything that is wrong.
    """
    tree = {key: list(value) if isinstance(value, tuple) else value for key, value in tree.items()}
    reading = _Reading(tree, in_code=True)
    if reading.problems:
        raise ScenarioError(limited([problem._replace(path=path) for problem in reading.problems]))
    return reading.scenario(path, base_dir)


def loads(
    text: str | bytes,
    path: str | None = None,
    base_dir: str | None = None,
    parameters: Mapping[str, Json] | None = None,
) -> Scenario:
    """Parse the text of a scenario. ``path`` is named in messages; relative paths in it start from ``base_dir``.

    ``parameters`` are as for `load`: each must be used, and all that are used be there; without any, ``${n}`` is text.
    Raises `ScenarioError` with every problem of the text; an error of the JSON syntax stands alone.
    """
    parameters = parameters or {}
    for name, value in parameters.items():
        if not is_value(value):
            import reprlib  # which ends in deep values

            expected = "a number, a boolean, a string or a list"
            raise UsageError(f"the parameter {name!r} is {reprlib.repr(value):.60}, expected {expected}")
    if base_dir is None:
        base_dir = str(Path(path).absolute().parent) if path else "."
    text = _checked_text(text, path)
    try:
        complete = replaced(text, parameters)
    except LimitError as error:
        raise _too_large(str(error), path or NO_FILE) from error
    reading = _read_text(complete)
    if reading is None:
        raise ScenarioError(_diagnose(text, complete, path, parameters))
    if parameters and (problems := [*unset(text, path, parameters), *unused(text, path, parameters)]):
        raise ScenarioError(limited(problems))
    return reading.scenario(path, base_dir, text, parameters)


def _read_text(text: str) -> _Reading | None:
    """Parse a text; None where it is not JSON, or has what JSON has and scenarios have not."""
    try:
        tree = parse(text)
    except ValueError:
        return None
    reading = _Reading(tree, may_have_null="null" in text)
    if reading.problems:
        return None
    message = "a boolean number of mip levels is deprecated and means 1"
    reading.warnings += [
        warning("SR-JSON-008", f"/resources/{index}/image/mips", message, "write the number")
        for index, entry in enumerate(tree["resources"])
        if type(entry.get("image", {}).get("mips")) is bool
    ]
    return reading


class _Reading:
    """The entries of a scenario's data as models, and what is odd or wrong with them.

    ``keys`` are the kinds as the data spells them. Entries that are wrong are None; ``broken`` maps the uids of such
    resources to their index and kind. ``in_code`` is for data that is not from a file: fields for code are keys like
    any other. With ``may_have_null`` it is looked for nulls, which no key of a file takes.
    """

    def __init__(self, tree: Json, *, in_code: bool = False, may_have_null: bool = False) -> None:
        self._in_code = in_code
        self._may_have_null = may_have_null
        self.models: dict[str, list[Any]] = {"resources": [], "commands": []}
        self.keys: dict[str, list[str]] = {"resources": [], "commands": []}
        self.broken: dict[str, tuple[int, str]] = {}
        self.warnings: list[Diagnostic] = []
        self.problems: list[Diagnostic] = []
        if type(tree) is not dict or tree.keys() != self.models.keys():
            from scenario_runner.scenario.diagnosis import read_root

            tree = read_root(tree, self.warnings, self.problems)
        self._read("resources", tree, RESOURCES)
        self._read("commands", tree, COMMANDS)
        models, keys = self.models, self.keys
        self._parsed = models["resources"], models["commands"], keys["resources"], keys["commands"]
        if self.problems:
            self.problems += check_entries(*self._parsed, self.broken)[0]
            del self.problems[4 * MAX_PROBLEMS :]

    def scenario(
        self, path: str | None, base_dir: str, text: str | None = None, parameters: Mapping[str, object] | None = None
    ) -> Scenario:
        """The scenario, where nothing is wrong with its entries."""
        resources, commands, resource_keys, command_keys = self._parsed
        keys = {"resource_keys": resource_keys, "command_keys": command_keys}
        warnings = tuple(self.warnings)
        return Scenario(resources, commands, path, base_dir, warnings, **keys, text=text, parameters=parameters or {})

    def _read(self, name: str, tree: Mapping[str, object], kinds: Mapping[str, Kind]) -> None:
        entries = tree.get(name, [])
        models, keys, before = self.models[name], self.keys[name], len(self.problems)
        if not isinstance(entries, list):
            from scenario_runner.scenario.json_model import at, shown

            self.problems.append(at((name,), f"expected an array, got {shown(entries)}"))
            return
        validators: dict[str, tuple[Callable[[object], object], frozenset[str]]] = {}
        for index, entry in enumerate(entries):
            try:
                ((key, body),) = entry.items()
                known = validators.get(key)
                if known is None:
                    model = built(kinds[key].model)
                    known = validators[key] = (model.__pydantic_validator__.validate_python, model.code_only)
                validate, code_only = known
                if self._in_code or type(body.get("src")) is dict:
                    body = built(kinds[key].model).completed(body)
                if not self._in_code and (not code_only.isdisjoint(body) or (self._may_have_null and has_null(body))):
                    raise ValueError
                models.append(validate(body))
                keys.append(key)
            except (ScenarioError, AttributeError, ValueError, KeyError, TypeError):
                self._read_odd(name, index, entry, kinds)
                if len(self.problems) - before > MAX_PROBLEMS:
                    return

    def _read_odd(self, name: str, index: int, entry: object, kinds: Mapping[str, Kind]) -> None:
        """An entry that the models do not take as it is."""
        from scenario_runner.scenario.diagnosis import read_entry

        entry, key, model, oddities, problems = read_entry(name, index, entry, kinds, in_code=self._in_code)
        if self._may_have_null and has_null(entry):
            problems = [*problems, error("SR-JSON-005", "", "null is not used in scenarios")]
        self.models[name].append(model)
        self.keys[name].append(key)
        self.warnings += oddities
        self.problems += problems
        if problems and name == "resources" and isinstance(entry, dict):
            for kind, body in entry.items():
                if isinstance(body, dict) and isinstance(body.get("uid"), str):
                    self.broken.setdefault(body["uid"], (index, kind))


def _diagnose(text: str, complete: str, path: str | None, parameters: Mapping[str, Json]) -> list[Diagnostic]:
    """The problems of a text that is wrong, in its order; a syntax error stands alone. At least one.

    ``complete`` is the text with the values of its parameters.
    """
    path = path or NO_FILE
    found, is_broken = faults(text, path)
    problems = list(found)
    if is_broken:
        return problems
    try:
        tree = parse(complete, is_lenient=True)
    except LimitError as error:
        return [
            with_parameters(Diagnostic("SR-JSON-001", "error", None, f"the text has {error}", path=path), parameters)
        ]
    except ValueError as error:
        # Reading stopped at the faults, before the place where the text stops being JSON.
        return problems or [Diagnostic("SR-JSON-001", "error", None, f"the text is not JSON: {error}", path=path)]
    places = places_of(text)
    seen = {problem.pointer or "" for problem in problems}
    missing = list(unset(text, path, parameters))  # which says why `${n}` is no number
    for finding in _Reading(tree).problems:
        if finding.pointer not in seen and not (missing and "${" in finding.message):
            line, column = places.find(finding.pointer or "", key=finding.code in _ABOUT_KEYS)
            finding = with_parameters(finding, parameters)
            problems.append(finding._replace(path=path, line=line, column=column))
    problems += missing
    problems.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
    return limited(problems)


def _checked_text(content: str | bytes, path: str | None) -> str:
    """The content as text, of a size that can be parsed."""
    path = path or NO_FILE
    if len(content) > MAX_SCENARIO_BYTES:
        raise _too_large(f"more than {MAX_SCENARIO_BYTES >> 20} MiB", path)
    text = content if isinstance(content, str) else _decoded(content, path)
    text = text.removeprefix("\N{BYTE ORDER MARK}")
    try:
        check_values(text)
    except LimitError as error:
        raise _too_large(str(error), path) from error
    return text


def _too_large(size: str, path: str) -> ScenarioError:
    help = "keep data in the files that the scenario names"
    return _unreadable(path, f"a scenario of {size} is not read", help)


def _unreadable(path: str, message: str, help: str, **place: int) -> ScenarioError:
    return ScenarioError(Diagnostic("SR-JSON-007", "error", None, message, help, path=path, **place))


def _decoded(content: bytes, path: str) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _unreadable(path, "the file is UTF-16, expected UTF-8", "save it as UTF-8")
    if (framework := framework_file(content)) is not None:
        raise _unreadable(path, f"the file is {framework[0]}, expected a scenario", framework[1])
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        before = content[content.rfind(b"\n", 0, error.start) + 1 : error.start].decode(errors="replace")
        message, help = f"the byte {content[error.start]:#04x} is not UTF-8", "save the file as UTF-8"
        if path.lower().endswith(MODEL_EXTENSIONS):
            message = "the file is a model, expected a scenario"
            help = "scenario-runner vgf scenario makes a scenario of a model; scenario-runner FILE runs one without"
        raise _unreadable(path, message, help, line=line, column=len(before) + 1) from None
