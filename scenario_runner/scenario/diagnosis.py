"""Everything that is wrong with the text of a scenario, once it is known that something is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from pydantic import ValidationError

from scenario_runner.errors import Problem, ScenarioError
from scenario_runner.scenario.contradictions import check_contradictions
from scenario_runner.scenario.dialects import COMMANDS, RESOURCES
from scenario_runner.scenario.ignored_keys import drop_ignored
from scenario_runner.scenario.places import NO_FILE, Places
from scenario_runner.scenario.references import check_references
from scenario_runner.scenario.scenario import MAX_PROBLEMS, limited
from scenario_runner.scenario.syntax import MAX_DIGITS, Fault, line_and_column, scan
from scenario_runner.scenario.validators import model_of
from scenario_runner.scenario.wording import Finding, close_match, findings, listed, shown, unknown_key

_RENAMED_KINDS = {"vgf": "graph", "constant": "graph_constant"}


def diagnose(text: str, path: str | None) -> list[Problem]:
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
        return problems or [Problem(f"the text is not JSON: {error}", path, code="SR-JSON-001")]
    places = Places(text)
    seen = {fault.pointer for fault in faults}
    for finding in _shape(tree):
        pointer = finding.pointer
        if pointer not in seen:
            line, column = places.find(pointer, key=finding.on_key)
            problems.append(Problem(finding.message, path, line, column, pointer, finding.help, finding.code))
    problems.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
    if not problems:
        problems.append(Problem("the scenario is wrong in a way that this program cannot describe", path))
    return limited(problems)


def diagnose_tree(tree: Any, path: str | None) -> list[Problem]:
    """The problems of a scenario that was given as data. At least one."""
    problems = [
        Problem(one.message, path, None, None, one.pointer, one.help, one.code) for one in _shape(tree, in_code=True)
    ]
    return limited(problems or [Problem("the scenario is wrong in a way that this program cannot describe", path)])


def _placed_at(text: str, path: str, fault: Fault) -> Problem:
    line, column = line_and_column(text, fault.offset)
    return Problem(fault.message, path, line, column, fault.pointer or None, fault.help, fault.code)


def _shape(tree: Any, *, in_code: bool = False) -> list[Finding]:
    """Findings on the whole tree: keys and types first, then the references between the entries that are right."""
    tree, _ = drop_ignored(tree, in_code=in_code)
    if not isinstance(tree, dict):
        return [
            Finding(
                (),
                f"expected an object with the keys 'resources' and 'commands', got {shown(tree)}",
                code="SR-JSON-005",
            )
        ]
    found = [
        Finding((), f"the required key {name!r} is missing", code="SR-JSON-004")
        for name in ("resources", "commands")
        if name not in tree
    ]
    for key, value in tree.items():
        if key == "$schema":
            if not isinstance(value, str):
                found.append(Finding((key,), f"expected a string, got {shown(value)}"))
        elif key not in ("resources", "commands"):
            hint = close_match(key, ("resources", "commands"))
            advice = "the keys of a scenario: resources, commands, $schema"
            found.append(Finding((key,), f"unknown key {shown(key)}{hint}", advice, on_key=True, code="SR-JSON-003"))
            if len(found) > 4 * MAX_PROBLEMS:
                break
    resources = _Entries("resources", RESOURCES, COMMANDS, in_code)
    commands = _Entries("commands", COMMANDS, RESOURCES, in_code)
    found += resources.read(tree.get("resources", []))
    found += commands.read(tree.get("commands", []))
    parsed = (resources.models, commands.models, resources.keys, commands.keys)
    contradictions, _ = check_contradictions(*parsed)
    for problem in (*check_references(*parsed, resources.broken), *contradictions):
        found.append(Finding(_steps(problem.pointer or ""), problem.message, problem.help, code=problem.code or ""))
    return found[: 4 * MAX_PROBLEMS]


def _steps(pointer: str) -> tuple[str | int, ...]:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


class _Entries:
    """The entries of one of the two arrays: those that are right as models, and of the others what is known of them.

    ``in_code`` is for data that is not from a file: fields for code are keys like any other.
    """

    def __init__(
        self, name: str, kinds: dict[str, tuple[str, str]], others: dict[str, tuple[str, str]], in_code: bool
    ) -> None:
        self.name = name
        self.in_code = in_code
        self.kinds = kinds
        self.others = others
        self.models: list[Any] = []
        self.keys: list[str] = []
        self.broken: dict[str, tuple[int, str]] = {}

    def read(self, entries: Any) -> list[Finding]:
        if not isinstance(entries, list):
            return [Finding((self.name,), f"expected an array, got {shown(entries)}")]
        found: list[Finding] = []
        for index, entry in enumerate(entries):
            findings = list(self._entry(index, entry))
            if findings:
                self.models.append(None)
                self.keys.append("")
            found += findings
            if len(found) > MAX_PROBLEMS:
                break
        return found

    def _entry(self, index: int, entry: Any) -> Iterator[Finding]:
        here = (self.name, index)
        one = self.name[:-1]
        kinds = f"the kinds of {self.name}: {', '.join(self.kinds)}"
        if not isinstance(entry, dict):
            yield Finding(
                here,
                f"expected an object whose key is the kind of the {one}, got {shown(entry)}",
                kinds,
                code="SR-JSON-006",
            )
            return
        if not entry:
            yield Finding(
                here, f"the object is empty: expected one key, the kind of the {one}", kinds, code="SR-JSON-006"
            )
            return
        known = [key for key in entry if key in self.kinds]
        if len(entry) > 1:
            keys = listed(key[:40] for key in list(entry)[:4]) + (", ..." if len(entry) > 4 else "")
            advice = f"give each {one} an object of its own" if len(known) > 1 else kinds
            yield Finding(
                here, f"expected one key, the kind of the {one}, got {len(entry)}: {keys}", advice, code="SR-JSON-006"
            )
            self._remember(index, entry)
            return
        ((key, body),) = entry.items()
        if not known:
            if key in self.others:
                where = "commands" if self.name == "resources" else "resources"
                yield Finding(
                    (*here, key),
                    f"{key!r} is a {where[:-1]}, it belongs under {where!r}",
                    on_key=True,
                    code="SR-JSON-006",
                )
                return
            renamed = _RENAMED_KINDS.get(key)
            hint = f" (did you mean {renamed!r}?)" if renamed in self.kinds else close_match(key, self.kinds)
            yield Finding(
                (*here, key), f"unknown kind of {one}: {shown(key)}{hint}", kinds, on_key=True, code="SR-JSON-006"
            )
            self._remember(index, entry)
            return
        yield from self._body((*here, key), index, key, body)

    def _body(self, here: tuple[str | int, ...], index: int, key: str, body: Any) -> Iterator[Finding]:
        model = model_of(self.kinds[key])
        if not isinstance(body, dict):
            yield Finding(here, f"expected an object, got {shown(body)}")
            return
        wrong: list[Finding] = []
        missing: frozenset[str] = frozenset()
        if not self.in_code:
            missing = model.required_in_json - body.keys()
            wrong += [unknown_key(model, (name,)) for name in sorted(model.code_only & body.keys())]
            wrong += [
                Finding((), f"the required key {name!r} is missing", code="SR-JSON-004") for name in sorted(missing)
            ]
            body = {name: value for name, value in body.items() if name not in model.code_only}
        try:
            parsed = model.model_validate(model.completed(body))
        except ScenarioError as error:
            wrong += [Finding((), problem.message, code=problem.code or "") for problem in error.problems]
        except ValidationError as error:
            wrong += [
                finding
                for finding in islice(findings(model, error), 4 * MAX_PROBLEMS)
                if finding.loc or not any(finding.message.startswith(f"one of {name!r} ") for name in missing)
            ]
        else:
            if not wrong:
                self.models.append(parsed)
                self.keys.append(key)
        for finding in wrong:
            yield replace(finding, loc=(*here, *finding.loc))
        if wrong:
            self._remember(index, {key: body})

    def _remember(self, index: int, entry: dict[str, Any]) -> None:
        """Note the uids of a resource that is wrong, so that references to it are not reported as well."""
        for key, body in entry.items():
            uid = body.get("uid") if isinstance(body, dict) else None
            if isinstance(uid, str):
                self.broken.setdefault(uid, (index, key))
