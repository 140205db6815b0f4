"""Everything that is wrong with the text of a scenario, once it is known that something is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic import ValidationError

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioError
from scenario_runner.kinds import COMMANDS, RESOURCES, CommandKind, ResourceKind
from scenario_runner.scenario.leniency import accepted
from scenario_runner.scenario.model import model_of
from scenario_runner.scenario.model_base import at, close_match, findings, listed, shown, unknown_key
from scenario_runner.scenario.scenario import MAX_PROBLEMS, check_contradictions, check_references, limited
from scenario_runner.scenario.syntax import MAX_DIGITS, NO_FILE, Fault, Places, line_and_column, scan

_ABOUT_KEYS = ("SR-JSON-003", "SR-JSON-006")
"""Codes whose place is a key, not its value."""

_RENAMED_KINDS = {"vgf": "graph", "constant": "graph_constant"}


def diagnose(text: str, path: str | None) -> list[Diagnostic]:
    """The problems of a text, in its order; a syntax error stands alone. At least one."""
    path = path or NO_FILE
    faults = scan(text)
    if faults and faults[-1].fatal:
        faults = faults[-1:]
    problems = [_placed_at(text, path, fault) for fault in faults]
    if faults and faults[-1].fatal:
        return problems
    try:
        tree = json.loads(text, parse_int=lambda digits: int(digits[:MAX_DIGITS]))
    except (ValueError, RecursionError) as error:
        # Reading stopped at the faults, before the place where the text stops being JSON.
        return problems or [Diagnostic("SR-JSON-001", "error", None, f"the text is not JSON: {error}", path=path)]
    places = Places(text)
    seen = {fault.pointer for fault in faults}
    for finding in _shape(tree):
        if finding.pointer not in seen:
            line, column = places.find(finding.pointer or "", key=finding.code in _ABOUT_KEYS)
            problems.append(finding._replace(path=path, line=line, column=column))
    problems.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
    return limited(problems or [_undescribed(path)])


def diagnose_tree(tree: Any, path: str | None) -> list[Diagnostic]:
    """The problems of a scenario that was given as data. At least one."""
    problems = [finding._replace(path=path) for finding in _shape(tree, in_code=True)]
    return limited(problems or [_undescribed(path)])


def _undescribed(path: str | None) -> Diagnostic:
    message = "the scenario is wrong in a way that this program cannot describe"
    return Diagnostic("SR-JSON-005", "error", None, message, path=path)


def _placed_at(text: str, path: str, fault: Fault) -> Diagnostic:
    line, column = line_and_column(text, fault.offset)
    return Diagnostic(
        fault.code, "error", fault.pointer or None, fault.message, fault.help, path=path, line=line, column=column
    )


def _shape(tree: Any, *, in_code: bool = False) -> list[Diagnostic]:
    """Findings on the whole tree: keys and types first, then the references between the entries that are right."""
    tree, _ = accepted(tree, in_code=in_code)
    if not isinstance(tree, dict):
        return [at((), f"expected an object with the keys 'resources' and 'commands', got {shown(tree)}")]
    found = [
        at((), f"the required key {name!r} is missing", code="SR-JSON-004")
        for name in ("resources", "commands")
        if name not in tree
    ]
    for key, value in tree.items():
        if key == "$schema":
            if not isinstance(value, str):
                found.append(at((key,), f"expected a string, got {shown(value)}"))
        elif key == "expect":
            if not isinstance(value, dict):
                found.append(at((key,), f"expected an object, got {shown(value)}"))
        elif key not in ("resources", "commands"):
            hint = close_match(key, ("resources", "commands", "expect"))
            advice = "the keys of a scenario: resources, commands, expect, $schema"
            found.append(at((key,), f"unknown key {shown(key)}{hint}", advice, code="SR-JSON-003"))
            if len(found) > 4 * MAX_PROBLEMS:
                break
    resources = _Entries("resources", RESOURCES, COMMANDS, in_code)
    commands = _Entries("commands", COMMANDS, RESOURCES, in_code)
    found += resources.read(tree.get("resources", []))
    found += commands.read(tree.get("commands", []))
    parsed = (resources.models, commands.models, resources.keys, commands.keys)
    contradictions, _ = check_contradictions(*parsed)
    found += check_references(*parsed, resources.broken)
    found += contradictions
    return found[: 4 * MAX_PROBLEMS]


class _Entries:
    """The entries of one of the two arrays: those that are right as models, and of the others what is known of them.

    ``in_code`` is for data that is not from a file: fields for code are keys like any other.
    """

    def __init__(
        self,
        name: str,
        kinds: Mapping[str, ResourceKind | CommandKind],
        others: Mapping[str, ResourceKind | CommandKind],
        in_code: bool,
    ) -> None:
        self.name = name
        self.in_code = in_code
        self.kinds = kinds
        self.others = others
        self.models: list[Any] = []
        self.keys: list[str] = []
        self.broken: dict[str, tuple[int, str]] = {}

    def read(self, entries: Any) -> list[Diagnostic]:
        if not isinstance(entries, list):
            return [at((self.name,), f"expected an array, got {shown(entries)}")]
        found: list[Diagnostic] = []
        for index, entry in enumerate(entries):
            findings = list(self._entry(index, entry))
            if findings:
                self.models.append(None)
                self.keys.append("")
            found += findings
            if len(found) > MAX_PROBLEMS:
                break
        return found

    def _entry(self, index: int, entry: Any) -> Iterator[Diagnostic]:
        here = (self.name, index)
        one = self.name[:-1]
        kinds = f"the kinds of {self.name}: {', '.join(self.kinds)}"
        if not isinstance(entry, dict):
            message = f"expected an object whose key is the kind of the {one}, got {shown(entry)}"
            yield at(here, message, kinds, code="SR-JSON-006")
            return
        if not entry:
            yield at(here, f"the object is empty: expected one key, the kind of the {one}", kinds, code="SR-JSON-006")
            return
        known = [key for key in entry if key in self.kinds]
        if len(entry) > 1:
            keys = listed(key[:40] for key in list(entry)[:4]) + (", ..." if len(entry) > 4 else "")
            advice = f"give each {one} an object of its own" if len(known) > 1 else kinds
            yield at(
                here, f"expected one key, the kind of the {one}, got {len(entry)}: {keys}", advice, code="SR-JSON-006"
            )
            self._remember(index, entry)
            return
        ((key, body),) = entry.items()
        if not known:
            if key in self.others:
                where = "commands" if self.name == "resources" else "resources"
                message = f"{key!r} is a {where[:-1]}, it belongs under {where!r}"
                yield at((*here, key), message, code="SR-JSON-006")
                return
            renamed = _RENAMED_KINDS.get(key)
            hint = f" (did you mean {renamed!r}?)" if renamed in self.kinds else close_match(key, self.kinds)
            yield at((*here, key), f"unknown kind of {one}: {shown(key)}{hint}", kinds, code="SR-JSON-006")
            self._remember(index, entry)
            return
        yield from self._body((*here, key), index, key, body)

    def _body(self, here: tuple[str | int, ...], index: int, key: str, body: Any) -> Iterator[Diagnostic]:
        model = model_of(self.kinds[key])
        if not isinstance(body, dict):
            yield at(here, f"expected an object, got {shown(body)}")
            return
        wrong: list[Diagnostic] = []
        missing: frozenset[str] = frozenset()
        if not self.in_code:
            missing = model.required_in_json - body.keys()
            wrong += [unknown_key(model, (name,)) for name in sorted(model.code_only & body.keys())]
            wrong += [at((), f"the required key {name!r} is missing", code="SR-JSON-004") for name in sorted(missing)]
            body = {name: value for name, value in body.items() if name not in model.code_only}
        try:
            parsed = model.model_validate(model.completed(body))
        except ScenarioError as error:
            wrong += [problem._replace(pointer="") for problem in error.problems]
        except ValidationError as error:
            wrong += [
                finding
                for finding in islice(findings(model, error), 4 * MAX_PROBLEMS)
                if finding.pointer or not any(finding.message.startswith(f"one of {name!r} ") for name in missing)
            ]
        else:
            if not wrong:
                self.models.append(parsed)
                self.keys.append(key)
        above = "".join(f"/{step}" for step in here)
        for finding in wrong:
            yield finding._replace(pointer=f"{above}{finding.pointer}")
        if wrong:
            self._remember(index, {key: body})

    def _remember(self, index: int, entry: dict[str, Any]) -> None:
        """Note the uids of a resource that is wrong, so that references to it are not reported as well."""
        for key, body in entry.items():
            uid = body.get("uid") if isinstance(body, dict) else None
            if isinstance(uid, str):
                self.broken.setdefault(uid, (index, key))
