"""suite/journal.py: results that are written as they come, and read again."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from scenario_runner.errors import FileError
from scenario_runner.suite.journal import FILE_NAME, End, Ended, Journal, MergedJournals, header
from scenario_runner.suite.outcomes import Hashes, Item, Outcome, OutputCheck, Result
from tests.suite.collected import Collected


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
        message = "the journal ends in the middle of a line, as after a kill; that result is ignored"
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
    assert (incomplete.path, incomplete.message[-22:]) == (str(paths[1]), "are results of 2 items")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"verdict": "Passed"}, "verdict: 'Passed' is no verdict"),
        ({"more": 1}, "more: Extra inputs are not permitted"),
        ({"item": {"id": "a"}}, "item/path: Field required"),
        ({"attempts": [{"status": "Pass", "seconds": "1"}]}, "attempts/0/seconds: Input should be a valid number"),
        ({"attempts": [{"status": "Pass", "seconds": float("nan")}]}, "attempts/0: seconds: nan is no time"),
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
    assert incomplete.message == "results are lost: there are results of 1 item, and 2 items were to run"
    (shown,) = problems.shown
    assert shown.startswith(f"SR-SUITE-012 {path}:3: the line is damaged, and is ignored: {message}")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "the journal is empty"),
        ("\0\n", "this is no journal"),
        ("[" * 100_000, "this is no journal"),
        ('{"journal": 1}\n', "the journal has version 1, expected 2"),
        ('{"journal": 2}\n', "the header of the journal is wrong: program: Field required"),
        (' {"journal": 2}\n', "the header of the journal is wrong: program: Field required"),
    ],
)
def test_files_that_are_no_journals(tmp_path: Path, text: str, message: str) -> None:
    """Another file, a journal of another version, and one that is empty, are errors."""
    path = tmp_path / "j.jsonl"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        verdicts(path)
    assert str(caught.value).startswith(f"{path}:{'1:' * bool(text)} {message}")
    assert caught.value.problems[0].code == "SR-SUITE-011"


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
