"""Combinations of a scenario's parameters, which the expectations or the nearest ``suite.json`` offer."""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count, product
from math import prod
from typing import Final

from scenario_runner.errors import ScenarioError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json, close_names, did_you_mean
from scenario_runner.files.input import MAX_SCENARIO_BYTES, ParameterizedFile, is_model, is_stream, read_file
from scenario_runner.files.json_text import parse
from scenario_runner.files.parameters import text_of, unset, uses
from scenario_runner.suite.outcomes import Item

KEY: Final = "parameters"
KEYS: Final = (KEY, "exclude")
MOST_COMBINATIONS: Final = 10_000
MOST_PARAMETERS: Final = 100
FILES_KEPT: Final = 16
_MOST_OFFERED: Final = 100  # values in a message
_LONGEST_TEXT: Final = 100  # of a value in the name of an item


def file_text(path: str | None) -> str:
    """Read a scenario or expectations. For an unreadable file, the text is empty and the run reports the error."""
    with suppress(OSError, ValueError):
        if path and not is_model(path) and not is_stream(path):
            return read_file(path, MAX_SCENARIO_BYTES).decode("utf-8-sig")
    return ""


def variants(item: Item, read: Callable[[str | None], str] = file_text) -> list[Item]:
    """Return an item for each combination, in order. An item without valid combinations stays a single item.

    ``read`` is `file_text`, or a cache of it.
    """
    text = _declared(item, read)[1]
    used = frozenset((*uses(read(item.path)), *uses(read(item.expectations)))) if text else frozenset()
    if not used or not os.path.exists(item.path):
        return [item]
    return [
        item._replace(id=f"{item.id}[{id}]", parameters=values, variant=f"[{id}]")
        for id, values in _combinations_of(text, used)
    ] or [item]


@lru_cache(FILES_KEPT)
def _combinations_of(text: str, used: frozenset[str]) -> list[tuple[str, dict[str, object]]]:
    """Return ids and values for each combination of used parameters. A wrong file has no combinations."""
    from pydantic import ValidationError  # takes 50 ms, and so does the model

    from scenario_runner.suite.expectations.format import Parameters

    try:
        model = Parameters.model_validate(_tree(text))
    except ValidationError:
        return []
    lists = {name: values for name, values in model.parameters.items() if name in used}
    if not lists or any(problems_of(model.parameters, model.exclude)):
        return []
    chosen = list(combinations(lists, model.exclude))
    ids = _distinct(["-".join(_text(*part) for part in combination) for combination in chosen])
    return [(id, {name: value for name, _, value in parts}) for id, parts in zip(ids, chosen, strict=True)]


def combinations(
    parameters: Mapping[str, Sequence[object]], exclude: Sequence[Mapping[str, object]]
) -> Iterator[tuple[tuple[str, int, object], ...]]:
    """Yield combinations as names, indices and values. A combination must not contain an entry of ``exclude``."""
    lists = [[(name, index, value) for index, value in enumerate(values)] for name, values in parameters.items()]
    excluded = _excluded(parameters, exclude)
    for number, combination in enumerate(product(*lists)):
        if not excluded >> number & 1:
            yield combination


def _excluded(parameters: Mapping[str, Sequence[object]], exclude: Sequence[Mapping[str, object]]) -> int:
    """Return a set of bits: bit n is 1 if the combination n contains an entry of ``exclude``."""
    if not exclude:
        return 0
    masks: dict[tuple[str, str], int] = {}  # bits of the combinations with a value
    total = step = prod(map(len, parameters.values()))
    for name, values in parameters.items():
        period, step = step, step // len(values)
        every = ((1 << total) - 1) // ((1 << period) - 1) * ((1 << step) - 1)
        for index, value in enumerate(values):
            key = name, json.dumps(value)  # 1 is not true
            masks[key] = masks.get(key, 0) | every << index * step
    excluded = 0
    for entry in exclude:
        part = (1 << total) - 1
        for name, value in entry.items():
            part &= masks.get((name, json.dumps(value)), 0)
        excluded |= part
    return excluded


def problems_of(
    parameters: Mapping[str, Sequence[Json]], exclude: Sequence[Mapping[str, object]]
) -> Iterator[Diagnostic]:
    """Yield problems of parameters and excluded combinations. Pointers start at the object with both keys."""

    def problem(pointer: str, message: str, help: str | None = None) -> Diagnostic:
        return Diagnostic("SR-EXPECT-006", "error", pointer, message, help)

    number = prod(map(len, parameters.values()))
    if len(parameters) > MOST_PARAMETERS:
        message = f"has {len(parameters):,} parameters, expected at most {MOST_PARAMETERS}"
        yield problem("/parameters", message, "replace parameters of one value by the value")
        return
    if number > MOST_COMBINATIONS:
        message = f"have {number:,} combinations, expected at most {MOST_COMBINATIONS:,}"
        yield problem("/parameters", message, "use fewer values, or several scenarios")
    elif parameters and not any(combinations(parameters, exclude)):
        yield problem("/exclude", "leaves no combination", "remove an entry")
    texts = {name: {json.dumps(value) for value in values} for name, values in parameters.items()}
    for index, entry in enumerate(exclude):
        for name, value in entry.items():
            if name not in texts:
                close = did_you_mean(close_names(name, parameters, most=1))
                yield problem(f"/exclude/{index}/{name}", f"{name!r:.60} is not a parameter{close}")
            elif json.dumps(value) not in texts[name]:
                yield problem(f"/exclude/{index}/{name}", f"{json.dumps(value):.60} is not a value of {name!r}")


def scenario_path(item: Item) -> str | ParameterizedFile:
    """Return the path of an item's scenario, together with parameter values."""
    return ParameterizedFile(item.path, values_of_scenario(item, item.parameters)) if item.parameters else item.path


def values_of_scenario(
    item: Item,
    parameters: Mapping[str, object],
    *,
    needs_expectations: bool = False,
    read: Callable[[str | None], str] = file_text,
) -> dict[str, object]:
    """Return ``parameters`` without those that the suite offers and the scenario does not use.

    Raises ScenarioError if the scenario uses an offered parameter without a value. ``needs_expectations`` checks the
    expectations in the same way. Messages begin with the item's id or with the path of the expectations.
    """
    path, check = _declared(item, read)
    offered = _tree(check).get(KEY)
    pairs = offered.items() if isinstance(offered, dict) else ()
    lists = {name: values for name, values in pairs if isinstance(values, list) and values}
    text = read(item.path)
    check = read(item.expectations) if needs_expectations else ""
    used = uses(text)
    for name, content in ((item.id, text), (item.expectations, check)):
        if lacks := uses(content).keys() & lists.keys() - parameters.keys():
            texts = {lack: ", ".join(map(text_of, lists[lack][:_MOST_OFFERED])) for lack in lacks}
            offers = {lack: f" ({os.path.basename(path)} has {shown:.200})" for lack, shown in texts.items()}
            raise ScenarioError(unset(content, name, parameters, offers))
    return {name: value for name, value in parameters.items() if name in used or name not in lists}


def _declared(item: Item, read: Callable[[str | None], str]) -> tuple[str, str]:
    """Return the path and the text of the nearest file with parameters, or two empty strings."""
    paths = (path for path in (item.expectations, *item.defaults) if path)
    return next(((path, text) for path in paths if _tree(text := read(path))), ("", ""))


@lru_cache(FILES_KEPT)
def _tree(text: str) -> dict[str, object]:
    """Return a file's keys about parameters. Without such keys or valid JSON, return nothing."""
    with suppress(ValueError):
        tree = parse(text, is_lenient=True) if f'"{KEY}"' in text else None
        if isinstance(tree, dict) and KEY in tree:
            return {key: tree[key] for key in KEYS if key in tree}
    return {}


def _text(name: str, index: int, value: Json) -> str:
    """Format a value for the id of an item like pytest: long or unprintable values become name and index."""
    text = text_of(value)
    fits = not isinstance(value, list) and text.isprintable() and len(text) <= _LONGEST_TEXT
    return text if fits else f"{name}{index}"


def _distinct(ids: list[str]) -> Iterator[str]:
    """Yield ids, and number equal ids like pytest."""
    counts, taken = Counter(ids), set(ids)
    numbers: defaultdict[str, Iterator[int]] = defaultdict(count)
    for id in ids:
        if counts[id] > 1:
            stem = f"{id}_" if id[-1:].isdigit() else id
            id = next(name for number in numbers[stem] if (name := f"{stem}{number}") not in taken)
            taken.add(id)
        yield id
