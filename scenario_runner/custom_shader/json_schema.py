"""JSON Schema (draft 2020-12) of the attributes, for editors and for programs that write them.

It is generated from the models. What a schema cannot say (indices without gaps, the number of operands, base64 of a
module) is left to `examine_attributes`, which also takes null for an optional key that is left out.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from scenario_runner.custom_shader.model import CustomShader, Resource
from scenario_runner.scenario.schema import without_null

_INDEXED = "^(input|output)_(0|[1-9][0-9]*)_{name}$"


def json_schema() -> dict[str, Any]:
    """The schema as JSON data: an object whose further keys may be anything but indices with leading zeros."""
    _, generated = models_json_schema(
        [(CustomShader, "validation"), (Resource, "validation")], ref_template="#/$defs/{model}"
    )
    definitions = without_null(generated["$defs"])
    shader, resource = definitions.pop("CustomShader"), definitions.pop("Resource")
    for model in (shader, resource, *definitions.values()):
        for part in model["properties"].values():
            part.pop("title", None)
    for model in definitions.values():
        model.pop("title", None)
        model["additionalProperties"] = True
    languages = [name for name in shader["properties"]["shader_language"]["enum"] if name]
    with_language = {"properties": {"shader_language": {"enum": languages}}, "required": ["shader_language"]}
    with_code = {"properties": {"shader_code": {"minLength": 1}}, "required": ["shader_code"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Attributes of a custom operation with a Vulkan shader",
        "description": shader["description"],
        "type": "object",
        "properties": shader["properties"],
        "required": shader["required"],
        "patternProperties": {
            **{_INDEXED.format(name=name): part for name, part in resource["properties"].items()},
            "^(input|output)_0[0-9]+_": False,
        },
        "additionalProperties": True,
        "allOf": [
            {"if": with_language, "then": with_code},
            {"if": with_code, "then": with_language},
        ],
        "$defs": definitions,
    }
