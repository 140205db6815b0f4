"""JSON Schema (draft 2020-12) of a scenario, for editors and other programs.

The schema comes from the models. It accepts each entry that the loader accepts, and marks keys without effect as
deprecated. A schema cannot find misspelt keys or check references between entries, so the loader does.
"""

from collections.abc import Mapping

from pydantic.json_schema import models_json_schema

from scenario_runner.errors.text import Json
from scenario_runner.scenario.entries import Model
from scenario_runner.scenario.kinds import COMMANDS, RESOURCES

_TEMPLATE = "#/$defs/{model}"
_FURTHER = {"deprecated": True, "description": "No key of this object: it has no effect, or it is misspelt."}


def json_schema() -> dict[str, object]:
    """Return the schema as JSON data. An entry has one key, a kind in any spelling."""
    parts = {model.__name__: model for model in _all_models(Model)}
    for model in parts.values():
        model.model_rebuild()  # pydantic 2.7 omits defaults that are models before they are built
    models = dict.fromkeys((*RESOURCES.values(), *COMMANDS.values()))
    _, generated = models_json_schema([(model, "validation") for model in models], ref_template=_TEMPLATE)
    definitions = {
        name: _definition(parts[name], definition) for name, definition in sorted(generated["$defs"].items())
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario",
        "description": "Resources, and the commands that use them.",
        "type": "object",
        "properties": {
            "$schema": {"type": "string", "description": "Path or URL of this schema, for editors."},
            "resources": _entries("The resources, in any order.", RESOURCES),
            "commands": _entries("The commands, in the order in which they run.", COMMANDS),
            "expect": {
                "$ref": "expectations.schema.json",
                "description": "Expectations, as in a check.json beside it; not used by a run.",
            },
        },
        "required": ["resources", "commands"],
        "additionalProperties": _FURTHER,
        "$defs": definitions,
    }


def _all_models(base: type[Model]) -> list[type[Model]]:
    return [model for child in base.__subclasses__() for model in (child, *_all_models(child))]


def _entries(description: str, kinds: Mapping[str, type[Model]]) -> dict[str, object]:
    entry = {
        "type": "object",
        "properties": {key: {"$ref": _TEMPLATE.format(model=model.__name__)} for key, model in kinds.items()},
        "additionalProperties": _FURTHER,
        "oneOf": [{"required": [key]} for key in kinds],
    }
    return {"type": "array", "description": description, "items": entry}


def _definition(model: type[Model], definition: dict[str, Json]) -> dict[str, Json]:
    """Return a model's pydantic schema without the fields for code, and with the keys that files require."""
    cleaned: dict[str, Json] = without_null(definition)
    cleaned["description"] = model.summary()
    properties = {name: part for name, part in cleaned["properties"].items() if name not in model.code_only}
    cleaned["properties"] = properties
    cleaned["additionalProperties"] = _FURTHER
    refused = sorted({*model.code_only, *model.retired})
    if refused:
        cleaned["propertyNames"] = {"not": {"enum": refused}}
    required = {*cleaned.pop("required", ()), *model.required_in_json}
    if required:
        cleaned["required"] = [name for name in properties if name in required]
    return model.in_schema(cleaned)


def without_null(schema: Json) -> Json:
    """Return a schema without null and titles: a file leaves a key out, and titles repeat the keys."""
    if isinstance(schema, list):
        return [without_null(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {
        key: without_null(part)
        for key, part in schema.items()
        if not (key == "default" and part is None) and not (key == "title" and isinstance(part, str))
    }
    choices = [part for part in cleaned.get("anyOf", ()) if part != {"type": "null"}]
    if choices and len(choices) < len(cleaned["anyOf"]):
        del cleaned["anyOf"]
        cleaned = (choices[0] if len(choices) == 1 else {"anyOf": choices}) | cleaned
    return cleaned
