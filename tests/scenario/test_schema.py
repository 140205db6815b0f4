"""The JSON Schema, and the file of it that is committed."""

import importlib.util
import json
from pathlib import Path

import pytest

from scenario_runner.scenario import json_schema

ROOT = Path(__file__).resolve().parents[2]


def test_committed():
    """The committed schemas are what the models give."""
    spec = importlib.util.spec_from_file_location("generate_schema", ROOT / "tools" / "generate_schema.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert set(generate.SCHEMAS) == set((ROOT / "schemas").iterdir())
    for path in generate.SCHEMAS:
        assert path.read_text() == generate.text(path)


def every_object(schema, path=""):
    """Every object type inside a schema, with where it is."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield path, schema
        for key, part in schema.items():
            yield from every_object(part, f"{path}/{key}")
    elif isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from every_object(part, f"{path}/{index}")


def test_open_and_described():
    """Objects may have further keys, which are deprecated; every property of a model says what it is."""
    schema = json_schema()
    found = list(every_object(schema))
    assert len(found) >= 30
    for path, part in found:
        assert part["additionalProperties"]["deprecated"], path
        if path.startswith("/$defs"):
            for name, value in part["properties"].items():
                assert value.get("description"), f"{path}/{name}"
    assert all(definition.get("description") for definition in schema["$defs"].values())


@pytest.mark.parametrize(
    "model, name",
    [
        *((model, "data") for model in ("Buffer", "Tensor", "Image", "RawData", "GraphConstant", "Graph")),
        ("Shader", "source"),
    ],
)
def test_code_only(model, name):
    """What only code can give is not in the schema, and src is required where a file needs it."""
    definition = json_schema()["$defs"][model]
    assert name not in definition["properties"]
    assert ("src" in definition["required"]) == (model in ("RawData", "GraphConstant", "Graph", "Shader"))


def test_no_null():
    """Nothing in the schema may be null."""
    assert "null" not in json.dumps(json_schema())
