"""The command that installs a Python package for this interpreter, which ``doctor --fix`` runs."""

from __future__ import annotations

import sys


def pip_install(package: str) -> list[str]:
    """The command as a list of arguments."""
    return [sys.executable, "-m", "pip", "install", package]
