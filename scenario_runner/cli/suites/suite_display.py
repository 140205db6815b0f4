"""A running suite's output: a progress bar on a terminal, lines for a log elsewhere.

A suite calls `SuiteDisplay.start`, for each item `started` and `finished`, and at last `end`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TextIO

from scenario_runner.cli import console
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Span, counted, one_line
from scenario_runner.suite.outcomes import Item, Result
from scenario_runner.suite.reports.sarif import findings_of
from scenario_runner.suite.reports.summary import cause_lines, causes_of, details, headline, seconds_text

if TYPE_CHECKING:
    from scenario_runner.cli.github import Annotations

_LOG_INTERVAL_S: Final = 30.0
_RATE_WINDOW_S: Final = 10.0
_DETAILED_FAILURES_MAX: Final = 100  # each later failure gets a line
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
    """Shows the progress of a suite.

    A terminal shows failures, and below them a bar, the counts and the running items. A log shows failures, and every
    30 seconds a line about the progress.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        verbose: bool = False,
        quiet: bool = False,
        annotations: Annotations | None = None,
    ) -> None:
        """Write to ``stream``, standard output by default.

        ``verbose`` prints a line for each item. ``quiet`` prints each failure once, with commands. ``annotations`` get
        the failures and the last line.
        """
        self._annotations = annotations
        self._stream = stream or sys.stdout
        self._verbose = verbose
        self._quiet = quiet
        self._terminal = console.terminal(self._stream)
        self._live: Any = None
        self._total: int | None = None
        self._counts: Counter[str] = Counter()  # by verdict
        self._unexpected: list[str] = []  # lines about failures, for the end
        self._unsupported: list[Result] = []
        self._uncompared = 0
        self._done = self._failures = 0
        self._running: dict[int, tuple[Item, float]] = {}  # by worker
        self._begin = time.monotonic()
        self._samples: deque[tuple[float, int]] = deque()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, total: int | None) -> None:
        """Begin, or correct the item count. ``quiet`` shows no progress."""
        if self._quiet:
            return
        self._total = total
        if self._samples:
            return
        self._begin = time.monotonic()
        self._samples.append((self._begin, 0))
        if self._terminal is not None:
            self._live = self._terminal.live(self._rows)
            self._live.start(refresh=True)
        else:
            self._thread = threading.Thread(target=self._keep_showing, name="suite display", daemon=True)
            self._thread.start()

    def started(self, item: Item, worker: int) -> None:
        """Show that a worker begins an item."""
        self._running[worker] = item, time.monotonic()

    def finished(self, result: Result, commands: Sequence[str] = ()) -> None:
        """Show the verdict of an item. ``commands`` repeat a failure."""
        for worker, (item, _) in list(self._running.items()):
            if item.id == result.item.id:  # the worker may run the next item already
                del self._running[worker]
        self._done += 1
        self._counts[result.verdict] += 1
        self._uncompared += result.is_uncompared
        if result.verdict == "NotSupported" and not self._quiet:
            self._unsupported.append(result)
        lines = [f"  {one_line(command)}" for command in commands]
        if result.is_bad and not self._quiet and self._failures < _LISTED_FAILURES_MAX:
            self._unexpected += [headline(result), *lines]
        if self._annotations is not None:
            for finding in findings_of(result):
                self._annotations.add(finding, title=f"{result.verdict} {result.item.id}")
        if result.is_bad or result.verdict in ("Flake", "Warn") or self._verbose:
            self._show(result, lines if self._quiet else ())

    def note(self, label: str, text: str, help: str | None = None) -> None:
        """Print a message, such as ``warning: text``, above the progress."""
        if self._terminal is None:
            console.write(label, text, help)
            return
        self._write(one_line(f"{label}: {text}"), style="yellow" if label == "warning" else "bold")
        if help:
            self._write(one_line(f"  help: {help}"), style="green")

    def problem(self, problem: Diagnostic) -> None:
        """Print a problem of the suite itself."""
        self.note(problem.severity, f"{problem} [{problem.code}]", problem.help)
        if self._annotations is not None:
            self._annotations.add(problem)

    def end(self, *lines: str) -> None:
        """Print the counts, the failures, and these lines."""
        self._stop()
        if self._annotations is not None:
            self._annotations.result = lines[-1]
        elapsed = time.monotonic() - self._begin
        is_all = self._total in (None, self._done)
        items = counted(self._done, "item") if is_all else f"{self._done} of {counted(self._total or 0, 'item')}"
        counts = f"{items} in {seconds_text(elapsed)}: {self._counts_text() or 'nothing'}"
        if self._unexpected:
            more = self._failures - _LISTED_FAILURES_MAX
            self._unexpected += [f"and {more} more", ""] if more > 0 else [""]
            self._unexpected[:0] = ["", "unexpected results, and commands to repeat them:"]
        causes = cause_lines(causes_of(self._unsupported), with_items=self._verbose)
        self._write(counts, *causes, *self._unexpected, *map(one_line, lines), style="bold")

    def __enter__(self) -> SuiteDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _write(self, *lines: str, style: str = "") -> None:
        """Print lines; style the first."""
        with self._lock:
            if self._terminal is not None:
                self._terminal.show((lines[0], style), *(f"\n{line}" for line in lines[1:]))
            elif self._stream is not None:
                print("\n".join(lines), file=self._stream, flush=True)

    def _show(self, result: Result, commands: Sequence[str]) -> None:
        lines = [headline(result) + (f" ({seconds_text(result.seconds)})" if self._verbose else "")]
        if result.is_bad:
            self._failures += 1
            if self._failures <= _DETAILED_FAILURES_MAX:
                lines += [*(f"  {detail}" for detail in details(result)), *commands]
            if self._failures == _DETAILED_FAILURES_MAX:
                lines.append(f"{_DETAILED_FAILURES_MAX} failures: from now on one line for each")
        self._write(*lines, style=_style(result.verdict))

    def _keep_showing(self) -> None:
        while not self._ended.wait(_LOG_INTERVAL_S):
            self._write(self._progress_text())

    def _stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._live is not None:
            self._live.stop()

    def _pace(self) -> tuple[float, int, str]:
        """Return the recent rate in items per second, the percentage done, and the remaining time, "" if unknown."""
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
        return counts_text(self._counts_in_order(), self._uncompared)

    def _counts_in_order(self) -> list[tuple[str, int]]:
        """Return the counts by verdict, ordered like the style table."""
        order = [*_STYLES, *self._counts]
        return sorted(self._counts.copy().items(), key=lambda row: order.index(row[0]))

    def _progress_text(self) -> str:
        rate, percent, left = self._pace()
        done = f"{self._done} of {self._total} done ({percent} %)" if self._total else f"{self._done} done"
        text = ", ".join(filter(None, (done, f"{rate:.1f} a second", left)))
        text += f": {self._counts_text()}" if self._counts else ""
        for begin, _, item in self._longest_running()[:1]:
            if time.monotonic() - begin > 5:
                text += f"; {item.id} has been running for {seconds_text(time.monotonic() - begin)}"
        return one_line(text)

    def _longest_running(self) -> list[tuple[float, int, Item]]:
        """List running items with start time and worker, longest first."""
        running = [(begin, worker, item) for worker, (item, begin) in list(self._running.items())]
        return sorted(running, key=itemgetter(0))

    def _rows(self) -> Iterator[list[Span]]:
        """Yield progress rows: the bar, the counts, and running items."""
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
            yield [(f"{count} {verdict}  ", _style(verdict)) for verdict, count in self._counts_in_order()]
        running = self._longest_running()
        for begin, worker, item in running[:_WORKERS_SHOWN_MAX]:
            taken = f"{seconds_text(now - begin)}  " if now - begin >= 1 else ""
            yield [(f"{worker:>4}  ", "dim"), (taken, "yellow"), one_line(item.id, width)]
        if len(running) > _WORKERS_SHOWN_MAX:
            yield [(f"      and {len(running) - _WORKERS_SHOWN_MAX} more", "dim")]


def _style(verdict: str) -> str:
    return _STYLES.get(verdict, _UNKNOWN_STYLE)


def counts_text(counts: Iterable[tuple[str, int]], uncompared: int) -> str:
    """Return counts such as '4 Pass (1 compared with nothing), 1 Fail'."""
    notes = {"Pass": f" ({uncompared} compared with nothing)" if uncompared else ""}
    return ", ".join(f"{count} {verdict}{notes.get(verdict, '')}" for verdict, count in counts)


def verdict_line(bad: int, items: int, ended: str = "", problem: str = "") -> str:
    """Return a suite's last line. Scripts read this line, so the format must not change.

    ``ended`` names an incomplete end, see `Incomplete`, or is "not run". ``problem`` tells why the exit code of a suite
    without failures is not 0.
    """
    if not bad and not ended:
        return f"suite passed, but {problem}" if problem else f"suite passed: {counted(items, 'item')}"
    return f"suite {ended or 'failed'}: {bad} of {counted(items, 'item')} unexpected"
