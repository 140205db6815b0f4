"""The output of a suite while it runs and at its end: a progress bar on a terminal, lines for a log elsewhere.

::

    with SuiteDisplay(verbose=False) as display:
        display.start(total)              # None where the number of items is not known yet; may be called again
        display.started(item, "0")        # the worker "0" runs this item now
        display.finished(result, ["cmd"]) # a failure is shown at once; at the end with what repeats it
        display.note("warning", "text")   # a message while it runs
        display.end("report: out.html")   # the counts, the failures, and further lines

Noting is cheap, as there may be a thousand items a second: a thread shows what was noted, a few times a second.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, TextIO

from scenario_runner.cli import messages
from scenario_runner.suite.records import Item, Result
from scenario_runner.suite.reports.text import details, headline, seconds_text
from scenario_runner.text import Span, counted, one_line

_TERMINAL_INTERVAL_S: Final = 0.25
_LOG_INTERVAL_S: Final = 30.0
_RATE_WINDOW_S: Final = 10.0
_DETAILED_FAILURES_MAX: Final = 100  # from then on a failure is one line
_WORKERS_SHOWN_MAX: Final = 8

_STYLES: Final = {
    "Pass": "green",
    "Warn": "yellow",
    "Fail": "red",
    "Crash": "bold red",
    "Timeout": "magenta",
    "Missing": "red",
    "Flake": "yellow",
    "KnownFlake": "yellow",
    "ExpectedFail": "cyan",
    "MissingTool": "yellow",
    "NotSupported": "dim",
    "Skip": "dim",
}
_UNKNOWN_STYLE: Final = "bold magenta"  # UnexpectedImprovement
_LISTED_FAILURES_MAX: Final = 50  # at the end


class SuiteDisplay:
    """On a terminal a bar, the counts and what each worker runs, below the failures; elsewhere plain lines: failures at
    once, and how far the suite is every few seconds."""

    def __init__(self, stream: TextIO | None = None, *, verbose: bool = False, quiet: bool = False) -> None:
        """``stream`` is standard output by default. With ``verbose`` items that pass have a line as well, with
        ``quiet`` a failure is shown once, with its commands."""
        self._stream = stream = stream or sys.stdout
        self._verbose = verbose
        self._quiet = quiet
        is_terminal = stream is not None and messages.is_terminal(stream)
        self._terminal = messages.terminal(stream) if is_terminal else None
        self.interval_s = _TERMINAL_INTERVAL_S if is_terminal else _LOG_INTERVAL_S
        self._live: Any = None
        self._total: int | None = None
        self._counts: Counter[str] = Counter()  # by verdict
        self._unexpected: list[Sequence[str]] = []  # the lines of each failure that are shown at the end
        self._done = self._failures = 0
        self._running: dict[str, tuple[Item, float]] = {}  # by worker
        self._begin = time.monotonic()
        self._samples: deque[tuple[float, int]] = deque()
        self._lines: deque[tuple[str, str]] = deque()  # lines to be shown, with their styles
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, total: int | None) -> None:
        """Begin, or correct the number of items. With ``quiet`` it does nothing."""
        if self._quiet:
            return
        self._total = total
        if self._thread is None:
            self._begin = time.monotonic()
            self._samples.append((self._begin, 0))
            if self._terminal is not None:
                self._live = self._terminal.live(self._rows)
                self._live.start()
            self._thread = threading.Thread(target=self._keep_showing, name="suite display", daemon=True)
            self._thread.start()

    def started(self, item: Item, worker: str) -> None:
        """A worker runs this item from now on."""
        self._running[worker] = item, time.monotonic()

    def finished(self, result: Result, commands: Sequence[str] = ()) -> None:
        """An item has its verdict; ``commands`` repeat a failure."""
        worker = next((worker for worker, (item, _) in self._running.items() if item.id == result.item.id), None)
        if worker is not None:
            del self._running[worker]  # else the worker has begun with its next item
        self._done += 1
        self._counts[result.verdict] += 1
        commands = [f"  {one_line(command)}" for command in commands]
        if result.is_bad and not self._quiet and self._failures < _LISTED_FAILURES_MAX:
            self._unexpected.append((headline(result), *commands))
        if result.is_bad or result.verdict in ("Flake", "Warn") or self._verbose:
            self._show(result, commands if self._quiet else ())

    def note(self, label: str, text: str, help: str | None = None) -> None:
        """A message ('warning', 'error', 'info') while the suite runs."""
        if self._terminal is None:
            self._flush()
            messages.write(label, text, help)
            return
        self._lines.append((one_line(f"{label}: {text}"), "yellow" if label == "warning" else "bold"))
        if help:
            self._lines.append((one_line(f"  help: {help}"), "green"))

    def end(self, *lines: str) -> None:
        """Show what is still to be shown, the counts, the failures, and these lines. Calling it again does nothing."""
        if self._ended.is_set():
            return
        self._stop()
        elapsed = time.monotonic() - self._begin
        of = "" if self._total in (None, self._done) else f" of {self._total}"
        self._lines.append((f"{self._done}{of} in {seconds_text(elapsed)}: {self._counts_text() or 'nothing'}", "bold"))
        failures = [line for failure in self._unexpected for line in failure]
        if failures:
            more = self._failures - len(self._unexpected)
            failures = ["", "unexpected, and how to repeat it:", *failures, *([f"and {more} more"] if more else []), ""]
        self._lines.extend((line, "") for line in (*failures, *map(one_line, lines)))
        self._flush()

    def __enter__(self) -> SuiteDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ended.is_set():
            self._stop()
            self._flush()

    def _progress(self) -> None:
        self._flush()
        if self._live is not None:
            self._live.refresh()
        else:
            self._write([(self._progress_text(), "")])

    def _flush(self) -> None:
        with self._lock:
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if lines:
                self._write(lines)

    def _write(self, lines: list[tuple[str, str]]) -> None:
        if self._terminal is not None:
            self._terminal.lines(lines)
        elif self._stream is not None:
            print("\n".join(text for text, _ in lines), file=self._stream, flush=True)

    def _show(self, result: Result, commands: Sequence[str]) -> None:
        line = headline(result)
        if self._verbose:
            line += f" ({seconds_text(result.seconds)})"
        self._lines.append((line, _style(result.verdict)))
        if result.is_bad:
            self._failures += 1
            if self._failures <= _DETAILED_FAILURES_MAX:
                self._lines.extend((f"  {detail}", "") for detail in details(result))
                self._lines.extend((command, "") for command in commands)
            if self._failures == _DETAILED_FAILURES_MAX:
                note = f"after {_DETAILED_FAILURES_MAX} failures only the first line of each is shown"
                self._lines.append((note, ""))
        if self._terminal is None:
            self._flush()

    def _keep_showing(self) -> None:
        while not self._ended.wait(self.interval_s):
            self._progress()

    def _stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._live is not None:
            self._live.stop()

    def _pace(self) -> tuple[float, int, str]:
        """Items a second, lately; the percentage that is done; and the time that is left, "" where it is not known."""
        now = time.monotonic()
        self._samples.append((now, self._done))
        while len(self._samples) > 2 and now - self._samples[0][0] > _RATE_WINDOW_S:
            self._samples.popleft()
        then, done = self._samples[0]
        rate = (self._done - done) / max(now - then, 1e-9)
        if not self._total:
            return rate, 0, ""
        left_s = (self._total - self._done) / rate if rate else 0.0
        left = f"{left_s:.0f} s" if left_s < 60 else seconds_text(left_s)
        return rate, 100 * self._done // self._total, f"{left} left" if rate else ""

    def _counts_text(self) -> str:
        return ", ".join(f"{count} {verdict}" for verdict, count in _in_order(self._counts))

    def _progress_text(self) -> str:
        rate, percent, left = self._pace()
        done = f"{self._done} of {self._total} done ({percent} %)" if self._total else f"{self._done} done"
        text = ", ".join(filter(None, (done, f"{rate:.1f} a second", left)))
        text += f": {self._counts_text()}" if self._counts else ""
        slow = [(item, begin) for item, begin in list(self._running.values()) if time.monotonic() - begin > 5]
        if slow:
            item, begin = min(slow, key=itemgetter(1))
            text += f"; {item.id} has been running for {seconds_text(time.monotonic() - begin)}"
        return one_line(text)

    def _rows(self) -> Iterator[list[Span]]:
        """The bar, the counts, and what runs; each text with its style."""
        assert self._terminal is not None
        width, now = self._terminal.width, time.monotonic()
        rate, percent, left = self._pace()
        bar: list[Span] = [counted(self._done, "item")]
        if self._total:
            cells = max(min(40, width - 60), 10)
            filled = min(cells * self._done // self._total, cells)
            bar = [("━" * filled, "red" if self._failures else "green"), ("━" * (cells - filled), "dim")]
            bar.append(f" {self._done}/{self._total}  {percent} %")
        yield [*bar, f"  {rate:.0f}/s" if rate >= 10 else f"  {rate:.1f}/s", (f"  {left}", "dim")]
        if self._counts:
            yield [(f"{count} {verdict}  ", _style(verdict)) for verdict, count in _in_order(dict(self._counts))]
        running = sorted(((begin, worker, item) for worker, (item, begin) in self._running.items()), key=itemgetter(0))
        for begin, worker, item in running[:_WORKERS_SHOWN_MAX]:
            taken = f"{seconds_text(now - begin)}  " if now - begin >= 1 else ""
            yield [(f"{worker:>4}  ", "dim"), (taken, "yellow"), one_line(item.id, width)]
        if len(running) > _WORKERS_SHOWN_MAX:
            yield [(f"      and {len(running) - _WORKERS_SHOWN_MAX} more", "dim")]


def _style(verdict: str) -> str:
    return _STYLES.get(verdict, _UNKNOWN_STYLE)


def _in_order(counts: dict[str, int]) -> list[tuple[str, int]]:
    """Counts by verdict: Pass first, then as in the table, others last."""
    known = [(verdict, counts[verdict]) for verdict in _STYLES if verdict in counts]
    return known + [(verdict, count) for verdict, count in counts.items() if verdict not in _STYLES]


def verdict_line(bad: int, items: int, ended: str = "") -> str:
    """The last line, which stays as it is from version to version. ``ended``: see `Incomplete`, or
    "not run"."""
    if ended:
        return f"suite {ended}: {bad} of {counted(items, 'item')} unexpected"
    return (
        f"suite failed: {bad} of {counted(items, 'item')} unexpected"
        if bad
        else f"suite passed: {counted(items, 'item')}"
    )
