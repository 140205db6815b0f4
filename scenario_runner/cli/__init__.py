"""The command line: one small module per command, imported when the command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "run": "run scenarios (what happens when no command is named)",
    "validate": "check scenarios without a GPU",
    "schema": "print the JSON Schema of the scenario format",
    "doctor": "show what this machine has and lacks for running scenarios",
}

INTERRUPTED_EXIT_CODE = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; see `errors` for what each code means.

    Without a command word the arguments are those of ``run``: ``scenario-runner test.json``. A scenario file that has
    the name of a command is given as ``./run``.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = "run"
    if arguments and arguments[0] in COMMANDS:
        name = arguments.pop(0)
    from scenario_runner.errors import ScenarioRunnerError

    try:
        return int(import_module(f"scenario_runner.cli.{name}").main(arguments))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        return 1  # whoever read our output has gone; there is nobody to tell
    except ScenarioRunnerError as error:
        from scenario_runner.cli.report import show_error

        show_error(error)
        return error.exit_code
