"""Options that several commands share, and the parser of them all."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from scenario_runner.errors import UsageError
from scenario_runner.text import close_names, did_you_mean

_COMMAND_COLUMNS = 12
_PATHS = {"FILE": "file", "DIR": "folder", "PATH": "file"}


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.HelpFormatter(prog, max_help_position=34, width=100)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are ours; options are never abbreviated, so that new ones break no script."""

    def __init__(self, **arguments: Any) -> None:
        # A formatter is made for every option; one that is told the width does not go and ask the terminal for it.
        super().__init__(allow_abbrev=False, formatter_class=_formatter, **arguments)

    commands: Mapping[str, str] = {}
    """Commands that the help text lists first → their purpose."""

    def format_help(self) -> str:
        """The help text, with a line for each command before the arguments."""
        text = super().format_help()
        if not self.commands:
            return text
        lines = "".join(f"  {name:{_COMMAND_COLUMNS}}{purpose}\n" for name, purpose in self.commands.items())
        return text.replace("positional arguments:\n", f"commands:\n{lines}\npositional arguments:\n", 1)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments, and refuse an empty path, such as that of an unset variable in a script."""
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
        """The names of all options, with those of subcommands: argparse refuses here what these do not know."""
        names = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action.choices, dict):
                for parser in action.choices.values():
                    names += parser._option_names()
        return names


def add_flag(group: argparse._ActionsContainer, *names: str, help: str) -> None:
    """An option without a value."""
    group.add_argument(*names, action="store_true", help=help)


def positive_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of seconds above 0")
    return seconds


def whole_number(least: int) -> Callable[[str], int]:
    """An argument type: a whole number from ``least`` on."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least):
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of {least} or more")
        return int(text)

    return read


def add_device_options(group: argparse._ActionsContainer, default_timeout: str = "no limit") -> None:
    """The choice of the device, and for how long to wait for it."""
    group.add_argument("--device", metavar="D", help="index, UUID or part of the name of the device to use")
    group.add_argument(
        "--timeout",
        type=positive_seconds,
        metavar="S",
        help=f"stop when submitted work has not finished after S seconds (default: {default_timeout})",
    )
    group.add_argument(
        "--ml-emulation",
        choices=("auto", "on", "off"),
        default="auto",
        help="use the emulation layers for tensors and graphs: if the device needs them (auto), always, never",
    )


def add_feature_options(group: argparse._ActionsContainer) -> None:
    """Extensions and features of the device."""
    group.add_argument(
        "--disable-extension",
        action="extend",
        nargs="+",
        default=[],
        metavar="E",
        help="device extensions that are not used",
    )
    add_flag(group, "--enable-robustness-features", help="robust buffer and image access, if the device supports it")


def add_sandbox_option(group: argparse._ActionsContainer) -> None:
    """--sandbox, for scenarios from others."""
    add_flag(group, "--sandbox", help="refuse scenarios that read or write outside of their own folder and --output")


def add_checking_options(group: argparse._ActionsContainer) -> None:
    """--sandbox and the validation layer."""
    add_sandbox_option(group)
    add_flag(group, "--validation", help="load the Khronos validation layer; its errors fail the run")
    add_flag(group, "--validation-report", help="load the validation layer; its errors are shown, and the run succeeds")
    add_flag(
        group,
        "--validation-sync",
        help="load the validation layer, and let it look for hazards (synchronization validation) as well",
    )


def add_compiler_options(group: argparse._ActionsContainer) -> None:
    """Options for compiling shaders."""
    group.add_argument("--glslang", metavar="PATH", help="GLSL compiler to use (or set SCENARIO_RUNNER_GLSLANG)")
    add_flag(group, "--no-cache", help="do not use the caches of compiled shaders and plans")


def add_logging_option(group: argparse._ActionsContainer) -> None:
    """--log-level, as the reference runner has it."""
    group.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="least level of messages on standard error (default: warning)",
    )


def add_label_option(group: argparse._ActionsContainer) -> None:
    """--debug-labels, also by the reference runner's name."""
    add_flag(
        group,
        "--debug-labels",
        "--enable-gpu-debug-markers",
        help="give tools names of objects and labels of frames and commands, also where no layer is loaded",
    )


def shared_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The values of the options above, but for those of features, as arguments of Runner."""
    return {
        "device": options.device,
        "timeout_s": options.timeout,
        "ml_emulation": options.ml_emulation,
        "sandbox": options.sandbox,
        "validation": "report" if options.validation_report else options.validation or options.validation_sync,
        "sync_validation": options.validation_sync,
        "debug_labels": options.debug_labels,
        **compiler_arguments(options),
    }


def feature_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The values of `add_feature_options` as arguments of Runner."""
    return {"robustness": options.enable_robustness_features, "disabled_extensions": options.disable_extension}


def compiler_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The values of `add_compiler_options` as arguments of CompilerOptions and of what compiles."""
    return {"compiler": options.glslang, "use_cache": not options.no_cache}
