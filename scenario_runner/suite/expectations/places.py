"""Where the expectations of a scenario are, by its name. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Container
from typing import Final

_SCENARIO: Final = "scenario"  # of a folder that has one scenario: its files need not name it
_FILE: Final = "check.json"
_FOLDER: Final = "expected"


def expectations_file(scenario_path: str, beside: Container[str] | None = None) -> str | None:
    """The file with the expectations of a scenario: ``check.json`` beside ``scenario.json``, ``NAME.check.json``
    beside ``NAME.json``; None where there is none. ``beside`` has the names in its folder, where they are known."""
    path = _beside(scenario_path, _FILE)
    is_there = os.path.lexists(path) if beside is None else os.path.basename(path) in beside
    return path if is_there else None  # what cannot be read is reported when it is


def is_expectations_file(path: str) -> bool:
    """Whether a file has the name of one with expectations, so that it is no scenario."""
    name = os.path.basename(path)
    return name == _FILE or name.endswith(f".{_FILE}")


def new_expectations_file(scenario_path: str) -> str:
    """The path that `expectations_file` looks at."""
    return _beside(scenario_path, _FILE)


def expected_folder(scenario_path: str) -> str:
    """The folder of the expected files that nothing names: ``expected`` beside ``scenario.json``, ``NAME.expected``
    beside ``NAME.json``. It need not exist."""
    return _beside(scenario_path, _FOLDER)


def _beside(scenario_path: str, name: str) -> str:
    folder, file = os.path.split(scenario_path)
    stem = os.path.splitext(file)[0]
    return os.path.join(folder, name if stem == _SCENARIO else f"{stem}.{name}")
