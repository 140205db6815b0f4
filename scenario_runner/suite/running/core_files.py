"""The native stack of a process that crashed, as gdb reads it from its core file."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
from typing import Final

from scenario_runner.files.source import reason_of
from scenario_runner.program import Program

_MOST_FRAMES: Final = 40
_LIMIT_S: Final = 60.0
_HANDLER: Final = "<signal handler called>"
_FRAME: Final = re.compile(r"#\d+ ")
_INTERPRETER: Final = re.compile(r"(?: in |#\d+\s+)(?:_?Py|cfunction_|method_vectorcall|object_vacall)")


def native_stack(process: int) -> str:
    """The frames of the thread that crashed, down to the Python interpreter, and the path of the core file."""
    core, pattern = _core_of(process)
    if not core:
        return f"no core file was found; /proc/sys/kernel/core_pattern is {pattern!r}: see core(5)"
    gdb = shutil.which("gdb")
    lines = _frames(gdb, core) if gdb else ["gdb is not installed, which shows the stack"]
    return "\n".join([*lines, f"core file: {core}"])


def _core_of(process: int) -> tuple[str, str]:
    """The core file of a process, empty where there is none, and the system's pattern for such files."""
    try:
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
            pattern = file.read().strip()
        with open("/proc/sys/kernel/core_uses_pid", encoding="ascii") as file:
            has_suffix = file.read().strip() == "1" and "%p" not in pattern
    except OSError as error:
        return "", reason_of(error)
    if pattern.startswith("|"):
        return "", pattern
    name = re.sub("%(.)", lambda found: str(process) if found[1] == "p" else "*", glob.escape(pattern))
    found = glob.glob(os.path.abspath(name + (f".{process}" if has_suffix else "")))
    return max(found, key=os.path.getmtime, default=""), pattern


def _frames(gdb: str, core: str) -> list[str]:
    command = [gdb, "-batch", "-nx", "-ex", f"bt {_MOST_FRAMES}", sys.executable, core]
    with Program(
        command, _LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as program:
        shown = program.communicate()[0].decode("utf-8", "replace")
    frames = [line for line in shown.splitlines() if _FRAME.match(line)]
    # gdb shows the first frame twice; those above the handler are of faulthandler
    start = next((at for at, line in enumerate(frames, 1) if line.endswith(_HANDLER)), 1)
    frames = frames[start:]
    end = next((at for at, line in enumerate(frames) if _INTERPRETER.search(line)), len(frames))
    return frames[:end] or [f"gdb {program.failure or 'shows no frame'}"]
