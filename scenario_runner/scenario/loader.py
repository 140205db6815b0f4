"""From a file or text to a `Scenario`."""

from __future__ import annotations

import errno
import gc
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from scenario_runner.diagnostics import Diagnostic, warning
from scenario_runner.errors import FileError, ScenarioError, error_of, file_error_code
from scenario_runner.kinds import COMMANDS, RESOURCES, CommandKind, ResourceKind
from scenario_runner.scenario.model import model_of
from scenario_runner.scenario.scenario import Scenario
from scenario_runner.streams import MAX_SCENARIO_BYTES, is_stream, read_file

MAX_VALUES = 2_000_000
"""Values in one file, enough for a hundred thousand commands. Parsed, a small one costs ten times its text."""


# Keys beside the resources and commands that a run does not look at: the schema of editors, the expectations of suites.
_BESIDE = {"$schema": str, "expect": dict}


def _are_right(tree: Mapping[str, Any]) -> bool:
    return all(isinstance(tree[key], kind) for key, kind in _BESIDE.items() if key in tree)


class _Suspect(Exception):  # noqa: N818  (control flow inside this module)
    """Something is wrong; the slow way finds out what and where."""


def load(path: str | os.PathLike[str]) -> Scenario:
    """Read a scenario file. Files that it names are not opened.

    Relative paths start from its folder; in what comes from standard input or a pipe, from the current folder.
    Raises `FileError` when the file cannot be read, and `ScenarioError` with every problem when it is wrong.
    """
    name = os.fspath(path)
    streamed = is_stream(name)
    try:
        content = read_file(name, MAX_SCENARIO_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise _too_large(f"{MAX_SCENARIO_BYTES >> 20} MiB", name) from error
        from scenario_runner.text import close_files_help

        reason = (error.strerror or str(error)).lower()
        message, help = f"cannot read the scenario: {reason}", close_files_help(name, error)
        problem = Diagnostic(file_error_code(error), "error", None, message, help, path=name)
        raise error_of([problem]) from error
    except ValueError as error:
        raise FileError(f"cannot read the scenario {name!r:.100}: {error}") from error
    return loads(content, name, os.getcwd() if streamed else None)


def from_dict(
    tree: Mapping[str, Any], path: str | None = None, base_dir: str = ".", *, warnings: tuple[Diagnostic, ...] = ()
) -> Scenario:
    """A scenario from data of the shape that the JSON has: ``{"resources": [{"buffer": {...}}], "commands": []}``.

    The fields for code, such as ``data`` and ``source``, may be given as well. ``path`` is named in messages; relative
    paths start from ``base_dir``. Raises `ScenarioError` with everything that is wrong.
    """
    tree = {key: list(value) if isinstance(value, tuple) else value for key, value in tree.items()}
    try:
        if tree.keys() - _BESIDE.keys() != {"resources", "commands"} or not _are_right(tree):
            raise _Suspect
        resources, resource_keys = _entries(tree["resources"], RESOURCES, in_code=True)
        commands, command_keys = _entries(tree["commands"], COMMANDS, in_code=True)
    except _Suspect:
        from scenario_runner.scenario.diagnosis import diagnose_tree
        from scenario_runner.scenario.leniency import accepted

        tree, oddities = accepted(tree, in_code=True)
        if not oddities or warnings:
            raise ScenarioError(diagnose_tree(tree, path)) from None
        return from_dict(tree, path, base_dir, warnings=tuple(oddities))
    return Scenario(resources, commands, path, base_dir, warnings, resource_keys, command_keys)


def loads(text: str | bytes, path: str | None = None, base_dir: str | None = None) -> Scenario:
    """Parse the text of a scenario. ``path`` is named in messages; relative paths in it start from ``base_dir``.

    Raises `ScenarioError` with every problem of the text; an error of the JSON syntax stands alone.
    """
    if base_dir is None:
        base_dir = str(Path(path).absolute().parent) if path else "."
    text = _checked_text(text, path)
    # Tens of thousands of small objects that all stay would set off many useless collections.
    collecting = gc.isenabled()
    gc.disable()
    scenario = None
    try:
        for leniently in (False, True):
            try:
                scenario = _parsed(text, path, base_dir, leniently)
                break
            except _Suspect:
                pass  # and let go of all that was parsed
    finally:
        if collecting:
            gc.enable()
    if scenario is None:
        from scenario_runner.scenario.diagnosis import diagnose

        raise ScenarioError(diagnose(text, path))
    return scenario


def _parsed(text: str, path: str | None, base_dir: str, leniently: bool) -> Scenario:
    try:
        tree = json.loads(text, object_pairs_hook=_unique, parse_constant=_not_json)
    except (ValueError, RecursionError):
        raise _Suspect from None
    oddities: list[Diagnostic] = []
    if leniently:
        from scenario_runner.scenario.leniency import accepted

        tree, oddities = accepted(tree)
    if type(tree) is not dict or tree.keys() - _BESIDE.keys() != {"resources", "commands"} or not _are_right(tree):
        raise _Suspect
    tree.pop("expect", None)
    # A null can only be the one of an optional field, which a file leaves out instead.
    if "null" in text and _has_null(tree):
        raise _Suspect
    message = "a boolean number of mip levels is deprecated and means 1"
    warnings = [
        warning("SR-JSON-008", f"/resources/{index}/image/mips", message, "write the number")
        for index in _boolean_mips(tree["resources"])
    ]
    resources, resource_keys = _entries(tree.pop("resources"), RESOURCES)
    commands, command_keys = _entries(tree.pop("commands"), COMMANDS)
    return Scenario(resources, commands, path, base_dir, (*oddities, *warnings), resource_keys, command_keys, text)


def _entries(
    entries: Any, kinds: Mapping[str, ResourceKind | CommandKind], *, in_code: bool = False
) -> tuple[list[Any], list[str]]:
    if type(entries) is not list:
        raise _Suspect
    validators: dict[str, tuple[Callable[[Any], Any], frozenset[str]]] = {}
    models: list[Any] = []
    keys: list[str] = []
    try:
        for entry in entries:
            ((key, body),) = entry.items()
            known = validators.get(key)
            if known is None:
                model = model_of(kinds[key])
                known = validators[key] = (model.__pydantic_validator__.validate_python, model.code_only)
            validate, code_only = known
            if in_code:
                body = model_of(kinds[key]).completed(body)
            elif code_only and not code_only.isdisjoint(body):
                raise _Suspect
            models.append(validate(body))
            keys.append(key)
    except (ScenarioError, ValidationError, AttributeError, ValueError, KeyError, TypeError):
        raise _Suspect from None
    return models, keys


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise _Suspect
    return mapping


def _not_json(word: str) -> NoReturn:
    raise _Suspect


def _boolean_mips(resources: Any) -> list[int]:
    if type(resources) is not list:
        raise _Suspect
    found = []
    for index, entry in enumerate(resources):
        image = entry.get("image") if type(entry) is dict else None
        if type(image) is dict and type(image.get("mips")) is bool:
            found.append(index)
    return found


def _has_null(tree: Any) -> bool:
    open_values = [tree]
    while open_values:
        value = open_values.pop()
        if value is None:
            return True
        if type(value) is dict:
            open_values.extend(value.values())
        elif type(value) is list:
            open_values.extend(value)
    return False


def _checked_text(content: str | bytes, path: str | None) -> str:
    """The content as text, of a size that can be parsed."""
    if not path:
        from scenario_runner.scenario.syntax import NO_FILE

        path = NO_FILE
    size = f"{MAX_SCENARIO_BYTES >> 20} MiB" if len(content) > MAX_SCENARIO_BYTES else ""
    text = content if isinstance(content, str) else "" if size else _decoded(content, path)
    text = text.removeprefix("\N{BYTE ORDER MARK}")
    if len(text) > MAX_VALUES and text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
        size = f"{MAX_VALUES:,} values"
    if size:
        raise _too_large(size, path)
    return text


def _too_large(size: str, path: str) -> ScenarioError:
    return _unreadable(
        path, f"a scenario of more than {size} is not read", "keep data in the files that the scenario names"
    )


def _unreadable(path: str, message: str, help: str, **place: int) -> ScenarioError:
    return ScenarioError(Diagnostic("SR-JSON-007", "error", None, message, help, path=path, **place))


def _decoded(content: bytes, path: str) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _unreadable(path, "the file is UTF-16, expected UTF-8", "save it as UTF-8")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        before = content[content.rfind(b"\n", 0, error.start) + 1 : error.start].decode(errors="replace")
        message = f"the byte {content[error.start]:#04x} is not UTF-8"
        help = "save the file as UTF-8"
        if path.lower().endswith((".vgf", ".pte", ".tosa")):
            message = "the file is a model, expected a scenario"
            help = (
                "scenario-runner vgf scenario makes a scenario of a model; scenario-runner MODEL.vgf runs one without"
            )
        raise _unreadable(path, message, help, line=line, column=len(before) + 1) from None
