"""Running the program as doctor, and shared libraries that misbehave when they are opened.

The libraries are written byte by byte, so that no C compiler is needed. Such a library is one loadable segment that
holds everything, with a dynamic section whose DT_INIT names the code that the dynamic linker calls (System V ABI,
chapter 5). A third program header says that the stack need not be executable: without it the linker makes it so,
which glibc refuses from 2.41 on.
"""

from __future__ import annotations

import json
import os
import platform
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

# e_machine, and an instruction that jumps to itself
_MACHINES = {"x86_64": (62, b"\xeb\xfe"), "aarch64": (183, b"\x00\x00\x00\x14")}
_HEADER, _SEGMENT = 64, 56


def write_library(path: Path, *, hangs: bool) -> Path:
    """A library that runs for ever when it is opened, or else calls an address where nothing is."""
    machine, loop = _MACHINES[platform.machine()]
    code = _HEADER + 3 * _SEGMENT
    table = code + 8
    entries = [(12, code if hangs else 0x7F0000), (5, 0), (6, 0), (10, 1), (11, 24), (0, 0)]  # INIT, STRTAB, SYMTAB, …
    strings = table + 16 * len(entries)
    symbols = strings + 8
    size = symbols + 24
    entries[1], entries[2] = (5, strings), (6, symbols)
    content = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, machine, 1, 0, _HEADER, 0, 0, 64, 56, 3, 0, 0, 0)
    content += struct.pack("<IIQQQQQQ", 1, 7, 0, 0, 0, size, size, 0x1000)  # PT_LOAD, readable, writable, executable
    length = 16 * len(entries)
    content += struct.pack("<IIQQQQQQ", 2, 6, table, table, table, length, length, 8)  # PT_DYNAMIC
    content += struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)  # PT_GNU_STACK, readable and writable
    content += loop.ljust(8, b"\0")
    content += b"".join(struct.pack("<QQ", tag, value) for tag, value in entries)
    path.write_bytes(content.ljust(size, b"\0"))
    return path


def doctor(*arguments: str, python: str = sys.executable, **environment: str) -> subprocess.CompletedProcess[str]:
    return program_of(python, "doctor", *arguments, **environment)


def program_of(python: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-P", "-W", "error", "-m", "scenario_runner", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path), **environment},
        check=False,
    )


def report_of(*arguments: str, code: int = 1, python: str = sys.executable, **environment: str) -> dict[str, Any]:
    done = doctor("--json", *arguments, python=python, **environment)
    assert (done.returncode, done.stderr) == (code, "")
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["ready"] is (code == 0)
    return report
