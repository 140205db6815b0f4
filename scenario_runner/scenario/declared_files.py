"""The files that the text of a scenario names, before anybody has checked the scenario.

It answers what has to be known of all scenarios of a call before the first one runs, and of those that cannot be
planned. A text that is wrong names what it names.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, NamedTuple

# In JSON a quote inside of a string is escaped, so that these can only be keys.
_NAMED = re.compile(r'"(src|dst)"\s*:\s*("(?:[^"\\]|\\.)+")')
_BOUNDARIES = ("mark_boundary", "frame_boundary")


class DeclaredFiles(NamedTuple):
    """``writes`` and ``reads`` are paths; ``captures`` are (number of the frame, uid)."""

    writes: tuple[str, ...]
    reads: tuple[str, ...]
    captures: frozenset[tuple[int, str]]

    def on_disk(self) -> list[str]:
        """The output files that are there, by what they hold; what the scenario reads is not among them."""
        inputs = {_identity(path) for path in self.reads}
        return [path for path in dict.fromkeys(self.writes) if _holds_output(path) and _identity(path) not in inputs]


def declared_files(text: str, base_dir: str, output_dir: str | None = None) -> DeclaredFiles:
    """The files of a scenario with this text whose relative paths start from ``base_dir``."""
    named: dict[str, list[str]] = {"src": [], "dst": []}
    for key, string in _NAMED.findall(text):
        path = string[1:-1]
        if "\\" in path or not path.isprintable():
            try:
                path = json.loads(string)
                os.fsencode(path)
            except ValueError:
                continue
        named[key].append(path)
    target = base_dir if output_dir is None else output_dir
    return DeclaredFiles(
        tuple(os.path.join(target, path) for path in named["dst"] if "\0" not in path),
        tuple(os.path.join(base_dir, path) for path in named["src"] if "\0" not in path),
        _captures(text),
    )


def _captures(text: str) -> frozenset[tuple[int, str]]:
    if not any(word in text for word in _BOUNDARIES):
        return frozenset()
    found: set[tuple[int, str]] = set()
    count = 0
    try:
        commands: Any = json.loads(text)["commands"]
        for command in commands:
            for word in _BOUNDARIES:
                if word in command:
                    number = command[word].get("frame_id", count)
                    found.update((number, uid) for uid in command[word]["resources"])
                    count += 1
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass  # the run says what is wrong
    return frozenset(found)


def _identity(path: str) -> tuple[int, int] | None:
    """What a file is, however it is named; None for none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _holds_output(path: str) -> bool:
    from scenario_runner.files.codec import all_codecs

    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(16).startswith(tuple(codec.signature for codec in all_codecs()))
    except OSError:
        return False
