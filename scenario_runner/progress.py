"""How far a call has come, kept in memory that outlives the process: a crash of the driver is explained from it.

`share` makes that memory, before the process that runs the scenarios is forked. Without it nothing is kept, and noting
costs nothing: so it is for programs that use the library.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmap import mmap

ENDED = 0
"""How many files have ended, well or not."""
TOTAL = 1
"""How many there are; 0 before the arguments are read."""
CODE = 2
"""The exit code of the first file that failed."""
MEASURED = 3
"""How many runs are in the file of shader instrumentation."""

STARTED = 4
"""The number of what was started last, where a process is given one after the other."""

CHANGES = 5
"""How often it was noted what is being done."""

LIMIT_MS = 6
"""The time limit in milliseconds: the process hangs when nothing is noted for `ended_after_s` of it. 0: no limit."""

COMPILING = "waiting for the shader compiler"
"""How the note begins of what is being done, while another program compiles shaders."""

TEXT = 4 * 7
"""Where the text begins, behind these numbers: what is being done, and the JSON pointer, each ended by a zero byte."""

_SIZE_BYTES = 4096
_MOST_MS = 0x7FFFFFFF
_LEAST_MORE_S = 2.0
_MORE = 0.1

_page: mmap | None = None
_numbers: memoryview[int] | None = None


def share(descriptor: int = -1) -> None:
    """Keep progress from now on, for this process and those that it forks; in a file where its descriptor is given."""
    global _page, _numbers
    from mmap import mmap

    if descriptor >= 0:
        os.ftruncate(descriptor, _SIZE_BYTES)
    _page = mmap(descriptor, _SIZE_BYTES)
    _numbers = memoryview(_page)[:TEXT].cast("i")


def number(which: int) -> int:
    """One of the numbers above; 0 where nothing is kept."""
    return 0 if _numbers is None else _numbers[which]


def work() -> tuple[str, str]:
    """What was done last, and the JSON pointer of what it was done for, in the file number `ENDED`."""
    return ("", "") if _page is None else _texts(_page[TEXT:])


def kept(descriptor: int) -> tuple[int, str, str]:
    """What another process, which shares its progress in this file, has `STARTED` last, and its `work`."""
    page = os.pread(descriptor, _SIZE_BYTES, 0).ljust(_SIZE_BYTES, b"\0")
    return memoryview(page)[:TEXT].cast("i")[STARTED], *_texts(page[TEXT:])


def _texts(kept: bytes) -> tuple[str, str]:
    what, _, rest = kept.partition(b"\0")
    return what.decode("utf-8", "replace"), rest.partition(b"\0")[0].decode("utf-8", "replace")


def files(total: int) -> None:
    """So many files will be run."""
    if _numbers is not None:
        _numbers[TOTAL] = total


def started(number: int) -> None:
    """The process has begun with what has this number."""
    if _numbers is not None:
        _numbers[STARTED] = number
        doing("")


def ended(code: int) -> None:
    """One file has ended, with this exit code."""
    if _numbers is not None:
        _numbers[CODE] = _numbers[CODE] or code
        _numbers[ENDED] += 1
        doing("")


def measured(count: int) -> None:
    """So many runs are in the file of shader instrumentation."""
    if _numbers is not None:
        _numbers[MEASURED] = count


def limit(seconds: float) -> None:
    """Set the time limit of the process."""
    if _numbers is not None:
        _numbers[LIMIT_MS] = min(round(seconds * 1000), _MOST_MS)


def ended_after_s(limit_s: float) -> float:
    """When a process is ended from outside whose waits for the device end by themselves after ``limit_s``."""
    return limit_s + max(_LEAST_MORE_S, _MORE * limit_s)


def doing(what: str, pointer: str = "") -> None:
    """Note what is being done, as it goes on after 'while' in a message, and what of the scenario it is done for."""
    if _page is not None and _numbers is not None:
        _numbers[CHANGES] = _numbers[CHANGES] + 1 & _MOST_MS
        text = f"{what[:500]}\0{pointer}\0".encode("utf-8", "replace")[: _SIZE_BYTES - TEXT - 2] + b"\0\0"
        _page[TEXT : TEXT + len(text)] = text
