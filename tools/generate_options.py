"""Write scenario_runner/cli/options.json, the options that shells complete: ``python tools/generate_options.py``."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path

from scenario_runner.cli import COMMANDS, main

FILE = Path(__file__).resolve().parent.parent / "scenario_runner" / "cli" / "options.json"
OPTION = re.compile(r"--[a-z][a-z-]*")


def options() -> dict[str, list[str]]:
    """The options that the help text of each command lists."""
    found = {}
    for command in COMMANDS:
        if command in ("help", "completion"):
            continue
        text = io.StringIO()
        with redirect_stdout(text):
            main([command, "--help"])
        listed = (line.strip().split("  ")[0] for line in text.getvalue().splitlines() if line.startswith("  -"))
        found[command] = sorted({option for words in listed for option in OPTION.findall(words)})
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(options(), indent=1) + "\n", encoding="utf-8")
