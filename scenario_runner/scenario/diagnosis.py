"""The diagnosis of entries that the models refuse. It accepts dialects with warnings, and explains all other faults.

The reference implementation ignores unknown keys. So its files have keys of other kinds (the format of a buffer),
comments, and keys of older versions. The diagnosis drops such a key with a warning, in every object. Two kinds of
unknown keys stay errors: a key that resembles a known key, and any key of an object that lacks a required key. The
reference also accepts 16.0 for an integer, and more than three dimensions of a range.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from pydantic import ValidationError

from scenario_runner.errors import ScenarioError
from scenario_runner.errors.diagnostic import Diagnostic, warning
from scenario_runner.errors.text import Json, close_match, listed, with_article
from scenario_runner.files.json_text import changed, has_null, value_at
from scenario_runner.scenario.entries import Model, built
from scenario_runner.scenario.inline_contents import tells_shape
from scenario_runner.scenario.json_model import (
    OTHER_NAMES,
    ModelBase,
    at,
    details_of,
    findings,
    name_of,
    part_of,
    pointer_of,
    shown,
    unknown_key,
)
from scenario_runner.scenario.kinds import COMMANDS, RESOURCES, Entries
from scenario_runner.scenario.scenario import MAX_PROBLEMS

_ROOT = ("resources", "commands")
_BESIDE = {"$schema": (str, "a string"), "expect": (dict, "an object")}
_RENAMED_KINDS = {
    "vgf": "graph",
    "constant": "graph_constant",
    "dispatch": "dispatch_compute",
    "draw": "dispatch_fragment",
    "barrier": "dispatch_barrier",
}
_COMMENTS = frozenset({"comment", "comments", "description", "note", "notes"})
_COMMENT_MARKS = ("_", "$", "//", "#")

# Most ignored keys in an object. Each costs a search for close names, and more are no dialect.
_MOST_KEYS = 100
# A change can uncover another fault, such as a fraction in a range that was too long.
_MOST_ROUNDS = 3
_EXACT = 2**53  # floats hold every integer up to here
_DIMENSIONS = 3  # of a range
_GIVEN_BY_SRC = ("size", "dims")
_SIZE_HELP = 'write the number of bytes, or give numbers in "src": { "values": [1, 2] }'


class Diagnosis:
    """The findings about data that does not follow the format exactly: warnings of dialects, and problems.

    ``broken`` maps the uids of wrong resources to their indices and kinds. ``has_null`` is true if an entry without any
    other problem has a null. ``in_code`` accepts the fields for code, and ``may_have_null`` looks for nulls.
    """

    def __init__(self, *, in_code: bool, may_have_null: bool) -> None:
        self.warnings: list[Diagnostic] = []
        self.problems: list[Diagnostic] = []
        self.broken: dict[str, tuple[int, str]] = {}
        self.has_null = False
        self._in_code = in_code
        self._may_have_null = may_have_null

    def read_root(self, tree: Json) -> dict[str, Json]:
        """Check the root object's keys, and return the two arrays. A missing or wrong array is empty."""
        problems = self.problems
        if not isinstance(tree, dict):
            problems.append(at((), f"expected an object with the keys 'resources' and 'commands', got {shown(tree)}"))
            return {name: [] for name in _ROOT}
        for name in _ROOT:
            if name not in tree:
                problems.append(at((), f"the required key {name!r} is missing", code="SR-JSON-004"))
        complete = all(isinstance(tree.get(name), list) for name in _ROOT)
        for index, (key, value) in enumerate(tree.items()):
            if key in _BESIDE:
                kind, words = _BESIDE[key]
                if not isinstance(value, kind):
                    problems.append(at((key,), f"expected {words}, got {shown(value)}"))
            elif key in _ROOT:
                if not isinstance(value, list):
                    problems.append(at((key,), f"expected an array, got {shown(value)}"))
            elif complete and index < _MOST_KEYS and _is_ignored(key, (*_ROOT, "expect")):
                self.warnings.append(_ignored((key,), "scenario", ""))
            else:
                hint = close_match(key, (*_ROOT, "expect"))
                advice = "the keys of a scenario: resources, commands, expect, $schema"
                problems.append(at((key,), f"unknown key {shown(key)}{hint}", advice, code="SR-JSON-003"))
                if len(problems) > 4 * MAX_PROBLEMS:
                    break
        self.problems = _without_misspelt(problems)
        return {name: tree[name] if isinstance(tree.get(name), list) else [] for name in _ROOT}

    def read_refused(self, name: str, entries: Sequence[Json], found: Entries) -> None:
        """Read the refused entries of the array ``name``, and put the models of dialects into ``found``.

        Too many problems end the reading.
        """
        before = len(self.problems)
        kinds = RESOURCES if name == "resources" else COMMANDS
        for index in found.refused:
            read = _read_entry(name, index, entries[index], kinds, in_code=self._in_code)
            found.models[index], found.keys[index] = read.model, read.key
            self.warnings += read.warnings
            self.problems += read.problems
            if read.problems and name == "resources" and isinstance(read.entry, dict):
                for kind, body in read.entry.items():
                    if isinstance(body, dict) and isinstance(body.get("uid"), str):
                        self.broken.setdefault(body["uid"], (index, kind))
            self.has_null = self.has_null or (self._may_have_null and has_null(read.entry))
            if len(self.problems) - before > MAX_PROBLEMS:
                return


class _ReadEntry(NamedTuple):
    """A corrected entry with kind, model (None for a wrong entry) and findings."""

    entry: object
    key: str = ""
    model: object = None
    warnings: Sequence[Diagnostic] = ()
    problems: Sequence[Diagnostic] = ()


def _read_entry(name: str, index: int, entry: Json, kinds: Mapping[str, type[Model]], *, in_code: bool) -> _ReadEntry:
    """Read the entry ``index`` of the array ``name``."""
    here = (name, index)
    noun = name[:-1]
    known = [key for key in kinds if key in entry] if isinstance(entry, dict) else []
    warnings: list[Diagnostic] = []
    if len(known) == 1 and isinstance(entry[known[0]], dict) and 1 < len(entry) <= _MOST_KEYS:
        beside = [key for key in entry if key != known[0]]
        meant = (*RESOURCES, *COMMANDS, *built(kinds[known[0]]).fields_by_key())
        if all(_is_ignored(key, meant) for key in beside):
            warnings = [_ignored((*here, key), noun, "") for key in beside]
            entry = {known[0]: entry[known[0]]}
    advice: str | None = f"the kinds of {name}: {', '.join(kinds)}"
    pointed: tuple[str | int, ...] = here
    if not isinstance(entry, dict):
        message = f"expected an object whose key is the kind of the {noun}, got {shown(entry)}"
    elif not entry:
        message = f"the object is empty: expected one key, the kind of the {noun}"
    elif len(entry) > 1:
        keys = listed(key[:40] for key in list(entry)[:4]) + (", ..." if len(entry) > 4 else "")
        message = f"expected one key, the kind of the {noun}, got {len(entry)}: {keys}"
        advice = f"give each {noun} an object of its own" if len(known) > 1 else advice
    else:
        ((key, body),) = entry.items()
        if known:
            read = _read_body(built(kinds[key]), body, in_code)
            above = pointer_of((*here, key))
            warnings += [warning._replace(pointer=f"{above}{warning.pointer}") for warning in read.warnings]
            problems = [problem._replace(pointer=f"{above}{problem.pointer}") for problem in read.problems]
            return _ReadEntry({key: read.entry}, key, read.model, warnings, problems)
        pointed = (*here, key)
        other = "commands" if name == "resources" else "resources"
        if key in (COMMANDS if other == "commands" else RESOURCES):
            message, advice = f"{key!r} is a {other[:-1]}, it belongs under {other!r}", None
        else:
            renamed = _RENAMED_KINDS.get(key)
            hint = f" (did you mean {renamed!r}?)" if renamed in kinds else close_match(key, kinds)
            message = f"unknown kind of {noun}: {shown(key)}{hint}"
    return _ReadEntry(entry, warnings=warnings, problems=[at(pointed, message, advice, code="SR-JSON-006")])


def _read_body(model: type[Model], body: object, in_code: bool) -> _ReadEntry:
    """Read the body of an entry, and correct dialects. Pointers start at the body."""
    if not isinstance(body, dict):
        return _ReadEntry(body, problems=[at((), f"expected an object, got {shown(body)}")])
    warnings: list[Diagnostic] = []
    for rounds in range(_MOST_ROUNDS + 1):
        wrong: list[Diagnostic] = []
        missing: frozenset[str] = frozenset()
        values = body
        if not in_code:
            values = model.completed({name: value for name, value in body.items() if name not in model.code_only})
            missing = model.required_in_json - values.keys()
            wrong += [unknown_key(model, (name,)) for name in sorted(model.code_only & body.keys())]
            for name in sorted(missing):
                help = _SIZE_HELP if name == "size" and model.kind == "buffer" else None
                wrong.append(at((), f"the required key {name!r} is missing", help, code="SR-JSON-004"))
        try:
            parsed = model.model_validate(model.completed(values))
            return _ReadEntry(body, "", None if wrong else parsed, warnings, wrong)
        except ScenarioError as error:
            wrong += [problem._replace(pointer="") for problem in error.problems]
            break
        except ValidationError as error:
            before = len(warnings)
            if rounds < _MOST_ROUNDS:
                body = _put_right(model, body, list(details_of(error)), bool(missing), warnings)
            if len(warnings) == before:
                wrong += [
                    finding
                    for finding in islice(findings(model, error), 4 * MAX_PROBLEMS)
                    if finding.pointer or not any(finding.message.startswith(f"one of {name!r} ") for name in missing)
                ]
                break
    if tells_shape(body.get("src")) and any((problem.pointer or "").startswith("/src") for problem in wrong):
        wrong = [problem for problem in wrong if not _follows_from_src(problem, body)]
    return _ReadEntry(body, "", None, warnings, _without_misspelt(wrong))


def _without_misspelt(problems: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Drop the missing keys that an unknown key beside them resembles. The problem of the unknown key names both."""
    meant = set()
    for problem in problems:
        if problem.code == "SR-JSON-003":
            name = problem.message.partition(" (did you mean ")[2].removesuffix("?)")
            meant.add(((problem.pointer or "").rpartition("/")[0], f"the required key {name} is missing"))
    return [problem for problem in problems if (problem.pointer or "", problem.message) not in meant]


def _follows_from_src(problem: Diagnostic, body: Mapping[str, object]) -> bool:
    """Return whether a problem is about a key that a right object in ``src`` would give."""
    key = (problem.pointer or "").partition("/")[2].partition("/")[0]
    is_missing = any(problem.message == f"the required key {name!r} is missing" for name in _GIVEN_BY_SRC)
    return is_missing or (key in _GIVEN_BY_SRC and key not in body)


def _put_right(
    model: type[Model], body: dict[str, Json], details: Sequence[Any], is_incomplete: bool, warnings: list[Diagnostic]
) -> dict[str, Json]:
    """Correct the faults of a dialect among pydantic's ``details``, and add a warning for each."""
    incomplete = {detail["loc"][:-1] for detail in details if detail["type"] == "missing"}
    if is_incomplete:
        incomplete.add(())
    for detail in details[:_MOST_KEYS]:
        loc = detail["loc"]
        if detail["type"] == "extra_forbidden":
            # the key may be a misspelling of a missing required key
            owner = part_of(model, loc[:-1])
            if loc[:-1] not in incomplete and _has_no_effect(owner, value_at(body, loc[:-1]), loc[-1]):
                body = changed(body, loc)
                warnings.append(_ignored(loc, name_of(owner), _owners(str(loc[-1]))))
            continue
        odd = _integer(body, detail) if detail["type"] == "int_type" else None
        odd = _range(body, loc) if detail["type"] == "too_long" else odd
        if odd is not None:
            body, problem = odd
            warnings.append(problem)
    return body


def _integer(body: Json, detail: Any) -> tuple[Json, Diagnostic] | None:
    """Replace a float without a fraction by an integer."""
    loc, value = _leading(body, detail["loc"]), detail["input"]
    if not isinstance(value, float) or not value.is_integer() or abs(value) > _EXACT or value_at(body, loc) != value:
        return None
    number = int(value)
    message = f"{shown(value)} is taken as the integer {number}"
    return changed(body, loc, number), warning("SR-JSON-008", pointer_of(loc), message, f"write {number}")


def _range(body: Json, loc: tuple[str | int, ...]) -> tuple[Json, Diagnostic] | None:
    """Cut a range to three dimensions if the others are 1."""
    counts = value_at(body, loc)
    if loc != ("rangeND",) or any(type(count) not in (int, float) or count != 1 for count in counts[_DIMENSIONS:]):
        return None
    message = f"a range has {_DIMENSIONS} dimensions, got {len(counts)}: the last ones have no effect"
    problem = warning("SR-JSON-008", pointer_of(loc), message, f"keep the first {_DIMENSIONS}")
    return changed(body, loc, counts[:_DIMENSIONS]), problem


def _leading(value: object, loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return a location's steps that exist in a value. pydantic adds steps for alternative types."""
    for count, step in enumerate(loc):
        if not isinstance(value, (dict, list, tuple)) or isinstance(value, dict) != isinstance(step, str):
            return loc[:count]
        if isinstance(value, dict) and step not in value:
            return loc[:count]
        value = value[step]  # type: ignore[index]
    return loc


def _has_no_effect(owner: type[ModelBase], part: Mapping[str, Json], key: Json) -> bool:
    if key in owner.code_only or key in owner.retired:
        return False
    names = tuple(owner.fields_by_key())
    other = OTHER_NAMES.get(key)
    return other in part if other in names else _is_ignored(key, names)


@lru_cache(256)
def _is_ignored(key: object, names: tuple[str, ...]) -> bool:
    """Return whether a key is a comment, or is unlike all ``names``."""
    try:
        if not isinstance(key, str) or not key.encode():
            return False
    except UnicodeEncodeError:
        return False  # half a surrogate pair: an error in the file
    is_comment = _is_comment(key)
    return is_comment or not (key in names or close_match(key, names))


def _is_comment(key: str) -> bool:
    return key.startswith(_COMMENT_MARKS) or key.lower() in _COMMENTS


@lru_cache(256)
def _owners(key: str) -> str:
    """List the kinds that have a key, in the file's spelling."""
    name = OTHER_NAMES.get(key, key)
    models = dict.fromkeys(map(built, (*RESOURCES.values(), *COMMANDS.values())))
    return ", ".join(model.kind for model in models if name in model.fields_by_key())


def _ignored(loc: Sequence[str | int], what: str, owners: str) -> Diagnostic:
    key = str(loc[-1])
    message = f"the key {shown(key)} is ignored: {with_article(what)} does not have it"
    help = "remove it" if _is_comment(key) or not owners else f"remove it; it is a key of: {owners}"
    return warning("SR-JSON-010", pointer_of(loc), message, help)
