"""The command line is read here, once: its command, its options, and the values that follow from others.

Contradictions between options are refused by the command itself.
"""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from scenario_runner.cli.option_types import Parser, add_github_option
from scenario_runner.cli.options import COMMANDS
from scenario_runner.errors import UsageError
from scenario_runner.errors.text import close_names, did_you_mean
from scenario_runner.files.input import is_model

DEMO: Final = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", "suite", "demo"))


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line: ``command`` and ``action`` say what to do, ``argv`` has the words after the command.

    Without a command word the arguments are those of ``run``: ``scenario-runner test.json``. A scenario file that has
    the name of a command is given as ``./run``. Raises UsageError, and SystemExit after printing help.
    """
    command, words = _split(argv)
    parser = parser_of(command)
    if command == "run" and ("-h" in words or "--help" in words):
        parser.formatter_class = partial(argparse.RawDescriptionHelpFormatter, max_help_position=34, width=100)
        lines = [f"  {name:16}{purpose(name)}" for name in COMMANDS]
        parser.description = "\n".join([f"{parser.description}\n\ncommands:", *lines])
    options = parser.parse_args(words)
    options.command, options.argv = command, words
    for name, actions in parser.word_groups.items():
        setattr(options, name, _words_of(actions, options))
    if command == "run":
        _complete_run(options)
    elif command == "test":
        _complete_test(options)
    return options


def _split(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Split the command from its arguments. Raises UsageError for a mistyped command that is no file."""
    first = argv[0] if argv else ""
    if first == "help":
        name = argv[1] if len(argv) > 1 else "run"
        if name not in COMMANDS:
            raise _no_command(name)
        return ("run" if name == "help" else name), ["--help"]
    if first in COMMANDS:
        return first, argv[1:]
    if first.replace("-", "").replace("_", "").isalpha() and first[:1] != "-":
        error = _no_command(first)
        if " (did you mean " in str(error) and not os.path.exists(first):
            raise error
    return "run", argv


def _no_command(word: str) -> UsageError:
    meant = did_you_mean(close_names(word, COMMANDS, most=1))
    return UsageError(f"there is no command {word!r}{meant}", help=f"the commands: {', '.join(COMMANDS)}")


def parser_of(command: str) -> Parser:
    """Make the parser of a command."""
    add_options = COMMANDS[command]
    parser = Parser(prog=f"scenario-runner {command}", description=add_options.__doc__)
    parser.set_defaults(action="main", annotations=None)
    add_options(parser)
    add_github_option(parser, command)
    return parser


def purpose(command: str) -> str:
    """Return the first sentence of the help of a command, to be shown in a list."""
    sentence = " ".join(str(COMMANDS[command].__doc__).split()).split(". ")[0].rstrip(".")
    return f"{sentence[0].lower()}{sentence[1:]}"


def _complete_run(options: argparse.Namespace) -> None:
    """Complete the options of ``run``: ``files`` are all files; whether they run in a worker (``isolate``), and after
    how many seconds without progress that is killed (``quiet_s``)."""
    captured = options.capture_frame or ""
    if captured.lower().endswith(".json") or is_model(captured):
        # without a value in the reference runner, so that a file may follow it
        options.files.insert(0, captured)
        options.capture_frame = "run"
    options.files = [*options.scenario, *options.files]
    prints = options.printf or options.printf_size is not None
    # with --printf, older layers wait for shaders where neither --timeout nor Ctrl-C reaches them
    is_bounded = options.watch or options.isolate or (prints and options.isolate is None)
    options.quiet_s = options.timeout if is_bounded else None
    options.replaced_measurements = None
    if options.isolate is None:
        options.isolate = len(options.files) > 1 or prints or options.watch or options.core_dumps


def _complete_test(options: argparse.Namespace) -> None:
    """Complete the options of ``test``."""
    if options.demo and not options.paths and options.root == ".":
        options.paths, options.root = [DEMO], DEMO
    options.resume = options.resume or options.resume_anyway
    if options.retries is None:
        options.retries = 1 if options.repeat == 1 else 0


def value_of(options: argparse.Namespace, option: str) -> Any:
    """The value of an option by its name, "--dump-dir"; None where it is not given. 0 is a value."""
    value = getattr(options, option[2:].replace("-", "_"))
    return None if value is False else value


def shared_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The values of the options for devices, features, checking and compiling as arguments of Runner."""
    return {
        "device": options.device,
        "timeout_s": options.timeout,
        "ml_emulation": options.ml_emulation,
        "robustness": options.enable_robustness_features,
        "disabled_extensions": options.disable_extension,
        "sandbox": options.sandbox,
        "validation": "report" if options.validation_report else options.validation or options.validation_sync,
        "sync_validation": options.validation_sync,
        "debug_labels": options.debug_labels,
        "printf": options.printf_size or options.printf,
        **compiler_arguments(options),
    }


def compiler_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The values of the options for compiling as arguments of CompilerOptions and `compile_all`."""
    return {"compiler": options.glslang, "use_cache": not options.no_cache}


def _words_of(actions: Sequence[argparse.Action], options: argparse.Namespace) -> tuple[str, ...]:
    """Return the given options, but for the device, as words of a command line."""
    words: list[str] = []
    for action in actions:
        name, value = action.option_strings[0], getattr(options, action.dest)
        if value == action.default or action.dest == "device":
            continue
        if action.dest == "glslang" and os.path.dirname(value):
            value = os.path.abspath(value)  # the command may be for another folder
        if value is True:
            words.append(name)
        else:
            values = value if isinstance(value, list) else [f"{value:.12g}" if isinstance(value, float) else value]
            words += [f"{name}={entry}" for entry in values]
    return tuple(words)
