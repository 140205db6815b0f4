"""Check expectations without a device, and generate their JSON Schema (draft 2020-12) from the models."""

from __future__ import annotations

from typing import Any

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.scenario import load as load_scenario
from scenario_runner.suite.expectations import model
from scenario_runner.suite.expectations.binding import bind
from scenario_runner.suite.expectations.devices import VENDORS
from scenario_runner.suite.expectations.model import Check
from scenario_runner.suite.expectations.outputs import expected_files, outputs_of_scenario
from scenario_runner.suite.expectations.reading import load
from scenario_runner.suite.records import Item
from scenario_runner.suite.tolerance.metrics import METRICS


def check(item: Item) -> list[Diagnostic]:
    """All problems of the expectations of an item, in themselves and against its scenario; none where there are none.

    Headers of expected files are read. What is wrong with the scenario itself is not said: a run does.
    """
    try:
        expectations = load(item)
    except ScenarioRunnerError as error:
        return list(error.problems)
    if expectations.expects_failure:
        return []
    try:
        files = expected_files(expectations.expected_folder)
    except ScenarioRunnerError as error:
        return list(error.problems)
    given = expectations.written
    if not files and not given.outputs and not given.when:
        return []

    try:
        outputs = outputs_of_scenario(load_scenario(item.path), given.repeat)
    except ScenarioRunnerError:
        return []

    problems: dict[tuple[str, str], Diagnostic] = {}
    for condition in (None, *range(len(given.when))):
        try:
            bind(expectations.with_condition(condition), outputs, files)
        except ScenarioRunnerError as error:
            for problem in error.problems:
                problems.setdefault((problem.code, problem.message), problem)
    return list(problems.values())


_TEMPLATE = "#/$defs/{model}"


def json_schema() -> dict[str, Any]:
    """The schema as JSON data. What a schema cannot say (which outputs there are) is left to `validation.check`."""
    generated = Check.model_json_schema(ref_template=_TEMPLATE)
    parts = {name: _part(name, part) for name, part in sorted(generated.pop("$defs").items())}
    whole = _part("Check", generated)
    parts["Output"]["properties"]["values"] = {"$ref": _TEMPLATE.format(model="Values")} | {
        "description": parts["Output"]["properties"]["values"]["description"]
    }
    parts["Output"]["properties"]["sha256"] = _one_or_several(parts["Output"]["properties"]["sha256"])
    parts["Output"]["properties"]["sha256"]["anyOf"][1]["minItems"] = 1
    for name in ("capabilities", "features", "extensions"):
        parts["Needs"]["properties"][name] = _one_or_several(parts["Needs"]["properties"][name])
    whole["properties"]["codes"] = _one_or_several(whole["properties"]["codes"])
    needs = whole["properties"]["needs"]
    names = parts["Needs"]["properties"]["capabilities"]["anyOf"]
    whole["properties"]["needs"] = {
        "anyOf": [*names, {"$ref": _TEMPLATE.format(model="Needs")}],
        "description": needs["description"],
    }
    condition = parts["Condition"]["properties"]
    condition["driver_version"]["pattern"] = r"^\s*((<=|>=|==|!=|<|>)\s*\d+(\.\d+)*\s*)+$"
    vendors = "|".join("".join(f"[{letter}{letter.upper()}]" for letter in vendor) for vendor in VENDORS)
    condition["vendor"]["pattern"] = f"^({vendors}|0[xX][0-9a-fA-F]{{1,8}})$"
    for name, metric in METRICS.items():
        if metric.defaults is None:
            parts["Metrics"]["properties"][name]["minProperties"] = 1
    parts["Values"] = {
        "description": "A number, a text that stands for one, or an array of such values.",
        "anyOf": [
            {"type": ["number", "boolean"]},
            {"type": "string", "pattern": "^(nan|-?inf|0x[0-9a-fA-F]{1,16})$"},
            {"type": "array", "items": {"$ref": _TEMPLATE.format(model="Values")}},
        ],
    }
    schema = {"type": "string", "description": "Path or URL of this schema, for editors; not used by a run."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Expectations",
        **whole,
        "properties": {"$schema": schema, **whole["properties"]},
        "$defs": dict(sorted(parts.items())),
    }


def _part(name: str, definition: dict[str, Any]) -> dict[str, Any]:
    """A model's schema as pydantic makes it, less null and what repeats the names of the keys."""
    from scenario_runner.scenario.schema import without_null

    cleaned: dict[str, Any] = without_null(definition)
    cleaned.pop("title", None)
    cleaned["description"] = getattr(model, name).__doc__
    for part in cleaned["properties"].values():
        part.pop("title", None)
    return cleaned


def _one_or_several(part: dict[str, Any]) -> dict[str, Any]:
    """One text, or an array of such."""
    array = {key: value for key, value in part.items() if key not in ("description", "default")}
    return {"anyOf": [array["items"], array], "description": part["description"]}
