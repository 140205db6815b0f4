"""The list of captured files, `manifest.json`: its name, what marks it, its entries."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from scenario_runner.files.output import OutputFile, check_destination
from scenario_runner.files.source import file_error
from scenario_runner.streams import read_file

MANIFEST = "manifest.json"
_MARK = "scenario-runner captures"
_VERSION = 1


def check_manifest(folder: str) -> None:
    """Refuse a folder whose manifest cannot be written, or is a file of somebody else. Raises FileError."""
    path = os.path.join(folder, MANIFEST)
    check_destination(path)
    if os.path.exists(path) and _read(path) is None:
        raise file_error(path, "is not a list of captures, which would replace it", help="choose another folder")


def write_manifest(folder: str, entries: Sequence[dict[str, Any]]) -> None:
    """List these files, and those of earlier runs that are still there. Raises FileError."""
    path = os.path.join(folder, MANIFEST)
    own = {entry["file"] for entry in entries}
    earlier = [
        entry
        for entry in _read(path) or ()
        if entry["file"] not in own and os.path.isfile(os.path.join(folder, entry["file"]))
    ]
    text = json.dumps({"kind": _MARK, "version": _VERSION, "files": [*earlier, *entries]}, indent=1)
    with OutputFile(path) as file:
        file.write(text.encode() + b"\n")


def _read(path: str) -> list[dict[str, Any]] | None:
    """The entries of a manifest, None for what is none."""
    try:
        found = json.loads(read_file(path))
        if found["kind"] != _MARK:
            return None
        return [entry for entry in found["files"] if isinstance(entry["file"], str)]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
