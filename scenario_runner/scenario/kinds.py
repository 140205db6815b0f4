"""The registry of kinds: the model for each key of a resource or command, and the JSON schema of a scenario.

`read_models` reads entries that follow the format exactly, by the model of their kind. It diagnoses nothing.

Other packages have tables by kind: `plan.resolve` the resolvers, `vulkan.execute` the creators and
`vulkan.frame_recording` the recorders.

The schema (draft 2020-12) comes from the models, for editors and other programs. It accepts each entry that the loader
accepts, and marks keys without effect as deprecated. A schema cannot find misspelt keys or check references between
entries, so the loader does.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic.json_schema import models_json_schema

from scenario_runner.errors import ScenarioError
from scenario_runner.errors.text import Json
from scenario_runner.files.json_text import has_null
from scenario_runner.scenario import commands, drawing, resources, shaders
from scenario_runner.scenario.entries import Model, built

# Models of resources by key.
RESOURCES: Mapping[str, type[Model]] = {
    "image": resources.Image,
    "tensor": resources.Tensor,
    "buffer": resources.Buffer,
    "raw_data": resources.RawData,
    "shader": shaders.Shader,
    "graph": shaders.Graph,
    "graph_constant": shaders.GraphConstant,
    "memory_barrier": resources.MemoryBarrier,
    "buffer_barrier": resources.BufferBarrier,
    "image_barrier": resources.ImageBarrier,
    "tensor_barrier": resources.TensorBarrier,
}

# Models of commands by key. An older spelling follows the key.
COMMANDS: Mapping[str, type[Model]] = {
    "dispatch_compute": commands.DispatchCompute,
    "dispatch_graph": commands.DispatchGraph,
    "dispatch_vgf": commands.DispatchGraph,
    "dispatch_spirv_graph": commands.DispatchSpirvGraph,
    "dispatch_data_graph": commands.DispatchSpirvGraph,
    "dispatch_fragment": drawing.DispatchFragment,
    "dispatch_optical_flow": commands.DispatchOpticalFlow,
    "fill": commands.Fill,
    "copy": commands.Copy,
    "dispatch_barrier": commands.DispatchBarrier,
    "pipeline_barrier": commands.DispatchBarrier,
    "mark_boundary": commands.MarkBoundary,
    "frame_boundary": commands.MarkBoundary,
}


class Entries(NamedTuple):
    """An array's entries: models, kinds as the data spells them, and indices of refused entries.

    A refused entry has the model None and no kind until `diagnosis` reads it.
    """

    models: list[Any]
    keys: list[str]
    refused: list[int]


def read_models(
    entries: Sequence[Json], kinds: Mapping[str, type[Model]], *, in_code: bool, may_have_null: bool
) -> Entries:
    """Validate an array's entries. ``in_code`` accepts the fields for code; ``may_have_null`` refuses nulls."""
    models: list[Any] = []
    keys: list[str] = []
    refused: list[int] = []
    for index, entry in enumerate(entries):
        try:
            ((key, body),) = entry.items()
            model = built(kinds[key])
            if in_code or type(body.get("src")) is dict:
                body = model.completed(body)
            if not in_code and (not model.code_only.isdisjoint(body) or (may_have_null and has_null(body))):
                raise ValueError
            models.append(model.__pydantic_validator__.validate_python(body))
            keys.append(key)
        except (ScenarioError, AttributeError, ValueError, KeyError, TypeError):
            models.append(None)
            keys.append("")
            refused.append(index)
    return Entries(models, keys, refused)


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
