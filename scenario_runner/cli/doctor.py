"""``scenario-runner doctor``: what this machine has and lacks for running scenarios."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from scenario_runner.cli.arguments import Parser, positive_seconds
from scenario_runner.cli.messages import is_terminal, rich_console, write

_STYLES = {"ok": "green", "bad": "red", "": "default"}
_FIX_TIMEOUT_S = 1800.0
_LEVELS = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def main(argv: Sequence[str]) -> int:
    """Returns 0 when scenarios can run (a usable device and a GLSL compiler), else 1."""
    parser = Parser(
        prog="scenario-runner doctor",
        description="Show what is installed on this machine for running scenarios, and what is missing. "
        "The exit code is 0 when there is a usable device and a GLSL compiler, else 1.",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON (docs/doctor.md has the keys)")
    parser.add_argument(
        "--fix",
        action="store_true",
        help="first install with pip what is missing and does not need root: the compiler for shaders with tensors,"
        " the ML emulation layers, the library that reads VGF files",
    )
    parser.add_argument("--glslang", metavar="PATH", help="GLSL compiler to check (or set SCENARIO_RUNNER_GLSLANG)")
    parser.add_argument(
        "--timeout",
        type=positive_seconds,
        default=30.0,
        metavar="S",
        help="time limit for the drivers (default: 30 seconds)",
    )
    options = parser.parse_args(argv)
    from scenario_runner.doctor import gather

    report = gather(timeout_s=options.timeout, compiler=options.glslang)
    fixed = True
    if options.fix and any(finding["command"] for finding in report["findings"]):
        fixed = _fix(report)
        report = gather(timeout_s=options.timeout, compiler=options.glslang)
    if options.json:
        import json

        print(json.dumps(report, indent=2))
    else:
        _show(report)
    return 0 if report["ready"] and fixed else 1


def _fix(report: Mapping[str, Any]) -> bool:
    """Run the commands of the findings; what they print goes to standard error. Returns whether all succeeded."""
    import subprocess

    from scenario_runner.program import Program

    succeeded = True
    for finding in report["findings"]:
        if finding["command"]:
            write("info", f"running: {finding['fix']}")
            with Program(finding["command"], _FIX_TIMEOUT_S, stdin=subprocess.DEVNULL, stdout=2) as program:
                code = program.wait()
            if code:
                succeeded = False
                how = program.failure or f"ended with exit code {code}"
                write("error", f"the command {how}: {finding['fix']}")
    return succeeded


def _show(report: Mapping[str, Any]) -> None:
    if is_terminal(sys.stdout):
        _show_in_colour(report)
    else:
        _show_plain(report)


def _show_plain(report: Mapping[str, Any]) -> None:
    from scenario_runner.doctor.sections import headline, sections

    head = headline(report)
    lines = [f"{head.label}: {head.text}"]
    for section in sections(report):
        lines += ["", section.title]
        width = max((len(row.label) for row in section.rows), default=0)
        for row in section.rows:
            mark = {"ok": "+", "bad": "-"}.get(row.state, " ")
            lines.append(f"  {mark} {row.label:{width}}  {row.text}")
    lines += ["", "findings"]
    for finding in report["findings"]:
        lines += [f"  {finding['level']}: {finding['message']}", f"    fix: {finding['fix']}"]
    if not report["findings"]:
        lines.append("  nothing is missing")
    text = "\n".join(lines)
    # What drivers and paths hold may be beyond the encoding of a pipe.
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def _show_in_colour(report: Mapping[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from scenario_runner.doctor.sections import headline, sections

    console = rich_console(sys.stdout)
    head = headline(report)
    console.print(Text.assemble((head.label, "bold"), ": ", (head.text, f"bold {_STYLES[head.state]}")))
    for section in sections(report):
        console.print()
        console.print(Text(section.title, "bold"))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="dim")
        table.add_column(overflow="fold")
        for row in section.rows:
            table.add_row(Text("  " + row.label), Text(row.text, _STYLES[row.state]))
        console.print(table)
    console.print()
    console.print(Text("findings", "bold"))
    for finding in report["findings"]:
        level = Text(f"  {finding['level']}: ", _LEVELS[finding["level"]])
        console.print(level + Text(finding["message"]), soft_wrap=True)
        console.print(Text(f"    fix: {finding['fix']}", "green"), soft_wrap=True)
    if not report["findings"]:
        console.print(Text("  nothing is missing", "green"))
