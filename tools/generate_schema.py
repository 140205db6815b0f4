"""Write the files in scenario_runner/schemas/ from the models: ``python tools/generate_schema.py``.

Each file is complete, since an editor gets a single file: the schema of scenarios contains the expectations. An ``$id``
is a name, not an address. The last part is a version, which rises when a schema refuses files that it accepted before.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # before a package that is installed

from scenario_runner.files.vk_formats import all_formats
from scenario_runner.plan.tensors import is_format_of_tensors
from scenario_runner.scenario.kinds import json_schema
from scenario_runner.suite.expectations.format import json_schema as of_expectations
from scenario_runner.suite.expectations.format import suite_schema
from scenario_runner.tosa.attribute_models import json_schema as of_custom_shader

_CHECKOUT = Path(__file__).resolve().parent.parent
_FOLDER = _CHECKOUT / "scenario_runner" / "schemas"
_EXAMPLES = _CHECKOUT / "docs" / "format_examples.json"
_VERSION = 1


def of_scenario() -> dict[str, Any]:
    """Make the scenario schema, with the schema for ``expect``, an example of each kind, and formats for editors."""
    schema, expectations = json_schema(), of_expectations()
    parts, more = schema["$defs"], expectations.pop("$defs")
    more["Expectations"] = {key: part for key, part in expectations.items() if key != "$schema"}
    assert not parts.keys() & more.keys(), "two parts of one name"
    schema["$defs"] = dict(sorted((parts | more).items()))
    schema["properties"]["expect"]["$ref"] = "#/$defs/Expectations"
    for model in ("Image", "Tensor", "GraphConstant"):
        suits = is_format_of_tensors if model != "Image" else lambda entry: not entry.is_of_tensors
        parts[model]["properties"]["format"]["examples"] = [format.name for format in filter(suits, all_formats())]
    scenario = json.loads(_EXAMPLES.read_text(encoding="utf-8"))
    for name in ("resources", "commands"):
        kinds = schema["properties"][name]["items"]["properties"]
        for entry in scenario[name]:
            ((kind, example),) = entry.items()
            if kind in kinds:
                parts[kinds[kind]["$ref"].rpartition("/")[2]].setdefault("examples", [example])
    return schema


_USE = r"\$\{[A-Za-z_][A-Za-z_0-9]*\}"
_NOT_SCHEMAS = ("default", "enum", "examples", "not", "propertyNames")


def with_parameters(schema: Any) -> Any:
    """Let a schema accept `${name}` within strings, and instead of any value but objects and arrays of objects."""
    if isinstance(schema, list):
        return list(map(with_parameters, schema))
    if not isinstance(schema, dict):
        return schema
    schema = {key: part if key in _NOT_SCHEMAS else with_parameters(part) for key, part in schema.items()}
    types = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type")
    items = schema.get("items", {})
    has_objects = "$ref" in items or items.get("type") == "object"
    if isinstance(types, list) and not {"object", "string"} & {*types} and not has_objects:
        schema |= {"type": [*types, "string"], "pattern": f"^{_USE}$"}  # patterns only apply to strings
    elif isinstance(schema.get("pattern"), str):
        schema["pattern"] = f"(?:{schema['pattern']})|{_USE}"
    if isinstance(schema.get("enum"), list):
        schema["anyOf"] = [{"enum": schema.pop("enum")}, {"pattern": _USE}]
    return schema


SCHEMAS: dict[Path, Callable[[], dict[str, Any]]] = {
    _FOLDER / "scenario.schema.json": of_scenario,
    _FOLDER / "expectations.schema.json": of_expectations,
    _FOLDER / "suite.schema.json": suite_schema,
    _FOLDER / "custom-op.schema.json": of_custom_shader,
}
"""Each file with the function that makes the schema."""


def text(path: Path) -> str:
    """Return a file's text."""
    schema = SCHEMAS[path]()
    if path.name != "custom-op.schema.json":
        schema = with_parameters(schema)
    dialect = schema.pop("$schema")
    id = f"urn:scenario-runner:schema:{path.name.removesuffix('.schema.json')}:{_VERSION}"
    return json.dumps({"$schema": dialect, "$id": id, **schema}, indent=2) + "\n"


if __name__ == "__main__":
    for path in SCHEMAS:
        path.write_text(text(path))
