"""``scenario-runner test`` and ``report``: suites on the real driver."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

from scenario_runner.cli.arguments import parse
from scenario_runner.cli.suites.test import main
from scenario_runner.errors import UsageError
from scenario_runner.suite.journal import Journal
from tests.program import COMMAND, Program, executable
from tests.scenes import Scene, error_of, glsl

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"


def item(folder: Path, name: str, check: object = None) -> None:
    """A scenario that doubles four numbers."""
    scene = Scene(folder)
    scene.shader("double", glsl("data[gl_GlobalInvocationID.x] *= 2;", DATA))
    scene.buffer("x", numpy.arange(4, dtype="uint32"), dst="out.npy").dispatch("double", ["x"], [4])
    scene.write(f"{name}.json")
    if check is not None:
        scene.file(f"{name}.check.json", check if isinstance(check, str) else json.dumps(check))


def doubled(*values: int) -> dict[str, object]:
    return {"outputs": {"x": {"dtype": "uint32", "values": list(values)}}}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A passing scenario, a passing file with broken JSON, a failing scenario, and wrong expectations."""
    folder = tmp_path / "suite"
    item(folder, "good", doubled(0, 2, 4, 6))
    item(folder, "wrong", doubled(0, 2, 4, 7))
    item(folder, "unknown", {"outputs": {"y": {}}})
    (folder / "broken.json").write_text('{"commands": [')
    (folder / "broken.check.json").write_text('{"exit_code": 3}')
    return folder


def test_a_compiler_that_hangs(tmp_path: Path, program: Program) -> None:
    """The item names the shader compiler, and does not blame the driver."""
    item(tmp_path / "suite", "good", doubled(0, 2, 4, 6))
    version = '[ "$1" = --version ] && exec echo "Glslang Version: 11:12.0.0"'
    compiler = executable(tmp_path / "compiler.sh", f"#!/bin/sh\n{version}\nexec sleep 600\n")
    ended = program("test", "suite", "--glslang", compiler, "--timeout", "1", "--no-cache", "--retries", "0")
    assert (
        f"was killed, since it took more than 1 s (--timeout), while waiting for the shader compiler '{compiler}'"
        in ended.out
    )
    assert "help: the shaders may be too large for this compiler" in ended.out
    assert "driver" not in ended.out


def page_data(path: Path, id: str = "data") -> Any:
    """Return the data of an HTML report."""
    return json.loads(path.read_text().partition(f'id="{id}">')[2].partition("</script>")[0])


def csv_of(text: str) -> list[list[str]]:
    return [line.split(",")[:2] for line in text.splitlines()]


def test_a_suite_is_judged_and_repeated(suite: Path, program: Program) -> None:
    """Failures become a baseline, and unchanged items do not run again."""
    ended = program("test", "suite", "--results", "r", "--junit", "j.xml", "--html", "r.html", exit_code=1)
    assert re.search(r"^Fail suite/wrong.json: x: .*\n  scenario-runner test suite/wrong.json$", ended.out, re.M)
    assert "Missing suite/unknown.json: " in ended.out
    assert "error: " in ended.err
    assert "/outputs/y: 'y' is not an output of the scenario [SR-EXPECT-004]" in ended.err
    assert ended.out.splitlines()[-1] == "suite failed: 2 of 4 items unexpected"
    results = suite.parent / "r"
    failures = [["suite/unknown.json", "Missing"], ["suite/wrong.json", "Fail"]]
    passed = [["suite/broken.json", "Pass"], ["suite/good.json", "Pass"]]
    assert csv_of((results / "results.csv").read_text()) == passed + failures
    assert csv_of((results / "failures.csv").read_text()) == failures
    assert len(ElementTree.parse(suite.parent / "j.xml").findall(".//testcase")) == 4
    assert (suite.parent / "r.html").stat().st_size

    baseline = suite.parent / "known.csv"
    (results / "failures.csv").rename(baseline)
    again = program("test", "suite", "--results", "r", "--resume", "--quiet", "--baseline", baseline, exit_code=0)
    assert "3 results kept from the run before" in again.out  # Missing is looked at again
    assert again.out.splitlines()[-1] == "suite passed: 4 items"

    report = program.succeed("report", "r", "--compare", "r/journal.jsonl", "--csv", "merged")
    assert report.out.splitlines()[0] == "nothing has changed"
    assert (suite.parent / "merged" / "failures.csv").read_text() == ""


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("empty", "no scenario was found in 'empty'"),
        ("empty --fraction 2", "no scenario was found in 'empty'"),
        ("suite -t nowhere", "none of 4 scenarios is selected by --include-tests"),
        ("suite --fraction 2 -t nowhere", "none of 4 scenarios is selected by --include-tests"),
        ("suite --skips all", "none of 4 scenarios is selected: --skips matches all"),
    ],
)
def test_an_empty_suite_is_not_green(suite: Path, program: Program, arguments: str, message: str) -> None:
    """The exit code is 2, also of --list, and each report has a failure that says so."""
    (suite.parent / "empty").mkdir()
    (suite.parent / "all").write_text(".\n")
    ended = program.fail(2, "test", *arguments.split(), "--junit", "j.xml", "--json", "j.json", "--html", "j.html")
    assert f"error: {message}" in ended.err
    assert len(ElementTree.parse(suite.parent / "j.xml").findall(".//testcase/error")) == 1
    assert json.loads((suite.parent / "j.json").read_text())["results"]["summary"]["failed"] == 1
    assert f'"incomplete":"{message}' in (suite.parent / "j.html").read_text()
    assert program("test", *arguments.split(), "--list").code == 2


@pytest.mark.parametrize("path, code", [("suite/good.json[4", "SR-SUITE-017"), ("@none.txt", "SR-SUITE-006")])
def test_a_path_that_leads_nowhere(suite: Path, program: Program, path: str, code: str) -> None:
    """A wrong path is one error, without a second error about an empty suite, and the reports have a failure."""
    ended = program("test", path, "--junit", "j.xml")
    assert (ended.code, ended.out, ended.err.count("error: "), f"[{code}]" in ended.err) == (2, "", 1, True)
    assert len(ElementTree.parse(suite.parent / "j.xml").findall(".//testcase/error")) == 1


def test_the_code_of_an_empty_suite(tmp_path: Path) -> None:
    """An empty suite is an error of its own."""
    (problem,) = error_of(UsageError, main, parse(["test", str(tmp_path), "--list"])).problems
    assert (problem.code, problem.message) == ("SR-SUITE-009", f"no scenario was found in '{tmp_path}'")


def test_a_share_may_be_empty(suite: Path, program: Program) -> None:
    """A share without items passes if other shares have items."""
    ended = program("test", "suite", "-t", "good", "--fraction", "2", "--fraction-start", "2", "--junit", "j.xml")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "suite passed: 0 items")
    assert ended.err == "note: this fraction of 1 scenario has no scenario to run\n"
    assert not ElementTree.parse(suite.parent / "j.xml").findall(".//testcase")


def test_a_suite_that_the_device_does_not_support(tmp_path: Path, program: Program) -> None:
    """A suite of unsupported items has its own exit code, also in the reports. One item that runs makes the suite
    pass."""
    needs = {"needs": {"extensions": "VK_NV_ray_tracing_of_nobody"}, **doubled(0, 2, 4, 6)}
    for name in ("a", "b"):
        item(tmp_path / "suite", name, needs)
    ended = program("test", "suite", "--results", "r", "--junit", "j.xml")
    assert (ended.code, ended.out.splitlines()[-1]) == (6, "suite not run: 0 of 2 items unexpected")
    assert ended.err.startswith("error: none of 2 items could run: ")
    assert "lacks the extension VK_NV_ray_tracing_of_nobody [SR-SUITE-015]\n" in ended.err
    assert len(ElementTree.parse(tmp_path / "j.xml").findall(".//testcase/error")) == 1
    report = program("report", "r", "--junit", "k.xml")
    assert (report.code, report.out.splitlines()[-1]) == (6, "suite not run: 0 of 2 items unexpected")
    assert len(ElementTree.parse(tmp_path / "k.xml").findall(".//testcase/error")) == 1
    item(tmp_path / "suite", "c", doubled(0, 2, 4, 6))
    assert program("test", "suite", "--quiet").out.splitlines()[-1] == "suite passed: 3 items"


def test_lists_of_a_ci(suite: Path, program: Program) -> None:
    """Items of standard input are chosen by the lists; entries that match nothing are told."""
    (suite.parent / "skips").write_text("wrong\nnowhere\n")
    names = "\n".join(f"suite/{name}.json" for name in ("good", "wrong", "unknown", "broken"))
    ended = program("test", "-", "--skips", "skips", "--include-tests", "good|wrong|broken", "--list", stdin=names)
    assert ended.out.split() == ["suite/good.json", "suite/broken.json"]
    assert ended.err == "warning: skips:2: 'nowhere' matches no scenario of the suite [SR-SUITE-004]\n"
    half = program("test", "suite", "--fraction", "2", "--fraction-start", "2", "--list")
    assert half.out.split() == ["suite/good.json", "suite/wrong.json"]


def test_failures_that_expectations_know(tmp_path: Path, program: Program) -> None:
    """A Fail is no failure, a Pass is one; a baseline comes first, and an update keeps the expected values."""
    known = {"expected_fail": "the compiler drops the last store"}
    item(tmp_path / "suite", "fail", {**doubled(0, 2, 4, 7), **known})
    item(tmp_path / "suite", "pass", {**doubled(0, 2, 4, 6), **known})
    ended = program("test", "suite", "--results", "r", exit_code=1)
    assert re.search(r"in .*: 1 ExpectedFail, 1 UnexpectedImprovement\(Pass\)$", ended.out, re.M)
    reason = "expected to fail: the compiler drops the last store"
    assert f"UnexpectedImprovement(Pass) suite/pass.json: {reason}\n" in ended.out
    table = (tmp_path / "r" / "results.csv").read_text()
    assert csv_of(table) == [["suite/fail.json", "ExpectedFail"], ["suite/pass.json", "UnexpectedImprovement(Pass)"]]
    (tmp_path / "baseline").write_text("suite/pass.json,Pass\nsuite/fail.json,Crash\n")
    ended = program("test", "suite", "--baseline", "baseline", exit_code=1)
    assert re.search(r"in .*: 1 Pass, 1 UnexpectedImprovement\(Fail\)$", ended.out, re.M)
    before = (tmp_path / "suite/fail.check.json").read_bytes()
    program("test", "suite/fail.json", "--update", exit_code=0)
    assert (tmp_path / "suite/fail.check.json").read_bytes() == before


def test_strict_tells_all_that_is_wrong(suite: Path, program: Program) -> None:
    """Lists, names of items and entries that match nothing, in one go; nothing runs."""
    folder = suite.parent
    (folder / "skips").write_text("a(\nnowhere\n")
    (folder / "known").write_text("gone,Fail\ngood\n")
    (suite / "a\nb.json").write_text('{"commands": []}')
    ended = program("test", "suite", "--strict", "--skips", "skips", "--baseline", "known", "missing", "--results", "r")
    places = [line.replace(f"{suite}", "suite").split(":")[1:3] for line in ended.err.splitlines() if "error:" in line]
    assert places == [
        [" known", "2"],
        [" missing", " the list does not exist"],
        [" skips", "1"],
        [" suite", " the name b'a\\nb.json' has control characters or invalid UTF-8, and is left out"],
        [" known", "1"],
        [" skips", "2"],
    ]
    assert (ended.code, ended.out) == (2, "")
    assert not (folder / "r").exists()


def test_the_journal_to_resume_is_none(suite: Path, program: Program) -> None:
    """A foreign journal is an error and is kept under another name, while the suite runs. `report` refuses it."""
    journal = suite.parent / "r" / "journal.jsonl"
    journal.parent.mkdir()
    journal.write_text("other\n")
    ended = program("test", "suite/good.json", "--results", "r", "--resume")
    assert (ended.code, ended.out.splitlines()[-1]) == (4, "suite passed, but had problems (exit code 4)")
    assert ended.err.startswith("error: r/journal.jsonl:1: the file is not a journal")
    assert program("report", "r").out == "1 Pass\nsuite passed: 1 item\n"
    assert (journal.parent / "journal.previous.jsonl").read_text() == "other\n"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    assert "error: there is no result in 'r'" in program("report", "r").err
    journal.write_text("")
    assert program("report", "r").err.startswith("error: r/journal.jsonl: the journal is empty")


def test_expectations_are_written_from_a_run(suite: Path, program: Program) -> None:
    """--dry-run shows the changes without making them. After an update the next run passes."""
    before = (suite / "wrong.check.json").read_bytes()
    shown = program("test", "suite/wrong.json", "--update", "--dry-run")
    assert shown.out.startswith("suite/wrong.json: x: changed: ")
    assert shown.out.endswith(": suite/wrong.check.json\n1 expectation of 1 item would change\n")
    assert (suite / "wrong.check.json").read_bytes() == before
    assert program("test", "suite/wrong.json", "--update").out.endswith("1 expectation of 1 item changed\n")
    rest = program("test", "suite", "--update", exit_code=1)
    assert "suite/unknown.json: no change: Missing: " in rest.out
    assert rest.out.endswith("0 expectations of 4 items changed\n")
    assert rest.err == ""


def test_a_file_that_two_items_expect(tmp_path: Path, program: Program) -> None:
    """A file that two items would write differently stays, and the error names both items. Other files are updated."""
    numpy.save(tmp_path / "common.npy", numpy.zeros(4, "uint32"))
    for name in ("one", "two", "three"):
        item(tmp_path / name, name, {"outputs": {"x": {"file": "../common.npy"}}})
    assert program("test", "one", "two", "--update", "--dry-run").code == 0
    (sources,) = (tmp_path / "three").glob("*.npy")
    numpy.save(sources, numpy.ones(4, "uint32"))
    ended = program("test", "one", "three", "--update", "--dry-run", exit_code=1)
    said = r"^error: common.npy: is expected by '.*' of '(one|three)/.*, but their results differ \[SR-EXPECT-006\]$"
    assert re.search(said, ended.err, re.M)
    assert ended.out == "0 expectations of 2 items would change\n"
    item(tmp_path / "four", "four", {"outputs": {"x": {"file": "own.npy"}}})
    ended = program("test", "one", "three", "four", "--update")
    assert (ended.code, ended.out.splitlines()[-1]) == (1, "1 expectation of 3 items changed")
    assert numpy.load(tmp_path / "four" / "own.npy").view("uint32").tolist() == [0, 2, 4, 6]
    assert numpy.load(tmp_path / "common.npy").tolist() == [0, 0, 0, 0]
    assert program("test", "one", "two", "--update").code == 0
    ended = program("test", "two", "one", "three", "--update", "--dry-run")
    assert (ended.code, ended.out.splitlines()[-1]) == (1, "0 expectations of 3 items would change")
    assert re.search(said.replace("one", "one|two"), ended.err, re.M)


@pytest.mark.parametrize("reader", ["source", "mask"])
def test_an_update_overwrites_no_input(tmp_path: Path, program: Program, reader: str) -> None:
    """An update replaces neither a source nor a mask of another item; other changes are written."""
    item(tmp_path / "a", "one", {"outputs": {"x": {"file": "../file.npy", "dtype": "uint32"}}})
    item(tmp_path / "b", "two", {"outputs": {"x": {"values": 0, "dtype": "uint32"}}})
    if reader == "mask":
        item(tmp_path / "c", "three", {"outputs": {"x": {"values": 0, "dtype": "uint32", "mask": "../file.npy"}}})
    else:
        text = json.loads((tmp_path / "b/two.json").read_text())
        (source,) = (each["buffer"] for each in text["resources"] if "buffer" in each)
        source["src"] = "../file.npy"
        (tmp_path / "b/two.json").write_text(json.dumps(text))
    numpy.save(tmp_path / "file.npy", numpy.arange(4, dtype="uint32"))
    before = (tmp_path / "file.npy").read_bytes()
    ended = program("test", ".", "--update")
    assert (tmp_path / "file.npy").read_bytes() == before
    assert ended.code == 1
    assert re.search(r"file.npy: is an input of '.*', and would be overwritten", ended.out + ended.err)
    assert ended.out.endswith(f"b/two.check.json\n1 expectation of {3 if reader == 'mask' else 2} items changed\n")


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        ("empty", 2, "error: no scenario was found in 'empty'"),
        ("suite --strict --skips bad", 2, "error: bad:1: 'a(' is not a regular expression"),
        ("suite --strict --skips none --list", 2, "error: none:1: 'nowhere' matches no scenario of the suite"),
        ("suite --strict", 3, "error: suite/unknown.check.json:1:19: /outputs/y: 'y' is not an output of the scenario"),
        ("suite --skips gone", 4, "error: gone: the list does not exist"),
        ("suite --baseline bad", 2, "error: bad:1: the status is missing"),
        ("suite --results r", 4, "error: r/journal.jsonl: another suite writes to this journal"),
        ("suite --results file/r", 4, "error: file/r: the journal cannot be written"),
        ("suite --resume", 2, "error: --resume needs --results"),
        ("suite --fraction 2 --fraction-start 3", 2, "error: --fraction-start is 3, expected at most --fraction (2)"),
        ("suite --device 0 --devices all", 2, "error: --device and --devices were given"),
        ("suite --dry-run", 2, "error: --dry-run belongs to --update"),
        ("suite --update --results r", 2, "error: --update and --results contradict each other"),
        ("- -", 2, "error: standard input was given twice"),
        ("suite --retries many", 2, "error: argument --retries: 'many': expected a whole number of 0 or more"),
        ("suite --jobs 5000", 2, "error: argument --jobs: '5000': expected a whole number from 1 to "),
        ("suite --devices ,", 2, "error: argument --devices: ',': expected 'all', or indexes, UUIDs or names"),
        ("suite --device 99", 8, "error: "),
        ("suite --junit suite", 4, "error: suite: is a folder"),
        ("suite --timeout 0", 2, "error: argument --timeout: '0': expected a number of seconds above 0"),
        ("suite --shuffle x", 2, "error: argument --shuffle: 'x': expected a whole number"),
        ("-t wrong suite", 2, "error: no scenario, folder or list was given"),
    ],
)
def test_what_ends_a_suite_at_once(suite: Path, program: Program, arguments: str, code: int, message: str) -> None:
    """Each wrong argument ends the suite at once with an error, a place and an exit code."""
    folder = suite.parent
    (folder / "empty").mkdir()
    (folder / "bad").write_text("a(\n")
    (folder / "none").write_text("nowhere\n")
    (folder / "file").touch()
    with Journal(str(folder / "r")):
        ended = program("test", *arguments.split())
    assert ended.code == code
    first = next(line for line in ended.err.splitlines() if line.startswith(("error:", "warning:")))
    assert first.replace(f"{folder}/", "").startswith(message)
    assert "Pass" not in ended.out


def test_more_processes_than_open_files(tmp_path: Path, program: Program) -> None:
    """The suite goes on with as many as the limit allows, and says so."""
    for number in range(12):
        item(tmp_path / "suite", str(number), doubled(0, 2, 4, 6))
    launcher = ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh"]
    ended = program("test", "suite", "--jobs", "12", "--results", "r", launcher=launcher)
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "suite passed: 12 items")
    assert "warning: the system refuses another process (Too many open files); going on with " in ended.err


def slow_suite(folder: Path) -> None:
    item(folder, "a")
    item(folder, "b")
    item(folder, "z", {"repeat": 10_000_000, "timeout": 1000, "outputs": {"x": {"unchecked": True}}})


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a suite with a slow last item, and wait until the journal has the others."""
    process = subprocess.Popen(
        [*COMMAND, "test", "suite", "--results", "r", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    journal = folder / "r" / "journal.jsonl"
    until = time.monotonic() + 120
    while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < until
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process


def test_a_killed_suite_goes_on(tmp_path: Path, program: Program) -> None:
    """--resume keeps the results before a kill, even with an incomplete last line."""
    slow_suite(tmp_path / "suite")
    process = started(tmp_path)
    process.kill()
    process.communicate()
    report = program("report", "r", "--junit", "j.xml", "--json", "j.json", "--html", "j.html")
    assert (report.code, report.out.splitlines()[-1]) == (4, "suite did not end: 0 of 2 items unexpected")
    message = "the suite was killed or still runs: the journal has results of 2 of 3 items"
    assert report.err.startswith(f"error: r/journal.jsonl: {message} [SR-SUITE-014]\n")
    for name in ("j.xml", "j.json", "j.html"):
        assert message in (tmp_path / name).read_text()
    with (tmp_path / "r" / "journal.jsonl").open("a") as journal:
        journal.write('{"item":{"id":"suite/z.json"')
    item(tmp_path / "suite", "z")
    (tmp_path / "suite" / "z.check.json").unlink()
    ended = program("test", "suite", "--results", "r", "--resume", exit_code=0)
    assert "the journal ends in the middle of a line" in ended.err
    assert "2 results kept from the run before" in ended.out
    assert ended.out.splitlines()[-1] == "suite passed: 3 items"
    report, nothing = program("report", "r"), " (3 compared with nothing)"
    assert (report.code, report.out, report.err) == (0, f"3 Pass{nothing}\nsuite passed: 3 items\n", "")


def test_a_journal_that_cannot_be_read_is_missed(tmp_path: Path, program: Program) -> None:
    """A missing journal beside a readable one keeps the suite from passing in the last line and the reports."""
    item(tmp_path / "suite", "a")
    assert program("test", "suite", "--results", "r").code == 0
    (tmp_path / "other.jsonl").write_text("no journal\n")
    report = program("report", "r", "other.jsonl", "--junit", "j.xml")
    assert (report.code, report.out.splitlines()[-1]) == (4, "suite incomplete: 0 of 1 item unexpected")
    assert report.err.count("error: ") == 1
    assert "other.jsonl" in report.err
    assert "other.jsonl: the journal cannot be read" in (tmp_path / "j.xml").read_text()


def test_a_suite_that_was_stopped_says_so(tmp_path: Path, program: Program) -> None:
    """With --fail-fast the last line, the reports and the journal tell that the rest has no result; not where the
    failure was the last one."""
    for name in ("a", "b", "c", "d"):
        item(tmp_path / "suite", name, doubled(0, 2, 4, 6 + (name == "a")))
    stopping = ("--fail-fast", "--jobs", "1", "--junit", "j.xml")
    ended = program("test", "suite", "--results", "r", *stopping)
    assert (ended.code, ended.out.splitlines()[-1]) == (1, "suite stopped: 1 of 2 items unexpected")
    cases = {case.get("name"): case for case in ElementTree.parse(tmp_path / "j.xml").iter("testcase")}
    error = cases["suite is incomplete"].find("error")
    assert error is not None
    assert error.text == "the suite was stopped: the journal has results of 2 of 4 items"
    report = program("report", "r")
    assert (report.code, report.out.splitlines()[-1]) == (1, "suite stopped: 1 of 2 items unexpected")
    assert "the suite was stopped: the journal has results of 2 of 4 items" in report.err
    whole = program("test", "suite", "--fraction", "4", *stopping)
    assert (whole.code, whole.out.splitlines()[-1]) == (1, "suite failed: 1 of 1 item unexpected")


def test_what_is_left_after_many_failures_is_skipped(tmp_path: Path, program: Program) -> None:
    """With --max-failures the remaining items are Skipped with a reason, and the suite is complete."""
    for name in ("a", "b", "c", "d"):
        item(tmp_path / "suite", name, doubled(0, 2, 4, 7))
    ended = program("test", "suite", "--results", "r", "--max-failures", "1", "--retries", "0", "--jobs", "1")
    assert ended.code == 1
    assert re.fullmatch(r"suite failed: [12] of 4 items unexpected", ended.out.splitlines()[-1])
    rows = [status for _, status in csv_of((tmp_path / "r" / "results.csv").read_text())]
    assert (rows[0], rows[-2:]) == ("Fail", ["Skip", "Skip"])
    assert "not run: --max-failures 1 was reached" in (tmp_path / "r" / "journal.jsonl").read_text()


def test_an_interrupted_suite_keeps_its_results(tmp_path: Path, program: Program) -> None:
    """Ctrl-C writes the tables of the finished items, and ends with the exit code of an interrupt."""
    slow_suite(tmp_path / "suite")
    process = started(tmp_path)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output.splitlines()[-2:] == ["suite interrupted: 0 of 2 items unexpected", "interrupted"]
    assert csv_of((tmp_path / "r" / "results.csv").read_text()) == [["suite/a.json", "Pass"], ["suite/b.json", "Pass"]]
    report = program("report", "r")
    assert (report.code, report.out.splitlines()[-1]) == (4, "suite interrupted: 0 of 2 items unexpected")


def test_a_layer_that_is_not_there(suite: Path, program: Program) -> None:
    """The warning about a name in VK_INSTANCE_LAYERS that no layer has comes once, not for each worker."""
    ended = program("test", "suite/good.json", "--jobs", "2", env={"VK_INSTANCE_LAYERS": "VK_LAYER_TEST_missing"})
    assert ended.code == 0, ended
    message = "VK_INSTANCE_LAYERS names layers that are not installed: VK_LAYER_TEST_missing"
    assert ended.err.count(f"warning: {message}\n") == 1
