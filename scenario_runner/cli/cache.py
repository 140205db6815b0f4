"""``scenario-runner cache show|clear|path``: what earlier runs left for later ones, in the user's cache folder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from scenario_runner.cli.arguments import Parser, add_flag
from scenario_runner.content_cache import KINDS, LIMIT_VARIABLE, default_cache_dir, kept_files, limit_bytes, remove
from scenario_runner.errors import FileError, UsageError
from scenario_runner.text import close_names, counted, did_you_mean, size_in_units

_WHAT = {
    "plans": "plans of scenarios",
    "shaders": "compiled shaders",
    "checked": "modules and shaders of models that were checked, versions of compilers",
    "pipelines": "the driver's pipelines",
    "contents": "files of suites of other hosts",
}


def main(argv: Sequence[str]) -> int:
    """Returns 0. Raises FileError for files that cannot be removed."""
    parser = Parser(prog="scenario-runner cache", description="Show or clear what is kept for later runs.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="show|clear|path")
    show = commands.add_parser("show", help="print the number and the size of the files of each kind")
    add_flag(show, "--json", help="print it as JSON")
    clear = commands.add_parser("clear", help="remove the files of some kinds, or of all")
    clear.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(_WHAT))
    commands.add_parser("path", help="print the folder")
    options = parser.parse_args(argv)
    folder = default_cache_dir()
    if options.command == "path":
        print(folder)
        return 0
    return _show(folder, as_json=options.json) if options.command == "show" else _clear(folder, options.kinds)


def _show(folder: str, *, as_json: bool) -> int:
    files = {kind: kept_files(folder, kind) for kind in KINDS}
    sizes = {kind: sum(file.size_bytes for file in of_kind) for kind, of_kind in files.items()}
    limit = limit_bytes()
    if as_json:
        kinds = {kind: {"files": len(files[kind]), "size_bytes": sizes[kind]} for kind in KINDS}
        print(json.dumps({"path": folder, "limit_bytes": limit, "kinds": kinds}, indent=2))
        return 0
    print(folder)
    for kind in KINDS:
        number, noun = counted(len(files[kind]), "file").split()
        print(f"  {kind:<10}{number:>7} {noun:<5} {_column(sizes[kind])}   {_WHAT[kind]}")
    print(f"  {'in all':<10}{sum(map(len, files.values())):>7} files {_column(sum(sizes.values())).rstrip()}")
    if limit is not None:
        print(f"  {LIMIT_VARIABLE} bounds all kinds to {size_in_units(limit)}")
    elif os.environ.get(LIMIT_VARIABLE):
        print(f"  {LIMIT_VARIABLE} is not a size such as 500M or 2G, and is ignored")
    return 0


def _clear(folder: str, wanted: Sequence[str]) -> int:
    for kind in wanted:
        if kind not in KINDS:
            meant = did_you_mean(close_names(kind, KINDS, most=1))
            raise UsageError(f"there is nothing kept called {kind!r}{meant}", help=f"the kinds: {', '.join(KINDS)}")
    files = [file for kind in KINDS if not wanted or kind in wanted for file in kept_files(folder, kind)]
    problems = remove(files)
    if problems:
        raise FileError(f"{len(problems)} of {len(files)} files cannot be removed: {problems[0]}")
    print(f"{folder}: removed {counted(len(files), 'file')},"
          f" {size_in_units(sum(file.size_bytes for file in files))}")  # fmt: skip
    return 0


def _column(size_bytes: int) -> str:
    number, unit = size_in_units(size_bytes).split()
    return f"{number:>7} {unit:<5}"
