"""The clock for phases: how long a run reads, plans, compiles, uploads, waits and stores.

`measuring` sets a `Clock` for a context, and `phase` measures a block in a phase. Phases are as coarse as frames and
files.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import NamedTuple

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


def current() -> Clock | None:
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
