"""The combinations of parameters of a scenario: those that its expectations offer, or the nearest ``suite.json``."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count, product
from math import prod
from typing import Any, Final

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioError
from scenario_runner.files.source import MAX_SCENARIO_BYTES, ParameterizedFile, is_model, is_stream, read_file
from scenario_runner.scenario.parameters import text_of, unset, uses
from scenario_runner.suite.records import Item
from scenario_runner.text import close_names, did_you_mean

KEY: Final = "parameters"
KEYS: Final = (KEY, "exclude")
MOST_COMBINATIONS: Final = 10_000
_LONGEST_TEXT: Final = 100  # of a value in the name of an item


def variants(item: Item) -> list[Item]:
    """The items of all combinations, in their order; the item itself where there are none, or they are wrong: its run
    says why."""
    declared = _declared(item)
    if declared is None:
        return [item]
    from pydantic import ValidationError  # heavy, as the model is

    from scenario_runner.suite.expectations.model import Parameters

    try:
        model = Parameters.model_validate({key: declared[1][key] for key in KEYS if key in declared[1]})
    except ValidationError:
        return [item]
    names = _used(item, model.parameters)
    if not names or any(problems_of(model.parameters, model.exclude)):
        return [item]
    chosen = list(combinations({name: model.parameters[name] for name in names}, model.exclude))
    ids = _distinct(["-".join(_text(*part) for part in combination) for combination in chosen])
    return [
        item._replace(id=f"{item.id}[{id}]", parameters={name: value for name, _, value in combination})
        for id, combination in zip(ids, chosen, strict=True)
    ] or [item]


def combinations(
    parameters: Mapping[str, Sequence[Any]], exclude: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[tuple[str, int, Any], ...]]:
    """Yield the combinations that no entry of ``exclude`` is a part of, as names, indices and values."""
    lists = [[(name, index, value) for index, value in enumerate(values)] for name, values in parameters.items()]
    for combination in product(*lists):
        if not is_excluded({name: value for name, _, value in combination}, exclude):
            yield combination


def problems_of(parameters: Mapping[str, Sequence[Any]], exclude: Sequence[Mapping[str, Any]]) -> Iterator[Diagnostic]:
    """Problems of parameters and their combinations; pointers start at the object that has both."""

    def problem(pointer: str, message: str, help: str | None = None) -> Diagnostic:
        return Diagnostic("SR-EXPECT-006", "error", pointer, message, help)

    number = prod(map(len, parameters.values()))
    if number > MOST_COMBINATIONS:
        message = f"have {number:,} combinations, and at most {MOST_COMBINATIONS:,} are possible"
        yield problem("/parameters", message, "use fewer values, or several scenarios")
    elif parameters and not any(combinations(parameters, exclude)):
        yield problem("/exclude", "leaves no combination", "remove an entry")
    for index, entry in enumerate(exclude):
        for name, value in entry.items():
            if name not in parameters:
                close = did_you_mean(close_names(name, parameters, most=1))
                yield problem(f"/exclude/{index}/{name}", f"{name!r:.60} is no parameter{close}")
            elif not is_excluded({name: value}, [{name: offered} for offered in parameters[name]]):
                yield problem(f"/exclude/{index}/{name}", f"{text_of(value):.60} is no value of {name!r}")


def scenario_path(item: Item) -> str | ParameterizedFile:
    """The path of the scenario of an item, with the values that it uses."""
    if not item.parameters:
        return item.path
    names = _uses_of(item.path)
    return ParameterizedFile(item.path, {name: item.parameters[name] for name in item.parameters if name in names})


def is_excluded(values: Mapping[str, Any], exclude: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a combination has all values of an entry. JSON tells 1 from true."""
    texts = {name: json.dumps(value) for name, value in values.items()}
    return any(all(texts.get(name) == json.dumps(value) for name, value in entry.items()) for entry in exclude)


def values_of_scenario(
    item: Item, parameters: Mapping[str, Any], *, needs_expectations: bool = False
) -> dict[str, Any]:
    """The values for a scenario: without those that only its expectations use.

    Raises ScenarioError where the scenario, or its expectations if they are needed, lack values that these offer;
    messages begin with the id.
    """
    path, tree = _declared(item) or ("", {KEY: {}})
    file, text = os.path.basename(path), _text_of(item.path)
    offered = tree[KEY].items() if isinstance(tree[KEY], dict) else ()
    lists = {name: values for name, values in offered if isinstance(values, list)}
    offers = {name: f" ({file} has {', '.join(map(text_of, values)):.200})" for name, values in lists.items()}
    if uses(text).keys() & offers.keys() - parameters.keys():
        raise ScenarioError(unset(text, item.id, parameters, offers))
    check_text = _text_of(item.expectations) if needs_expectations and item.expectations else ""
    if uses(check_text).keys() & offers.keys() - parameters.keys():
        raise ScenarioError(unset(check_text, item.expectations, parameters, offers))
    return {name: value for name, value in parameters.items() if name in uses(text) or name not in lists}


def _declared(item: Item) -> tuple[str, dict[str, Any]] | None:
    """The nearest file that has parameters for an item, and its data; None where none has, or it is not JSON."""
    for path in filter(None, (item.expectations, *item.defaults)):
        text = _text_of(path)
        if f'"{KEY}"' in text:  # also in other places
            with suppress(ValueError, RecursionError):
                tree = json.loads(text)
                if isinstance(tree, dict) and KEY in tree:
                    return path, tree
    return None


def _text_of(path: str) -> str:
    """The text of a file; empty where it cannot be read, which is for others to report."""
    with suppress(OSError, ValueError):
        return read_file(path, MAX_SCENARIO_BYTES).decode("utf-8-sig")
    return ""


def _uses_of(path: str) -> Mapping[str, int]:
    return {} if is_model(path) or is_stream(path) else uses(_text_of(path))


def _used(item: Item, names: Mapping[str, Any]) -> list[str]:
    """List the names that a scenario or its expectations use."""
    used = {*_uses_of(item.path), *uses(_text_of(item.expectations) if item.expectations else "")}
    return [name for name in names if name in used]


def _text(name: str, index: int, value: Any) -> str:
    """A value in the name of an item, as pytest writes it; the name and the index for what a line cannot hold."""
    text = text_of(value)
    fits = not isinstance(value, list) and text.isprintable() and len(text) <= _LONGEST_TEXT
    return text if fits else f"{name}{index}"


def _distinct(ids: list[str]) -> Iterator[str]:
    """Ids of which equal ones are numbered, as pytest does it."""
    counts = Counter(ids)
    taken = {id for id in ids if counts[id] == 1}
    for id in ids:
        if counts[id] > 1:
            stem = f"{id}_" if id[-1:].isdigit() else id
            id = next(name for name in (f"{stem}{number}" for number in count()) if name not in taken)
            taken.add(id)
        yield id
