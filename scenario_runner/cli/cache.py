"""``scenario-runner cache show|clear|path``: what earlier runs left for later ones, in the user's cache folder."""

from __future__ import annotations

import argparse
import json
import os

from scenario_runner.cli.options import KINDS_KEPT
from scenario_runner.content_cache import KINDS, LIMIT_VARIABLE, default_cache_dir, kept_files, limit_bytes, remove
from scenario_runner.errors import FileError, UsageError
from scenario_runner.text import close_names, counted, did_you_mean, size_in_units


def show_path(options: argparse.Namespace) -> None:
    """Print the folder."""
    print(default_cache_dir())


def show(options: argparse.Namespace) -> None:
    """Print the number and the size of the files of each kind."""
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
    """Remove the files of some kinds, or of all. Raises UsageError, and FileError for files that cannot be removed."""
    folder = default_cache_dir()
    for kind in options.kinds:
        if kind not in KINDS:
            meant = did_you_mean(close_names(kind, KINDS, most=1))
            raise UsageError(f"there is nothing kept called {kind!r}{meant}", help=f"the kinds: {', '.join(KINDS)}")
    files = [file for kind in KINDS if not options.kinds or kind in options.kinds for file in kept_files(folder, kind)]
    problems = remove(files)
    if problems:
        raise FileError(f"{len(problems)} of {len(files)} files cannot be removed: {problems[0]}")
    print(f"{folder}: removed {counted(len(files), 'file')},"
          f" {size_in_units(sum(file.size_bytes for file in files))}")  # fmt: skip


def _column(size_bytes: int) -> str:
    number, unit = size_in_units(size_bytes).split()
    return f"{number:>7} {unit:<5}"
