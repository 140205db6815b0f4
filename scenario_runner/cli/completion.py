"""``scenario-runner completion``: a script with which a shell completes commands, options and files."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from typing import Final

from scenario_runner.cli import COMMANDS
from scenario_runner.cli.arguments import Parser

_WITHOUT_OPTIONS: Final = ("help", "completion")
_OPTION: Final = re.compile(r"--[a-z][a-z-]*")
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
    options = {name: _options(name) for name in COMMANDS if name not in _WITHOUT_OPTIONS}
    if shell == "fish":
        print(_fish(options))
        return 0
    if shell == "zsh":
        print("autoload -U +X compinit bashcompinit && compinit && bashcompinit")
    cases = [f'    {name}) options="{" ".join(words)}" ;;' for name, words in options.items() if name != "run"]
    cases.append(f'    *) options="{" ".join(options["run"])}" ;;')
    print(_BASH.format(cases="\n".join(cases), commands=" ".join(COMMANDS)), end="")
    return 0


def _options(command: str) -> list[str]:
    """The options that the help text of a command lists."""
    text = io.StringIO()
    with redirect_stdout(text), suppress(SystemExit):
        import_module(f"scenario_runner.cli.{command.replace('-', '_')}").main(["--help"])
    listed = (line.strip().split("  ")[0] for line in text.getvalue().splitlines() if line.startswith("  -"))
    return sorted({option for words in listed for option in _OPTION.findall(words)})


def _fish(options: Mapping[str, Sequence[str]]) -> str:
    lines = [
        f"complete -c scenario-runner -n __fish_use_subcommand -a {name} -d '{COMMANDS[name]}'" for name in COMMANDS
    ]
    others = " ".join(name for name in COMMANDS if name != "run")
    for name, words in options.items():
        seen = f"not __fish_seen_subcommand_from {others}" if name == "run" else f"__fish_seen_subcommand_from {name}"
        lines += [f"complete -c scenario-runner -n '{seen}' -l {word[2:]}" for word in words]
    return "\n".join(lines)
