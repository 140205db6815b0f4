"""The demo suite shows each verdict, with real crashes, hangs and flakes."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from scenario_runner import Runner
from scenarios.generate import HERE
from tests.program import Program

DEMO = HERE / "suite_demo"
VERDICTS = {
    "pass": "Pass",
    "warn": "Warn",
    "fail": "Fail",
    "not_supported": "NotSupported",
    "crash": "Crash",
    "timeout": "Timeout",
    "flake": "Flake",
    "known_flake": "KnownFlake",
    "expected_fail": "ExpectedFail",
    "improved": "UnexpectedImprovement(Pass)",
    "skip": "Skip",
    "missing": "Missing",
}


def test_each_verdict(tmp_path: Path, shader_cache: Path) -> None:
    """Each scenario of the demo has the verdict of the README, in the page too: a crash with its signal, a failure
    with pictures, and an unsupported item with its extension."""
    with Runner() as runner:
        if runner.physical_device.type != "cpu":
            pytest.skip("what a GPU makes of a wild address is up to its driver")
    runner_command = f"{sys.executable} -m scenario_runner"
    environment = {**os.environ, "SCENARIO_RUNNER": runner_command}
    done = subprocess.run([DEMO / "report.sh", tmp_path], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.stdout, done.stderr)
    verdicts: dict[str, str] = {}
    for part in ("suite", "flake"):
        with open(tmp_path / part / "results.csv", newline="") as file:
            verdicts.update((Path(name).stem, verdict) for name, verdict, _ in csv.reader(file))
    # results.csv has deqp-runner's words
    assert verdicts == {**VERDICTS, "not_supported": "Skip"}
    page = (tmp_path / "report.html").read_text()
    assert all(f"scenarios/suite_demo/{name}.json" in page for name in VERDICTS)
    readme = (DEMO / "README.md").read_text()
    for name, verdict in VERDICTS.items():
        assert f"| `{name}` | {verdict} |" in readme
    with open(tmp_path / "suite" / "journal.jsonl") as file:
        lines = [line for line in map(json.loads, file) if "item" in line]
    attempts = {Path(line["item"]["id"]).stem: line["attempts"] for line in lines if "attempts" in line}
    crash = attempts["crash"][-1]
    assert "SIGSEGV" in crash["reason"]
    assert "execute.py" in crash["python_stack"]
    (picture,) = attempts["fail"][-1]["outputs"]
    assert all((tmp_path / "suite" / picture["files"][name]).is_file() for name in ("expected", "actual", "error"))
    (not_supported,) = attempts["not_supported"]
    assert not_supported["status"] == "NotSupported"
    assert "VK_AMDX_dense_geometry_format" in not_supported["reason"]
    assert len(attempts["timeout"]) == 2


def test_the_expected_picture() -> None:
    """The expected ring of `fail` equals NumPy's."""
    y, x = numpy.mgrid[0:64, 0:64]
    picture = numpy.zeros((1, 64, 64, 4), numpy.uint8)
    picture[..., 3] = 255
    picture[0][numpy.abs(numpy.hypot(x - 32.0, y - 32.0) - 20) < 6] = (51, 153, 255, 255)
    numpy.testing.assert_array_equal(numpy.load(DEMO / "fail.expected" / "picture.npy"), picture)


def test_the_other_scenarios_do_not_include_it(program: Program) -> None:
    """The search of scenarios/ leaves the demo out; naming its folder does not."""
    assert "suite_demo" not in program("test", HERE, "--list").out
    assert program("test", DEMO, "--list").out.count(".json\n") == len(VERDICTS)
