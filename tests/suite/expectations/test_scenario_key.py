"""The key ``expect`` of a scenario: a run does not look at it, and it means the same as a file."""

import json
from pathlib import Path

import pytest

from scenario_runner import Scenario, from_dict
from scenario_runner.errors import ExpectationError, ScenarioError
from scenario_runner.scenario import load, loads
from scenario_runner.suite.discovery import expectations_file
from scenario_runner.suite.expectations import reading
from scenario_runner.suite.outcomes import Item
from tests.scenes import Scene, error_of


def with_key(scene: Scene, expect: object) -> Path:
    path = scene.write()
    tree = json.loads(path.read_text())
    path.write_text(json.dumps({**tree, "expect": expect}, indent=1))
    return path


def test_a_scenario_may_have_it(scene: Scene) -> None:
    """The key expect is no part of the scenario, in files and in code."""
    plain = load(scene.write())
    path = with_key(scene, {"repeat": 3, "anything": None})
    assert load(path) == plain
    assert load(path).warnings == ()
    assert from_dict(json.loads(path.read_text())) == Scenario()


def test_it_must_be_an_object() -> None:
    """Anything else is an error of the scenario, with its place."""
    with pytest.raises(ScenarioError, match="<text>:1:51: /expect: expected an object, got 3"):
        loads('{ "resources": [], "commands": [], "expect":      3 }')


def test_a_misspelt_key_is_an_error() -> None:
    """A key close to expect is an error."""
    with pytest.raises(ScenarioError, match=r"unknown key 'expects' \(did you mean 'expect'\?\)"):
        loads('{ "resources": [], "commands": [], "expects": {} }')


def test_it_means_the_same_as_a_file(scene: Scene) -> None:
    """The key means the same as a file."""
    given = {"repeat": 2, "outputs": {"x": {"values": [1, 2], "dtype": "float32"}}}
    inside = reading.load(Item("i", str(with_key(scene, given))))
    path = scene.write()
    scene.file("check.json", json.dumps(given))
    beside = reading.load(Item("i", str(path), expectations_file(str(path))))
    assert inside.check == beside.check
    assert (inside.pointer, inside.path) == ("/expect", str(path))
    assert beside.path == str(scene.folder / "check.json")


def test_problems_have_their_place_in_the_scenario(scene: Scene) -> None:
    """Line, column and pointer lead into the scenario."""
    path = with_key(scene, {"outputs": {"x": {"atoll": 1}}})
    (problem,) = error_of(ExpectationError, reading.load, Item("i", str(path))).problems
    assert str(problem) == f"{path}:7:5: /expect/outputs/x/atoll: unknown key 'atoll' (did you mean 'atol'?)"
    assert problem.code == "SR-EXPECT-002"


def test_a_file_beside_it_is_a_contradiction(scene: Scene) -> None:
    """A scenario has its expectations in one place."""
    path = str(with_key(scene, {}))
    scene.file("check.json", "{}")
    with pytest.raises(ExpectationError, match="other expectations under the key 'expect'") as caught:
        reading.load(Item("i", path, expectations_file(path)))
    assert caught.value.problems[0].code == "SR-EXPECT-006"
