"""Building blocks for options: the parser class, value types, and options shared by several commands."""

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

from scenario_runner.cli.console import show
from scenario_runner.errors import UsageError
from scenario_runner.errors.text import close_names, did_you_mean
from scenario_runner.processes.system_limits import processors

STDOUT: Final = "-"
"""The value of --json without a file."""
REPEATED: Final[Mapping[str, object]] = {"action": "append", "default": []}
"""Settings for an option that users can repeat."""
SEVERAL: Final[Mapping[str, object]] = {"action": "extend", "nargs": "+", "default": []}
"""Settings for an option with several values."""

# Workers for each device, unless the machine has more processors. A worker takes four open files and tens of MiB.
_MOST_JOBS = 256


class _Formatter(argparse.HelpFormatter):
    """The format of help.

    argparse makes a formatter for each option that it checks. So this formatter puts off the costly import of colors
    (from Python 3.14 on) until help is printed.
    """

    columns = 100
    """The width of help. `Parser.format_help` asks the terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=self.columns)

    def _set_color(self, *arguments: bool, **keys: object) -> None:
        self._colors = arguments, keys

    def __getattr__(self, name: str) -> object:
        if "_colors" not in vars(self):
            raise AttributeError(name)
        arguments, keys = vars(self).pop("_colors")
        super()._set_color(*arguments, **keys)  # type: ignore[misc]
        return getattr(self, name)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError. Options have no short forms, so that new options break no script."""

    def __init__(self, prog: str, description: str = "", examples: Sequence[str] = (), **arguments: Any) -> None:
        super().__init__(prog, None, description, allow_abbrev=False, formatter_class=_Formatter, **arguments)
        self._examples = examples
        self.word_groups: dict[str, Sequence[argparse.Action]] = {}  # by the name of an attribute of the result
        self.suggest_on_error = False  # from Python 3.15 on argparse names close words itself

    def format_help(self) -> str:
        """Return the description, examples, one line of usage, and the options."""
        from shutil import get_terminal_size  # takes 3 ms of every run

        _Formatter.columns = min(get_terminal_size((100, 24)).columns, 120)
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        forms = {"*": "[{}…]", "+": "{}…", "?": "[{}]"}
        words = [
            forms.get(str(one.nargs), "{}").format(one.metavar or "|".join(one.choices or ()))
            for one in self._get_positional_actions()
        ]
        lines = ["", "examples:", *self._examples] if self._examples else []
        lines += ["", f"usage: {self.usage or ' '.join([self.prog, *words, '[options]'])}", ""]
        start = formatter.format_help() + "\n".join(lines)
        formatter = self._get_formatter()
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return f"{start}\n{formatter.format_help()}"

    def print_help(self, file: object = None) -> None:
        show_help(self.format_help())

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}{self._meant(message)}", help=f"{self.prog} --help shows all options")

    def _meant(self, message: str) -> str:
        """Suggest options or words close to the refused ones."""
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
        """List all options, also the options of subcommands."""
        names = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action.choices, dict):
                for parser in action.choices.values():
                    names += parser.option_names()
        return names


def show_help(text: str) -> None:
    """Print help. A terminal shows headings in bold."""
    for line in text.splitlines():
        show((line, "bold") if re.fullmatch("[A-Za-z].*:", line) else line)


def _checked(read: Callable[[str], Any], is_right: Callable[[Any], bool], expected: str) -> Callable[[str], Any]:
    """Make an argument type: ``read`` turns text into a value, and ``is_right`` accepts or refuses the value."""

    def checked(text: str) -> object:
        with suppress(ValueError):
            value = read(text)
            if is_right(value):
                return value
        raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}")

    return checked


def whole_number(least: int, most: float = 1e18) -> Callable[[str], int]:
    """Make an argument type for whole numbers from ``least`` to ``most``."""
    return _checked(
        lambda text: int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1,
        lambda number: least <= number <= most,
        f"a whole number of {least} or more" if most == 1e18 else f"a whole number from {least} to {most}",
    )


def jobs(text: str) -> int:
    """Read how many processes to use."""
    return whole_number(1, max(_MOST_JOBS, processors()))(text)


def printf_bytes(text: str) -> int:
    """Read the buffer size for printed messages."""
    from scenario_runner.vulkan.printf import LEAST_BYTES, MOST_BYTES  # few runs print

    return whole_number(LEAST_BYTES, MOST_BYTES)(text)


def _element(text: str) -> object:
    """Find an `Element` by name."""
    from scenario_runner.files.elements import ELEMENTS  # this import takes a third of the time of --help

    return _checked(ELEMENTS.get, bool, f"one of {', '.join(ELEMENTS)}")(text)


def _typed(text: str) -> tuple[str | None, object]:
    """Read a buffer's uid, None for all buffers, and the element type."""
    uid, equals, name = text.rpartition("=")
    return (uid if equals else None), _element(name)


def _dump_target(text: str) -> tuple[int, int, str | None]:
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?(?::(.+))?", text, re.DOTALL)
    if match is None:
        raise ValueError(text)
    first, last, uid = match.groups()
    return int(first), int(last or first), uid


def _parameter(text: str) -> tuple[str, object]:
    """Read a parameter's name and value. A value that is not JSON is a string."""
    from scenario_runner.files.json_text import LimitError, parse  # no other option needs json

    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(text)
    try:
        return name, parse(value)
    except LimitError as error:
        raise argparse.ArgumentTypeError(f"{name}: the value has {error}") from error
    except ValueError:
        return name, value


def _is_pair(words: tuple[str, ...]) -> bool:
    return len(words) == 2 and all(words)


# An empty path comes from a script's unset variable. Commands that open a list of paths check each path themselves.
_FILE: Final = _checked(str, bool, "the path of a file")
_PATHS: Final = {"FILE": _FILE, "PATH": _FILE, "MEASUREMENT": _FILE, "DIR": _checked(str, bool, "the path of a folder")}
_TYPES: Final[Mapping[str, Callable[[str], object]]] = {
    "NAME=FILE": _checked(lambda text: tuple(text.split("=", 1)), _is_pair, "NAME=FILE"),
    "NAME=VALUE": _checked(_parameter, bool, "NAME=VALUE, such as n=4"),
    "COMMAND[:RESOURCE]": _checked(
        _dump_target,
        lambda target: target[0] <= target[1],
        "COMMAND or COMMAND:RESOURCE, with the number of a command from 0 on or a range such as 2-5",
    ),
    "S": _checked(float, lambda seconds: 0 < seconds < 1e9, "a number of seconds above 0"),
    "SEED": _checked(int, lambda number: True, "a whole number"),
    "X": _checked(float, lambda limit: 0 <= limit < math.inf, "a number of 0 or more, such as 1e-3"),
    "PERCENT": _checked(float, lambda percent: 0 <= percent < 1e6, "a percentage of 0 or more"),
    "MIN:MAX": _checked(
        lambda text: tuple(map(float, text.split(":"))),
        lambda limits: len(limits) == 2 and -math.inf < limits[0] < limits[1] < math.inf,
        "two finite numbers, the smaller one first, such as 0:1",
    ),
    "N,N,…": _checked(
        lambda text: tuple(int(size) for size in text.replace("x", ",").split(",", 31)),
        lambda sizes: min(sizes) >= -1 and sizes.count(-1) <= 1 and math.prod(map(abs, sizes)) < 1 << 60,
        "lengths such as 16,16, of which one may be -1",
    ),
    "D,…": _checked(
        lambda text: tuple(filter(None, map(str.strip, text.split(",")))),
        bool,
        "'all', or indexes, UUIDs or names of devices",
    ),
    "TYPE": _element,
    "[RESOURCE=]TYPE": _typed,
}
"""The argument types by the word for the value in the help."""


def add(group: argparse._ActionsContainer, names: str, help: str, **settings: Any) -> argparse.Action:
    """Add an option such as ``"-o --output FILE"``: the names, then a word for the value with a type in `_TYPES`.

    Names alone, without settings, are a flag. ``"files FILE"`` is a positional argument.
    """
    *words, last = names.split()
    if last.startswith("-"):
        words.append(last)
        settings = settings or {"action": "store_true"}
    else:
        settings["metavar"] = last
        if words[0].startswith("-"):
            settings.setdefault("type", _TYPES.get(last) or (None if "action" in settings else _PATHS.get(last)))
    return group.add_argument(*words, help=help, **settings)


def subcommand(commands: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> Parser:
    """Add the parser of a subcommand."""
    parser: Parser = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    return parser


_LEVELS: Final = ("debug", "info", "warning", "error")
_SHARED: Final[Mapping[str, Sequence[tuple[str, str, Mapping[str, Any]]]]] = {
    "parameters": [("--set NAME=VALUE", "replace ${NAME} in the scenario by VALUE", REPEATED)],
    "features": [
        ("--disable-extension E", "run without these device extensions", SEVERAL),
        ("--enable-robustness-features", "enable robust buffer and image access, if the device supports it", {}),
    ],
    "amount": [
        ("--quiet", "print failures only", {}),
        ("--verbose", "the same as --log-level info", {"action": "store_const", "const": "info", "dest": "log_level"}),
    ],
    "sandbox": [("--sandbox", "refuse to read or write outside of the scenario's folder and --output", {})],
    "validation": [
        ("--validation", "load the Khronos validation layer; validation errors fail the run", {}),
        ("--validation-report", "load the validation layer; show validation errors, but let the run succeed", {}),
        ("--validation-sync", "load the validation layer with synchronization validation", {}),
    ],
    "compiler": [
        ("--glslang PATH", "GLSL compiler to use (or set SCENARIO_RUNNER_GLSLANG)", {}),
        ("--no-cache", "do not use the caches of compiled shaders and plans", {}),
    ],
    "printf": [
        ("--printf", "show what shaders print (debugPrintfEXT, printf); needs the validation layer", {}),
        ("--printf-size BYTES", "the same, with BYTES for the messages of each command", {"type": printf_bytes}),
    ],
    # the second name is the reference runner's
    "labels": [("--debug-labels --enable-gpu-debug-markers", "name Vulkan objects for debugging tools", {})],
    "log": [("--log-level", "print messages from this level on (default: warning)", {"choices": _LEVELS})],
    "github": [
        (
            "--github",
            "annotate files on GitHub and write the job summary (default: if GITHUB_ACTIONS is set)",
            {"action": argparse.BooleanOptionalAction, "default": None},
        )
    ],
    "watch": [("--watch", "run again whenever an input file changes (needs watchfiles)", {})],
    "core dumps": [("--core-dumps", "keep core files of crashes and show native stacks (needs gdb)", {})],
    "reports": [
        ("--junit FILE", "write a report as JUnit XML", {}),
        ("--json FILE", "write a report as JSON (CTRF); without FILE, print it", {"nargs": "?", "const": STDOUT}),
        ("--html FILE", "write a report as one HTML page", {}),
        ("--sarif FILE", "write failures as SARIF", {}),
    ],
}
"""Options that several commands share, by subject."""


def add_shared(group: argparse._ActionsContainer, *subjects: str) -> None:
    """Add the options of these subjects."""
    for subject in subjects:
        for names, help, settings in _SHARED[subject]:
            add(group, names, help, **settings)


def add_json_option(group: argparse._ActionsContainer, help: str) -> None:
    """Add --json and --json=FILE."""
    add(group, "--json FILE", f"{help}; --json=FILE writes a file", nargs="?", const=STDOUT)


def add_device_options(group: argparse._ActionsContainer, default_timeout: str = "no limit") -> None:
    """Add the options that choose a device and the time limit."""
    add(group, "--device D", "index, UUID or part of the name of the device to use")
    add(group, "--timeout S", f"stop work on the device after S seconds (default: {default_timeout})")
    needed = "use the emulation layers for tensors and graphs: if the device needs them (auto), always or never"
    add(group, "--ml-emulation", needed, choices=("auto", "on", "off"), default="auto")


def add_tolerance_options(group: argparse._ActionsContainer, when: str = "") -> None:
    """Add --atol, --rtol and --ulp. ``when`` begins their help."""
    add(group, "--atol X", f"{when}absolute errors to accept", default=0.0)
    add(group, "--rtol X", f"{when}relative errors to accept", default=0.0)
    add(group, "--ulp N", f"{when}errors in ULP to accept", type=whole_number(0), default=0)
