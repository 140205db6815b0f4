"""The command line: one small module per command, imported when the command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "run": "run scenarios (what happens when no command is named)",
    "validate": "check scenarios without a GPU",
    "explain": "say what the code of a finding means and how to mend it",
    "view": "show an image or tensor, or where two of them differ",
    "shader": "show what a shader wants from outside",
    "vgf": "show what is in a VGF model, or make a scenario that runs it",
    "schema": "print the JSON Schema of the scenario format",
    "doctor": "show what this machine has and lacks for running scenarios",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; see `errors` for what each code means.

    Without a command word the arguments are those of ``run``: ``scenario-runner test.json``. A scenario file that has
    the name of a command is given as ``./run``.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = "run"
    if arguments and arguments[0] in COMMANDS:
        name = arguments.pop(0)
    from scenario_runner.errors import OutOfMemoryError, ScenarioRunnerError

    try:
        return int(import_module(f"scenario_runner.cli.{name}").main(arguments))
    except SystemExit as end:  # --help
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    except BrokenPipeError:
        return 1  # whoever read our output has gone; there is nobody to tell
    except ScenarioRunnerError as error:
        from scenario_runner.cli.report import show_error

        show_error(error)
        return error.exit_code
    except MemoryError:
        from scenario_runner.cli.report import show_error

        show_error(OutOfMemoryError("the memory of this machine does not suffice"))
        return OutOfMemoryError.exit_code
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:  # files are mapped below; this is a full disk, say
            return _output_lost(error)
        return _internal_error(error)


def _interrupted(interrupt: KeyboardInterrupt) -> int:
    from signal import SIGINT, Signals

    from scenario_runner.cli.signals import EXIT_CODE_BASE

    number = getattr(interrupt, "number", SIGINT)
    try:
        print("interrupted" if number == SIGINT else f"interrupted by {Signals(number).name}", file=sys.stderr)
    except OSError:
        pass  # the terminal has gone, hence SIGHUP
    return EXIT_CODE_BASE + number


def _output_lost(error: OSError) -> int:
    from scenario_runner.cli.report import write

    write("error", f"standard output cannot be written: {(error.strerror or str(error)).lower()}")
    return 1


def _internal_error(error: Exception) -> int:
    """Say that the fault is ours, without a traceback unless the log level asks for one; returns the exit code."""
    import logging
    import traceback

    from scenario_runner.cli.report import write
    from scenario_runner.errors import ScenarioRunnerError

    if logging.getLogger("scenario_runner").isEnabledFor(logging.DEBUG):
        traceback.print_exception(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    write(
        "error",
        f"internal error: {type(error).__name__}: {error} ({frame.filename}:{frame.lineno})",
        "this is a defect of scenario-runner, not of your scenario; please report it with the output of"
        " --log-level debug",
    )
    return ScenarioRunnerError.exit_code
