"""``scenario-runner completion SHELL``: shtab writes a script that completes commands, options and their values."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Final

import shtab

from scenario_runner.cli.arguments import parser_of, purpose
from scenario_runner.cli.option_types import Parser
from scenario_runner.cli.options import COMMANDS
from scenario_runner.errors.codes import CODES
from scenario_runner.files.cache_folder import KINDS

_SCENARIOS: Final = ("*.json", "*.vgf", "*.pte")
_READ_FILES: Final[Mapping[str, Sequence[str]]] = {
    "run": _SCENARIOS,
    "validate": _SCENARIOS,
    "test": _SCENARIOS,
    "report": ("*.jsonl",),
    "bench": ("*.json",),
    "pack": ("*.json",),
    "reduce": ("*.json",),
    "view": ("*.npy", "*.dds", "*.png"),
    "init": ("*.comp", "*.glsl", "*.hlsl", "*.spv"),
    "shader show": ("*.comp", "*.vert", "*.frag", "*.glsl", "*.hlsl", "*.spv", "*.vgf"),
    "vgf show": ("*.vgf",),
    "vgf scenario": ("*.vgf",),
    "vgf extract": ("*.pte",),
    "convert": ("*.mlir", "*.mlirbc", "*.tosa"),
    "compare-layers": ("*.mlir", "*.mlirbc", "*.tosa"),
}
"""The names of files that commands read. Other commands complete any file."""
_PATHS: Final = {"FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}
_WORDS: Final[Mapping[str, Sequence[str]]] = {"codes": list(CODES), "kinds": list(KINDS), "topic": list(COMMANDS)}
_DEVICES: Final = shtab.cmd("scenario-runner --list-devices 2>/dev/null | sed 's/:.*//'")
# In zsh a file as the first word stands for `run` and this file.
_ZSH: Final = """\
functions[_scenario_runner_commands]=$functions[_shtab_scenario_runner_commands]
_shtab_scenario_runner_commands() { _scenario_runner_commands; %s }
functions[_scenario_runner_words]=$functions[_shtab_scenario_runner]
_shtab_scenario_runner() {
  local names=(%s)
  if (( CURRENT > 2 && ! $names[(Ie)$words[2]] )); then
    words=($words[1] run "${(@)words[2,-1]}")
    (( CURRENT += 1 ))
  fi
  _scenario_runner_words
}"""


def main(options: argparse.Namespace) -> None:
    """Print the script for a shell."""
    root = Parser("scenario-runner")
    for action in parser_of("run")._actions:
        if action.option_strings and action.dest != "help":
            root._add_action(action)
    commands = root.add_subparsers(metavar="COMMAND")
    for name in COMMANDS:
        commands.add_parser(name, help=purpose(name), parents=[parser_of(name)], add_help=False)
    _complete_values(root, "")
    files = shtab.glob(*_SCENARIOS)  # the first word is a command or a file
    before, after = "", ""
    if options.shell == "bash":
        before = f"_shtab_scenario_runner_pos_0_COMPGEN={files['bash']}"
    elif options.shell == "zsh":
        before = _ZSH % (files["zsh"], " ".join(COMMANDS))
    else:
        after = f"complete -c scenario-runner -n _shtab_scenario_runner_using -ka '{files['fish']}'"
    print(shtab.complete(root, options.shell, preamble=before), after, sep="\n")


def _complete_values(parser: argparse.ArgumentParser, command: str) -> None:
    """Tell shtab how to complete the values of options and arguments."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, subparser in action.choices.items():
                _complete_values(subparser, f"{command} {name}".strip())
        elif action.dest in _WORDS:
            action.choices = _WORDS[action.dest]
        elif action.dest in ("device", "devices"):
            vars(action)["complete"] = _DEVICES
        elif not action.option_strings and command in _READ_FILES:
            vars(action)["complete"] = shtab.glob(*_READ_FILES[command])
        elif action.metavar in _PATHS:
            vars(action)["complete"] = _PATHS[str(action.metavar)]
