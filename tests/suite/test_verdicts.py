"""suite/verdicts.py: the rules of deqp-runner, and how often an item runs."""

import pytest

from scenario_runner.suite.outcomes import Outcome
from scenario_runner.suite.retries import Rules
from scenario_runner.suite.verdicts import Expected, expected_status, judged, listed
from tests.tables import cases

NOTHING: dict[str, str | None] = {"nothing": None, "flake": None}


@pytest.mark.parametrize("status, expected, verdict", cases(__file__, "verdicts.txt", "STATUSES"))
def test_a_status_meets_a_baseline(status: str, expected: str, verdict: str) -> None:
    """The verdict on one run is that of the table in docs/suites.md."""
    assert judged(status, NOTHING.get(expected, expected)) == verdict


@pytest.mark.parametrize("word, status", cases(__file__, "verdicts.txt", "WORDS"))
def test_words_of_a_baseline(word: str, status: str) -> None:
    """A failures.csv can be the next baseline: its verdicts say what happens without a change."""
    assert expected_status(word) == NOTHING.get(status, status)


@pytest.mark.parametrize("word", ["", "fail", "Broken", "UnexpectedImprovement(Odd)"])
def test_other_words_are_refused(word: str) -> None:
    """A word that is no status is an error."""
    with pytest.raises(ValueError, match=r".*"):
        expected_status(word)


@pytest.mark.parametrize("rules, expected, runs, result", cases(__file__, "verdicts.txt", "ATTEMPTS"))
def test_attempts_give_a_verdict(rules: str, expected: str, runs: str, result: str) -> None:
    """Unexpected results are repeated, another status then is a flake, and a known flake is no failure."""
    rule, words = Rules(*map(int, rules.split())), expected.split()
    item = Expected(NOTHING.get(words[0], words[0]), "flake" in words)
    attempts = tuple(Outcome(status) for status in runs.split())  # type: ignore[arg-type]
    again = "again" if rule.again(item, attempts) else "done"
    assert f"{again} {rule.verdict(item, attempts)}" == result


def test_csv_files_have_one_word_for_what_did_not_run() -> None:
    """NotSupported is a Skip in the files of deqp-runner; other verdicts are spelled as they are."""
    assert [listed(word) for word in ("NotSupported", "Skip", "Fail")] == ["Skip", "Skip", "Fail"]
