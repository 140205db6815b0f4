"""Reading of scenarios from files, texts and data. Each step is in a file, and no step calls back.

1. `files.input` reads the bytes; this file decodes them.
2. `files.parameters` puts the values of parameters into the text, and `files.json_text` parses it.
3. `kinds` validates the entries. A right file goes straight on to step 5.
4. `diagnosis` accepts dialects with warnings, and collects the problems of all other entries.
5. `Scenario` checks the references between entries.
"""

from __future__ import annotations

import errno
import os
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from scenario_runner.errors import ScenarioError, UsageError, file_error, read_error
from scenario_runner.errors.diagnostic import Diagnostic, warning
from scenario_runner.errors.text import Json
from scenario_runner.files.input import (
    CHECK_FILE,
    LOWERING_HELP,
    MAX_SCENARIO_BYTES,
    MODEL_EXTENSIONS,
    SCENARIO_FILE,
    ParameterizedFile,
    is_stream,
    read_file,
    recognized,
)
from scenario_runner.files.json_text import LimitError, check_values, faults, parse, places_of
from scenario_runner.files.parameters import is_value, replaced, unset, unused, with_parameters
from scenario_runner.scenario.kinds import COMMANDS, RESOURCES, Entries, read_models
from scenario_runner.scenario.scenario import MAX_PROBLEMS, NO_FILE, Scenario, check_entries, limited

if TYPE_CHECKING:
    from scenario_runner.scenario.diagnosis import Diagnosis

_ROOT = frozenset({"resources", "commands"})
_NO_PARAMETERS: Final[Mapping[str, Json]] = {}


def as_scenario(scenario: object) -> Scenario:
    """Return a `Scenario` for a path, for data like the JSON, or for a `Scenario`.

    Raises the errors of `load`, and UsageError for other objects, such as a framework's model.
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
    """Read a scenario file without opening the files that it names.

    Relative paths start from the file's folder, or from the current folder for standard input and pipes.
    ``parameters`` gives a number, boolean, string or list for each name in the file (``${n}``).
    Raises `FileError` if the file cannot be read, and `ScenarioError` with every problem of a wrong file.
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
        if isinstance(error, IsADirectoryError):
            help = f"scenario-runner test {name} runs the scenarios in it"
            raise file_error(name, "is a folder, expected a scenario", help=help) from error
        raise read_error(name, "cannot read the scenario", error) from error
    return loads(content, name, os.getcwd() if streamed else None, parameters)


def from_dict(tree: Mapping[str, object], path: str | None = None, base_dir: str = ".") -> Scenario:
    """Return a scenario from data like the JSON: ``{"resources": [{"buffer": {...}}], "commands": []}``.

    The data can have the fields for code, such as ``data`` and ``source``. Messages name ``path``, and relative paths
    start from ``base_dir``. Raises `ScenarioError` with every problem.
    """
    tree = {key: list(value) if isinstance(value, tuple) else value for key, value in tree.items()}
    reading = _read(tree, in_code=True)
    if reading.problems:
        raise ScenarioError(limited([problem._replace(path=path) for problem in reading.problems]))
    return _scenario(reading, path, base_dir)


def loads(
    text: str | bytes,
    path: str | None = None,
    base_dir: str | None = None,
    parameters: Mapping[str, Json] | None = None,
) -> Scenario:
    """Parse a scenario's text. Messages name ``path``, and relative paths start from ``base_dir``.

    ``parameters`` are the same as for `load`. The text must use each of them, and must use no others. Without
    parameters, ``${n}`` is plain text. Raises `ScenarioError` with every problem, or with the first syntax error.
    """
    parameters = parameters or {}
    for name, value in parameters.items():
        if not is_value(value):
            expected = "a number, a boolean, a string or a list"
            raise UsageError(f"the parameter {name!r} is {reprlib.repr(value):.60}, expected {expected}")
    if base_dir is None:
        base_dir = str(Path(path).absolute().parent) if path else "."
    text = _checked_text(text, path)
    try:
        complete = replaced(text, parameters)
    except LimitError as error:
        raise _too_large(str(error), path or NO_FILE) from error
    try:
        tree = parse(complete)
    except ValueError:  # the text is not JSON, or a key of an object appears twice
        raise ScenarioError(_diagnose(text, complete, path, parameters, None)) from None
    reading = _read(tree, may_have_null="null" in complete)
    if reading.is_wrong:
        _refuse_expectations(tree, path or "")
        raise ScenarioError(_diagnose(text, complete, path, parameters, reading))
    if parameters and (problems := [*unset(text, path, parameters), *unused(text, path, parameters)]):
        raise ScenarioError(limited(problems))
    reading = reading._replace(warnings=[*reading.warnings, *_boolean_mips(tree["resources"])])
    return _scenario(reading, path, base_dir, text, parameters)


class _Reading(NamedTuple):
    """A scenario's entries and the findings about them. ``has_null`` is true if an entry has a forbidden null."""

    resources: Entries
    commands: Entries
    warnings: Sequence[Diagnostic] = ()
    problems: Sequence[Diagnostic] = ()
    has_null: bool = False

    @property
    def is_wrong(self) -> bool:
        """True where the entries make no scenario."""
        return self.has_null or bool(self.problems)


def _read(tree: Json, *, in_code: bool = False, may_have_null: bool = False) -> _Reading:
    """Read a scenario's data: first the entries that follow the format, then diagnose all others.

    ``in_code`` accepts the fields for code, which no file has. ``may_have_null`` looks for nulls in the entries.
    """
    diagnosis: Diagnosis | None = None
    has_resources = isinstance(tree, dict) and "resources" in tree
    if not (type(tree) is dict and tree.keys() == _ROOT and all(type(part) is list for part in tree.values())):
        diagnosis = _new_diagnosis(in_code, may_have_null)
        tree = diagnosis.read_root(tree)
    resources = read_models(tree["resources"], RESOURCES, in_code=in_code, may_have_null=may_have_null)
    commands = read_models(tree["commands"], COMMANDS, in_code=in_code, may_have_null=may_have_null)
    if resources.refused or commands.refused:
        diagnosis = diagnosis or _new_diagnosis(in_code, may_have_null)
        diagnosis.read_refused("resources", tree["resources"], resources)
        diagnosis.read_refused("commands", tree["commands"], commands)
    if diagnosis is None:
        return _Reading(resources, commands)
    problems = diagnosis.problems
    if problems and has_resources:  # else every reference would be wrong, too
        broken = diagnosis.broken
        problems += check_entries(resources.models, commands.models, resources.keys, commands.keys, broken)[0]
    return _Reading(resources, commands, diagnosis.warnings, problems[: 4 * MAX_PROBLEMS], diagnosis.has_null)


def _new_diagnosis(in_code: bool, may_have_null: bool) -> Diagnosis:
    from scenario_runner.scenario.diagnosis import Diagnosis  # a right file needs none

    return Diagnosis(in_code=in_code, may_have_null=may_have_null)


def _scenario(
    reading: _Reading,
    path: str | None,
    base_dir: str,
    text: str | None = None,
    parameters: Mapping[str, object] = _NO_PARAMETERS,
) -> Scenario:
    """Build a scenario from valid entries. Raises ScenarioError for wrong references and contradictions."""
    return Scenario(
        reading.resources.models,
        reading.commands.models,
        path,
        base_dir,
        tuple(reading.warnings),
        resource_keys=reading.resources.keys,
        command_keys=reading.commands.keys,
        text=text,
        parameters=parameters,
    )


def _boolean_mips(resources: Sequence[Json]) -> Iterator[Diagnostic]:
    """Warn of boolean mip level counts, which the models accept."""
    message = "a boolean number of mip levels is deprecated and means 1"
    for index, entry in enumerate(resources):
        if type(entry.get("image", {}).get("mips")) is bool:
            yield warning("SR-JSON-008", f"/resources/{index}/image/mips", message, "write the number")


def _diagnose(
    text: str, complete: str, path: str | None, parameters: Mapping[str, Json], reading: _Reading | None
) -> list[Diagnostic]:
    """Return a wrong text's problems in text order, at least one. A syntax error stands alone.

    ``complete`` is the text with parameter values, and ``reading`` the data where Python could parse it.
    """
    path = path or NO_FILE
    found, is_broken = faults(text, path)
    problems = list(found)
    if is_broken:
        return problems
    if reading is None:
        try:
            reading = _read(parse(complete, is_lenient=True))
        except LimitError as error:
            problem = Diagnostic("SR-JSON-001", "error", None, f"the text has {error}", path=path)
            return [with_parameters(problem, parameters)]
        except ValueError as error:
            # Reading stopped at the faults, before the place where the text stops being JSON.
            return problems or [Diagnostic("SR-JSON-001", "error", None, f"the text is not JSON: {error}", path=path)]
    places = places_of(text)
    seen = {problem.pointer or "" for problem in problems}
    missing = list(unset(text, path, parameters))  # explains why `${n}` is no number
    for finding in reading.problems:
        if finding.pointer not in seen and not (missing and "${" in finding.message):
            problems.append(places.placed(with_parameters(finding, parameters), path))
    problems += missing
    problems.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
    return limited(problems)


def _refuse_expectations(tree: Json, path: str) -> None:
    """Raise ScenarioError if the text holds only expectations, as a ``check.json`` file has them."""
    folder, name = os.path.split(path)
    is_named = name == CHECK_FILE or name.endswith(f".{CHECK_FILE}")
    if isinstance(tree, dict) and not tree.keys() & _ROOT and (is_named or "outputs" in tree):
        owner = SCENARIO_FILE if name == CHECK_FILE else name.removesuffix(CHECK_FILE) + "json"
        message = f"the file has the expectations{f' of {owner}' if is_named else ''}, expected a scenario"
        raise _unreadable(path or NO_FILE, message, f"scenario-runner test {folder or '.'} compares with expectations")


def _checked_text(content: str | bytes, path: str | None) -> str:
    """Decode a content, and check the size."""
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
    if (kind := recognized(content, path)) is not None:
        raise _unreadable(path, f"the file is {kind[0]}, expected a scenario", kind[1])
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
