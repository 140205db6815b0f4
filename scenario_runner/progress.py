"""How far a call has come, kept in memory that outlives the process: a crash of the driver is explained from it.

`share` makes that memory, before the process that runs the scenarios is forked. Without it nothing is kept, and noting
costs nothing: so it is for programs that use the library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mmap import mmap

_SIZE_BYTES = 4096
_NUMBER_BYTES = 4
_ENDED, _TOTAL, _CODE, _MEASURED, _COUNT = range(5)
_TEXT = _COUNT * _NUMBER_BYTES

_page: mmap | None = None
_numbers: memoryview[int] | None = None


class Progress(NamedTuple):
    """``ended`` of ``total`` files have ended (0 of 0: the arguments are not read yet), ``code`` is the exit code of the
    first that failed, ``measured`` counts those in the file of shader instrumentation. ``what`` is being done now, at
    the JSON pointer ``pointer`` of the file numbered ``ended``."""

    ended: int
    total: int
    code: int
    measured: int
    what: str
    pointer: str


def share() -> None:
    """Keep progress from now on, for this process and those that it forks."""
    global _page, _numbers
    from mmap import mmap

    _page = mmap(-1, _SIZE_BYTES)
    _numbers = memoryview(_page)[:_TEXT].cast("i")


def seen() -> Progress:
    """What was noted last, by this process or the one that it forked."""
    if _page is None or _numbers is None:
        return Progress(0, 0, 0, 0, "", "")
    what, pointer, *_ = [*_page[_TEXT:].decode("utf-8", "replace").split("\0"), "", ""]
    return Progress(_numbers[_ENDED], _numbers[_TOTAL], _numbers[_CODE], _numbers[_MEASURED], what, pointer)


def files(total: int) -> None:
    """So many files will be run."""
    if _numbers is not None:
        _numbers[_TOTAL] = total


def ended(code: int, *, measured: bool = False) -> None:
    """One file has ended, with this exit code."""
    if _numbers is not None:
        _numbers[_CODE] = _numbers[_CODE] or code
        _numbers[_MEASURED] += measured
        _numbers[_ENDED] += 1


def doing(what: str, pointer: str = "") -> None:
    """Note what is being done, as it goes on after 'while' in a message, and what of the scenario it is done for."""
    if _page is not None:
        text = f"{what[:500]}\0{pointer}\0".encode("utf-8", "replace")[: _SIZE_BYTES - _TEXT - 2] + b"\0\0"
        _page[_TEXT : _TEXT + len(text)] = text
