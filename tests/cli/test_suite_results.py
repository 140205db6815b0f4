"""The output of ``test`` and ``report``: results on the terminal and the live display."""

import html
import io
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy
import pytest

from scenario_runner.cli.suites.suite_display import SuiteDisplay
from scenario_runner.suite.outcomes import Item, Outcome, OutputCheck, Result, Status
from tests.cli.test_test_command import DATA, doubled, item, page_data
from tests.crash import crash_shader
from tests.processes.test_crashes import HANGS
from tests.program import Program, executable
from tests.scenes import Scene, glsl


def test_results_of_another_driver_run_again(tmp_path: Path, program: Program) -> None:
    """Results of another driver or version run again. A warning counts them, and --resume-anyway keeps them."""
    for name in ("a", "b"):
        item(tmp_path / "suite", name, doubled(0, 2, 4, 6))
    resuming = ("test", "suite", "--results", "r", "--resume")
    assert program("test", "suite/a.json", "--results", "r").code == 0
    ended = program(*resuming)
    assert (ended.err, "1 result kept from the run before" in ended.out) == ("", True)
    journal = tmp_path / "r" / "journal.jsonl"
    header, *lines = journal.read_text().splitlines()
    driver = json.loads(lines[0])["driver"]
    journal.write_text("\n".join([header, *lines, ""]).replace(json.dumps(driver), '"other 1.0"'))
    old = journal.read_bytes()
    kept = program(*resuming[:-1], "--resume-anyway")
    assert (kept.err, "2 results kept from the run before" in kept.out) == ("", True)
    journal.write_bytes(old)
    ended = program(*resuming)
    assert ended.err.startswith("warning: 2 results of the run before are of the device ")
    assert (
        " with the driver 'other 1.0', and run again\n  help: to keep results of unchanged files: --resume-anyway"
        in ended.err
    )
    assert "taken over" not in ended.out
    assert "2 results kept from the run before" in program(*resuming).out
    old = journal.read_text()
    version = json.loads(header)["program"]
    journal.write_text(old.replace(f'"program":"{version}","program_hash":"', '"program":"0.1","program_hash":"0'))
    assert "warning: 2 results of the run before are of version 0.1 of this program, and run" in program(*resuming).err
    ended = program(*resuming, "--sandbox")
    assert "warning: 2 results of the run before are of other options (sandbox), and run" in ended.err


def test_results_of_another_validator_run_again(tmp_path: Path, program: Program) -> None:
    """A result counts only with the same checks: the layer of the driver, and spirv-val."""
    item(tmp_path / "suite", "a", doubled(0, 2, 4, 6))
    validator = executable(tmp_path / "spirv-val", "#!/bin/sh\n")
    resuming = ("test", "suite", "--results", "r", "--resume")
    warning = "warning: 1 result of the run before is of other options ({}), and runs again"
    unchecked, checked = ({"SCENARIO_RUNNER_SPIRV_VAL": value} for value in ("off", str(validator)))
    assert program(*resuming, env=unchecked).code == 0
    assert warning.format("spirv-val") in program(*resuming, env=checked).err
    assert program(*resuming, env=checked).err == ""
    assert warning.format("spirv-val") in program(*resuming, env=unchecked).err
    assert warning.format("validation") in program(*resuming, "--validation", env=unchecked).err
    assert warning.format("validation") in program(*resuming, env=unchecked).err


def test_options_of_the_verdict_count_for_what_is_kept(
    tmp_path: Path, program: Program, trouble_layer: dict[str, str]
) -> None:
    """--resume repeats a Timeout after a larger limit, a slow item after a smaller limit, and an item that needs more
    attempts."""
    item(tmp_path / "suite", "good", doubled(0, 2, 4, 6))
    item(tmp_path / "suite", "wrong", doubled(0, 2, 4, 7))
    slow = Scene(tmp_path / "suite").buffer("y", size=HANGS).write("slow.json")

    def taken_over(*options: str) -> int:
        out = program("test", "suite", "--results", "r", "--resume", *options, env=trouble_layer).out
        found = re.search(r"^(\d+) results? kept from the run before", out, re.M)
        return int(found[1]) if found else 0

    once = ("--retries", "0")
    assert taken_over("--timeout", "1", *once) == 0
    assert taken_over("--timeout", "1.5", *once) == 2
    assert taken_over("--timeout", "0.9", *once) == 3
    journal = tmp_path / "r" / "journal.jsonl"
    journal.write_text(re.sub(r'(good\.json.*"status":"Pass","seconds":)[^,}]*', r"\g<1>0.95", journal.read_text()))
    assert taken_over("--timeout", "0.9", *once) == 2
    slow.unlink()
    assert taken_over() == 1  # wrong runs once more
    assert taken_over("--retries", "0") == 2
    assert taken_over("--repeat", "2") == 1


def test_a_crash_shows_the_native_stack(tmp_path: Path, program: Program, device_name: str) -> None:
    """With --core-dumps, where the system writes core files and there is gdb; frames of this program are not shown. A
    command runs the scenario in a debugger, and --quiet shows all of it once."""
    scene = Scene(tmp_path / "suite").shader("x", crash_shader(device_name))
    scene.buffer("a", numpy.ones(4, "uint32"), dst="out.npy").dispatch("x", ["a"], [1]).write("crash.json")
    reports = ("--html", "report.html", "--junit", "junit.xml")
    ended = program(
        "test", "suite", "--core-dumps", "--sandbox", "--retries", "0", "--quiet", "--results", "r", *reports
    )
    assert ended.code == 1
    assert ended.out.count("crash.json: ") == 1
    assert "  gdb --args python3 -m scenario_runner run --no-isolate --sandbox suite/crash.json\n" in ended.out
    assert "scenario_runner/" not in ended.out
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|"):
        assert f"    no core file was found; /proc/sys/kernel/core_pattern is {pattern!r}" in ended.out
    elif shutil.which("gdb"):
        assert re.search(r"^  stack:\n    #\d+ .*, in generated code \(such as a compiled shader\)\n", ended.out, re.M)
        assert re.search(r"^    the thread that called the driver:\n(    #.* from .*\n)+    core", ended.out, re.M)
        for name in ("report.html", "junit.xml"):
            text = (tmp_path / name).read_text()
            assert "while running this command (shader 'x')" in html.unescape(text)
            assert "the thread that called the driver:" in text
    else:
        assert "    the stack needs gdb, which is not installed\n    core file: /" in ended.out
    without = program("test", "suite", "--retries", "0", "--quiet")
    assert "stack:" not in without.out


def test_unsupported_items_by_cause(tmp_path: Path, program: Program, device_name: str) -> None:
    """The end of a suite, and each report, counts items by what a device lacks, and not by its name."""
    suite = tmp_path / "suite"
    item(suite, "right", doubled(0, 2, 4, 6))
    for name in ("a", "b"):
        item(suite, name, {"needs": {"extensions": ["VK_NV_one_of_nobody", "VK_NV_two_of_nobody"]}})
    item(suite, "c", {"not_supported": "the test needs a tablet's pen"})
    item(suite, "d")
    scenario = json.loads((suite / "d.json").read_text())
    scenario["commands"][0]["dispatch_compute"]["rangeND"] = [2**32 - 1]
    (suite / "d.json").write_text(json.dumps(scenario))
    ended = program("test", "suite", "--results", "r", "--html", "r.html", "--json", "r.json", exit_code=0)
    groups = {
        "VK_NV_one_of_nobody, VK_NV_two_of_nobody": ["suite/a.json", "suite/b.json"],
        "maxComputeWorkGroupCount": ["suite/d.json"],
        "the test needs a tablet's pen": ["suite/c.json"],
    }
    lines = [f"  {len(ids)}: {cause}" for cause, ids in groups.items()]
    text = "\n".join(["not supported, by cause:", *lines, ""])
    assert text in ended.out
    assert text in program("report", "r").out
    assert json.loads((tmp_path / "r.json").read_text())["results"]["extra"]["notSupported"] == groups
    data = page_data(tmp_path / "r.html")
    found = [(data["causes"][row[7]], row[0]) for row in data["rows"] if len(row) > 7]
    assert sorted(found) == sorted((cause, id) for cause, ids in groups.items() for id in ids)
    verbose = program("test", "suite", "--verbose").out
    assert "\n    suite/a.json\n    suite/b.json\n  1: maxComputeWorkGroupCount\n    suite/d.json\n" in verbose
    assert "by cause" not in program("test", "suite", "--quiet").out


def test_compiler_errors_keep_their_lines(tmp_path: Path, program: Program) -> None:
    """Each error of the compiler and each source line has a line of its own, in reports too."""
    scene = Scene(tmp_path / "suite").shader("x", glsl("a[0] = foo(1);\n b = 3;", DATA))
    scene.buffer("a", numpy.zeros(4, "uint32")).dispatch("x", ["a"], [1]).write("bad.json")
    ended = program("test", "suite", "--retries", "0", "--quiet", "--junit", "j.xml")
    lines = ended.out.splitlines()
    assert len([line for line in lines if "'foo' : no matching overloaded function found" in line]) == 1
    assert len([line for line in lines if "'b' : undeclared identifier" in line]) == 1
    assert "\\n" not in ended.out
    failure = ElementTree.parse(tmp_path / "j.xml").find(".//failure")
    assert failure is not None
    assert "\\n" not in failure.get("message", "")


def test_names_can_be_read_as_a_list(tmp_path: Path, program: Program) -> None:
    """--list prints a list that selects the same items, whatever their names are."""
    names = ["#a.json", " b.json", "@c.json", "-.json", "d e.json", "é.json", "[x].json"]
    for name in names:
        (tmp_path / name).write_text('{"commands": []}')
    (tmp_path / "z ").write_text('{"commands": []}')
    printed = program("test", ".", "./z ", "--list").out
    assert len(printed.splitlines()) == len(names) + 1
    again = program("test", "-", "--list", stdin=printed)
    assert (again.code, again.err, again.out) == (0, "", printed)


@pytest.mark.parametrize("replaced", ["", 'mkdir "$RESULTS"; touch "$RESULTS/journal.jsonl"'])
def test_a_results_folder_that_vanishes(tmp_path: Path, program: Program, replaced: str) -> None:
    """A vanished results folder ends the suite at the next result with one error, and is not made again."""
    glslang, results = shutil.which("glslangValidator"), tmp_path / "r"
    for name in ("a", "b", "c"):
        item(tmp_path / "suite", name, doubled(0, 2, 4, 6))
    text = f'#!/bin/sh\nRESULTS="{results}"; mv "$RESULTS" away\n{replaced}\nexec {glslang} "$@"\n'
    compiler = executable(tmp_path / "compiler", text)
    options = ("--glslang", compiler, "--no-cache", "--jobs", "1", "--junit", "junit.xml", "--quiet")
    ended = program("test", "suite", "--results", "r", *options)
    message = "the journal or the folder of results was removed or replaced while the suite ran"
    help = "run the suite again, and leave the folder alone meanwhile"
    assert ended.err == f"error: {results}/journal.jsonl: {message}\n  help: {help}\n"
    assert (ended.code, ended.out.splitlines()[-1]) == (4, "suite stopped by an error: 0 of 1 item unexpected")
    assert [each.name for each in results.glob("*")] == (["journal.jsonl"] if replaced else [])
    assert len((tmp_path / "away" / "journal.jsonl").read_text().splitlines()) == 1


def test_evidence_is_bounded_and_removed(tmp_path: Path, program: Program) -> None:
    """Without room for contents there are none, and the message says so; an item that passes then has no files."""
    item(tmp_path / "suite", "wrong", doubled(0, 2, 4, 7))
    program("test", "suite", "--results", "r")
    names = {path.name for path in (tmp_path / "r" / "suite" / "wrong.json").iterdir()}
    assert names == {"x.actual.npy", "x.expected.npy", "x.error.npy"}
    ended = program("test", "suite", "--results", "r", "--max-evidence", "0")
    assert "(content left out: more than --max-evidence 0 MiB)" in ended.out
    assert not (tmp_path / "r" / "suite").exists()
    program("test", "suite", "--results", "r")
    assert (tmp_path / "r" / "suite" / "wrong.json" / "x.actual.npy").exists()
    item(tmp_path / "suite", "wrong", doubled(0, 2, 4, 6))
    assert program("test", "suite", "--results", "r").code == 0
    assert not (tmp_path / "r" / "suite").exists()


def test_a_report_that_cannot_be_written(tmp_path: Path, program: Program) -> None:
    """A report that cannot be written is an error, and the other reports are written."""
    item(tmp_path / "suite", "wrong", doubled(0, 2, 4, 7))
    (tmp_path / "base").write_text("suite/wrong.json,Fail\n")
    reports = ("--junit", "r/suite/wrong.json", "--json", "j.json", "--html", "h.html")
    ended = program("test", "suite", "--baseline", "base", "--results", "r", *reports, exit_code=4)
    assert re.search("^error: r/suite/wrong.json: is a folder", ended.err, re.M)
    last = "suite passed, but report r/suite/wrong.json was not written"
    assert f"results: r\nreport: j.json\nreport: h.html\n{last}\n" in ended.out
    item(tmp_path / "suite", "worse", doubled(0, 2, 4, 7))
    reports = ("--junit", "q/suite/worse.json")
    ended = program("test", "suite", "--baseline", "base", "--results", "q", *reports, exit_code=1)
    assert ended.out.splitlines()[-1] == "suite failed: 1 of 2 items unexpected"


def test_green_means_compared(tmp_path: Path, program: Program) -> None:
    """A Pass with outputs and no expectations is marked in all reports, and fails where expectations are required."""
    suite = tmp_path / "suite"
    item(suite, "right", doubled(0, 2, 4, 6))
    item(suite, "open", {"outputs": {"x": {"unchecked": True}}})
    item(suite, "nothing")
    Scene(suite).write("empty.json")
    reports = ("--html", "r.html", "--json", "r.json", "--junit", "r.xml")
    ended = program("test", "suite", "--results", "r", *reports, exit_code=0)
    assert re.search(r"^4 items in .*: 4 Pass \(1 compared with nothing\)$", ended.out, re.M)
    assert "4 Pass (1 compared with nothing)\n" in program("report", "r").out
    data = page_data(tmp_path / "r.html")
    assert [row[0] for row in data["rows"] if row[4] == "compared with nothing"] == ["suite/nothing.json"]
    tests = json.loads((tmp_path / "r.json").read_text())["results"]["tests"]
    assert [each["name"] for each in tests if each["labels"].get("compared")] == ["suite/nothing.json"]
    properties = ElementTree.parse(tmp_path / "r.xml").iter("property")
    assert ("compared with nothing", "1") in [(each.get("name"), each.get("value")) for each in properties]
    required = ("test", "suite", "--results", "r", "--resume", "--require-expectations")
    ended = program(*required, exit_code=1)
    message = "no expectation is compared with the outputs: 'x'"
    assert f"Missing suite/nothing.json: {message}\n" in ended.out
    assert ended.out.splitlines()[-1] == "suite failed: 1 of 4 items unexpected"
    assert "warning: 4 results of the run before are of other options (require-expectations)" in ended.err


def test_passes_show_how_near_they_came(tmp_path: Path, program: Program) -> None:
    """Details of a Pass have each output with its greatest error and the bounds."""
    scene = Scene(tmp_path).buffer("x", numpy.float32([1, 2, 4]))
    scene.write("scenario.json")
    near = {"values": [1, 2.25, 4.125], "dtype": "float32", "atol": 0.3, "rtol": 0.01}
    scene.file("check.json", json.dumps({"outputs": {"x": near}}))
    program("test", ".", "--html", "r.html", exit_code=0)
    detail = page_data(tmp_path / "r.html", "d0")
    (output,) = detail["attempts"][0]["outputs"]
    assert (output["metrics"], output["allowed"]) == ({"greatest_error": 0.25}, "atol 0.3, rtol 0.01")


def test_a_suite_that_cannot_begin(tmp_path: Path, program: Program) -> None:
    """A wrong path and a wrong list are one error, and nothing runs."""
    item(tmp_path / "suite", "right", doubled(0, 2, 4, 6))
    ended = program.fail(4, "test", "nowhere", "suite")
    assert (ended.out, ended.err) == ("", "error: nowhere: no such file or folder\n")
    assert "did you mean 'suite/right.json'?" in program.fail(4, "test", "suite/rihgt.json").err
    (tmp_path / "skips").write_text("a\nb(\n")
    for option in ("--skips", "--flakes"):
        ended = program.fail(2, "test", "suite", option, "skips")
        assert (ended.out, ended.err.startswith("error: skips:2: 'b(' is not a regular expression")) == ("", True)
    assert program.fail(2, "test", "suite", "-t", "b(").out == ""
    listed = program("test", "-", stdin="suite/right.json\nsuite/gone.json\n", exit_code=1)
    assert listed.out.splitlines()[-1] == "suite failed: 1 of 2 items unexpected"


def test_outputs_with_equal_differences(tmp_path: Path, program: Program) -> None:
    """Each wrong output has its own sentence, even if another output has the same differences."""
    scene = Scene(tmp_path)
    for uid in ("ab", "b", "c"):
        scene.buffer(uid, numpy.arange(4, dtype="uint32"))
    scene.write("scenario.json")
    scene.file(
        "check.json", json.dumps({"outputs": {uid: {"dtype": "uint32", "values": 3} for uid in ("ab", "b", "c")}})
    )
    lines = program("test", ".", "--quiet").out.splitlines()
    sentence = "3 of 4 elements (75 %) are wrong at [0]: 0 (0x00000000), expected 3 (0x00000003)"
    assert lines[0] == f"Fail scenario.json: ab: {sentence} (and 2 more outputs)"
    assert [line.strip() for line in lines if line.strip().startswith(("ab:", "b:", "c:"))] == [
        "ab:",
        f"b: {sentence}",
        f"c: {sentence}",
    ]


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
    """Show three of four items, with a failure and a crash."""
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
    """Without a terminal, failures appear at once with their reason, and names cannot move the cursor."""
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
        "3 of 4 items in N ms: 1 Pass, 1 Fail, 1 Crash",
        "",
        "unexpected results, and commands to repeat them:",
        r"Fail b\x1b[2J: an output differs",
        r"  scenario-runner test b\x1b[2J",
        "Crash c: ended by SIGSEGV",
        "  scenario-runner test c",
        "",
        "report: out.html",
    ]


def test_a_terminal_has_a_bar_and_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows a bar with counts and the running items below the failures."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    display = SuiteDisplay(stream=stream)
    with display:
        display.start(2)
        display.started(Item("a", "/a"), 0)
        display.started(Item("b", "/b"), 1)
        display.finished(result("a", "Fail", "Fail", "an output differs"))
        display._live.refresh()
        shown = CONTROL.sub("", stream.getvalue())
        assert "Fail a: an output differs" in shown
        assert "1/2  50 %" in shown
        assert re.search(r"^ +1  b", shown, re.MULTILINE)
        display.end()
    assert re.search(r"^1 of 2 items in .*: 1 Fail$", CONTROL.sub("", stream.getvalue()).replace("\r", ""), re.M)


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
    assert "100 failures: from now on one line for each" in lines


def test_how_far_the_suite_is_names_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of progress has a share, a rate and the item that has been running for long."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    display = SuiteDisplay(stream=io.StringIO())
    display._total = 4
    display._samples.append((100.0, 0))
    display.started(Item("slow", "/slow"), 0)
    display.finished(result("a", "Pass"))
    now[0] = 110.0
    text = "1 of 4 done (25 %), 0.1 a second, 30 s left: 1 Pass; slow has been running for 10.00 s"
    assert display._progress_text() == text
