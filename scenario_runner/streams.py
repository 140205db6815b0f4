"""Paths that lead to no file: standard input, pipes, devices."""

from __future__ import annotations

import os
import stat


def is_stream(path: str) -> bool:
    """Whether a path is that of standard input, a pipe or a device: read once, and in no folder of its own."""
    folder, name = os.path.split(path)
    if path == "/dev/stdin" or (name.isdecimal() and folder.startswith(("/dev/", "/proc/")) and folder.endswith("/fd")):
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
