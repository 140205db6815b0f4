"""Outcomes of items under pytest, and the fixture of the plugin."""

import json
import re
import signal
from pathlib import Path
from xml.etree import ElementTree

from tests.scenes import glsl
from tests.suite.pytest_plugin.conftest import RunPytest, outcomes, write_scenario


def test_a_machine_that_lacks_a_tool(run_pytest: RunPytest, tmp_path: Path) -> None:
    """Scenarios without their tool are skipped, and pytest fails with one sentence, with workers of xdist too."""
    for name in ("a", "b"):
        write_scenario(tmp_path / f"{name}.json")
        scenario = json.loads((tmp_path / f"{name}.json").read_text())
        scenario["resources"].append({"shader": {"uid": "s", "src": "s.comp", "type": "GLSL"}})
        scenario["commands"].append({"dispatch_compute": {"shader_ref": "s", "rangeND": [1], "bindings": []}})
        (tmp_path / f"{name}.json").write_text(json.dumps(scenario))
    (tmp_path / "s.comp").write_text(glsl(""))
    for arguments in ((), ("-n", "1")):
        ended = run_pytest("--scenarios", *arguments, env={"SCENARIO_RUNNER_GLSLANG": "no-such-compiler"})
        assert ended.code == 17, ended.out
        assert ended.out.count("error: 2 scenarios did not run, because this machine lacks a tool: ") == 1
        assert "2 skipped" in ended.out


def test_each_verdict_has_its_outcome(run_pytest: RunPytest, tmp_path: Path) -> None:
    """Lists and expectations decide the outcome. A failure shows the difference and the command that repeats it."""
    folder = tmp_path / "suite"
    right, wrong = [0] * 4, [0, 1, 0, 2]
    for name, expected in (
        ("pass", right),
        ("improved", right),
        ("known", wrong),
        ("accepted", wrong),
        ("fail", wrong),
    ):
        write_scenario(folder / name / "scenario.json", expected=expected)
    write_scenario(folder / "fails.json", expected=wrong, expected_fail="a bug")
    write_scenario(folder / "mended.json", expected=right, expected_fail="a bug")
    write_scenario(folder / "skipped.json")
    write_scenario(folder / "unsupported.json", needs={"extensions": ["VK_TEST_that_no_device_has"]})
    write_scenario(folder / "missing.json", needs={"no_such_key": 1})
    write_scenario(folder / "warn.json", expected=[0, 0, 0, 1])
    text = (folder / "warn.json").read_text().replace('"dtype"', '"metrics": {"rmse": {"warn": 0.25}}, "dtype"')
    (folder / "warn.json").write_text(text)
    (folder / "other.json").write_text('{"no": "scenario"}')
    (tmp_path / "baseline.csv").write_text("suite/known/scenario.json,Fail\nsuite/improved/scenario.json,Crash\n")
    (tmp_path / "skips.txt").write_text("skipped\n")
    (tmp_path / "flakes.txt").write_text("acc.pted\n")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --strict-markers\nscenarios = true\nscenario_results = results\n"
        "scenario_baseline = baseline.csv\nscenario_skips = skips.txt\nscenario_flakes = flakes.txt\n"
    )
    ended = run_pytest("-rA", "--junitxml=junit.xml", "-o", "junit_family=xunit2")
    assert ended.code == 1, ended.out
    assert outcomes(ended.out) == {
        "suite/pass/scenario.json::pass": "PASSED",
        "suite/warn.json::warn": "PASSED",
        "suite/improved/scenario.json::improved": "FAILED",
        "suite/fail/scenario.json::fail": "FAILED",
        "suite/missing.json::missing": "FAILED",
        "suite/fails.json::fails": "XFAIL",
        "suite/mended.json::mended": "FAILED",
        "suite/known/scenario.json::known": "XFAIL",
        "suite/accepted/scenario.json::accepted": "XFAIL",
    }, ended.out
    assert "ScenarioWarning: Warn: data: rmse is 0.5" in ended.out
    assert "[XPASS(strict)] UnexpectedImprovement(Pass) suite/improved/scenario.json" in ended.out
    assert "SKIPPED [1] suite/skipped.json:1: scenario_skips names it\n" in ended.out
    unsupported = r"SKIPPED \[1\] suite/unsupported\.json:1: .* lacks the extension VK_TEST_that_no_device_has\n"
    assert re.search(unsupported, ended.out)
    assert "Fail suite/fail/scenario.json: data: 2 of 4 elements (50 %) are wrong" in ended.out
    assert "  [3]: expected 2 (0x02), got 0 (0x00)\n" in ended.out
    assert "repeat: scenario-runner test suite/fail/scenario.json\n" in ended.out
    assert "no_such_key" in ended.out
    assert "Traceback" not in ended.out + ended.err
    assert (tmp_path / "results" / "suite" / "fail").is_dir()
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()[0]
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "11", "failures": "4", "errors": "0", "skipped": "5"}
    case = next(each for each in suite.iter("testcase") if each.get("name") == "fail")
    assert "[3]: expected 2" in (case.findtext("failure") or "")
    assert {each.get("name") for each in case.iter("property")} == {"verdict", "device", "driver"}


def test_crashes(run_pytest: RunPytest, tmp_path: Path, fault_layer: dict[str, str]) -> None:
    """A scenario that crashes once runs again alone and passes, with a warning. A scenario that crashes each time
    fails, and -x stops pytest."""
    for name in "abcd":
        write_scenario(tmp_path / f"{name}.json")
    scenario = json.loads((tmp_path / "c.json").read_text())
    scenario["resources"].append({"buffer": {"uid": "second", "size": 4, "shader_access": "readwrite"}})
    (tmp_path / "c.json").write_text(json.dumps(scenario))
    crash = {**fault_layer, "FAULT_CALL": "vkCreateBuffer", "FAULT_AT": "2", "FAULT_SIGNAL": str(int(signal.SIGSEGV))}
    ended = run_pytest("--scenarios", "-rA", "-x", env=crash)
    assert ended.code == 1, ended.out
    assert outcomes(ended.out) == {"a.json::a": "PASSED", "b.json::b": "PASSED", "c.json::c": "FAILED"}
    assert "ScenarioFlakeWarning: Flake: the process was ended by SIGSEGV" in ended.out
    assert "the same process had run 1 item before, most recently:\n  a.json" in ended.out
    assert "Crash c.json: the process was ended by SIGSEGV" in ended.out
    assert "create_buffer" not in ended.out  # frames of this program


TESTS = """
import numpy

def scenario(**buffer):
    given = {"uid": "data", "size": 16, "shader_access": "readwrite", "dst": "out.npy", **buffer}
    return {"resources": [{"buffer": given}], "commands": []}

NUMBERS = numpy.float32([1, 2, 3, numpy.nan])

def test_run(scenario_runner):
    result = scenario_runner.run(scenario(), {"data": NUMBERS})
    assert result.array("data", "float32")[2] == 3

def test_check(scenario_runner):
    scenario_runner.check(scenario(), {"data": NUMBERS}, expected={"data": NUMBERS.reshape(2, 2)})
    scenario_runner.check(scenario(), {"data": NUMBERS}, expected={"data": NUMBERS + 0.125}, atol=0.125)

def test_wrong(scenario_runner):
    scenario_runner.check(scenario(), {"data": NUMBERS}, expected={"data": NUMBERS + 1}, rtol=0.1)

def test_size(scenario_runner):
    scenario_runner.check(scenario(), {"data": NUMBERS}, expected={"data": NUMBERS[:3]})

def test_no_file(scenario_runner, request):
    assert not (request.config.rootpath / "out.npy").exists()

def test_unsupported(scenario_runner):
    image = {"uid": "i", "dims": [1, 65536, 65536, 1], "format": "VK_FORMAT_R8_UNORM", "shader_access": "readonly"}
    scenario_runner.run({"resources": [{"image": image}], "commands": []})
"""


def test_scenarios_in_python_tests(run_pytest: RunPytest, tmp_path: Path) -> None:
    """Runs and comparisons share one device. A difference fails the test with its values, and a missing feature
    skips it. Without --scenarios, JSON files are no tests."""
    write_scenario(tmp_path / "a.json")
    (tmp_path / "test_scenarios.py").write_text(TESTS)
    ended = run_pytest("-rA")
    assert outcomes(ended.out) == {
        "test_scenarios.py::test_run": "PASSED",
        "test_scenarios.py::test_check": "PASSED",
        "test_scenarios.py::test_no_file": "PASSED",
        "test_scenarios.py::test_wrong": "FAILED",
        "test_scenarios.py::test_size": "FAILED",
    }, ended.out
    assert "output 'data'" in ended.out
    assert "3 of 4 elements (75 %) are wrong, the first one at [0]: got 1.0 (0x3f800000), expected 2.0" in ended.out
    assert "; the greatest error is 1; allowed: atol 0, rtol 0.1" in ended.out
    assert "'data' has 4 elements, expected 3" in ended.out
    assert "1 skipped" in ended.out
