"""``scenario-runner schema``: the JSON Schemas of the formats, for editors and other checkers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from scenario_runner import scenario
from scenario_runner.cli.arguments import Parser
from scenario_runner.custom_shader import reading


def main(argv: Sequence[str]) -> int:
    """Print the schema and return 0."""
    parser = Parser(prog="scenario-runner schema", description="Print a JSON Schema.")
    parser.add_argument(
        "format",
        nargs="?",
        choices=("scenario", "custom-op"),
        default="scenario",
        help="scenario: of scenario files (default); custom-op: of the attributes of custom operations with shaders",
    )
    schema_of = {"scenario": scenario.json_schema, "custom-op": reading.json_schema}[parser.parse_args(argv).format]
    print(json.dumps(schema_of(), indent=2))
    return 0
