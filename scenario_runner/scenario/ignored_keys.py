"""Keys that have no effect, and that files written for other programs carry: dropped, with a warning for each.

The reference passes over every key that it does not know, so that its files hold keys of other kinds (the format of a
buffer), comments, and whatever an older version had. What is close to a key that would have an effect is a misspelling
and stays an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from scenario_runner.diagnostics import Diagnostic, warning
from scenario_runner.errors import ScenarioError
from scenario_runner.kinds import COMMANDS, RESOURCES, CommandKind, ResourceKind
from scenario_runner.scenario.barriers import SubresourceRange
from scenario_runner.scenario.bindings import Binding
from scenario_runner.scenario.model import Model
from scenario_runner.scenario.model_base import ModelBase
from scenario_runner.scenario.references import with_article
from scenario_runner.scenario.syntax import escape
from scenario_runner.scenario.validators import model_of
from scenario_runner.scenario.wording import OTHER_NAMES, close_match, name_of, part_of, shown

_ROOT = ("resources", "commands")
_COMMENTS = frozenset({"comment", "comments", "description", "note", "notes"})
_COMMENT_MARKS = ("_", "$", "//", "#")

# Of one object; with more of them something else is wrong, and each takes a search for close names.
_MOST_KEYS = 100
# The schema of the reference lets these parts have any further key.
_OPEN_PARTS = (Binding, SubresourceRange)


def drop_ignored(tree: Any, *, in_code: bool = False) -> tuple[Any, list[Diagnostic]]:
    """A scenario's tree without the keys that have no effect, and a warning for each, with its pointer."""
    found: list[Diagnostic] = []
    if not isinstance(tree, dict):
        return tree, found
    kept = dict(tree)
    if all(isinstance(tree.get(name), list) for name in _ROOT):
        for key in list(tree)[:_MOST_KEYS]:
            is_known = key in (*_ROOT, "expect", "$schema") or not isinstance(key, str)
            if not is_known and _is_text(key) and (_is_comment(key) or not close_match(key, (*_ROOT, "expect"))):
                del kept[key]
                found.append(_warning(f"/{escape(key)}", key, "scenario", ""))
    for name, kinds in (("resources", RESOURCES), ("commands", COMMANDS)):
        entries = tree.get(name)
        if isinstance(entries, list):
            kept[name] = [
                _entry(entry, kinds, f"/{name}/{index}", in_code, found) for index, entry in enumerate(entries)
            ]
    return kept, found


def _entry(
    entry: Any, kinds: Mapping[str, ResourceKind | CommandKind], pointer: str, in_code: bool, found: list[Diagnostic]
) -> Any:
    known = [key for key in kinds if key in entry] if isinstance(entry, dict) else []
    if len(known) != 1 or not isinstance(entry[known[0]], dict):
        return entry
    key, body = known[0], entry[known[0]]
    model = model_of(kinds[key])
    if len(entry) > 1:
        beside = [other for other in list(entry)[:_MOST_KEYS] if other != key]
        if not all(_is_beside(other, model) for other in beside) or len(entry) > _MOST_KEYS:
            return entry
        what = "resource" if kinds is RESOURCES else "command"
        found += [_warning(f"{pointer}/{escape(other)}", other, what, "") for other in beside]
    dropped, body = _without_ignored(model, body, in_code)
    found += [problem._replace(pointer=f"{pointer}/{key}{problem.pointer}") for problem in dropped]
    return {key: body}


def _is_beside(key: Any, model: type[Model]) -> bool:
    """Whether a key next to the kind of an entry is none that was meant as another kind or as a key of this one."""
    if not isinstance(key, str) or not _is_text(key):
        return False
    meant = (*RESOURCES, *COMMANDS, *model.model_fields)
    return _is_comment(key) or not (key in meant or _is_like_one_of(key, meant))


def _without_ignored(model: type[Model], body: dict[str, Any], in_code: bool) -> tuple[list[Diagnostic], Any]:
    try:
        model.model_validate(model.completed(body) if in_code else body)
    except ScenarioError:
        return [], body
    except ValidationError as error:
        details = error.errors(include_url=False)
    else:
        return [], body
    incomplete = {detail["loc"][:-1] for detail in details if detail["type"] == "missing"}
    if not in_code:
        incomplete |= {()} if model.required_in_json - body.keys() else set()
    found: list[Diagnostic] = []
    extra = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    for loc in extra[:_MOST_KEYS]:
        if loc[:-1] in incomplete:
            continue  # it may be the key that is missing, under another name
        body = _copied(body, loc[:-1])
        owner, part, key = part_of(model, loc[:-1]), _inside(body, loc[:-1]), loc[-1]
        if isinstance(key, str) and _is_ignored(owner, part, key):
            del part[key]
            pointer = "".join(f"/{escape(str(step))}" for step in loc)
            found.append(_warning(pointer, key, name_of(owner), _owners(key)))
    return found, body


def _copied(value: Any, loc: tuple[str | int, ...]) -> Any:
    """A copy of what lies on the way to a part: code may have given these objects."""
    copy: Any = list(value) if isinstance(value, (list, tuple)) else dict(value)
    if loc:
        copy[loc[0]] = _copied(value[loc[0]], loc[1:])
    return copy


def _inside(value: Any, loc: tuple[str | int, ...]) -> Any:
    for step in loc:
        value = value[step]
    return value


def _is_ignored(owner: type[ModelBase], part: dict[str, Any], key: str) -> bool:
    if not _is_text(key) or key in owner.code_only or (owner.kind == "tensor" and key == "alias_target"):
        return False
    if _is_comment(key):
        return True
    names = [name for name in owner.model_fields if name not in owner.code_only]
    other = OTHER_NAMES.get(key)
    if other in names:
        return other in part
    if owner in _OPEN_PARTS:
        is_useless = owner is Binding or all(name in part for name in names)
    else:
        is_useless = bool(owner.kind) and _owners(key) != ""
    return is_useless and not _is_like_one_of(key, tuple(names))


@lru_cache(256)
def _is_like_one_of(key: str, names: tuple[str, ...]) -> bool:
    return bool(close_match(key, names))


def _is_text(key: str) -> bool:
    """Whether every character of a key is one; half of a surrogate pair is an error of the file."""
    try:
        return bool(key.encode())
    except UnicodeEncodeError:
        return False


def _is_comment(key: str) -> bool:
    return key.startswith(_COMMENT_MARKS) or key.lower() in _COMMENTS


@lru_cache(256)
def _owners(key: str) -> str:
    """The kinds that have a key, in the file's spelling."""
    wanted = OTHER_NAMES.get(key, key)
    kinds: list[ResourceKind | CommandKind] = [*RESOURCES.values(), *COMMANDS.values()]
    models = dict.fromkeys(map(model_of, kinds))
    return ", ".join(model.kind for model in models if wanted in model.model_fields and wanted not in model.code_only)


def _warning(pointer: str, key: str, what: str, owners: str) -> Diagnostic:
    message = f"the key {shown(key)} is ignored: {with_article(what)} does not have it"
    help = "remove it" if _is_comment(key) or not owners else f"remove it; it is a key of: {owners}"
    return warning("SR-JSON-010", pointer, message, help)
