"""The journal of a suite, one run of a suite in this process, and verdicts."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from scenario_runner.errors import FileError
from scenario_runner.suite.discovery import expectations_file
from scenario_runner.suite.journal import FILE_NAME, End, Ended, Journal, MergedJournals, header
from scenario_runner.suite.outcomes import Hashes, Item, Outcome, OutputCheck, Result
from scenario_runner.suite.suite_run import Limits, Lists, Session, given_patterns, selected
from scenario_runner.suite.verdicts_and_retries import Expected, RetryRules, expected_status, judged, listed
from tests.scenes import error_of
from tests.suite.collected import Collected
from tests.tables import cases


def result(id: str, verdict: str = "Pass", reason: str = "") -> Result:
    outcome = Outcome(verdict, 0.5, reason)  # type: ignore[arg-type]
    return Result(Item(id, f"/suite/{id}"), verdict, (outcome,), "uuid", "driver 1", Hashes("a", "b", "c", "d"))


def write(folder: Path, *results: Result, resume: bool = False, end: Ended | None = "complete") -> Path:
    with Journal(str(folder), resume=resume) as journal:
        journal.write(header("hash", command=["x"]))
        for each in results:
            journal.write(each)
        if end is not None:
            journal.write(End(end))
    return folder / FILE_NAME


def verdicts(*paths: Path, problems: Collected | None = None) -> dict[str, str]:
    merged = MergedJournals([str(path) for path in paths], problems or Collected())
    return {each.item.id: each.verdict for each in merged}


def test_results_come_back(tmp_path: Path) -> None:
    """Results come back equal in every part, in the order of their ids."""
    output = OutputCheck(
        "out", "Fail", "no", {"rmse": 0.5, "psnr": float("inf")}, (("0", "1", "2"),), {"actual": str(tmp_path / "x")}
    )
    failed = Outcome("Fail", 1.5, "wrong \u2713 \n", 3, ({"code": "SR-X"},), (output,), "stack", "end", ("b",))
    results = [Result(Item("b", "/b", "/c"), "Flake", (failed, Outcome("Pass")), "u", "d"), result("a")]
    path = write(tmp_path, *results)
    merged = MergedJournals([str(path)], Collected())
    assert list(merged) == [results[1], results[0]]
    assert list(merged) == [results[1], results[0]]
    assert merged.results["b"] == results[0]
    assert [run.header.command for run in merged.runs] == [("x",)]
    assert list(merged.incomplete()) == []


def test_a_journal_goes_on(tmp_path: Path) -> None:
    """Results are added, and of two of an item the later one counts without a word."""
    write(tmp_path, result("a", "Fail"), result("b"))
    path = write(tmp_path, result("a"), resume=True)
    problems = Collected()
    assert verdicts(path, problems=problems) == {"a": "Pass", "b": "Pass"}
    assert problems.shown == []


@pytest.mark.parametrize("cut", [1, 40, 10_000])
def test_a_truncated_journal(tmp_path: Path, cut: int) -> None:
    """A truncated last line is ignored with a note, and a continuing run removes it."""
    path = write(tmp_path, result("a"), result("b", "Fail", "x" * 70_000), end=None)
    path.write_bytes(path.read_bytes()[:-cut])
    problems = Collected()
    if cut == 1:  # only the end of the line is gone
        assert set(verdicts(path, problems=problems)) == {"a", "b"}
    else:
        assert verdicts(path, problems=problems) == {"a": "Pass"}
        message = "the journal ends in the middle of a line, as after a kill: that result does not count"
        assert problems.shown == [f"SR-SUITE-012 {path}:3: {message}"]
    again = Collected()
    assert verdicts(write(tmp_path, result("c"), resume=True), problems=again) == {"a": "Pass", "c": "Pass"}
    assert again.shown == []


@pytest.mark.parametrize("end", ["complete", None])
def test_the_last_line_is_truncated(tmp_path: Path, end: Ended | None) -> None:
    """A truncated line or header takes no result with it, and the suite counts as unfinished."""
    write(tmp_path, result("a"))
    path = write(tmp_path, resume=True, end=end)
    path.write_bytes(path.read_bytes()[:-9])
    problems = Collected()
    merged = MergedJournals([str(path)], problems)
    assert list(merged.results) == ["a"]
    assert [each.ended for each in merged.incomplete()] == ["did not end"]
    assert [(each.code, each.line) for each in problems.diagnostics] == [("SR-SUITE-012", 5 if end else 4)]
    assert "ends in the middle of a line" in problems.shown[0]


def test_a_shard_that_did_not_end(tmp_path: Path) -> None:
    """An unfinished shard is named with its own count."""
    paths = [
        write(tmp_path / "1", result("a"), result("b")),
        write(tmp_path / "2", result("b"), result("c"), result("c"), end=None),
        write(tmp_path / "3", result("c")),
    ]
    merged = MergedJournals([str(path) for path in paths], Collected())
    (incomplete,) = merged.incomplete()
    assert (incomplete.path, incomplete.message[-22:]) == (str(paths[1]), "has results of 2 items")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"verdict": "Passed"}, "verdict: 'Passed' is not a verdict"),
        ({"more": 1}, "more: Extra inputs are not permitted"),
        ({"item": {"id": "a"}}, "item/path: Field required"),
        ({"attempts": [{"status": "Pass", "seconds": "1"}]}, "attempts/0/seconds: Input should be a valid number"),
        ({"attempts": [{"status": "Pass", "seconds": float("nan")}]}, "attempts/0: seconds: nan is not a time"),
        ({"attempts": [{"status": "Fail", "diagnostics": [{"message": 1}]}]}, "attempts/0: diagnostics: a message is"),
    ],
)
def test_a_line_that_no_suite_writes(tmp_path: Path, change: dict[str, object], message: str) -> None:
    """Words that are none, values of other types and keys that are missing are told with their place; the result is
    left out, and the journal is incomplete."""
    path = write(tmp_path, result("b"), result("a"))
    lines = path.read_text().splitlines()
    changed = {**json.loads(lines[2]), **change}
    lines[2] = json.dumps({name: value for name, value in changed.items() if value is not ...})
    lines[3] = lines[3].replace("null", "2")
    path.write_text("\n".join(lines) + "\n")
    problems = Collected()
    merged = MergedJournals([str(path)], problems)
    assert list(merged.results) == ["b"]
    (incomplete,) = merged.incomplete()
    assert incomplete.message == "results are lost: the journal has results of 1 of 2 items"
    (shown,) = problems.shown
    assert shown.startswith(f"SR-SUITE-012 {path}:3: the line is damaged and does not count: {message}")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "the journal is empty"),
        ("\0\n", "the file is not a journal"),
        ("[" * 100_000, "the file is not a journal"),
        ('{"journal": 1}\n', "the journal has version 1, expected 2"),
        ('{"journal": 2}\n', "the header of the journal is wrong: program: Field required"),
        (' {"journal": 2}\n', "the header of the journal is wrong: program: Field required"),
    ],
)
def test_files_that_are_no_journals(tmp_path: Path, text: str, message: str) -> None:
    """Another file, a journal of another version, and one that is empty, are errors."""
    path = tmp_path / "j.jsonl"
    path.write_text(text)
    error = error_of(FileError, verdicts, path)
    assert str(error).startswith(f"{path}:{'1:' * bool(text)} {message}")
    assert error.problems[0].code == "SR-SUITE-011"


def test_a_journal_that_does_not_exist(tmp_path: Path) -> None:
    """The error names one that may have been meant."""
    write(tmp_path)
    with pytest.raises(FileError, match="the journal cannot be read: no such file") as caught:
        verdicts(tmp_path / "journal.json")
    assert FILE_NAME in (caught.value.problems[0].help or "")


def test_shards_are_merged(tmp_path: Path) -> None:
    """The journal that is named last counts, and a verdict that differs is told."""
    one, two = tmp_path / "one", tmp_path / "two"
    write(one, result("a", "Fail"), result("b"), result("c"))
    path = write(two, result("b"), result("a"))
    problems = Collected()
    assert verdicts(one, two, problems=problems) == {"a": "Pass", "b": "Pass", "c": "Pass"}
    assert problems.shown == [
        f"SR-SUITE-013 {path}:3: the verdict on 'a' is Pass, but Fail in '{one}/{FILE_NAME}'; this one counts"
    ]


HOLD = """
import os, sys, time
from scenario_runner.suite.journal import Journal, header
journal = Journal(sys.argv[1])
journal.write(header("h"))
if not os.fork():
    time.sleep(60)  # a worker that outlives its supervisor
    os._exit(0)
print(flush=True)
time.sleep(60)
"""


def test_two_suites_cannot_write_to_one_journal(tmp_path: Path, checkout: Path) -> None:
    """The second one is refused as long as the first one lives, and not longer, whatever its workers do."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], cwd=checkout, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        for resume in (False, True):
            with pytest.raises(FileError, match="another suite writes to this journal") as caught:
                Journal(str(tmp_path), resume=resume)
            assert caught.value.problems[0].code == "SR-SUITE-010"
        holder.kill()
        holder.wait()
        Journal(str(tmp_path)).close()
    finally:
        with suppress(ProcessLookupError):  # nobody is left
            os.killpg(holder.pid, signal.SIGKILL)
        holder.communicate()


def test_lines_are_json(tmp_path: Path) -> None:
    """A header and a line for each result, which any reader of JSON lines can use."""
    path = write(tmp_path, result("a"))
    first, second, last = map(json.loads, path.read_text().splitlines())
    about = {"command", "runner", "repeat", "items", "timeout_s"}
    assert first.keys() == {"journal", "program", "program_hash", "host", "started", *about}
    assert last == {"end": "complete", "items": None, "devices": {}}
    assert (second["item"]["id"], second["device"], second["hashes"]["inputs"]) == ("a", "uuid", "b")


def test_text_of_others_is_kept_readable(tmp_path: Path) -> None:
    """Bytes that are no text, in a driver's last words, do not damage the line."""
    path = write(tmp_path, result("a", "Fail", "\udcff \0"))
    merged = MergedJournals([str(path)], Collected())
    assert [each.last and each.last.reason for each in merged] == ["? \0"]


class Workers:
    """Workers whose items pass, except those in ``failing``; ``ran`` lists the attempts by item."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.ran: list[str] = []

    def run(self, items: Iterable[Item], expected: Callable[[str], Expected]) -> Iterator[Result]:
        rules = RetryRules()
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
            session = Session(given or lists(), RetryRules(), Limits(), lambda result: None, **kept)
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


def chosen(include: str = "", **options: Any) -> str:
    given = replace(lists(), include=given_patterns(include.split(), Collected()))
    return " ".join(item.id for item in selected(given.included(items("a b c d e f g")), **options))


@pytest.mark.parametrize(
    "include, options, expected",
    [
        ("", {"fraction": 3, "start": 1}, "a d g"),
        ("", {"fraction": 3, "start": 2}, "b e"),
        ("", {"fraction": 3, "start": 3}, "c f"),
        ("[b-e]", {}, "b c d e"),
        ("[b-e]", {"fraction": 2, "start": 2}, "c e"),
        ("", {"first": {"f", "c"}}, "c f a b d e g"),
    ],
)
def test_selected_items(include: str, options: dict[str, Any], expected: str) -> None:
    """The fractions of the selected items begin with the first item, and together have each item once. Failed items
    come first, in the order of the list."""
    assert chosen(include, **options) == expected


def test_a_seed_gives_an_order() -> None:
    """A seed gives the same order of the same items each time."""
    orders = [chosen(shuffle=seed) for seed in (1, 1, 2)]
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
    """A word that is not a status is an error."""
    with pytest.raises(ValueError, match=r".*"):
        expected_status(word)


@pytest.mark.parametrize("rules, expected, runs, result", cases(__file__, "verdicts.txt", "ATTEMPTS"))
def test_attempts_give_a_verdict(rules: str, expected: str, runs: str, result: str) -> None:
    """Unexpected results are repeated, another status then is a flake, and a known flake is no failure."""
    rule, words = RetryRules(*map(int, rules.split())), expected.split()
    item = Expected(NOTHING.get(words[0], words[0]), "flake" in words)
    attempts = tuple(Outcome(status) for status in runs.split())  # type: ignore[arg-type]
    again = "again" if rule.again(item, attempts) else "done"
    assert f"{again} {rule.verdict(item, attempts)}" == result


def test_csv_files_have_one_word_for_what_did_not_run() -> None:
    """NotSupported is a Skip in the files of deqp-runner; other verdicts are spelled as they are."""
    assert [listed(word) for word in ("NotSupported", "Skip", "Fail")] == ["Skip", "Skip", "Fail"]
