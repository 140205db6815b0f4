"""``scenario-runner test`` on a machine without the tools that items need."""

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.test_test_command import doubled, item
from tests.program import Program, python_path
from tests.scenes import Scene


def test_a_machine_that_lacks_a_compiler(tmp_path: Path, program: Program) -> None:
    """Items without their compiler are MissingTool: no failures, yet the suite does not pass, and one sentence names
    the tool. A baseline of failures changes nothing, and --resume runs the items once the tool is there."""
    for name in ("a", "b", "c"):
        item(tmp_path / "suite", name, {"exit_code": 5} if name == "c" else doubled(0, 2, 4, 6))
    (tmp_path / "baseline.csv").write_text("suite/a.json,Fail\n")
    options = ("test", "suite", "--glslang", "no-such-compiler", "--baseline", "baseline.csv")
    ended = program(*options, "--results", "r", "--junit", "j.xml", "--json", "c.json", "--html", "h.html")
    assert (ended.code, ended.out.splitlines()[-1]) == (17, "suite incomplete: 0 of 3 items unexpected")
    assert ": 3 MissingTool\n" in ended.out
    lacking = (
        "3 items did not run, because this machine lacks a tool:"
        " shader 'double': the shader compiler 'no-such-compiler'"
    )
    sentence = f"error: {lacking} (named by --glslang) does not exist [SR-SUITE-016]"
    assert [line for line in ended.err.splitlines() if line.startswith("error: ")] == [sentence]
    assert ended.err.endswith("'scenario-runner doctor' shows all\n")
    cases = ElementTree.parse(tmp_path / "j.xml")
    assert [case.get("message", "")[:12] for case in cases.findall(".//testcase/skipped")] == ["MissingTool:"] * 3
    assert len(cases.findall(".//testcase/error")) == 1
    summary = json.loads((tmp_path / "c.json").read_text())["results"]["summary"]
    assert (summary["skipped"], summary["failed"]) == (3, 1)
    assert "MissingTool" in (tmp_path / "h.html").read_text()
    report = program("report", "r")
    assert (report.code, report.out.splitlines()[-1]) == (17, "suite incomplete: 0 of 3 items unexpected")
    assert report.err == ended.err
    journal = tmp_path / "r" / "journal.jsonl"  # edited: without what was missing
    journal.write_text(re.sub(r'"diagnostics":\[[^]]*\]', '"diagnostics":[]', journal.read_text()))
    assert program("report", "r").code == 17
    again = program("test", "suite", "-t", "[ab].json", "--results", "r", "--resume")
    assert (again.code, again.out.splitlines()[-1]) == (0, "suite passed: 2 items")


def test_a_machine_that_lacks_the_package_of_a_metric(tmp_path: Path, program: Program) -> None:
    """Items that need it are MissingTool, also for --update; all else that is wrong with them is an error."""
    scene = Scene(tmp_path / "suite")
    keys = {"dims": [1, 16, 16, 1], "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite", "dst": "i.png"}
    scene.resource("image", uid="i", **keys).write("a.json")
    check: dict[str, dict[str, object]] = {"i": {"values": 0, "metrics": {"flip": {"max": 0.1}}}}
    scene.file("a.check.json", json.dumps({"outputs": check}))
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['flip_evaluator'] = None\n")
    environment = {"PYTHONPATH": python_path(tmp_path)}
    sentence = "needs the package 'flip-evaluator', which is not installed"
    ended = program("test", "suite", env=environment)
    assert (ended.code, ended.out.splitlines()[-1]) == (17, "suite incomplete: 0 of 1 item unexpected")
    assert f"error: 1 item did not run, because this machine lacks a tool: {sentence} [SR-SUITE-016]" in ended.err
    updated = program("test", "suite", "--update", env=environment).out
    assert "no change: MissingTool: " in updated
    assert sentence in updated
    scene.file("a.check.json", json.dumps({"outputs": {"y": {}, **check}}))
    assert program("test", "suite", env=environment).code == 1


def test_a_strict_environment(tmp_path: Path, program: Program) -> None:
    """With --strict-environment the suite ends at the first item with a missing tool."""
    for name in "abcdefghijklmnop":
        item(tmp_path / "suite", name, doubled(0, 2, 4, 6))
    ended = program("test", "suite", "--glslang", "no-such-compiler", "--strict-environment", "--jobs", "1")
    assert ended.code == 17
    assert re.search(r"^suite stopped: 0 of [12] items? unexpected$", ended.out, re.M)


@pytest.mark.parametrize(
    "module, package, arguments",
    [
        ("vulkan", "vulkan", ["a.json"]),
        ("vulkan", "vulkan", ["run", "a.json", "b.json"]),
        ("vulkan", "vulkan", ["test", "a.json"]),
        ("_cffi_backend", "cffi", ["a.json"]),
        ("pydantic", "pydantic", ["validate", "a.json"]),
        ("shtab", "shtab", ["completion", "bash"]),
        ("yaml", "PyYAML", ["import", "offload", ".", "-o", "suite"]),
    ],
)
def test_a_python_package_is_missing(
    tmp_path: Path, program: Program, module: str, package: str, arguments: list[str]
) -> None:
    """The error names the package, and the command that installs it."""
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{module!r}] = None\n")
    (tmp_path / "a.json").write_text('{"commands": [], "resources": []}')
    ended = program.fail(6, *arguments, env={"PYTHONPATH": python_path(tmp_path)})
    assert ended.err == (
        f"error: the Python package {package!r} is not installed\n  help: {sys.executable} -m pip install {package}\n"
    )
