"""Write schemas/scenario.schema.json from the models: ``python tools/generate_schema.py``."""

from __future__ import annotations

import json
from pathlib import Path

from scenario_runner.scenario import json_schema

SCHEMA = Path(__file__).resolve().parent.parent / "schemas" / "scenario.schema.json"


def text() -> str:
    """The file as it should be."""
    return json.dumps(json_schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text())
