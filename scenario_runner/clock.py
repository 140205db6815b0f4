"""What the host did and when: the phases of a run, measured only where somebody asked for it.

`measuring` sets a `Clock` for what is called inside of it, in this thread (its context); `phase` is a block of one
phase. Without a clock a phase costs less than a microsecond, so phases
are as coarse as frames and files, not commands.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

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
"""The phases in the order in which a run comes to them."""


class Span(NamedTuple):
    """One block of a phase; times are those of `time.perf_counter_ns`.

    ``what`` and ``subject`` say what of the phase, and for which resource, pipeline or frame. ``own_ns`` leaves out the
    spans inside of this one. ``iteration`` counts from 0, and is None before the first one.
    """

    phase: str
    what: str
    subject: str
    begin_ns: int
    end_ns: int
    own_ns: int
    iteration: int | None


class Clock:
    """Gathers spans, in the order in which they end; used from one thread."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.iteration: int | None = None
        self._inner_ns: list[int] = []  # of each span that is open: what the spans inside of it took


class _Open:
    """A span that has not ended."""

    __slots__ = ("_begin_ns", "_clock", "_name")

    def __init__(self, clock: Clock, name: tuple[str, str, str]) -> None:
        self._clock = clock
        self._name = name

    def __enter__(self) -> None:
        self._clock._inner_ns.append(0)
        self._begin_ns = time.perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        end_ns = time.perf_counter_ns()
        clock = self._clock
        took_ns = end_ns - self._begin_ns
        own_ns = took_ns - clock._inner_ns.pop()
        if clock._inner_ns:
            clock._inner_ns[-1] += took_ns
        clock.spans.append(Span(*self._name, self._begin_ns, end_ns, own_ns, clock.iteration))


class _Nothing:
    """A block that is not measured."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_NOTHING = _Nothing()
_current: ContextVar[Clock | None] = ContextVar("clock", default=None)


def current() -> Clock | None:
    """The clock that is set, if there is one."""
    return _current.get()


def phase(name: str, what: str = "", subject: str = "") -> Any:
    """A context manager: what happens in its block belongs to the phase ``name``, one of `PHASES`."""
    clock = _current.get()
    return _NOTHING if clock is None else _Open(clock, (name, what, subject))


@contextmanager
def measuring(clock: Clock | None) -> Iterator[None]:
    """Let ``clock`` measure what is called in this block; None leaves everything as it is."""
    if clock is None:
        yield
        return
    token = _current.set(clock)
    try:
        yield
    finally:
        _current.reset(token)
