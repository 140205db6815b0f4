"""A crash of the process that ran scenarios: an error that says what it was doing, and the native stack as gdb reads it
from the core file.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import subprocess
import sys
from signal import SIGKILL
from typing import Any, Final, NamedTuple

from scenario_runner import progress
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import DeviceError, DriverCrashError, FenceTimeoutError
from scenario_runner.files.source import read_file, reason_of
from scenario_runner.program import Program, signal_name

_HELP = (
    "the Vulkan driver or a layer is the usual cause, often because of an invalid shader:"
    " spirv-val checks SPIR-V files, --device chooses another device"
)
_HELP_OF_COMPILERS = "the shaders may be too much for it, or another compiler may do better (--glslang)"
_HELP_WHEN_HUNG = "give more time with --timeout, or use another driver: --device chooses another device"
_HELP_WHEN_KILLED = "memory that has run out is the usual cause; the system's log may say more"
_MOST_FRAMES: Final = 40
_LIMIT_S: Final = 60.0
_HANDLER: Final = "<signal handler called>"
_FRAME: Final = re.compile(r"#\d+ ")
_INTERPRETER: Final = re.compile(r"(?: in |#\d+\s+)(?:_?Py|cfunction_|method_vectorcall|object_vacall)")


class Crash(NamedTuple):
    """The end of a process by the signal ``number``, in its file number ``file``, while it was doing ``what`` for the
    JSON pointer ``pointer``. ``stack`` is its Python stack, if known. With ``hung_s`` it was killed after so many
    seconds without progress."""

    number: int
    file: int
    what: str
    pointer: str
    stack: str = ""
    hung_s: float = 0.0

    @classmethod
    def by(cls, number: int, stack: str = "", hung_s: float = 0.0) -> Crash:
        """The crash of the process that has just ended."""
        return cls(number, progress.number(progress.ENDED), *progress.work(), stack, hung_s)

    @property
    def kind(self) -> type[DeviceError]:
        """The class of its error."""
        return FenceTimeoutError if self.hung_s else DriverCrashError


def crash_error(crash: Crash, file: str | None) -> DeviceError:
    """Make the error for ``file``, the scenario or model that was running, if any."""
    if crash.hung_s:
        end = f"was killed, since it had done nothing for {crash.hung_s:g} s (--timeout),"
        return crash.kind([crash_problem(crash, file, end, crash.kind.code, _HELP_WHEN_HUNG)])
    return crash.kind([crash_problem(crash, file, f"was ended by {signal_name(crash.number)}")])


def crash_problem(crash: Crash, file: str | None, end: str, code: str = "SR-DEVICE-006", help: str = "") -> Diagnostic:
    """Describe the end of a process ("was ended by SIGSEGV"), for ``file`` as above."""
    if crash.number == SIGKILL:
        help = help or _HELP_WHEN_KILLED
    elif crash.what.startswith(progress.COMPILING):
        help = _HELP_OF_COMPILERS
    help = help or _HELP
    message = f"the process that ran it {end} while {crash.what or 'starting'}"
    if file is None:
        return Diagnostic(code, "error", None, message.replace(" that ran it", ""), help)
    problem = Diagnostic(code, "error", None, message, help, path=file)
    return _placed(problem, crash.pointer) if crash.pointer else problem


def _placed(problem: Diagnostic, pointer: str) -> Diagnostic:
    """Add the line and column of a JSON pointer to a problem, if its file is a scenario.

    The process that ended has checked the file. It is not checked again here, since the modules for that are costly to
    import.
    """
    from scenario_runner.scenario.syntax import Places

    path = problem.path or ""
    try:
        if not os.path.isfile(path):
            return problem
        text = read_file(path).decode("utf-8-sig")
        tree = json.loads(text)
        message = problem.message + _used_by(tree, pointer)
        line, column = Places(text).find(pointer)
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):  # it may have changed
        return problem
    return problem._replace(pointer=pointer, message=message, line=line, column=column)


def _used_by(tree: Any, pointer: str) -> str:
    """Name the first command that uses the shader at a pointer, as the end of the message."""
    match pointer.split("/"):
        case ["", "resources", index, "shader", *_]:
            uid = tree["resources"][int(index)]["shader"]["uid"]
            for number, command in enumerate(tree["commands"]):
                for kind, members in command.items():
                    if isinstance(members, dict) and members.get("shader_ref") == uid:
                        return f" for /commands/{number}/{kind}"
    return ""


def native_stack(process: int) -> str:
    """Format the frames of the crashed thread, down to the Python interpreter, and the path of the core file."""
    core, pattern = _core_of(process)
    if not core:
        return f"no core file was found; /proc/sys/kernel/core_pattern is {pattern!r}: see core(5)"
    gdb = shutil.which("gdb")
    lines = _frames(gdb, core) if gdb else ["gdb is not installed, which shows the stack"]
    return "\n".join([*lines, f"core file: {core}"])


def _core_of(process: int) -> tuple[str, str]:
    """Find the core file of a process, empty if there is none, and the system's pattern for such files."""
    try:
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
            pattern = file.read().strip()
        with open("/proc/sys/kernel/core_uses_pid", encoding="ascii") as file:
            has_suffix = file.read().strip() == "1" and "%p" not in pattern
    except OSError as error:
        return "", reason_of(error)
    if pattern.startswith("|"):
        return "", pattern
    name = re.sub("%(.)", lambda match: str(process) if match[1] == "p" else "*", glob.escape(pattern))
    cores = glob.glob(os.path.abspath(name + (f".{process}" if has_suffix else "")))
    return max(cores, key=os.path.getmtime, default=""), pattern


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
