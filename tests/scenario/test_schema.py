"""The JSON Schema, and the file of it that is committed."""

import importlib.util
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from scenario_runner.scenario.kinds import json_schema

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "scenario_runner" / "schemas"
COMMITTED = {path.name.split(".")[0]: json.loads(path.read_text()) for path in FOLDER.iterdir()}


def test_committed():
    """The committed schemas equal the models' schemas."""
    spec = importlib.util.spec_from_file_location("generate_schema", ROOT / "tools" / "generate_schema.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert set(generate.SCHEMAS) == set(FOLDER.iterdir())
    for path in generate.SCHEMAS:
        assert path.read_text() == generate.text(path)


@pytest.mark.parametrize("name", COMMITTED)
def test_stands_alone(name):
    """Each schema is valid, has its own name, refers only to its own parts and describes every key."""
    schema = COMMITTED[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:scenario-runner:schema:{name}:1"
    references = {part["$ref"] for _, part in every_part(schema) if "$ref" in part}
    assert references <= {f"#/$defs/{part}" for part in schema["$defs"]}
    keys = [key for part in (schema, *schema["$defs"].values()) for key in part.get("properties", {}).items()]
    assert [key for key, value in keys if not value.get("description")] == []


def test_files_of_the_examples():
    """Every scenario, check.json and suite.json of the examples is right; examples in the schema itself are, too."""
    names = {"scenario.json": "scenario", "check.json": "expectations", "suite.json": "suite"}
    validators = {name: Draft202012Validator(COMMITTED[schema]) for name, schema in names.items()}
    files = [path for path in (ROOT / "scenarios").rglob("*.json") if path.name in names]
    assert len(files) > 90
    assert [path for path in files if not validators[path.name].is_valid(json.loads(path.read_text()))] == []
    parts = {"$defs": COMMITTED["scenario"]["$defs"]}
    kinds = [part for part in COMMITTED["scenario"]["$defs"].values() if isinstance(part.get("examples"), list)]
    assert len(kinds) >= 17
    for part in kinds:
        assert Draft202012Validator(parts | part).is_valid(part["examples"][0])


@pytest.mark.parametrize(
    "kind, name, offered, refused",
    [
        ("Image", "format", "VK_FORMAT_BC7_SRGB_BLOCK", "VK_FORMAT_R8_BOOL_ARM"),
        ("Tensor", "format", "VK_FORMAT_R8_BOOL_ARM", "VK_FORMAT_R8G8_UNORM"),
        ("GraphConstant", "format", "VK_FORMAT_R8_SINT", "VK_FORMAT_BC4_UNORM_BLOCK"),
        ("Image", "shader_access", "readonly", "read"),
        ("Output", "nan", "equal", "same"),
    ],
)
def test_values_that_editors_offer(kind, name, offered, refused):
    """Values that a key can have are listed where there are some."""
    key = COMMITTED["scenario"]["$defs"][kind]["properties"][name]
    choices = key.get("examples") or key["anyOf"][0]["enum"]
    assert offered in choices
    assert refused not in choices


def test_parameters():
    """`${name}` may stand for all but objects and be a part of a choice; other strings are as wrong as without it."""
    squares = ROOT / "scenarios" / "parameters" / "squares"
    scenario, check = (json.loads((squares / name).read_text()) for name in ("squares.json", "squares.check.json"))
    image = {"uid": "i", "dims": ["${n}", 4], "format": "VK_FORMAT_R${bits}_UINT", "shader_access": "read${access}"}
    resources = [*scenario["resources"], {"image": image | {"mips": "${mips}"}}]
    for kind, right, wrong in (
        ("scenario", {**scenario, "resources": resources}, {**scenario, "resources": "${n}"}),
        ("scenario", scenario, {**scenario, "resources": [{"image": image | {"mips": "4"}}]}),
        ("scenario", scenario, {**scenario, "resources": [{"image": image | {"shader_access": "${access"}}]}),
        ("expectations", check | {"timeout": "${s}"}, check | {"timeout": "${s} s"}),
        ("suite", {"repeat": "${n}", "tolerances": {"nan": "${nan}"}}, {"tolerances": {"nan": "nan"}}),
    ):
        validator = Draft202012Validator(COMMITTED[kind])
        assert (validator.is_valid(right), validator.is_valid(wrong)) == (True, False)


def test_wrong_expectations_in_a_scenario():
    """The schema of scenarios contains the schema of `expect`."""
    validator = Draft202012Validator(COMMITTED["scenario"])
    scenario = {"resources": [], "commands": [], "expect": {"outputs": {"a": {"nan": "any"}}}}
    assert validator.is_valid(scenario)
    scenario["expect"]["outputs"]["a"]["nan"] = "some"
    (error,) = validator.iter_errors(scenario)
    assert list(error.absolute_path) == ["expect", "outputs", "a", "nan"]


def every_part(schema, path=""):
    """Every object inside a schema, with where it is."""
    if isinstance(schema, dict):
        yield path, schema
    steps = schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ()
    for step, part in steps:
        yield from every_part(part, f"{path}/{step}")


def test_open_and_described():
    """Objects may have unknown keys, marked as deprecated, and every property has a description."""
    schema = json_schema()
    found = [(path, part) for path, part in every_part(schema) if part.get("type") == "object"]
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
    """The schema lacks keys for code alone, and requires src for files."""
    definition = json_schema()["$defs"][model]
    assert name not in definition["properties"]
    assert ("src" in definition["required"]) == (model in ("RawData", "GraphConstant", "Graph", "Shader"))


def test_no_null():
    """No value in the schema may be null."""
    assert "null" not in json.dumps(json_schema())
