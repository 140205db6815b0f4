"""Processes that may crash or hang, and records of crashes with the native stack that gdb reads from a core file.

multiprocessing makes the processes. Only this module starts Python in another process.
"""

import faulthandler
import glob
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection, current_process, get_context, parent_process
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Final, NamedTuple

from scenario_runner.errors import DeviceError, DriverCrashError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import reason_of
from scenario_runner.processes import progress
from scenario_runner.processes.programs import Program
from scenario_runner.processes.signals import INTERRUPTING, KILL, kill_when_closed

_MOST_STACK_BYTES: Final = 16 << 10
_STACK_SIGNAL: Final = signal.SIGUSR2 if sys.platform == "linux" else 0  # other systems use a thread
_SAFE_PATH: Final = "PYTHONSAFEPATH"
_APPENDED: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


def start_method() -> str:
    """Return how this process starts other processes: "fork" or "spawn".

    A fork has a single thread, and would hang in a driver that this process has opened.
    """
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            is_used = "libvulkan" in maps.read() or len(os.listdir("/proc/self/task")) > 1
    except OSError:
        is_used = True
    return "spawn" if is_used or not (hasattr(os, "fork") and hasattr(os, "pidfd_open")) else "fork"


def start(method: str, function: Callable[..., int], *arguments: object) -> BaseProcess:
    """Start a process that ignores Ctrl-C. The function's result is the exit code. Raises OSError."""
    has_mask = hasattr(signal, "pthread_sigmask")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTING) if has_mask else None
    main, current = sys.modules["__main__"], current_process()
    safe_path, is_daemon = os.environ.get(_SAFE_PATH), current.daemon
    try:
        # A spawned interpreter would import the main module, and modules from the current folder.
        sys.modules["__main__"] = ModuleType("__main__")
        os.environ[_SAFE_PATH] = "1"
        current.daemon = False  # a worker of Dask may have children too
        process: BaseProcess = get_context(method).Process(  # type: ignore[attr-defined]
            target=_begin, args=(mask, function, arguments)
        )
        process.start()
    finally:
        current.daemon = is_daemon
        del os.environ[_SAFE_PATH]
        os.environ.update({} if safe_path is None else {_SAFE_PATH: safe_path})
        sys.modules["__main__"] = main
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return process


def _begin(mask: set[signal.Signals] | None, function: Callable[..., int], arguments: tuple[object, ...]) -> None:
    for number in INTERRUPTING:
        signal.signal(number, signal.SIG_IGN)
    for number in progress.FATAL if sys.platform == "linux" else ():
        signal.signal(number, signal.SIG_DFL)
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    code = 1
    try:
        code = function(*arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # a fork must not clean up for the other process


def has_ended(end: int, timeout_s: float | None) -> bool:
    """Wait until a process ends, by a descriptor from ``os.pidfd_open``. Return false if it does not end in time."""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1e3))


def join(process: BaseProcess, timeout_s: float) -> None:
    """Wait for a process that this process has started, but not for the processes that it started in turn.

    multiprocessing waits for a pipe that such processes keep open, for example while a driver holds them in the kernel.
    """
    if hasattr(os, "pidfd_open") and process.exitcode is None:
        end = os.pidfd_open(process.pid or 0)
        has_ended(end, timeout_s)
        os.close(end)
    else:
        process.join(timeout_s)


def open_file(path: str) -> int:
    """Open a file to append to it, while another process has it open too."""
    return os.open(path, _APPENDED, 0o600)


class IsolatedProcess:
    """A process that ends with this process, together with the process group.

    Life cycle: started; ended, which `wait` detects; closed. ``end`` is a descriptor that becomes readable when the
    process ends, or None if the system has no such descriptors. ``code`` is then the exit code, negative for a signal.
    """

    def __init__(self, method: str, faults: str, function: Callable[..., int], *arguments: object) -> None:
        """Start the process. ``faults`` is the path to a file for the Python stack. Raises OSError."""
        self._faults = faults
        self._asks, asked = None, None
        if not _STACK_SIGNAL:
            self._asks, asked = connection.Pipe()
        self._process = start(method, _begin_isolated, faults, asked, function, arguments)
        if asked is not None:
            asked.close()
        self.id = self._process.pid or 0
        self._leads_group = method == "fork"
        if self._leads_group:
            with suppress(OSError):  # both processes do this, since either may need the group first
                os.setpgid(self.id, self.id)
        # multiprocessing's pipe would stay open in programs that the process starts
        self.end = os.pidfd_open(self.id) if hasattr(os, "pidfd_open") else None
        self.code: int | None = None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the process ends. Return false if it does not end in time."""
        if self.code is None:
            if self.end is None:
                if timeout_s != 0:
                    self._process.join(timeout_s)
                if self._process.exitcode is None:
                    return False
                self.kill()
            else:
                if not has_ended(self.end, timeout_s):
                    return False
                self.kill()  # before the system can use the number for another group
                self._process.join()
            code = self._process.exitcode or 0
            self.code = -code if code >= 0xC0000000 else code  # an exception of Windows
        return True

    def signal(self, number: int) -> None:
        """Send a signal to the process group, or to the process while the group may not exist yet."""
        with suppress(OSError):
            try:
                os.killpg(self.id, number)
            except (AttributeError, ProcessLookupError):
                if not self._leads_group:  # the group may not exist yet
                    os.kill(self.id, number)

    def kill(self) -> None:
        """Kill the process with the process group."""
        self.signal(KILL)

    def ask_for_stack(self) -> None:
        """Ask the process to write the Python stack, which takes a moment."""
        with suppress(OSError):
            if self._asks is not None:
                self._asks.send_bytes(b"")
            elif self.code is None:
                os.kill(self.id, _STACK_SIGNAL)

    @property
    def stack(self) -> str:
        """The Python stack that the process has written after a crash or a request."""
        with suppress(FileNotFoundError), open(self._faults, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_STACK_BYTES)
        return ""

    def close(self) -> None:
        """Release the descriptors of an ended or abandoned process."""
        if self._asks is not None:
            self._asks.close()
        if self.end is not None:
            os.close(self.end)


def _begin_isolated(
    faults: str, asked: connection.Connection | None, function: Callable[..., int], arguments: tuple[object, ...]
) -> int:
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    descriptor = open_file(faults)
    faulthandler.enable(descriptor, all_threads=True)
    parent = parent_process()
    assert parent is not None
    if asked is None:
        faulthandler.register(_STACK_SIGNAL, descriptor, all_threads=True)
        _die_with_parent(parent.sentinel)
    else:
        threading.Thread(target=_watch, args=(descriptor, asked, parent.sentinel), daemon=True).start()
    return function(*arguments)


def _watch(descriptor: int, asked: connection.Connection, parent: int) -> None:
    """Write the Python stack on request, and end this process after the parent."""
    with suppress(EOFError, OSError):
        while parent not in connection.wait([asked, parent]):
            asked.recv_bytes()
            faulthandler.dump_traceback(descriptor, all_threads=True)
    if hasattr(os, "killpg"):
        os.killpg(0, KILL)
    os.kill(os.getpid(), KILL)


def _die_with_parent(alive: int) -> None:
    """Let Linux kill this process group when the other end of a pipe is closed."""
    kill_when_closed(alive, -os.getpid())
    os.set_blocking(alive, False)
    with suppress(BlockingIOError):
        if not os.read(alive, 1):  # the parent has ended before
            os.killpg(0, KILL)


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
