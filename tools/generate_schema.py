"""Write the files in schemas/ from the models: ``python tools/generate_schema.py``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scenario_runner.custom_shader.reading import json_schema as of_custom_shader
from scenario_runner.scenario import json_schema as of_scenario
from scenario_runner.suite.expectations.model import json_schema as of_expectations
from scenario_runner.suite.expectations.model import suite_schema

_FOLDER = Path(__file__).resolve().parent.parent / "schemas"

SCHEMAS: dict[Path, Callable[[], dict[str, Any]]] = {
    _FOLDER / "scenario.schema.json": of_scenario,
    _FOLDER / "expectations.schema.json": of_expectations,
    _FOLDER / "suite.schema.json": suite_schema,
    _FOLDER / "custom_shader.schema.json": of_custom_shader,
}
"""Each file, and what makes it."""


def text(path: Path) -> str:
    """A file as it should be."""
    return json.dumps(SCHEMAS[path](), indent=2) + "\n"


if __name__ == "__main__":
    for path in SCHEMAS:
        path.write_text(text(path))
