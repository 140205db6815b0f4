"""The command that ``scenario-runner test`` and ``report`` give for a result runs the item in the same way."""

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scenario_runner.cli.arguments import parse
from scenario_runner.cli.test import settle
from scenario_runner.suite.outcomes import Item, Outcome, Result
from scenario_runner.suite.reports.summary import Repeat
from tests.cli.test_test_command import doubled, item
from tests.program import Program

EXPECTED = doubled(0, 2, 4, 6)


def commands_of(folder: Path) -> list[dict[str, str]]:
    """Those of the reports j.xml, j.json and j.html by the names of items."""
    junit = {}
    for case in ElementTree.parse(folder / "j.xml").iter("testcase"):
        texts = [each.text or "" for each in case.iter() if each.tag in ("failure", "error", "system-out")]
        found = re.search(r"^repeat: (.*)$", "\n".join(texts), re.M)
        if found:
            junit[str(case.get("name"))] = found[1]
    tests = json.loads((folder / "j.json").read_text())["results"]["tests"]
    ctrf = {test["name"]: test["extra"]["command"] for test in tests if "extra" in test}
    page = re.search(r'id="data">(.*?)</script>', (folder / "j.html").read_text(), re.S)
    assert page is not None
    data = json.loads(page[1])
    html = {row[0]: row[6] or f"{data['command']} {row[0]}" for row in data["rows"]}
    return [junit, ctrf, html]


def test_a_result_comes_again(tmp_path: Path, program: Program) -> None:
    """Each verdict depends on an option that was given to the suite: the command has it, in words for a shell."""
    suite = tmp_path / "it's a suite"
    for name in ("improved", "known", "flaky"):
        item(suite, name, EXPECTED if name == "improved" else {"outputs": {"x": {"dtype": "uint32", "values": 7}}})
    item(suite, "slow", {"repeat": 10_000_000, "outputs": {"x": {"unchecked": True}}})
    item(suite, "outside", {"outputs": {"x": {"unchecked": True}}})
    (suite / "outside.json").write_text((suite / "outside.json").read_text().replace("x.npy", "../x.npy"))
    (tmp_path / "x.npy").write_bytes((suite / "x.npy").read_bytes())
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "base line").write_text("improved.json,Crash\nknown.json,Fail\n")
    (lists / "flakes").write_text("^flaky\n")
    reports = ("--junit", "j.xml", "--json", "j.json", "--html", "j.html")
    options = ("--root", suite, "--baseline", "lists/base line", "--flakes", "lists/flakes", "--retries", "0")
    ended = program(
        "test", suite, *options, "--devices", "0", "--timeout", "1.5", "--sandbox", "--results", "r", *reports
    )
    assert ended.code == 1
    verdicts = {
        "improved.json": "UnexpectedImprovement(Pass)",
        "known.json": "ExpectedFail",
        "flaky.json": "KnownFlake",
        "slow.json": "Timeout",
        "outside.json": "Fail",
    }
    written = commands_of(tmp_path)
    assert written[2].keys() == verdicts.keys()
    assert all(each.items() <= written[2].items() for each in written)
    assert written[0].keys() == written[1].keys() == verdicts.keys()
    program("report", "r", *reports)
    assert commands_of(tmp_path) == written
    for name, command in written[2].items():
        if not verdicts[name].startswith(("Expected", "Known")):  # those are no failures
            assert f"\n  {command}\n" in ended.out
        words = shlex.split(command)
        assert words[:2] == ["scenario-runner", "test"]
        again = program(*words[1:], "--verbose")
        assert re.search(rf"^{re.escape(verdicts[name])} (.*/)?{name}", again.out, re.M), command


@pytest.mark.parametrize(
    "repeat, device, host, words",
    [
        (Repeat(), "uuid", "", ""),
        (Repeat(devices=("fast device",)), "uuid", "", "'--device=fast device' "),
        (Repeat(devices=("all",)), "uuid", "", "--device=uuid "),
        (Repeat(devices=("0", "1")), "", "", "--devices=0,1 "),
        (Repeat(devices=("all",)), "uuid", "other", ""),
        (Repeat(("--timeout=3",), (("--root", "/suite"),)), "", "", "--timeout=3 --root=/suite "),
    ],
)
def test_devices(repeat: Repeat, device: str, host: str, words: str) -> None:
    """Of several devices the one that the item ran on is named, where it is here; a path is never an option."""
    result = Result(Item("a", "/here/-a"), "Fail", (Outcome("Fail"),), device, host=host)
    assert repeat.command(result, "/here") == f"scenario-runner test {words}./-a"


def test_a_compiler_is_found_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path is absolute in the command; a name stays, which is searched for on PATH."""
    monkeypatch.chdir(tmp_path)
    for path, word in (("bin/glslang", f"--glslang={tmp_path}/bin/glslang"), ("glslang", "--glslang=glslang")):
        options = parse(["test", "--glslang", path, "a"])
        settle(options)
        assert options.repeating.options == (word,)
