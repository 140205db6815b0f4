"""One run of a suite in this process, and its verdicts."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from scenario_runner.suite.discovery import expectations_file
from scenario_runner.suite.journal import FILE_NAME, Journal, MergedJournals, header
from scenario_runner.suite.outcomes import Item, Outcome, Result
from scenario_runner.suite.retries import Rules
from scenario_runner.suite.suite_run import Limits, Lists, Selection, Session, given_patterns
from scenario_runner.suite.verdicts import Expected, expected_status, judged, listed
from tests.suite.collected import Collected
from tests.tables import cases


class Workers:
    """Workers whose items pass, except those in ``failing``; ``ran`` lists the attempts by item."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.ran: list[str] = []

    def run(self, items: Iterable[Item], expected: Callable[[str], Expected]) -> Iterator[Result]:
        rules = Rules()
        for item in items:
            attempts: tuple[Outcome, ...] = ()
            while not attempts or rules.again(expected(item.id), attempts):
                self.ran.append(item.id)
                attempts = (*attempts, Outcome("Fail" if item.id in self.failing else "Pass", 0.5))
            yield Result(item, rules.verdict(expected(item.id), attempts), attempts, "uuid", "driver")

    def stop(self) -> None:
        """Nothing that runs goes on after an item."""


def lists(skips: str = "") -> Lists:
    return Lists({}, given_patterns(skips.split(), Collected()), given_patterns([], Collected()))


def items(text: str) -> list[Item]:
    return [Item(id, f"/suite/{id}") for id in text.split()]


class Suite:
    """A suite of files with results in a journal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids = ["a", "b", "c"]
        for id in self.ids:
            (folder / f"{id}.json").write_text(f'{{"resources": [{{"shader": {{"src": "{id}.glsl"}}}}]}}')
            (folder / f"{id}.glsl").write_text("#include <common.h>\n")
        (folder / "common.h").touch()

    def run(self, workers: Workers, given: Lists | None = None) -> None:
        earlier = {}
        if (self.folder / FILE_NAME).exists():
            journals = MergedJournals([str(self.folder)], Collected())
            journals.forget_void(header("1"), None)
            earlier = journals.results
        with Journal(str(self.folder), resume=True) as journal:
            journal.write(header("1"))
            kept = {"journal": journal, "program_hash": "1", "earlier": earlier}
            session = Session(given or lists(), Rules(), Limits(), lambda result: None, **kept)
            paths = {id: str(self.folder / f"{id}.json") for id in self.ids}
            session.run([Item(id, path, expectations_file(path)) for id, path in paths.items()], workers)

    def again(self, given: Lists | None = None) -> tuple[list[str], dict[str, str]]:
        """Attempts run again by the rules, and the journal has their verdicts."""
        workers = Workers()
        self.run(workers, given)
        merged = MergedJournals([str(self.folder)], Collected())
        return workers.ran, {result.item.id: result.verdict for result in merged}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    suite = Suite(tmp_path)
    suite.run(Workers(failing="b"))
    return suite


@pytest.mark.parametrize("changed", ["b.json", "b.glsl", "b.check.json", "b.expected/x.npy"])
def test_an_item_that_changed_runs_again(suite: Suite, changed: str) -> None:
    """A change of the scenario, a source, the expectations or an expected file makes its result void."""
    path = suite.folder / changed
    path.parent.mkdir(exist_ok=True)
    path.write_text(path.read_text() + " " if path.exists() else "{}")
    ran, verdicts = suite.again()
    assert (ran, verdicts["b"]) == (["b"], "Pass")


def test_what_a_shader_includes_counts(suite: Suite) -> None:
    """A change of an included file makes the results of all who include it void."""
    (suite.folder / "common.h").write_text("#define X\n")
    assert suite.again()[0] == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["a.glsl", "a.json", "a.check.json"])
def test_nobody_waits_for_a_pipe(suite: Suite, name: str) -> None:
    """One that stands where a file is expected is a matter of the run of its item: that may be ended."""
    (suite.folder / name).unlink(missing_ok=True)
    os.mkfifo(suite.folder / name)
    thread = Thread(target=suite.again, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_what_was_skipped_runs(suite: Suite) -> None:
    """A Skip is no result that could be taken over."""
    suite.again(lists(skips="a"))
    assert suite.again()[0] == ["a"]


def selected(include: str = "", **options: Any) -> str:
    given = replace(lists(), include=given_patterns(include.split(), Collected()))
    return " ".join(item.id for item in Selection(**options).items(given.included(items("a b c d e f g"))))


@pytest.mark.parametrize(
    "include, options, expected",
    [
        ("", {"fraction": 3, "fraction_start": 1}, "a d g"),
        ("", {"fraction": 3, "fraction_start": 2}, "b e"),
        ("", {"fraction": 3, "fraction_start": 3}, "c f"),
        ("[b-e]", {}, "b c d e"),
        ("[b-e]", {"fraction": 2, "fraction_start": 2}, "c e"),
        ("", {"first": {"f", "c"}}, "c f a b d e g"),
    ],
)
def test_selected_items(include: str, options: dict[str, Any], expected: str) -> None:
    """The fractions of the selected items begin with the first item, and together have each item once. Failed items
    come first, in the order of the list."""
    assert selected(include, **options) == expected


def test_a_seed_gives_an_order() -> None:
    """A seed gives the same order of the same items each time."""
    orders = [selected(shuffle=seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[2].split()) == sorted("abcdefg")


NOTHING: dict[str, str | None] = {"nothing": None, "flake": None}


@pytest.mark.parametrize("status, expected, verdict", cases(__file__, "verdicts.txt", "STATUSES"))
def test_a_status_meets_a_baseline(status: str, expected: str, verdict: str) -> None:
    """The verdict on one run follows the table in docs/suites.md."""
    assert judged(status, NOTHING.get(expected, expected)) == verdict


@pytest.mark.parametrize("word, status", cases(__file__, "verdicts.txt", "WORDS"))
def test_words_of_a_baseline(word: str, status: str) -> None:
    """The words of a failures.csv work as the next baseline."""
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
