"""``scenario-runner completion``: a script with which a shell completes commands, options and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

from scenario_runner.cli import COMMANDS
from scenario_runner.cli.arguments import Parser

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


def main(argv: Sequence[str]) -> int:
    """Print the script for a shell. Raises UsageError."""
    parser = Parser(
        prog="scenario-runner completion",
        description="Print a script with which a shell completes commands and options.",
        epilog='bash, zsh: eval "$(scenario-runner completion bash)"; fish: scenario-runner completion fish | source',
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    shell = parser.parse_args(argv).shell
    # generated, as the help texts take a second to make and shells run this when they start
    options = json.loads((files(__package__) / "options.json").read_text(encoding="utf-8"))
    if shell == "fish":
        print(_fish(options))
        return 0
    if shell == "zsh":
        print("autoload -U +X compinit bashcompinit && compinit && bashcompinit")
    cases = [f'    {name}) options="{" ".join(words)}" ;;' for name, words in options.items() if name != "run"]
    cases.append(f'    *) options="{" ".join(options["run"])}" ;;')
    print(_BASH.format(cases="\n".join(cases), commands=" ".join(COMMANDS)), end="")
    return 0


def _fish(options: Mapping[str, Sequence[str]]) -> str:
    lines = [
        f"complete -c scenario-runner -n __fish_use_subcommand -a {name} -d '{COMMANDS[name]}'" for name in COMMANDS
    ]
    others = " ".join(name for name in COMMANDS if name != "run")
    for name, words in options.items():
        seen = f"not __fish_seen_subcommand_from {others}" if name == "run" else f"__fish_seen_subcommand_from {name}"
        lines += [f"complete -c scenario-runner -n '{seen}' -l {word[2:]}" for word in words]
    return "\n".join(lines)
