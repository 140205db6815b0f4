"""Write the files in schemas/ from the models: ``python tools/generate_schema.py``."""

from __future__ import annotations

import json
from pathlib import Path

from scenario_runner.scenario import json_schema
from scenario_runner.suite.expectations import schema

FOLDER = Path(__file__).resolve().parent.parent / "schemas"
SCHEMAS = {"scenario.schema.json": json_schema, "expectations.schema.json": schema.json_schema}


def text(name: str) -> str:
    """A file as it should be."""
    return json.dumps(SCHEMAS[name](), indent=2) + "\n"


if __name__ == "__main__":
    for name in SCHEMAS:
        (FOLDER / name).write_text(text(name))
