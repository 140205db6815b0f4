"""What a suite shows while it runs."""

import io
import re

import pytest

from scenario_runner.cli.suite_display import SuiteDisplay
from scenario_runner.suite.outcomes import Item, Outcome, OutputCheck, Result, Status

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def result(name: str, verdict: str, status: Status = "Pass", reason: str = "") -> Result:
    outputs = ()
    if status == "Fail":
        outputs = (OutputCheck("out", "Fail", "1 of 4 elements differs", {"rmse": 0.25}, (("[3]", "1.0", "1.5"),)),)
    outcome = Outcome(status, 0.5, reason, outputs=outputs, output="last words\n" if status == "Crash" else "")
    return Result(Item(name, f"/suite/{name}"), verdict, (outcome,))


def show(display: SuiteDisplay) -> None:
    """Three items of four, one of which fails and one of which crashes."""
    with display:
        display.start(4)
        for each in (
            result("a", "Pass"),
            result("b\x1b[2J", "Fail", "Fail", "an output differs"),
            result("c", "Crash", "Crash", "ended by SIGSEGV"),
        ):
            display.started(each.item, 0)
            display.finished(each, [f"scenario-runner test {each.item.id}"] if each.is_bad else [])
        display.note("warning", "the disk is nearly full")
        display.end("report: out.html")


def test_a_log_has_failures_and_counts_but_no_line_for_what_passed() -> None:
    """Without a terminal a failure is shown at once, with what is wrong; the names of others cannot move the cursor."""
    stream = io.StringIO()
    show(SuiteDisplay(stream=stream))
    assert re.sub(r"in \d+ ms", "in N ms", stream.getvalue()).splitlines() == [
        r"Fail b\x1b[2J: an output differs",
        "  out: 1 of 4 elements differs",
        "    [3]: expected 1.0, got 1.5",
        "    rmse 0.25",
        "Crash c: ended by SIGSEGV",
        "  last lines on standard error:",
        "    last words",
        "3 of 4 in N ms: 1 Pass, 1 Fail, 1 Crash",
        "",
        "unexpected, and how to repeat it:",
        r"Fail b\x1b[2J: an output differs",
        r"  scenario-runner test b\x1b[2J",
        "Crash c: ended by SIGSEGV",
        "  scenario-runner test c",
        "",
        "report: out.html",
    ]


def test_a_terminal_has_a_bar_and_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a bar with the counts and what each worker runs stands below the failures."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    display = SuiteDisplay(stream=stream)
    with display:
        display.start(2)
        display.started(Item("a", "/a"), 0)
        display.started(Item("b", "/b"), 1)
        display.finished(result("a", "Fail", "Fail", "an output differs"))
        display._progress()
        shown = CONTROL.sub("", stream.getvalue())
        assert "Fail a: an output differs" in shown
        assert "1/2  50 %" in shown
        assert re.search(r"^ +1  b", shown, re.MULTILINE)
        display.end()
    assert re.search(r"^1 of 2 in .*: 1 Fail$", CONTROL.sub("", stream.getvalue()).replace("\r", ""), re.MULTILINE)


def test_many_failures_are_one_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a hundred failures only the first line of each is shown."""
    stream = io.StringIO()
    display = SuiteDisplay(stream=stream)
    display.start(150)
    for number in range(150):
        display.finished(result(f"item {number}", "Fail", "Fail", "it differs"))
    display.end()
    lines = stream.getvalue().splitlines()
    assert lines.count("  out: 1 of 4 elements differs") == 100
    assert "Fail item 149: it differs" in lines
    assert "after 100 failures only the first line of each is shown" in lines


def test_how_far_the_suite_is_names_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of progress has a share, a rate and the item that has been running for long."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stream = io.StringIO()
    display = SuiteDisplay(stream=stream)
    display._total = 4
    display._samples.append((100.0, 0))
    display.started(Item("slow", "/slow"), 0)
    display.finished(result("a", "Pass"))
    now[0] = 110.0
    display._progress()
    assert stream.getvalue() == (
        "1 of 4 done (25 %), 0.1 a second, 30 s left: 1 Pass; slow has been running for 10.00 s\n"
    )
