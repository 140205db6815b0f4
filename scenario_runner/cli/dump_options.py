"""The options of ``run`` that dump the content of resources after commands."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import TYPE_CHECKING

from scenario_runner.errors import UsageError

if TYPE_CHECKING:
    from scenario_runner.plan.dumps import Wanted
    from scenario_runner.run.dump_files import DumpRequest

_AFTER, _INTO, _ALL = OPTIONS = ("--dump-after", "--dump-dir", "--dump-all")
_SHADERS = "--shader-instrumentation"


def add_dump_options(parser: argparse.ArgumentParser, wanted: Collection[str]) -> None:
    """Define those options that are in ``wanted``: each takes a while."""
    if _AFTER in wanted:
        parser.add_argument(
            _AFTER,
            action="append",
            metavar="COMMAND[:RESOURCE]",
            help="with --dump-dir: write what the command (its number, or a range such as 2-5) changed, or a resource",
        )
    if _INTO in wanted:
        parser.add_argument(_INTO, metavar="DIR", help="the folder for what --dump-after asks for")
    if _ALL in wanted:
        parser.add_argument(_ALL, metavar="DIR", help="write all that each command may have changed, with an index")


def dump_request(options: argparse.Namespace, files: int) -> DumpRequest | None:
    """What the options ask for, for a call with so many scenarios. Raises UsageError."""
    after = getattr(options, "dump_after", None)
    folder = getattr(options, "dump_dir", None)
    everything = getattr(options, "dump_all", None)
    if after is None and folder is None and everything is None:
        return None
    if (after is None) != (folder is None):
        raise UsageError(
            f"{_AFTER} needs {_INTO}" if folder is None else f"{_INTO} needs {_AFTER}",
            help=f"{_AFTER} 3:RESOURCE {_INTO} DIR, or {_ALL} DIR for everything",
        )
    if after is not None and everything is not None:
        raise UsageError(f"{_AFTER} and {_ALL} exclude each other: {_ALL} writes all that {_AFTER} can ask for")
    for option, name in (
        ("--capture-frame", "capture_frame"),
        ("--gfxr", "gfxr"),
        (_SHADERS, "shader_instrumentation"),
    ):
        if getattr(options, name, None) is not None:
            raise UsageError(
                f"{option} and {_INTO if everything is None else _ALL} contradict each other",
                help="a dump takes frames apart, which would show: run the scenario twice",
            )
    if files > 1:
        raise UsageError(f"{_ALL if after is None else _INTO} takes the files of one scenario",
                         help="run the scenarios one by one")  # fmt: skip
    from scenario_runner.run.dump_files import DumpRequest

    return DumpRequest(folder or everything or "", tuple(map(_wanted, after or ())), everything is not None)


def _wanted(text: str) -> Wanted:
    from scenario_runner.plan.dumps import Wanted

    commands, colon, uid = text.partition(":")
    first, dash, last = commands.partition("-")
    numbers = [first, last] if dash else [first]
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers) or (colon and not uid):
        raise UsageError(
            f"{_AFTER} {text!r:.100}: expected COMMAND or COMMAND:RESOURCE, with the number of a command from 0 on or a"
            " range such as 2-5",
            help=f"{_AFTER} 3:result {_INTO} dumps",
        )
    if int(numbers[0]) > int(numbers[-1]):
        raise UsageError(f"{_AFTER} {text!r:.100}: the range ends before it begins")
    return Wanted(int(numbers[0]), int(numbers[-1]), uid or None)
