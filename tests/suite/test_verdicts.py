"""suite/verdicts.py: the rules of deqp-runner, and how often an item runs."""

from __future__ import annotations

import pytest

from scenario_runner.suite.records import Outcome
from scenario_runner.suite.verdicts import Expected, Rules, expected_status, judged, listed


@pytest.mark.parametrize(
    "status, expected, verdict",
    [
        ("Pass", None, "Pass"),
        ("Fail", None, "Fail"),
        ("NotSupported", None, "NotSupported"),
        ("Fail", "Fail", "ExpectedFail"),
        ("Crash", "Crash", "ExpectedFail"),
        ("Timeout", "Timeout", "ExpectedFail"),
        ("Missing", "Missing", "ExpectedFail"),
        ("Pass", "Pass", "Pass"),
        ("Warn", "Warn", "Warn"),
        ("Fail", "Crash", "UnexpectedImprovement(Fail)"),
        ("Fail", "Timeout", "UnexpectedImprovement(Fail)"),
        ("Crash", "Fail", "Crash"),
        ("Timeout", "Fail", "Timeout"),
        ("Crash", "Timeout", "Crash"),
        ("Timeout", "Crash", "Timeout"),
        ("Missing", "Fail", "Missing"),
        ("Pass", "Fail", "UnexpectedImprovement(Pass)"),
        ("Pass", "Crash", "UnexpectedImprovement(Pass)"),
        ("Skip", "Fail", "UnexpectedImprovement(Skip)"),
        ("NotSupported", "Fail", "UnexpectedImprovement(Skip)"),
        ("NotSupported", "Skip", "NotSupported"),
        ("Warn", "Timeout", "UnexpectedImprovement(Warn)"),
        ("Fail", "Pass", "Fail"),
        ("Fail", "Skip", "Fail"),
        ("Pass", "Warn", "Pass"),
    ],
)
def test_a_status_meets_a_baseline(status: str, expected: str | None, verdict: str) -> None:
    """The verdict on one run is that of the table in docs/suites.md."""
    assert judged(status, expected) == verdict


@pytest.mark.parametrize(
    "word, status",
    [
        ("Fail", "Fail"),
        ("Crash", "Crash"),
        ("UnexpectedImprovement(Fail)", "Fail"),
        ("UnexpectedImprovement(Pass)", "Pass"),
        ("UnexpectedImprovement", "Pass"),
        ("ExpectedFail", "Fail"),
        ("Flake", None),
        ("KnownFlake", "KnownFlake"),
    ],
)
def test_words_of_a_baseline(word: str, status: str | None) -> None:
    """A failures.csv can be the next baseline: its verdicts say what happens without a change."""
    assert expected_status(word) == status


@pytest.mark.parametrize("word", ["", "fail", "Broken", "UnexpectedImprovement(Odd)"])
def test_other_words_are_refused(word: str) -> None:
    """A word that is no status is an error."""
    with pytest.raises(ValueError, match=r".*"):
        expected_status(word)


def attempts(text: str) -> tuple[Outcome, ...]:
    return tuple(Outcome(word) for word in text.split())  # type: ignore[arg-type]


FAIL, FLAKE = Expected("Fail"), Expected(is_flake=True)


@pytest.mark.parametrize(
    "rules, expected, ran, again, verdict",
    [
        (Rules(), Expected(), "Pass", False, "Pass"),
        (Rules(), Expected(), "Fail", True, "Fail"),
        (Rules(), Expected(), "Fail Fail", False, "Fail"),
        (Rules(), Expected(), "Fail Pass", False, "Flake"),
        (Rules(), Expected(), "Crash Pass", False, "Flake"),
        (Rules(), Expected(), "Crash Fail", False, "Flake"),
        (Rules(), Expected(), "NotSupported", False, "NotSupported"),
        (Rules(), Expected(), "Missing", False, "Missing"),
        (Rules(0), Expected(), "Fail", False, "Fail"),
        (Rules(3), Expected(), "Fail Fail Fail", True, "Fail"),
        (Rules(3), Expected(), "Fail Fail Pass", False, "Flake"),
        (Rules(3), Expected(), "Fail Fail Fail Fail", False, "Fail"),
        (Rules(), FAIL, "Fail", False, "ExpectedFail"),
        (Rules(), FAIL, "Pass", True, "UnexpectedImprovement(Pass)"),
        (Rules(), FAIL, "Pass Pass", False, "UnexpectedImprovement(Pass)"),
        (Rules(), FAIL, "Pass Fail", False, "Flake"),
        (Rules(), FAIL, "Crash Crash", False, "Crash"),
        (Rules(), FLAKE, "Fail", False, "KnownFlake"),
        (Rules(), FLAKE, "Crash", False, "KnownFlake"),
        (Rules(), FLAKE, "Pass", False, "Pass"),
        (Rules(), Expected("Fail", is_flake=True), "Fail", False, "ExpectedFail"),
        (Rules(), Expected("Fail", is_flake=True), "Pass", False, "KnownFlake"),
        (Rules(0, 3), Expected(), "Pass", True, "Pass"),
        (Rules(0, 3), Expected(), "Pass Pass Pass", False, "Pass"),
        (Rules(0, 3), Expected(), "Pass Fail", False, "Fail"),
        (Rules(1, 3), Expected(), "Pass Fail", True, "Fail"),
        (Rules(1, 3), Expected(), "Pass Fail Pass", False, "Flake"),
        (Rules(0, 3), Expected(), "NotSupported", False, "NotSupported"),
    ],
)
def test_attempts_give_a_verdict(rules: Rules, expected: Expected, ran: str, again: bool, verdict: str) -> None:
    """Unexpected results are repeated, another status then is a flake, and a known flake is no failure."""
    assert (rules.again(expected, attempts(ran)), rules.verdict(expected, attempts(ran))) == (again, verdict)


def test_csv_files_have_one_word_for_what_did_not_run() -> None:
    """NotSupported is a Skip in the files of deqp-runner; other verdicts are spelled as they are."""
    assert [listed(word) for word in ("NotSupported", "Skip", "Fail")] == ["Skip", "Skip", "Fail"]
