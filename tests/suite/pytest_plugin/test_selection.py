"""Which scenarios become tests, and that pytest's own ways to choose work on them."""

import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.program import Ended
from tests.suite.pytest_plugin.conftest import PLUGIN, RunPytest, outcomes, write_scenario
from tests.suite.test_parameters import IDS
from tests.suite.test_parameters import write as write_parameters

RunSeveral = Callable[[list[list[str]]], list[Ended]]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Three scenarios in folders, one failing, and a file that is no scenario."""
    write_scenario(tmp_path / "images" / "2d array" / "flat" / "scenario.json")
    write_scenario(tmp_path / "images" / "cube" / "scenario.json", expected=[0, 0, 0, 1])
    write_scenario(tmp_path / "ml" / "add.json")
    (tmp_path / "ml" / "settings.json").write_text("[1]")
    return tmp_path


def collected(run_several: RunSeveral, choices: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], list[str]]:
    """The names of the tests that each choice collects."""
    runs = run_several([["--scenarios", "--collect-only", "-q", *choice] for choice in choices])
    names = ([line.split("::")[1] for line in ended.out.splitlines() if "::" in line] for ended in runs)
    return dict(zip(choices, names, strict=True))


def test_choices(run_several: RunSeveral, suite: Path) -> None:
    """-k takes names of folders and files, -m their marks, and node ids name one."""
    choices = {
        (): ["flat", "cube", "add"],
        ("-k", "images and not cube"): ["flat"],
        ("-m", "scenario and not images"): ["add"],
        ("-m", "2d_array or ml"): ["flat", "add"],
        ("images/cube/scenario.json",): ["cube"],
        ("ml/add.json::add",): ["add"],
    }
    assert collected(run_several, choices) == choices


def test_folders_that_are_not_searched(run_several: RunSeveral, suite: Path) -> None:
    """Scenarios below a folder with .not-searched are tests if the path is named. Python tests are not affected."""
    (suite / "images" / ".not-searched").touch()
    (suite / "images" / "test_python.py").write_text("def test_python(): pass\n")
    choices = {
        (): ["test_python", "add"],
        (".",): ["test_python", "add"],
        ("images",): ["flat", "cube", "test_python"],
        ("images/cube", "ml"): ["cube", "add"],
        ("images/cube/scenario.json",): ["cube"],
    }
    assert collected(run_several, choices) == choices


def test_xdist_and_last_failed(run_pytest: RunPytest, suite: Path) -> None:
    """Two processes of xdist run the scenarios, each with its workers, and --lf repeats the failures."""
    ended = run_pytest("--scenarios", "-rA", "-n", "2")
    expected = {
        "images/2d array/flat/scenario.json::flat": "PASSED",
        "images/cube/scenario.json::cube": "FAILED",
        "ml/add.json::add": "PASSED",
    }
    assert outcomes(ended.out) == expected, ended.out
    assert "Fail images/cube/scenario.json: data: 1 of 4 elements" in ended.out
    ended = run_pytest("--scenarios", "-rA", "--lf")
    assert outcomes(ended.out) == {"images/cube/scenario.json::cube": "FAILED"}, ended.out


def test_wrong_options_end_pytest_before_anything_runs(run_several: RunSeveral, suite: Path) -> None:
    """A list or an option that cannot be used is a usage error, in one line."""
    (suite / "list.txt").write_text("(\n")
    messages = {
        "scenario_baseline=list.txt": "list.txt:1: the status is missing",
        "scenario_skips=list.txt": "list.txt:1: '(' is not a regular expression",
        "scenario_flakes=none.txt": "none.txt: the list does not exist",
        "scenario_timeout=-1": "scenario_timeout is '-1', expected seconds above 0",
    }
    runs = run_several([["--scenarios", "-o", option] for option in messages])
    for ended, message in zip(runs, messages.values(), strict=True):
        assert ended.code == pytest.ExitCode.USAGE_ERROR
        assert message in ended.err
        assert "Traceback" not in ended.err


def test_a_device_that_is_not_there_fails_each_test(run_pytest: RunPytest, suite: Path) -> None:
    """The error says which devices there are, without a traceback."""
    ended = run_pytest("--scenarios", "--scenario-device", "no such device", "ml")
    assert ended.code == pytest.ExitCode.TESTS_FAILED
    assert "no such device" in ended.out
    assert "Traceback" not in ended.out


def test_the_plugin_is_installed_and_light(checkout: Path) -> None:
    """The package names the plugin, and loading it imports nothing that costs time."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"scenario-runner": PLUGIN}
    probe = f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; print(*set(sys.modules) - before)"
    command = [sys.executable, "-c", probe]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=60, check=True)
    assert {each for each in done.stdout.split() if not each.startswith("scenario_runner")} == set()
    assert {each for each in done.stdout.split() if each.count(".") > 1} == {PLUGIN}


def test_models_and_parameters(run_several: RunSeveral, tmp_path: Path) -> None:
    """A model with expectations is a test, one that is named too; a suite.json and a model that a scenario uses not. A
    name has the values of parameters in brackets."""
    write_parameters(tmp_path / "x")
    for name in ("net.vgf", "net.expected/y.npy", "used.vgf", "used.json", "suite.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    choices: dict[tuple[str, ...], list[str]] = {
        (): ["net", *(f"a{id}" for id in IDS)],
        ("used.vgf",): ["used"],
    }
    assert collected(run_several, choices) == choices
