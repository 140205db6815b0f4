"""The end of a suite's output: what failed, how each failure is repeated, and one line for all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from scenario_runner.suite.reports.text import MissingTools, headline
from scenario_runner.suite.verdicts import not_run
from scenario_runner.visible import counted

if TYPE_CHECKING:
    from scenario_runner.cli.suite_display import SuiteDisplay
    from scenario_runner.suite.merging import MergedJournals
    from scenario_runner.suite.records import Result
    from scenario_runner.suite.reports.text import SuiteInfo
    from scenario_runner.suite.session import Session

_MOST_FAILURES: Final = 50


class Summary:
    """Life cycle: each result is added as it comes; `end` shows what there is to say."""

    def __init__(self, display: SuiteDisplay, info: SuiteInfo, clock_start_s: float, *, quiet: bool) -> None:
        """With ``quiet`` a failure is shown once, with its commands."""
        self._display = display
        self._info = info
        self._clock_start_s = clock_start_s  # of `time.perf_counter`, which no change of the date affects
        self._quiet = quiet
        self._failures: list[str] = []
        self._listed = 0
        self._drivers: dict[str, None] = {}
        self._lacking = ""  # what the first item needs that is not supported
        self.missing_tools = MissingTools()
        self.devices: tuple[tuple[str, str], ...] = ()

    def add(self, result: Result) -> None:
        """Show a result as far as it is shown at once."""
        commands = [f"  {each}" for each in self._info.repeat_commands(result)] if result.is_bad else []
        self._display.finished(result, *(commands if self._quiet else ()))
        self.missing_tools.add(result)
        if result.verdict == "NotSupported" and result.last is not None:
            self._lacking = self._lacking or result.last.reason
        if result.driver:
            self._drivers[result.driver] = None
        if result.is_bad and not self._quiet and self._listed < _MOST_FAILURES:
            self._listed += 1
            self._failures += [headline(result), *commands]

    def info(self, journal: MergedJournals) -> SuiteInfo:
        """The suite as it is now, with this journal."""
        return self._info._replace(
            seconds=time.perf_counter() - self._clock_start_s,
            devices=self.devices,
            drivers=tuple(self._drivers),
            incomplete="; ".join([*(each.message for each in journal.incomplete()), *self.missing_tools.messages()])
            or journal.not_run(),
        )

    def not_run(self, session: Session) -> str:
        """A sentence where the device supports none of the items; else nothing."""
        return not_run((row.verdict for row in session.rows.values()), len(session.rows), self._lacking)

    def end(self, session: Session, written: list[str], ended: str = "") -> None:
        """Show the counts, the failures with the commands that repeat them, the files that were written, and the
        result. ``ended`` says why the suite ended before its time, if it did."""
        lines = []
        if self._failures:
            lines += ["", "unexpected, and how to repeat it:", *self._failures]
            more = session.bad - _MOST_FAILURES
            if more > 0:
                lines.append(f"and {more} more")
            lines.append("")
        if not ended and self.not_run(session):
            ended = "not run"
        ended = ended or self.missing_tools.ended
        self._display.end(*lines, *written, verdict_line(session.bad, len(session.rows), ended))


def verdict_line(bad: int, items: int, ended: str = "") -> str:
    """The last line, which stays as it is from version to version. ``ended``: see `Incomplete`, `MissingTools`, or
    "not run"."""
    if ended:
        return f"suite {ended}: {bad} of {counted(items, 'item')} unexpected"
    return (
        f"suite failed: {bad} of {counted(items, 'item')} unexpected"
        if bad
        else f"suite passed: {counted(items, 'item')}"
    )
