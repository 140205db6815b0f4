"""Commands about the program itself: ``explain``, ``--version``, ``cache show|clear|path`` and ``completion``."""

import argparse
import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from scenario_runner.cli.arguments import DEPENDENCIES, parser_of, purpose
from scenario_runner.cli.option_types import Parser
from scenario_runner.cli.options import COMMANDS, KINDS_KEPT
from scenario_runner.errors import FileError, UsageError
from scenario_runner.errors.codes import CODES, FAMILIES
from scenario_runner.errors.installation import __version__, revision, version_of
from scenario_runner.errors.text import close_names, counted, did_you_mean, size_in_units
from scenario_runner.files.cache_folder import KINDS, LIMIT_VARIABLE, default_cache_dir, kept_files, limit_bytes, remove

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
_WORDS: Final[Mapping[str, Sequence[str]]] = {"codes": list(CODES), "kinds": list(KINDS), "topic": list(COMMANDS)}
_LIST_DEVICES: Final = "scenario-runner --list-devices 2>/dev/null | sed 's/:.*//'"
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


def explain(options: argparse.Namespace) -> None:
    """Explain codes, or list all codes."""
    for name in options.codes:
        if name.upper() not in CODES:
            meant = did_you_mean(close_names(name, CODES))
            raise UsageError(f"there is no code {name!r}{meant}", help="'scenario-runner explain' lists all codes")
    if not options.codes:
        for family, about in FAMILIES.items():
            print(about)
            for name, code in CODES.items():
                if name.split("-")[1] == family:
                    print(f"  {name:<16} {code.severity:<8} {code.title}")
        return
    pages = []
    for code in (CODES[name.upper()] for name in options.codes):
        exits = f", exit code {code.exit_code}" if code.exit_code else ""
        pages.append(f"{code.code} ({code.severity}{exits}): {code.title}")
        for text in (code.meaning, f"Fix: {code.fix}", f"Source: {code.source}"):
            pages.append(textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False))
    print("\n\n".join(pages))


def versions(options: argparse.Namespace) -> None:
    """Print the versions of this program and the packages below it, as JSON with the reference runner's keys."""
    dependencies = [{"name": name, "version": version_of(name)} for name in DEPENDENCIES]
    print(json.dumps({"version": __version__, "revision": revision(), "dependencies": dependencies}, indent=2))


def path(options: argparse.Namespace) -> None:
    """Print the path of the cache folder."""
    print(default_cache_dir())


def show(options: argparse.Namespace) -> None:
    """Print for each kind how many files are cached, and their total size."""
    folder = default_cache_dir()
    files = {kind: kept_files(folder, kind) for kind in KINDS}
    sizes = {kind: sum(file.size_bytes for file in of_kind) for kind, of_kind in files.items()}
    limit = limit_bytes()
    if options.json:
        kinds = {kind: {"files": len(files[kind]), "size_bytes": sizes[kind]} for kind in KINDS}
        print(json.dumps({"path": folder, "limit_bytes": limit, "kinds": kinds}, indent=2))
        return
    print(folder)
    for kind in KINDS:
        number, noun = counted(len(files[kind]), "file").split()
        print(f"  {kind:<10}{number:>7} {noun:<5} {_column(sizes[kind])}   {KINDS_KEPT[kind]}")
    print(f"  {'in all':<10}{sum(map(len, files.values())):>7} files {_column(sum(sizes.values())).rstrip()}")
    if limit is not None:
        print(f"  {LIMIT_VARIABLE} bounds all kinds to {size_in_units(limit)}")
    elif os.environ.get(LIMIT_VARIABLE):
        print(f"  {LIMIT_VARIABLE} is not a size such as 500M or 2G, and is ignored")


def clear(options: argparse.Namespace) -> None:
    """Remove cached files of the given kinds, or all. Raises UsageError, and FileError if a file stays."""
    folder = default_cache_dir()
    for kind in options.kinds:
        if kind not in KINDS:
            meant = did_you_mean(close_names(kind, KINDS, most=1))
            raise UsageError(f"the cache has no kind {kind!r}{meant}", help=f"the kinds: {', '.join(KINDS)}")
    files = [file for kind in KINDS if not options.kinds or kind in options.kinds for file in kept_files(folder, kind)]
    problems = remove(files)
    if problems:
        raise FileError(f"{len(problems)} of {len(files)} files cannot be removed: {problems[0]}")
    size_bytes = sum(file.size_bytes for file in files)
    print(f"{folder}: removed {counted(len(files), 'file')}, {size_in_units(size_bytes)}")


def _column(size_bytes: int) -> str:
    number, unit = size_in_units(size_bytes).split()
    return f"{number:>7} {unit:<5}"


def completion(options: argparse.Namespace) -> None:
    """Print a script from shtab that completes commands, options and their values in a shell."""
    import shtab

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
    import shtab

    paths = {"FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, subparser in action.choices.items():
                _complete_values(subparser, f"{command} {name}".strip())
        elif action.dest in _WORDS:
            action.choices = _WORDS[action.dest]
        elif action.dest in ("device", "devices"):
            vars(action)["complete"] = shtab.cmd(_LIST_DEVICES)
        elif not action.option_strings and command in _READ_FILES:
            vars(action)["complete"] = shtab.glob(*_READ_FILES[command])
        elif action.metavar in paths:
            vars(action)["complete"] = paths[str(action.metavar)]
