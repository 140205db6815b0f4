"""Commands about the program itself: ``explain``, ``completion`` and ``--version``."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from scenario_runner import __version__
from scenario_runner.cli import COMMANDS, DEPENDENCIES
from scenario_runner.cli.options import parser_of
from scenario_runner.codes import CODES, FAMILIES
from scenario_runner.errors import UsageError
from scenario_runner.text import close_names, did_you_mean

_BASH: Final = """\
_scenario_runner() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} options
  COMPREPLY=()
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ $COMP_CWORD == 1 ]]; then
    COMPREPLY=($(compgen -W "{commands}" -- "$word") $(compgen -f -- "$word"))
  fi
}}
complete -o default -F _scenario_runner scenario-runner
"""


def explain(options: argparse.Namespace) -> None:
    """Print the explanation of each code, or the list of all codes when none is given."""
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
    for number, name in enumerate(options.codes):
        code = CODES[name.upper()]
        if number:
            print()
        exits = f", exit code {code.exit_code}" if code.exit_code else ""
        print(f"{code.code} ({code.severity}{exits}): {code.title}")
        for text in (code.meaning, f"Fix: {code.fix}", f"Source: {code.source}"):
            print()
            print(textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False))


def versions(options: argparse.Namespace) -> None:
    """Print the versions of this program and what it stands on, as JSON with the reference runner's keys."""
    from importlib.metadata import PackageNotFoundError, version  # the start of a shell, which completes, has no need

    dependencies: list[dict[str, str | None]] = []
    for name in DEPENDENCIES:
        try:
            dependencies.append({"name": name, "version": version(name)})
        except PackageNotFoundError:
            dependencies.append({"name": name, "version": None})
    print(json.dumps({"version": __version__, "revision": f"v{__version__}", "dependencies": dependencies}, indent=2))


def completion(options: argparse.Namespace) -> None:
    """Print a script with which a shell completes commands, options and files."""
    known = {
        command: sorted(name for name in set(parser_of(command).option_names()) if name.startswith("--"))
        for command in COMMANDS
        if command not in ("help", "completion")
    }
    if options.shell == "fish":
        print(_fish(known))
        return
    if options.shell == "zsh":
        print("autoload -U +X compinit bashcompinit && compinit && bashcompinit")
    cases = [f'    {name}) options="{" ".join(words)}" ;;' for name, words in known.items() if name != "run"]
    cases.append(f'    *) options="{" ".join(known["run"])}" ;;')
    print(_BASH.format(cases="\n".join(cases), commands=" ".join(COMMANDS)), end="")


def _fish(options: Mapping[str, Sequence[str]]) -> str:
    lines = [
        f"complete -c scenario-runner -n __fish_use_subcommand -a {name} -d '{COMMANDS[name]}'" for name in COMMANDS
    ]
    others = " ".join(name for name in COMMANDS if name != "run")
    for name, words in options.items():
        seen = f"not __fish_seen_subcommand_from {others}" if name == "run" else f"__fish_seen_subcommand_from {name}"
        lines += [f"complete -c scenario-runner -n '{seen}' -l {word[2:]}" for word in words]
    return "\n".join(lines)
