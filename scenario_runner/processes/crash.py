"""Crashes and hangs of processes, with the native stack that gdb reads from a core file."""

import glob
import os
import re
import shutil
import subprocess
import sys
from typing import Final, NamedTuple

from scenario_runner.errors import DeviceError, DriverCrashError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import reason_of
from scenario_runner.processes import progress
from scenario_runner.processes.programs import Program

_HELP: Final = (
    "a shader that reads or writes out of bounds is the usual cause: try --enable-robustness-features or --validation;"
    " scenario-runner reduce makes a small scenario for a report"
)
_HELP_OF_COMPILERS: Final = "the shaders may be too large for this compiler: try another (--glslang)"
_MOST_FRAMES: Final = 40
_LIMIT_S: Final = 60.0
_HANDLER: Final = "<signal handler called>"
_FRAME: Final = re.compile(r"#\d+ ")
_THREAD: Final = re.compile(r"^Thread (\d+) \(.*?LWP (\d+).*$", re.MULTILINE)
# Frames of the interpreter and of thread starts, and at addresses without code.
_BOTTOM: Final = re.compile(
    r"(?: in |#\d+\s+)(?:_?Py|cfunction_|method_vectorcall|object_vacall|start_thread |clone3? )"
    r"|#\d+ +0x0+[0-9a-f]{0,4} in "
)
_OF_FFI: Final = re.compile(r" in (?:ffi_call|cffistatic_)")
_OF_SYSTEM: Final = re.compile(r" (?:at \.\.?/|from \S*/lib(?:c|pthread)[.-])")


class Crash(NamedTuple):
    """The way a process ended, as a predicate ("was ended by SIGSEGV"), and the work in progress.

    The process was doing ``what`` for the JSON pointer ``pointer``; ``work`` is the kind of work (`progress.set_work`).
    ``kind`` is the error class, and ``help`` replaces the usual help. ``code`` is the exit code, negative for a
    signal, and ``seconds`` the time since the item began. ``stack`` is the Python stack, ``native_stack`` the result of
    `native_stack`, and ``output`` the end of standard error. The process had run ``before_count`` items before;
    ``before`` has the last few.
    """

    end: str
    what: str
    pointer: str
    work: str
    kind: type[DeviceError] = DriverCrashError
    help: str = ""
    code: int = 0
    seconds: float = 0.0
    stack: str = ""
    native_stack: str = ""
    output: str = ""
    before: tuple[object, ...] = ()
    before_count: int = 0

    def error(self, path: str | None) -> DeviceError:
        """Make the error about a scenario or a model, or about no file."""
        usual_help = _HELP_OF_COMPILERS if self.work == progress.COMPILING else _HELP
        message = f"the process {self.end} while {self.what or 'starting'}"
        pointer = self.pointer or None if path else None
        return self.kind([Diagnostic(self.kind.code, "error", pointer, message, self.help or usual_help, path)])


class CorePattern(NamedTuple):
    """The pattern for core file paths, see core(5). With ``has_suffix``, the process id follows."""

    text: str
    has_suffix: bool = False

    @property
    def is_of_process(self) -> bool:
        """Return whether the core files of two processes differ, in any current folder."""
        return self.has_suffix or "%p" in self.text or self.text.startswith(("|", "/"))

    def files_of(self, process: int) -> list[str]:
        """List core files that a process may have left in the current folder."""
        name = re.sub("%(.)", lambda match: str(process) if match[1] == "p" else "*", glob.escape(self.text))
        return glob.glob(name + (f".{process}" if self.has_suffix else ""))


def core_pattern() -> CorePattern:
    """Read the pattern of core files on this system."""
    try:
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
            text = file.read().strip()
        with open("/proc/sys/kernel/core_uses_pid", encoding="ascii") as file:
            return CorePattern(text, file.read().strip() == "1" and "%p" not in text)
    except OSError as error:
        return CorePattern(reason_of(error))


def native_stack(process: int, folder: str) -> str:
    """Return the crashed thread's frames up to the Python interpreter, and the core file's path.

    A core file in ``folder``, the current folder of the process, moves to the current folder. The new name ends with
    the process id.
    """
    pattern = core_pattern()
    cores = [] if pattern.text.startswith("|") else pattern.files_of(process)
    own = [] if pattern.is_of_process else pattern._replace(text=os.path.join(folder, pattern.text)).files_of(process)
    if own:
        cores = [shutil.move(own[0], f"{os.path.basename(own[0])}.{process}")]
    if not cores:
        return f"no core file was found; /proc/sys/kernel/core_pattern is {pattern.text!r}: see core(5)"
    core = os.path.abspath(max(cores, key=os.path.getmtime))
    gdb = shutil.which("gdb")
    lines = _frames(gdb, core, process) if gdb else ["the stack needs gdb, which is not installed"]
    return "\n".join([*lines, f"core file: {core}"])


def _frames(gdb: str, core: str, process: int) -> list[str]:
    """Return the frames of the crashed thread and of the driver's caller."""
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
        return ["another process has replaced the core file: 'core.%p' in core_pattern keeps all"]
    crashed = next(frames for number, frames in threads.values() if number == "1")
    number, calling = threads[process]
    lines = _trimmed(crashed) or ["no frame below the handler of the signal"]
    if number != "1":
        frames = _trimmed(calling)
        while frames and _OF_SYSTEM.search(frames[0]):  # frames of waiting
            del frames[0]
        lines += ["the thread that called the driver:", *frames]
    return lines


def _trimmed(shown: str) -> list[str]:
    """Return the frames between the signal handler and the interpreter or the thread's start."""
    frames = [line for line in shown.splitlines() if _FRAME.match(line)]
    start = next((at for at, line in enumerate(frames, 1) if line.endswith(_HANDLER)), 0)
    frames = frames[start:]
    end = next((at for at, line in enumerate(frames) if _BOTTOM.search(line)), len(frames))
    return [
        f"{frame}, in generated code (such as a compiled shader)" if frame.endswith(" in ?? ()") else frame
        for frame in frames[:end]
        if not _OF_FFI.search(frame)
    ]
