"""``scenario-runner explain [CODE…]``: what the codes of findings mean and how to fix what they name."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from scenario_runner.cli.arguments import Parser
from scenario_runner.codes import CODES, FAMILIES
from scenario_runner.errors import UsageError
from scenario_runner.text import close_names, did_you_mean


def main(argv: Sequence[str]) -> int:
    """Print the explanation of each code, or the list of all codes when none is given; returns 0."""
    parser = Parser(
        prog="scenario-runner explain", description="Explain the codes of findings; without CODE, list all."
    )
    parser.add_argument("codes", nargs="*", metavar="CODE", help="a code, such as SR-BIND-003")
    options = parser.parse_args(argv)
    for given in options.codes:
        if given.upper() not in CODES:
            meant = did_you_mean(close_names(given, CODES))
            raise UsageError(f"there is no code {given!r}{meant}", help="'scenario-runner explain' lists all codes")
    if not options.codes:
        for family, about in FAMILIES.items():
            print(about)
            for name, code in CODES.items():
                if name.split("-")[1] == family:
                    print(f"  {name:<16} {code.severity:<8} {code.title}")
        return 0

    for number, given in enumerate(options.codes):
        code = CODES[given.upper()]
        if number:
            print()
        exits = f", exit code {code.exit_code}" if code.exit_code else ""
        print(f"{code.code} ({code.severity}{exits}): {code.title}")
        for text in (code.meaning, f"Fix: {code.fix}", f"Source: {code.source}"):
            print()
            print(textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False))
    return 0
