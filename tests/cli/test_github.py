"""Annotations and summaries in jobs of GitHub, SARIF, and the action."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.test_test_command import item
from tests.crash import crash_shader
from tests.program import Program, executable
from tests.scenes import Scene

CHECKOUT = Path(__file__).resolve().parents[2]
LIMIT = 1 << 20
ONCE = ("--jobs", "1", "--retries", "0")


@pytest.fixture
def job(tmp_path: Path) -> dict[str, str]:
    """The environment of a GitHub job with the test's folder as checkout."""
    summary = str(tmp_path / "summary.md")
    return {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path), "GITHUB_STEP_SUMMARY": summary}


def annotations(err: str) -> list[str]:
    return re.findall(r"^::.*", err, re.M)


def wrong_suite(folder: Path) -> None:
    """Write an item with a wrong output and an item without its expected error, both with awkward names."""
    check = '{\n  "outputs": {\n    "x": {"dtype": "uint32", "values": [0, 2, 4, 7]}\n  }\n}'
    item(folder / "100 %, a:b|c", "wrong", check)
    item(folder, "good", '{\n  "timeout": 60,\n  "exit_code": 4}')


def test_a_suite(tmp_path: Path, program: Program, job: dict[str, str]) -> None:
    """Failures are annotations at the lines of their expectations, rows of the summary, and results of SARIF."""
    wrong_suite(tmp_path / "suite")
    (tmp_path / "elsewhere").mkdir()
    ended = program(
        "test", "../suite", "--root", "..", "--sarif", "t.sarif", *ONCE, launcher=["env", "-C", "elsewhere"], env=job
    )
    assert ended.code == 1
    first, second = sorted(annotations(ended.err))
    assert first == (
        "::error file=suite/100 %25%2C a%3Ab|c/wrong.check.json,line=3,title=Fail suite/100 %25%2C a%3Ab|c/wrong.json"
        "::x: 1 of 4 elements (25 %25) is wrong at [3]: 6 (0x00000006), expected 7 (0x00000007)"
    )
    assert second == (
        "::error file=suite/good.check.json,line=3,title=Fail suite/good.json"
        "::the run ended without an error, expected the exit code 4"
    )
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("### scenario-runner test\n\n| | place | finding |\n|---|---|---|\n| error | suite/")
    assert "| error | suite/100 &#37;, a:b&#124;c/wrong.check.json:3 | **Fail suite/100 &#37;" in summary
    assert summary.endswith("|\n\nsuite failed: 2 of 2 items unexpected\n")
    log = json.loads((tmp_path / "elsewhere" / "t.sarif").read_text())
    places = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    assert sorted((place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places) == [
        ("suite/100%20%25%2C%20a%3Ab%7Cc/wrong.check.json", 3),
        ("suite/good.check.json", 3),
    ]
    assert {result["ruleId"] for result in log["runs"][0]["results"]} == {"SR-ITEM-001"}
    assert log["runs"][0]["tool"]["driver"]["rules"][0]["shortDescription"]["text"] == "unexpected result"


def test_items_of_parameters(tmp_path: Path, program: Program, job: dict[str, str]) -> None:
    """Items of one file that fail alike at one line are findings each."""
    output = {"x": {"dtype": "${type}", "values": [0, 2, 4, 7]}}
    item(tmp_path / "suite", "wrong", {"parameters": {"type": ["int32", "uint32"]}, "outputs": output})
    ended = program("test", "suite", *ONCE, env=job)
    titles = [re.findall("title=(.*?)::", line) for line in annotations(ended.err)]
    assert sorted(titles) == [["Fail suite/wrong.json[int32]"], ["Fail suite/wrong.json[uint32]"]]


def test_only_in_jobs(tmp_path: Path, program: Program, job: dict[str, str]) -> None:
    """Outside of a job, and with --no-github, nothing is annotated; --github annotates anywhere."""
    (tmp_path / "a.json").write_text("[")
    (tmp_path / ".git").mkdir()
    assert annotations(program("validate", "a.json").err) == []
    assert annotations(program("validate", "a.json", "--no-github", env=job).err) == []
    assert not (tmp_path / "summary.md").exists()
    (line,) = annotations(program("validate", "a.json", "--github").err)
    assert line.startswith("::error file=a.json,line=1,col=2,title=SR-JSON-001 the text is not JSON::the file ends")


@pytest.mark.parametrize("count, last", [(10, "::error file="), (12, "::error::and 3 more: see the log")])
def test_more_than_github_shows(tmp_path: Path, program: Program, job: dict[str, str], count: int, last: str) -> None:
    """GitHub shows ten annotations of a kind: the tenth counts the others. JSON on standard output stays JSON."""
    (tmp_path / "a.json").write_text(json.dumps({"resources": [1] * count, "commands": []}))
    ended = program("validate", "--format", "json", "a.json", env=job)
    assert json.loads(ended.out)["files"][0]["counts"]["error"] == count
    lines = annotations(ended.err)
    assert len(lines) == 10
    assert lines[-1].startswith(last)
    assert (tmp_path / "summary.md").read_text().count("| error |") == count


def test_a_full_summary(tmp_path: Path, program: Program, job: dict[str, str]) -> None:
    """The summary keeps the text of other commands, stays below GitHub's limit and counts the rows left out."""
    (tmp_path / "a.json").write_text('{"resources": 1, "commands": 1}')
    (tmp_path / "summary.md").write_text("x" * (LIMIT - 4296))
    assert len(annotations(program("validate", "a.json", env=job).err)) == 2
    summary = (tmp_path / "summary.md").read_text()
    assert summary[LIMIT - 4296 :].count("| error |") == 1
    assert summary.endswith("|\n\nand 1 more\n\n0 of 1 file valid\n")
    assert len(summary.encode()) < LIMIT


@pytest.mark.parametrize(
    "name, reason", [(".", "is a directory"), ("a.json/b", "not a directory"), ("/dev/full", "no")]
)
def test_an_unusable_summary(tmp_path: Path, program: Program, job: dict[str, str], name: str, reason: str) -> None:
    """A summary that cannot be written is one warning; the annotations and the exit code are the same."""
    (tmp_path / "a.json").write_text('{"resources": 1, "commands": 1}')
    ended = program("validate", "a.json", env={**job, "GITHUB_STEP_SUMMARY": name})
    assert (ended.code, len(annotations(ended.err))) == (3, 2)
    assert ended.err.count("GITHUB_STEP_SUMMARY") == 1
    assert f"warning: GITHUB_STEP_SUMMARY: {name}: cannot be written: {reason}" in ended.err


def test_a_run_with_a_crash(
    tmp_path: Path, scene: Scene, program: Program, job: dict[str, str], device_name: str
) -> None:
    """Each scenario that fails is annotated, also those before and after a crash of the driver."""
    scene.shader("s", crash_shader(device_name)).resource("buffer", uid="x", src={"values": [1] * 4, "dtype": "uint32"})
    scene.resources[-1]["buffer"]["shader_access"] = "readwrite"
    scene.dispatch("s", ["x"]).write("crash.json")
    ended = program("missing.json", "crash.json", "gone.json", env=job, exit_code=4)
    titles = [re.search("file=(.*?)[,:].*title=(SR-[A-Z]*)", line) for line in annotations(ended.err)]
    assert [match and match.groups() for match in titles] == [
        ("missing.json", "SR-FILE"),
        ("crash.json", "SR-DEVICE"),
        ("gone.json", "SR-FILE"),
    ]
    summary = (tmp_path / "summary.md").read_text()
    assert re.findall(r"^\| error \| (\w+\.json)", summary, re.M) == ["missing.json", "crash.json", "gone.json"]
    assert summary.endswith("\n3 scenarios: failed with exit code 4\n")


def test_errors_of_the_command_line(program: Program, job: dict[str, str]) -> None:
    """An error that has no file is an annotation without one."""
    (line,) = annotations(program("run", env=job).err)
    message = "no scenario file was given%0Ahelp: scenario-runner test.json, or scenario-runner --help for all commands"
    assert line == f"::error title=SR-USAGE-001 invalid command line or call::{message}"


def test_sarif_destinations(tmp_path: Path, program: Program) -> None:
    """--sarif makes missing folders. A path that cannot be written, or names a scenario, ends the command before its
    work."""
    text = '{"resources": [], "commands": []}'
    (tmp_path / "a.json").write_text(text)
    assert program("validate", "a.json", "--sarif", "new/v.sarif").code == 0
    assert json.loads((tmp_path / "new" / "v.sarif").read_text())["runs"][0]["results"] == []
    ended = program.fail(2, "validate", "a.json", "--sarif", "./a.json")
    assert ended.err.startswith("error: --sarif: ./a.json is a scenario")
    for command in ("validate", "test"):
        ended = program.fail(4, command, "a.json", "--sarif", "a.json/v.sarif")
        assert ended.err.startswith("error: a.json/v.sarif: cannot be created: ")
    assert (tmp_path / "a.json").read_text() == text


def test_sarif_of_journals(tmp_path: Path, program: Program) -> None:
    """report writes the same SARIF as test, names missing results, and accepts codes of other versions."""
    (tmp_path / "a.json").write_text('{"commands": [')
    assert program("test", "a.json", "--results", "r", "--sarif", "t.sarif", *ONCE).code == 1
    assert program("report", "r", "--sarif", "r.sarif").code == 1
    assert (tmp_path / "r.sarif").read_text() == (tmp_path / "t.sarif").read_text()
    journal = tmp_path / "r" / "journal.jsonl"
    lines = journal.read_text().replace("SR-JSON-001", "SR-JSON-999").splitlines()
    journal.write_text("\n".join(lines[:-1]) + "\n")  # as if it had been killed
    assert program("report", "r", "--sarif", "r.sarif").code == 1
    (run,) = json.loads((tmp_path / "r.sarif").read_text())["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["SR-JSON-999"]
    assert run["invocations"][0]["executionSuccessful"] is False


def action() -> dict[str, Any]:
    text = (CHECKOUT / "tools/ci/action.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)  # type: ignore[no-any-return]


def test_the_action_is_one(tmp_path: Path) -> None:
    """The action is composite, describes its inputs, and uses only steps of its own file."""
    content = action()
    assert content["runs"]["using"] == "composite"
    assert all(value["description"] for value in (*content["inputs"].values(), *content["outputs"].values()))
    steps = content["runs"]["steps"]
    assert all(step.get("shell") == "bash" for step in steps if "run" in step)
    text = (CHECKOUT / "tools/ci/action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(content["inputs"])
    assert set(re.findall(r"steps\.([\w-]+)", text)) == {step["id"] for step in steps if "id" in step}
    for step in steps:
        checked = subprocess.run(["bash", "-n"], input=step.get("run", ""), text=True, capture_output=True)
        assert checked.returncode == 0, checked.stderr


def test_the_action_runs_the_suite(tmp_path: Path, shader_cache: Path, job: dict[str, str]) -> None:
    """The step runs the arguments, quoted as in a shell, and keeps exit code and reports."""
    wrong_suite(tmp_path / "a suite")
    program = f'#!/bin/sh\nexec "{sys.executable}" -m scenario_runner "$@"\n'  # without the set-up of a checkout
    executable(tmp_path / "tools" / "run", program)
    (step,) = (step for step in action()["runs"]["steps"] if step.get("id") == "run")
    inputs = {"ROOT": str(tmp_path), "ARGUMENTS": f"'a suite' -t good {' '.join(ONCE)}", "RESULTS": "my results"}
    assert inputs.keys() == step["env"].keys()
    environment = {**os.environ, **job, **inputs, "GITHUB_OUTPUT": str(tmp_path / "output")}
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "suite failed: 1 of 1 item unexpected")
    results = tmp_path / "my results"
    assert (tmp_path / "output").read_text() == f"results={results}\n"
    assert {"journal.jsonl", "report.html", "junit.xml", "findings.sarif"} <= {path.name for path in results.iterdir()}


def test_names_that_look_like_commands(tmp_path: Path, program: Program, job: dict[str, str]) -> None:
    """A name gives GitHub no command, and a list that --list printed finds its items again."""
    for name in ("::error::x", "##[error]y"):
        item(tmp_path, name, {"exit_code": 0})
    listed = program("test", ".", "--list", env=job).out
    assert sorted(listed.splitlines()) == ["./##[error]y.json".replace("##[", r"#\x23["), "./::error::x.json"]
    plain = program("test", ".", "--list").out
    assert sorted(plain.splitlines()) == ["./##[error]y.json", "./::error::x.json"]
    assert program("test", "-", "--list", stdin=plain).out == plain
    for arguments in (["::error::x.json"], ["validate", "::error::x.json"], ["test", ".", "--update"]):
        ended = program(*arguments, env=job, exit_code=0)
        assert not re.search(r"^\s*::|##\[", ended.out, re.M), ended.out
    assert program("validate", "::error::x.json").out.startswith("::error::x.json: valid: ")
