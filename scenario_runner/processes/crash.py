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
from typing import Final, NamedTuple

from scenario_runner.errors import DeviceError, DriverCrashError, FenceTimeoutError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import reason_of
from scenario_runner.files.input import read_file
from scenario_runner.processes import progress
from scenario_runner.processes.programs import Program, signal_name
from scenario_runner.processes.signals import KILL

_HELP: Final = (
    "the Vulkan driver or a layer is the usual cause, often because of an invalid shader:"
    " spirv-val checks SPIR-V files, --device chooses another device"
)
_HELP_OF_COMPILERS: Final = "the shaders may be too much for it, or another compiler may do better (--glslang)"
_HELP_WHEN_HUNG: Final = "give more time with --timeout, or use another driver: --device chooses another device"
_HELP_WHEN_KILLED: Final = "memory that has run out is the usual cause; the system's log may say more"
_MOST_FRAMES: Final = 40
_LIMIT_S: Final = 60.0
_HANDLER: Final = "<signal handler called>"
_FRAME: Final = re.compile(r"#\d+ ")
_THREAD: Final = re.compile(r"^Thread (\d+) \(.*?LWP (\d+).*$", re.MULTILINE)
# The interpreter, the start of a thread, and an address that no code has.
_BOTTOM: Final = re.compile(
    r"(?: in |#\d+\s+)(?:_?Py|cfunction_|method_vectorcall|object_vacall|start_thread |clone3? )"
    r"|#\d+ +0x0+[0-9a-f]{0,4} in "
)
_OF_FFI: Final = re.compile(r" in (?:ffi_call|cffistatic_)")
_OF_SYSTEM: Final = re.compile(r" (?:at \.\.?/|from \S*/lib(?:c|pthread)[.-])")


class Crash(NamedTuple):
    """The end of a process ("was ended by SIGSEGV") while it was doing ``what`` for the JSON pointer ``pointer``.

    ``work`` is the kind of that (`progress.doing`), ``kind`` the class of the error, ``help`` what to do in place of
    the usual, ``file`` the number of the file that was running, ``stack`` its Python stack, and ``native_stack`` that
    of `native_stack`."""

    end: str
    what: str
    pointer: str
    work: str
    kind: type[DeviceError] = DriverCrashError
    help: str = ""
    file: int = 0
    stack: str = ""
    native_stack: str = ""

    def error(self, path: str | None) -> DeviceError:
        """Make the error for the scenario or model at ``path``, which was running, if any."""
        usual_help = _HELP_OF_COMPILERS if self.work == progress.COMPILING else _HELP
        process = "the process" if path is None else "the process that ran it"
        message = f"{process} {self.end} while {self.what or 'starting'}"
        problem = Diagnostic(self.kind.code, "error", None, message, self.help or usual_help, path)
        return self.kind([_placed(problem, self.pointer) if path and self.pointer else problem])


def crash_of_child(number: int, hung_s: float, stack: str) -> Crash:
    """Describe the crash of a child that ended by a signal, or was killed after ``hung_s`` seconds without progress."""
    file, work = progress.numbers[progress.ENDED], progress.work()
    if hung_s:
        end = f"was killed, since it had done nothing for {hung_s:g} s (--timeout),"
        return Crash(end, *work, FenceTimeoutError, _HELP_WHEN_HUNG, file, stack)
    help = _HELP_WHEN_KILLED if number == KILL else ""
    return Crash(f"was ended by {signal_name(number)}", *work, DriverCrashError, help, file, stack)


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
        json.loads(text)  # it may have changed, and `Places` need valid JSON
        line, column = Places(text).find(pointer)
    except (OSError, ValueError, RecursionError, LookupError):
        return problem
    return problem._replace(pointer=pointer, line=line, column=column)


def native_stack(process: int) -> str:
    """Format the frames of the crashed thread, down to the Python interpreter, and the path of the core file."""
    try:
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
            pattern = file.read().strip()
        with open("/proc/sys/kernel/core_uses_pid", encoding="ascii") as file:
            has_suffix = file.read().strip() == "1" and "%p" not in pattern
    except OSError as error:
        pattern, has_suffix = reason_of(error), False
    name = re.sub("%(.)", lambda match: str(process) if match[1] == "p" else "*", glob.escape(pattern))
    cores = glob.glob(os.path.abspath(name + (f".{process}" if has_suffix else "")))
    if not cores or pattern.startswith("|"):
        return f"no core file was found; /proc/sys/kernel/core_pattern is {pattern!r}: see core(5)"
    core = max(cores, key=os.path.getmtime)
    gdb = shutil.which("gdb")
    lines = _frames(gdb, core, process) if gdb else ["gdb is not installed, which shows the stack"]
    return "\n".join([*lines, f"core file: {core}"])


def _frames(gdb: str, core: str, process: int) -> list[str]:
    """List the frames of the thread that crashed, which is gdb's first, and of the one that had called the driver."""
    command = [gdb, "-batch", "-nx", "-ex", f"thread apply all bt {_MOST_FRAMES}", sys.executable, core]
    with Program(
        command, _LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as program:
        shown = program.communicate()[0].decode("utf-8", "replace")
    _, *parts = _THREAD.split(shown)
    threads = {int(thread): (number, frames) for number, thread, frames in zip(*[iter(parts)] * 3, strict=True)}
    if not threads:
        return [f"gdb {program.failure or 'shows no frame'}"]
    if process not in threads:
        return ["another process has written the core file since: 'core.%p' in core_pattern keeps all"]
    crashed = next(frames for number, frames in threads.values() if number == "1")
    number, calling = threads[process]
    lines = _trimmed(crashed) or ["no frame below the handler of the signal"]
    if number != "1":
        frames = _trimmed(calling)
        while frames and _OF_SYSTEM.search(frames[0]):  # where it waits
            del frames[0]
        lines += ["the thread that called the driver:", *frames]
    return lines


def _trimmed(shown: str) -> list[str]:
    """Keep the frames between the signal, or the handler of faulthandler, and the interpreter or the thread's start."""
    frames = [line for line in shown.splitlines() if _FRAME.match(line)]
    start = next((at for at, line in enumerate(frames, 1) if line.endswith(_HANDLER)), 0)
    frames = frames[start:]
    end = next((at for at, line in enumerate(frames) if _BOTTOM.search(line)), len(frames))
    return [
        f"{frame}, in generated code (such as a compiled shader)" if frame.endswith(" in ?? ()") else frame
        for frame in frames[:end]
        if not _OF_FFI.search(frame)
    ]
