"""Options that several commands share, and the parser of them all."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from scenario_runner.errors import UsageError
from scenario_runner.text import close_names, did_you_mean

if TYPE_CHECKING:
    from scenario_runner.viewing.element import Element

_PATHS = {"FILE": "file", "DIR": "folder", "PATH": "file"}


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.HelpFormatter(prog, max_help_position=34, width=100)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are ours; options are never abbreviated, so that new ones break no script."""

    def __init__(self, **arguments: Any) -> None:
        # A formatter is made for every option; one that is told the width does not go and ask the terminal for it.
        super().__init__(allow_abbrev=False, formatter_class=_formatter, **arguments)

    commands: Mapping[str, str] = {}
    """Those that the help text lists first, and what they do."""

    def format_help(self) -> str:
        """The help text; long ones have options in groups."""
        group_options(self)
        text = super().format_help()
        return with_commands(text, self.commands) if self.commands else text

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The same; an empty path, such as that of an unset variable in a script, is an error."""
        found = super().parse_known_args(args, namespace)
        for action in self._actions:
            noun = _PATHS.get(str(action.metavar)) if action.option_strings else None
            if noun is not None and getattr(found[0], action.dest, None) == "":
                raise UsageError(f"{action.option_strings[0]} is empty, expected the path of a {noun}")
        return found

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}{self._meant(message)}", help=f"{self.prog} --help shows all options")

    def _meant(self, message: str) -> str:
        """The options or words that may have been meant by those that argparse refuses."""
        choice = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message)
        if choice:
            return did_you_mean(close_names(choice[1], (each.strip(" '") for each in choice[2].split(",")), most=1))
        meant = []
        if message.startswith("unrecognized arguments: "):
            options = {option.lstrip("-"): option for option in self._option_names() if option.startswith("--")}
            for word in message.split(": ", 1)[1].split():
                if word.startswith("-"):
                    name = word.partition("=")[0].lstrip("-").replace("_", "-")
                    meant += [options[each] for each in close_names(name, options, most=1)]
        return did_you_mean(meant)

    def _option_names(self) -> list[str]:
        """Those of subcommands as well: what they do not know, argparse refuses here."""
        names = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action.choices, dict):
                for parser in action.choices.values():
                    names += parser._option_names()
        return names


def positive_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of seconds above 0")
    return seconds


def add_device_options(parser: argparse.ArgumentParser, default_timeout: str = "no limit") -> None:
    """Options for the device and for how long to wait for it."""
    parser.add_argument("--device", metavar="D", help="index, UUID or part of the name of the device to use")
    parser.add_argument(
        "--timeout",
        type=positive_seconds,
        metavar="S",
        help=f"stop when submitted work has not finished after S seconds (default: {default_timeout})",
    )
    parser.add_argument(
        "--validation", action="store_true", help="load the Khronos validation layer; its errors fail the run"
    )
    parser.add_argument(
        "--validation-report",
        action="store_true",
        help="load the validation layer; its errors are shown, and the run succeeds",
    )
    parser.add_argument(
        "--validation-sync",
        action="store_true",
        help="load the validation layer, and let it look for hazards (synchronization validation) as well",
    )
    parser.add_argument(
        "--debug-labels",
        "--enable-gpu-debug-markers",
        action="store_true",
        help="give tools names of objects and labels of frames and commands, also where no layer is loaded",
    )
    parser.add_argument(
        "--ml-emulation",
        choices=("auto", "on", "off"),
        default="auto",
        help="use the emulation layers for tensors and graphs: if the device needs them (auto), always, never",
    )


def device_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The values of `add_device_options` as arguments of Runner."""
    return {
        "device": options.device,
        "timeout_s": options.timeout,
        "validation": "report" if options.validation_report else options.validation or options.validation_sync,
        "sync_validation": options.validation_sync,
        "debug_labels": options.debug_labels,
        "ml_emulation": options.ml_emulation,
    }


def add_feature_options(parser: argparse.ArgumentParser) -> None:
    """Options for what of the device is used."""
    parser.add_argument(
        "--disable-extension",
        action="append",
        nargs="+",
        default=[],
        metavar="E",
        help="device extensions that are not used",
    )
    parser.add_argument(
        "--enable-robustness-features",
        action="store_true",
        help="robust buffer and image access, if the device supports it",
    )


def feature_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The values of `add_feature_options` as arguments of Runner."""
    return {
        "robustness": options.enable_robustness_features,
        "disabled_extensions": [name for names in options.disable_extension for name in names],
    }


def add_compiler_options(parser: argparse.ArgumentParser) -> None:
    """Options for compiling shaders."""
    parser.add_argument("--glslang", metavar="PATH", help="GLSL compiler to use (or set SCENARIO_RUNNER_GLSLANG)")
    parser.add_argument("--no-cache", action="store_true", help="do not use the caches of compiled shaders and plans")


def compiler_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The values of `add_compiler_options` as arguments of Runner and CompilerOptions."""
    return {"compiler": options.glslang, "use_cache": not options.no_cache}


def add_sandbox_option(parser: argparse.ArgumentParser) -> None:
    """--sandbox, for scenarios from others."""
    parser.add_argument(
        "--sandbox",
        action="store_true",
        help="refuse scenarios that read or write outside of their own folder and --output",
    )


def add_logging_option(parser: argparse.ArgumentParser) -> None:
    """--log-level, as the reference runner has it."""
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="least level of messages on standard error (default: warning)",
    )


_GROUPS: Mapping[str, tuple[str, ...]] = {
    "device": (
        "--device",
        "--devices",
        "--list-devices",
        "--timeout",
        "--ml-emulation",
        "--disable-extension",
        "--enable-robustness-features",
        "--isolate",
    ),
    "models": ("--input", "--shader", "--push-constants"),
    "results": ("--output", "--folder-each", "--clean", "--dry-run", "--repeat", "--repeat-keep-state", "--quiet"),
    "checking": ("--strict", "--sandbox", "--validation", "--validation-report", "--validation-sync"),
    "shaders and caches": (
        "--glslang",
        "--no-cache",
        "--pipeline-caching",
        "--cache-path",
        "--clear-pipeline-cache",
        "--fail-on-pipeline-cache-miss",
    ),
    "debugging": ("--dump-after", "--dump-dir", "--dump-all", "--debug-labels", "--log-level"),
    "capture": ("--capture-dir", "--capture-frame", "--gfxr"),
    "timing and measurements": (
        "--profiling-dump-path",
        "--perf-counters-dump-path",
        "--trace",
        "--shader-instrumentation",
        "--session-memory-dump-dir",
        "--emulation-layer-profiling-dump-dir",
        "--neural-debug-database-dump-dir",
        "--neural-statistics-dump-dir",
        "--neural-statistics-mode",
    ),
    "compatibility": ("--scenario", "--wait-for-key-stroke-before-run", "--pause-on-exit"),
}


_REGROUPED = ("options", "how each scenario runs")
_FEWEST = 20  # a shorter help text needs no headings


def group_options(parser: argparse.ArgumentParser) -> None:
    """Show each option of the table under its heading, where there are many."""
    if len(parser._actions) < _FEWEST:
        return
    sources = [group for group in parser._action_groups if group.title in _REGROUPED]
    for title, options in _GROUPS.items():
        heading = parser.add_argument_group(title)
        for option in options:
            action = parser._option_string_actions.get(option)
            source = next((group for group in sources if action in group._group_actions), None)
            if action is not None and source is not None:
                source._group_actions.remove(action)
                heading._group_actions.append(action)


def with_commands(text: str, commands: Mapping[str, str]) -> str:
    """A help text with a line for each command before its arguments."""
    width = max(map(len, commands))
    lines = "".join(f"  {name:{width}}  {purpose}\n" for name, purpose in commands.items())
    return text.replace("positional arguments:\n", f"commands:\n{lines}\npositional arguments:\n", 1)


def add_tolerance_options(parser: argparse.ArgumentParser, when: str = "") -> None:
    """--atol, --rtol and --ulp, which have effect ``when``."""
    parser.add_argument("--atol", metavar="X", type=_error, default=0.0, help=f"{when}absolute errors to accept")
    parser.add_argument("--rtol", metavar="X", type=_error, default=0.0, help=f"{when}relative errors to accept")
    parser.add_argument("--ulp", metavar="N", type=_steps, default=0, help=f"{when}errors in ULP to accept")


def _error(text: str) -> float:
    try:
        limit = float(text)
    except ValueError:
        limit = math.nan
    if not 0 <= limit < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of 0 or more, such as 1e-3")
    return limit


def _steps(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of 0 or more")
    return int(text)


def element(text: str) -> Element:
    """The kind of number of this name."""
    from scenario_runner.viewing.element import ELEMENTS

    found = ELEMENTS.get(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected one of {', '.join(ELEMENTS)}")
    return found
