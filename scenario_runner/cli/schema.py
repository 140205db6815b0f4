"""``scenario-runner schema``: the JSON Schema of the scenario format, for editors and other checkers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from scenario_runner.cli.arguments import Parser


def main(argv: Sequence[str]) -> int:
    """Print the schema and return 0."""
    Parser(prog="scenario-runner schema", description="Print the JSON Schema of the scenario format.").parse_args(argv)
    from scenario_runner.scenario import json_schema

    print(json.dumps(json_schema(), indent=2))
    return 0
