"""The parser of all commands, the types of its values, and groups of options that several commands share."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

from scenario_runner.errors import UsageError
from scenario_runner.system_limits import processors
from scenario_runner.text import close_names, did_you_mean

REPEATED: Final[Mapping[str, Any]] = {"action": "append", "default": []}
"""Settings of an option that can be given several times."""
SEVERAL: Final[Mapping[str, Any]] = {"action": "extend", "nargs": "+", "default": []}
"""Settings of an option that takes several values."""

_COMMAND_COLUMNS = 12
_PATHS = {"FILE": "file", "DIR": "folder", "PATH": "file"}
# For each device, where there are not more processors. A worker takes four open files here, and tens of MiB of memory.
_MOST_JOBS = 256


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
        parsed = super().parse_known_args(args, namespace)
        for action in self._actions:
            noun = _PATHS.get(str(action.metavar)) if action.option_strings else None
            if noun is not None and getattr(parsed[0], action.dest, None) == "":
                raise UsageError(f"{action.option_strings[0]} is empty, expected the path of a {noun}")
        return parsed

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}{self._meant(message)}", help=f"{self.prog} --help shows all options")

    def _meant(self, message: str) -> str:
        """The options or words that may have been meant by those that argparse refuses."""
        choice = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message)
        if choice:
            return did_you_mean(close_names(choice[1], re.findall(r"[^ ',]+", choice[2]), most=1))
        meant = []
        if message.startswith("unrecognized arguments: "):
            options = {option.lstrip("-"): option for option in self.option_names() if option.startswith("--")}
            for word in message.split(": ", 1)[1].split():
                if word.startswith("-"):
                    name = word.partition("=")[0].lstrip("-").replace("_", "-")
                    meant += [options[close_name] for close_name in close_names(name, options, most=1)]
        return did_you_mean(meant)

    def option_names(self) -> list[str]:
        """The names of all options, with those of subcommands: argparse refuses here what these do not know."""
        names = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action.choices, dict):
                for parser in action.choices.values():
                    names += parser.option_names()
        return names


def _checked(read: Callable[[str], Any], is_right: Callable[[Any], bool], expected: str) -> Callable[[str], Any]:
    """An argument type: the value that ``read`` makes of the text, where it is right."""

    def checked(text: str) -> Any:
        with suppress(ValueError):
            value = read(text)
            if is_right(value):
                return value
        raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}")

    return checked


def whole_number(least: int) -> Callable[[str], int]:
    """An argument type: a whole number from ``least`` on."""
    return _checked(
        lambda text: int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1,
        lambda number: number >= least,
        f"a whole number of {least} or more",
    )


positive_seconds = _checked(float, lambda seconds: 0 < seconds < 1e9, "a number of seconds above 0")
tolerance = _checked(float, lambda limit: 0 <= limit < math.inf, "a number of 0 or more, such as 1e-3")
percentage = _checked(float, lambda percent: 0 <= percent < 1e6, "a percentage of 0 or more")
seed = _checked(int, lambda number: True, "a whole number")
value_range = _checked(
    lambda text: tuple(map(float, text.split(":"))),
    lambda limits: len(limits) == 2 and -math.inf < limits[0] < limits[1] < math.inf,
    "two finite numbers, the smaller one first, such as 0:1",
)
shape = _checked(
    lambda text: tuple(int(size) for size in text.replace("x", ",").split(",", 31)),
    lambda sizes: min(sizes) >= -1 and sizes.count(-1) <= 1 and math.prod(map(abs, sizes)) < 1 << 60,
    "lengths such as 16,16, of which one may be -1",
)
device_names = _checked(
    lambda text: tuple(filter(None, map(str.strip, text.split(",")))),
    bool,
    "'all', or indexes, UUIDs or names of devices",
)


def jobs(text: str) -> int:
    """An argument type: a number of processes."""
    number = whole_number(1)(text)
    most = max(_MOST_JOBS, processors())
    if number > most:
        raise argparse.ArgumentTypeError(f"{text!r}: expected at most {most}")
    return number


def add(group: argparse._ActionsContainer, names: str, help: str, **settings: Any) -> argparse.Action:
    """Add an option by its names and the word for its value, ``"-o --output FILE"``. Without that word, and without
    settings, it is a flag. ``"files FILE"`` is a positional argument."""
    *words, last = names.split()
    if last.startswith("-"):
        words.append(last)
        settings = settings or {"action": "store_true"}
    else:
        settings["metavar"] = last
    return group.add_argument(*words, help=help, **settings)


def subcommand(commands: Any, name: str, work: str, purpose: str, description: str = "") -> Parser:
    """Add the parser of a subcommand. Its description is ``purpose`` as a sentence, unless there is one."""
    description = description or f"{purpose[0].upper()}{purpose[1:]}."
    parser: Parser = commands.add_parser(name, help=purpose, description=description)
    parser.set_defaults(work=work)
    return parser


def add_device_options(group: argparse._ActionsContainer, default_timeout: str = "no limit") -> None:
    """The choice of the device, and for how long to wait for it."""
    add(group, "--device D", "index, UUID or part of the name of the device to use")
    limit = f"stop when submitted work has not finished after S seconds (default: {default_timeout})"
    add(group, "--timeout S", limit, type=positive_seconds)
    needed = "use the emulation layers for tensors and graphs: if the device needs them (auto), always, never"
    add(group, "--ml-emulation", needed, choices=("auto", "on", "off"), default="auto")


def add_feature_options(group: argparse._ActionsContainer) -> None:
    """Extensions and features of the device."""
    add(group, "--disable-extension E", "device extensions that are not used", **SEVERAL)
    add(group, "--enable-robustness-features", "robust buffer and image access, if the device supports it")


def add_sandbox_option(group: argparse._ActionsContainer) -> None:
    """--sandbox, for scenarios from others."""
    add(group, "--sandbox", "refuse scenarios that read or write outside of their own folder and --output")


def add_checking_options(group: argparse._ActionsContainer) -> None:
    """--sandbox and the validation layer."""
    add_sandbox_option(group)
    add(group, "--validation", "load the Khronos validation layer; its errors fail the run")
    add(group, "--validation-report", "load the validation layer; its errors are shown, and the run succeeds")
    add(group, "--validation-sync", "load the validation layer, with its synchronization validation as well")


def add_compiler_options(group: argparse._ActionsContainer) -> None:
    """Options for compiling shaders."""
    add(group, "--glslang PATH", "GLSL compiler to use (or set SCENARIO_RUNNER_GLSLANG)")
    add(group, "--no-cache", "do not use the caches of compiled shaders and plans")


def add_logging_option(group: argparse._ActionsContainer) -> None:
    """--log-level, as the reference runner has it."""
    levels = ("debug", "info", "warning", "error")
    add(group, "--log-level", "least level of messages (default: warning)", choices=levels, default="warning")


def add_label_option(group: argparse._ActionsContainer) -> None:
    """--debug-labels, also by the reference runner's name."""
    add(group, "--debug-labels --enable-gpu-debug-markers", "give tools names and labels, also without a layer")


def add_report_options(group: argparse._ActionsContainer) -> None:
    """--junit, --json and --html."""
    add(group, "--junit FILE", "write a report as JUnit XML")
    add(group, "--json FILE", "write a report as JSON (CTRF)")
    add(group, "--html FILE", "write a report as one HTML page")


def add_tolerance_options(group: argparse._ActionsContainer, when: str = "") -> None:
    """--atol, --rtol and --ulp, which have effect ``when``."""
    add(group, "--atol X", f"{when}absolute errors to accept", type=tolerance, default=0.0)
    add(group, "--rtol X", f"{when}relative errors to accept", type=tolerance, default=0.0)
    add(group, "--ulp N", f"{when}errors in ULP to accept", type=whole_number(0), default=0)


def element(text: str) -> Any:
    """The `Element` of this name."""
    from scenario_runner.viewing.content import ELEMENTS  # which takes a third of the time of --help

    if text not in ELEMENTS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected one of {', '.join(ELEMENTS)}")
    return ELEMENTS[text]


def typed(text: str) -> tuple[str | None, Any]:
    """The uid of a buffer, None for all, and the type of its bytes."""
    uid, equals, name = text.rpartition("=")
    return (uid if equals else None), element(name)


def value_of(options: argparse.Namespace, option: str) -> Any:
    """The value of an option by its name, "--dump-dir"."""
    return getattr(options, option[2:].replace("-", "_"))


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
        **compiler_arguments(options),
    }


def compiler_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The values of `add_compiler_options` as arguments of CompilerOptions and of what compiles."""
    return {"compiler": options.glslang, "use_cache": not options.no_cache}
