"""Dialects of other programs: what has a clear meaning is accepted, with a warning for each.

The reference passes over every key that it does not know, so that its files hold keys of other kinds (the format of a
buffer), comments, and whatever an older version had. Such a key is dropped, in every object of a scenario. What is
close to a key of its object is a misspelling of that and stays an error; so does any unknown key of an object that
lacks a required one. The reference also takes 16.0 for an integer, and more than three dimensions of a range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from scenario_runner.diagnostics import Diagnostic, escape, warning
from scenario_runner.errors import ScenarioError
from scenario_runner.kinds import COMMANDS, RESOURCES, Kind
from scenario_runner.scenario.model import Model, model_of
from scenario_runner.scenario.model_base import OTHER_NAMES, ModelBase, close_match, name_of, part_of, shown
from scenario_runner.scenario.scenario import with_article

_ROOT = ("resources", "commands")
_BESIDE = ("$schema", "expect")
_COMMENTS = frozenset({"comment", "comments", "description", "note", "notes"})
_COMMENT_MARKS = ("_", "$", "//", "#")

# Of one object; with more of them something else is wrong, and each takes a search for close names.
_MOST_KEYS = 100
# What is put right can hide what else is odd, such as a fraction in a range that is too long.
_MOST_ROUNDS = 3
_EXACT = 2**53  # up to here every integer is a number of its own among the floats
_DIMENSIONS = 3  # of a range


def accepted_root(tree: dict[str, Any]) -> tuple[dict[str, Any], list[Diagnostic]]:
    """The root object without the keys that have no effect, and a warning for each, with its pointer."""
    if not all(isinstance(tree.get(name), list) for name in _ROOT):
        return tree, []
    ignored = [
        key for key in list(tree)[:_MOST_KEYS] if key not in (*_BESIDE, *_ROOT) and _is_ignored(key, (*_ROOT, "expect"))
    ]
    kept = {key: value for key, value in tree.items() if key not in ignored}
    return kept, [_ignored((key,), "scenario", "") for key in ignored]


def accepted_entry(entry: Any, kinds: Mapping[str, Kind], pointer: str, in_code: bool) -> tuple[Any, list[Diagnostic]]:
    """The entry at ``pointer`` as its model takes it, and a warning for each change."""
    known = [key for key in kinds if key in entry] if isinstance(entry, dict) else []
    if len(known) != 1 or not isinstance(entry[known[0]], dict):
        return entry, []
    key, body = known[0], entry[known[0]]
    model = model_of(kinds[key])
    beside = [other for other in list(entry)[:_MOST_KEYS] if other != key]
    meant = (*RESOURCES, *COMMANDS, *model.model_fields)
    if not all(_is_ignored(other, meant) for other in beside) or len(entry) > _MOST_KEYS:
        return entry, []
    what = "resource" if kinds is RESOURCES else "command"
    found = [_below(pointer, _ignored((other,), what, "")) for other in beside]
    body, problems = _body(model, body, in_code)
    return {key: body}, [*found, *(_below(f"{pointer}/{key}", problem) for problem in problems)]


def _body(model: type[Model], body: dict[str, Any], in_code: bool) -> tuple[Any, list[Diagnostic]]:
    """The body of an entry as the model takes it; what else is wrong with it is left in it."""
    found: list[Diagnostic] = []
    for _ in range(_MOST_ROUNDS):
        try:
            model.model_validate(model.completed(body) if in_code else body)
        except ScenarioError:
            break
        except ValidationError as error:
            details = error.errors(include_url=False)
        else:
            break
        incomplete = {detail["loc"][:-1] for detail in details if detail["type"] == "missing"}
        if not in_code and model.required_in_json - body.keys():
            incomplete.add(())
        before = len(found)
        for detail in details[:_MOST_KEYS]:
            loc = detail["loc"]
            if detail["type"] == "extra_forbidden":
                # where a required key is missing, this one may be it, under another name
                owner = part_of(model, loc[:-1])
                if loc[:-1] not in incomplete and _has_no_effect(owner, _inside(body, loc[:-1]), loc[-1]):
                    body = _changed(body, loc)
                    found.append(_ignored(loc, name_of(owner), _owners(str(loc[-1]))))
                continue
            odd = _integer(body, detail) if detail["type"] == "int_type" else None
            odd = _range(body, loc) if detail["type"] == "too_long" else odd
            if odd is not None:
                body, problem = odd
                found.append(problem)
        if len(found) == before:
            break
    return body, found


def _integer(body: Any, detail: Any) -> tuple[Any, Diagnostic] | None:
    """The same with an integer where a float stands that has no fraction."""
    loc, value = _leading(body, detail["loc"]), detail["input"]
    if not isinstance(value, float) or not value.is_integer() or abs(value) > _EXACT or _inside(body, loc) != value:
        return None
    number = int(value)
    message = f"{shown(value)} is taken as the integer {number}"
    return _changed(body, loc, number), warning("SR-JSON-008", _pointer(loc), message, f"write {number}")


def _range(body: Any, loc: tuple[str | int, ...]) -> tuple[Any, Diagnostic] | None:
    """The same with three dimensions of a range whose further ones are 1."""
    counts = _inside(body, loc)
    if loc != ("rangeND",) or any(type(count) not in (int, float) or count != 1 for count in counts[_DIMENSIONS:]):
        return None
    message = f"a range has {_DIMENSIONS} dimensions, got {len(counts)}: the last ones have no effect"
    problem = warning("SR-JSON-008", _pointer(loc), message, f"keep the first {_DIMENSIONS}")
    return _changed(body, loc, counts[:_DIMENSIONS]), problem


def _changed(value: Any, loc: Sequence[str | int], to: Any = None) -> Any:
    """A copy with another value at a place, or without the key there; code may have given these objects."""
    copy: Any = list(value) if isinstance(value, (list, tuple)) else dict(value)
    if len(loc) > 1:
        copy[loc[0]] = _changed(value[loc[0]], loc[1:], to)
    elif to is None:
        del copy[loc[0]]
    else:
        copy[loc[0]] = to
    return copy


def _inside(value: Any, loc: Sequence[str | int]) -> Any:
    for step in loc:
        value = value[step]
    return value


def _leading(value: Any, loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The steps of a location that lead through a value; those that follow name alternatives of a type."""
    for count, step in enumerate(loc):
        if not isinstance(value, (dict, list, tuple)) or isinstance(value, dict) != isinstance(step, str):
            return loc[:count]
        if isinstance(value, dict) and step not in value:
            return loc[:count]
        value = value[step]  # type: ignore[index]
    return loc


def _has_no_effect(owner: type[ModelBase], part: Mapping[str, Any], key: Any) -> bool:
    if key in owner.code_only or key in owner.retired:
        return False
    names = tuple(name for name in owner.model_fields if name not in owner.code_only)
    other = OTHER_NAMES.get(key)
    return other in part if other in names else _is_ignored(key, names)


@lru_cache(256)
def _is_ignored(key: Any, names: tuple[str, ...]) -> bool:
    """Return whether a key is a comment, or none of the ``names`` was meant by it."""
    try:
        if not isinstance(key, str) or not key.encode():
            return False
    except UnicodeEncodeError:
        return False  # half of a surrogate pair, which is an error of the file
    is_comment = _is_comment(key)
    return is_comment or not (key in names or close_match(key, names))


def _is_comment(key: str) -> bool:
    return key.startswith(_COMMENT_MARKS) or key.lower() in _COMMENTS


@lru_cache(256)
def _owners(key: str) -> str:
    """The kinds that have a key, in the file's spelling."""
    wanted = OTHER_NAMES.get(key, key)
    kinds: list[Kind] = [*RESOURCES.values(), *COMMANDS.values()]
    models = dict.fromkeys(map(model_of, kinds))
    return ", ".join(model.kind for model in models if wanted in model.model_fields and wanted not in model.code_only)


def _pointer(loc: Sequence[str | int]) -> str:
    return "".join(f"/{escape(str(step))}" for step in loc)


def _below(pointer: str, problem: Diagnostic) -> Diagnostic:
    return problem._replace(pointer=f"{pointer}{problem.pointer}")


def _ignored(loc: Sequence[str | int], what: str, owners: str) -> Diagnostic:
    key = str(loc[-1])
    message = f"the key {shown(key)} is ignored: {with_article(what)} does not have it"
    help = "remove it" if _is_comment(key) or not owners else f"remove it; it is a key of: {owners}"
    return warning("SR-JSON-010", _pointer(loc), message, help)
