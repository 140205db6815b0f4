"""The fixture for tests written in Python."""

from pathlib import Path

from tests.suite.pytest_plugin.conftest import RunPytest, outcomes

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
    """Runs and comparisons share one device; what differs is shown; what the device lacks skips the test."""
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
