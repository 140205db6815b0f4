"""--strict: warnings about a scenario are errors, and nothing is run or written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, ScenarioRunnerError, ShaderError
from scenario_runner.validation import Options, validate_file
from tests.program import Program
from tests.scenes import Scene, glsl

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[4]; };"


def small_buffer(scene: Scene) -> None:
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=8, dst="x.npy").dispatch("s", ["x"])


def unknown_constant(scene: Scene) -> None:
    scene.shader("s", glsl("data[0] = 1;", DATA), specialization_constants=[{"id": 3, "value": 1}])
    scene.buffer("x", size=16, dst="x.npy").dispatch("s", ["x"])


def readonly_write(scene: Scene) -> None:
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16, shader_access="readonly", dst="x.npy")
    scene.dispatch("s", ["x"])


def ignored_key(scene: Scene) -> None:
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16, dst="x.npy", format="VK_FORMAT_R8_UINT")
    scene.dispatch("s", ["x"])


CASES = [
    (small_buffer, "SR-BIND-005", ScenarioError),
    (unknown_constant, "SR-SPEC-001", ShaderError),
    (readonly_write, "SR-ACCESS-001", ScenarioError),
    (ignored_key, "SR-JSON-010", ScenarioError),
]


@pytest.mark.parametrize("build, code, kind", CASES)
def test_a_warning_ends_the_run(
    scene: Scene, program: Program, build: object, code: str, kind: type[ScenarioRunnerError]
) -> None:
    """Without --strict the scenario runs; with it validate, run and Runner give the same error and write nothing."""
    assert callable(build)
    build(scene)
    path = scene.write()
    assert program("scenario.json").code == 0
    output = scene.folder / "x.npy"
    assert output.exists()
    output.unlink()
    for words in (["validate", "--strict"], ["run", "--strict"], ["--strict"]):
        ended = program(*words, "scenario.json")
        assert ended.code == kind.exit_code
        assert ended.err.startswith("error: ")
        assert "warning" not in ended.err
    validation = validate_file(path, Options(strict=True))
    assert [(each.code, each.severity) for each in validation.findings] == [(code, "error")]
    with Runner(strict=True) as runner:
        for run in (runner.run, runner.run_to_files):
            with pytest.raises(kind) as caught:
                run(path)
            (problem,) = caught.value.problems
            assert (problem.code, problem.severity, problem.path) == (code, "error", str(path))
            assert problem.line
    assert not output.exists()


def test_a_clean_scenario_is_run(scene: Scene, program: Program) -> None:
    """A scenario without warnings runs with --strict as without it."""
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16, dst="x.npy").dispatch("s", ["x"])
    scene.write()
    assert program("--strict", "scenario.json").code == 0
    assert numpy.load(scene.folder / "x.npy").view("u4").tolist() == [1, 0, 0, 0]
    ended = program("validate", "--strict", "scenario.json")
    assert (ended.code, ended.err) == (0, "")


def test_other_files_go_on(scene: Scene, program: Program, tmp_path: Path) -> None:
    """A scenario that --strict refuses does not keep the next one from running."""
    ignored_key(scene)
    scene.write()
    (tmp_path / "empty.json").write_text(json.dumps({"resources": [], "commands": []}))
    ended = program("--strict", "scenario.json", "empty.json")
    assert ended.code == ScenarioError.exit_code
    assert "empty.json: ok" in ended.out


def test_missing_barriers_count(scene: Scene, program: Program) -> None:
    """With --hazards a missing barrier is an error as well."""
    scene.shader("s", glsl("data[0] += 1;", DATA)).buffer("x", size=16)
    scene.dispatch("s", ["x"], implicit_barrier=False).dispatch("s", ["x"])
    scene.write()
    assert program("validate", "--hazards", "scenario.json").code == 0
    ended = program("validate", "--hazards", "--strict", "scenario.json")
    assert ended.code == ScenarioError.exit_code
    assert "[SR-HAZARD-001]" in ended.err
