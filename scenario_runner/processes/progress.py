"""The progress of a process: notes about the current work, which explain a crash, and the times of a run's phases.

`share` puts the notes into memory that outlives the process, where another process reads them. Before `share`, texts
are dropped: a program that uses the library needs none. Without a watching process, `announce_crashes` prints them.

`measuring` sets a `Clock` for a context, and `phase` measures a block in a phase, such as planning or compiling. Phases
are as coarse as frames and files.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from mmap import mmap
from typing import Final, NamedTuple

STARTED = 0
"""Index of the number of the current item."""

CHANGES = 1
"""Index of the number of `set_work` calls."""

COMPILING = "waiting for the shader compiler"
"""The kind of work while another program compiles shaders."""

FATAL: Final = {11: "SIGSEGV", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 4: "SIGILL"}  # numbers of Linux
_LONGEST_LINE_S: Final = 1
_TEXT = 4 * 2  # offset of the texts, which end with a zero byte each
_SIZE_BYTES = 4096
_MOST_CHANGES = 0x7FFFFFFF
_LEAST_MORE_S = 2.0
_MORE = 0.1

_page: mmap | None = None
_kept: list[object] = []  # callbacks live as long as these references
numbers: memoryview[int] | list[int] = [0] * 2
"""The numbers at the indices above."""


def share(descriptor: int = -1) -> None:
    """Keep notes of this process and all forks in a file, or in anonymous memory without a descriptor."""
    global _page, numbers
    if descriptor >= 0:
        os.ftruncate(descriptor, _SIZE_BYTES)
    _page = mmap(descriptor, _SIZE_BYTES)
    numbers = memoryview(_page)[:_TEXT].cast("i")


def work() -> tuple[str, str, str]:
    """Return the latest texts from `set_work`."""
    return ("", "", "") if _page is None else _texts(_page[_TEXT:])


class Notes(NamedTuple):
    """Another process's notes: `STARTED`, `CHANGES` and the latest texts from `set_work`."""

    started: int
    changes: int
    what: str
    pointer: str
    kind: str


def read(path: str) -> Notes:
    """Read the notes of another process from a file."""
    page = b""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        page = file.read(_SIZE_BYTES)
    page = page.ljust(_SIZE_BYTES, b"\0")
    started, changes = memoryview(page)[:_TEXT].cast("i")
    return Notes(started, changes, *_texts(page[_TEXT:]))


def _texts(page: bytes) -> tuple[str, str, str]:
    what, pointer, kind, _ = (page + b"\0\0\0").decode("utf-8", "replace").split("\0", 3)
    return what, pointer, kind


def started(number: int) -> None:
    """Note the number of the item that begins."""
    numbers[STARTED] = number
    set_work("")


def ended_after_s(limit_s: float) -> float:
    """Return the seconds until a hanging process is killed. Waits for the device end earlier, after ``limit_s``."""
    return limit_s + max(_LEAST_MORE_S, _MORE * limit_s)


def set_work(what: str, pointer: str = "", kind: str = "") -> None:
    """Note the current work, such as "reading results back", and a JSON pointer.

    ``kind`` names the kind of work if ``what`` contains names or numbers.
    """
    if _page is not None:
        numbers[CHANGES] = numbers[CHANGES] + 1 & _MOST_CHANGES
        texts = f"{what[:500]}\0{pointer}\0{kind or what[:500]}\0"
        text = texts.encode("utf-8", "replace")[: _SIZE_BYTES - _TEXT - 3] + b"\0\0\0"
        _page[_TEXT : _TEXT + len(text)] = text


def announce_crashes(subject: str) -> None:
    """Write a line about ``subject`` when this process crashes. The signal still ends the process."""
    if sys.platform != "linux":
        return
    try:
        from ctypes import CDLL, CFUNCTYPE, c_int, c_void_p
    except ImportError:  # a Python that was built without libffi
        return
    libc = CDLL(None)
    set_handler = CFUNCTYPE(c_void_p, c_int, c_void_p)(("signal", libc))
    before: dict[int, object] = {}

    def crashed(number: int) -> None:
        libc.alarm(_LONGEST_LINE_S)  # the driver may hold a lock that Python needs
        set_handler(number, before[number])
        what, pointer, _ = work()
        place = "".join(f"{part}: " for part in (subject, pointer) if part)
        line = f"error: {place}the process was ended by {FATAL[number]} while {what or 'starting'}\n"
        with suppress(OSError):
            os.write(2, line.encode(errors="backslashreplace"))
        os.kill(os.getpid(), number)

    share()
    handler = CFUNCTYPE(None, c_int)(crashed)
    _kept.append(handler)
    for number in FATAL:
        before[number] = set_handler(number, handler)


PHASES = (
    "parse",
    "plan",
    "compile",
    "device",
    "create",
    "pipelines",
    "upload",
    "record",
    "submit",
    "wait",
    "readback",
    "store",
)
"""The phases in the order of a run."""


class Span(NamedTuple):
    """A measured block in a phase, with times from `time.perf_counter_ns`.

    ``what`` names a part of the phase, ``subject`` a resource, pipeline or frame. ``own_ns`` excludes inner spans.
    ``iteration`` counts from 0, and is None before the first iteration.
    """

    phase: str
    what: str
    subject: str
    begin_ns: int
    end_ns: int
    own_ns: int
    iteration: int | None


class Clock:
    """Spans of a single thread, ordered by end time."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.iteration: int | None = None
        self._inner_ns: list[int] = []  # time in inner spans, for each open span

    @contextmanager
    def span(self, phase: str, what: str, subject: str) -> Iterator[None]:
        """Measure the block."""
        self._inner_ns.append(0)
        begin_ns = time.perf_counter_ns()
        try:
            yield
        finally:
            end_ns = time.perf_counter_ns()
            took_ns = end_ns - begin_ns
            own_ns = took_ns - self._inner_ns.pop()
            if self._inner_ns:
                self._inner_ns[-1] += took_ns
            self.spans.append(Span(phase, what, subject, begin_ns, end_ns, own_ns, self.iteration))


_NOT_MEASURED = nullcontext()
_current: ContextVar[Clock | None] = ContextVar("clock", default=None)


def current_clock() -> Clock | None:
    """Return this context's clock, if any."""
    return _current.get()


def phase(name: str, what: str = "", subject: str = "") -> AbstractContextManager[object]:
    """Return a context manager to count a block's time under one of the `PHASES`."""
    clock = _current.get()
    return _NOT_MEASURED if clock is None else clock.span(name, what, subject)


@contextmanager
def measuring(clock: Clock | None) -> Iterator[None]:
    """Measure a block with a clock, or with the present clock if it is None."""
    token = _current.set(clock or _current.get())
    try:
        yield
    finally:
        _current.reset(token)
