"""Diagnosis of the data of a scenario that its models do not take."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from pydantic import ValidationError

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioError
from scenario_runner.kinds import COMMANDS, RESOURCES, Kind
from scenario_runner.scenario.leniency import accepted_root
from scenario_runner.scenario.model import Model, model_of
from scenario_runner.scenario.model_base import at, close_match, findings, listed, shown, unknown_key
from scenario_runner.scenario.scenario import MAX_PROBLEMS

_RENAMED_KINDS = {"vgf": "graph", "constant": "graph_constant"}


def read_root(tree: Any, warnings: list[Diagnostic], problems: list[Diagnostic]) -> dict[str, Any]:
    """The root object of a scenario without the keys that have no effect; warns of these and reports the others."""
    if not isinstance(tree, dict):
        problems.append(at((), f"expected an object with the keys 'resources' and 'commands', got {shown(tree)}"))
        return {}
    kept, oddities = accepted_root(tree)
    warnings += oddities
    for name in ("resources", "commands"):
        if name not in kept:
            problems.append(at((), f"the required key {name!r} is missing", code="SR-JSON-004"))
    for key, value in kept.items():
        if key == "$schema":
            if not isinstance(value, str):
                problems.append(at((key,), f"expected a string, got {shown(value)}"))
        elif key == "expect":
            if not isinstance(value, dict):
                problems.append(at((key,), f"expected an object, got {shown(value)}"))
        elif key not in ("resources", "commands"):
            hint = close_match(key, ("resources", "commands", "expect"))
            advice = "the keys of a scenario: resources, commands, expect, $schema"
            problems.append(at((key,), f"unknown key {shown(key)}{hint}", advice, code="SR-JSON-003"))
            if len(problems) > 4 * MAX_PROBLEMS:
                break
    return kept


def read_entry(
    name: str, index: int, entry: Any, kinds: Mapping[str, Kind], *, in_code: bool
) -> tuple[Any, str, list[Diagnostic]]:
    """The model of an entry of the array ``name``, its key, and what is wrong with it; then there is no model."""
    here = (name, index)
    one = name[:-1]
    advice: str | None = f"the kinds of {name}: {', '.join(kinds)}"
    pointed: tuple[str | int, ...] = here
    known = [key for key in entry if key in kinds] if isinstance(entry, dict) else []
    if not isinstance(entry, dict):
        message = f"expected an object whose key is the kind of the {one}, got {shown(entry)}"
    elif not entry:
        message = f"the object is empty: expected one key, the kind of the {one}"
    elif len(entry) > 1:
        keys = listed(key[:40] for key in list(entry)[:4]) + (", ..." if len(entry) > 4 else "")
        message = f"expected one key, the kind of the {one}, got {len(entry)}: {keys}"
        advice = f"give each {one} an object of its own" if len(known) > 1 else advice
    else:
        ((key, body),) = entry.items()
        if known:
            model, problems = _read_body(model_of(kinds[key]), body, in_code)
            above = "".join(f"/{step}" for step in (*here, key))
            return model, key, [problem._replace(pointer=f"{above}{problem.pointer}") for problem in problems]
        pointed = (*here, key)
        other = "commands" if name == "resources" else "resources"
        if key in (COMMANDS if other == "commands" else RESOURCES):
            message, advice = f"{key!r} is a {other[:-1]}, it belongs under {other!r}", None
        else:
            renamed = _RENAMED_KINDS.get(key)
            hint = f" (did you mean {renamed!r}?)" if renamed in kinds else close_match(key, kinds)
            message = f"unknown kind of {one}: {shown(key)}{hint}"
    return None, "", [at(pointed, message, advice, code="SR-JSON-006")]


def _read_body(model: type[Model], body: Any, in_code: bool) -> tuple[Any, list[Diagnostic]]:
    """The body of an entry as its model, and what is wrong with it, with pointers into the body."""
    if not isinstance(body, dict):
        return None, [at((), f"expected an object, got {shown(body)}")]
    wrong: list[Diagnostic] = []
    missing: frozenset[str] = frozenset()
    if not in_code:
        missing = model.required_in_json - body.keys()
        wrong += [unknown_key(model, (name,)) for name in sorted(model.code_only & body.keys())]
        wrong += [at((), f"the required key {name!r} is missing", code="SR-JSON-004") for name in sorted(missing)]
        body = {name: value for name, value in body.items() if name not in model.code_only}
    parsed = None
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
    return (None if wrong else parsed), wrong
