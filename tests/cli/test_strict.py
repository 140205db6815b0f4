"""--strict: warnings about a scenario are errors, and nothing is run or written."""

from typing import Any

import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, ScenarioRunnerError, ShaderError
from scenario_runner.validation import Options, validate_file
from tests.program import Program
from tests.scenes import Scene, glsl

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[4]; };"


STORE = glsl("data[0] = 1;", DATA)


def storing(scene: Scene, buffer: dict[str, Any] = {}, shader: dict[str, Any] = {}) -> Scene:  # noqa: B006
    """A shader that stores a number in a buffer, with other keys of either."""
    keys = {"size": 16, "dst": "x.npy", **buffer}
    return scene.shader("s", STORE, **shader).buffer("x", **keys).dispatch("s", ["x"])


@pytest.mark.parametrize(
    "buffer, shader, code, kind",
    [
        ({"size": 8}, {}, "SR-BIND-005", ScenarioError),
        ({}, {"specialization_constants": [{"id": 3, "value": 1}]}, "SR-SPEC-001", ShaderError),
        ({"shader_access": "readonly"}, {}, "SR-ACCESS-001", ScenarioError),
        ({"format": "VK_FORMAT_R8_UINT"}, {}, "SR-JSON-010", ScenarioError),
    ],
)
def test_a_warning_ends_the_run(
    scene: Scene,
    program: Program,
    buffer: dict[str, Any],
    shader: dict[str, Any],
    code: str,
    kind: type[ScenarioRunnerError],
) -> None:
    """Without --strict the scenario runs; with it validate, run and Runner give the same error and write nothing."""
    path = storing(scene, buffer, shader).write()
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


def test_missing_barriers_count(scene: Scene, program: Program) -> None:
    """With --hazards a missing barrier is an error as well."""
    scene.shader("s", glsl("data[0] += 1;", DATA)).buffer("x", size=16)
    scene.dispatch("s", ["x"], implicit_barrier=False).dispatch("s", ["x"])
    scene.write()
    assert program("validate", "--hazards", "scenario.json").code == 0
    ended = program("validate", "--hazards", "--strict", "scenario.json")
    assert ended.code == ScenarioError.exit_code
    assert "[SR-HAZARD-001]" in ended.err
