"""Kept plans of scenarios with drawings: the same plan again, and none where a shader changed."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.plan.plan_cache import PlanCache
from tests.gpu.fragment_scenes import WHOLE, draw, fragment, output, target, vertex
from tests.scenes import Scene, assemble, kernel

FIVE = kernel("""
    OpEntryPoint Fragment %main "main" %color
    OpExecutionMode %main OriginUpperLeft
    OpDecorate %color Location 0
    %pointer = OpTypePointer Output %uint
    %color = OpVariable %pointer Output
    %value = OpConstant %uint 5
    main:
    OpStore %color %value
""")


@pytest.fixture
def path(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two drawings with fragment shaders in GLSL and SPIR-V, and push constants."""
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(tmp_path / "cache"))
    vertex(scene)
    pushed = "layout(push_constant) uniform P { uint n; };\n"
    fragment(scene, "color = n;", pushed + output("uint"), push_constants_size=4)
    scene.module("five", assemble(FIVE), stage="fragment")
    scene.raw_data("d", numpy.array([3], "u4"))
    target(scene, "x", size=(4, 4), dst="x.out.npy")
    target(scene, "y", size=(4, 4), dst="y.out.npy")
    draw(scene, ["x"], push_data_ref="d")
    draw(scene, ["y"], fragment_shader_ref="five")
    return scene.write()


def outcome(path: Path) -> list[int]:
    """What a run for files leaves in each image, of one value everywhere."""
    with Runner() as runner:
        runner.run_to_files(path)
    arrays = [numpy.load(path.parent / f"{uid}.out.npy") for uid in ("x", "y")]
    assert all((array == array.flat[0]).all() for array in arrays)
    return [int(array.flat[0]) for array in arrays]


def test_the_plan_is_kept(path: Path) -> None:
    """The plan of the second run is that of the first."""
    assert outcome(path) == [3, 5]
    kept = PlanCache(str(path)).load()
    assert kept is not None
    with Runner() as runner:
        assert kept == runner.prepare(path).plan
    assert outcome(path) == [3, 5]


def test_changed_shaders_and_push_constants(path: Path) -> None:
    """What a kept plan draws with is read again: sources, modules and raw_data."""
    assert outcome(path) == [3, 5]
    numpy.save(path.parent / "d.npy", numpy.array([4], "u4"))
    assert outcome(path) == [4, 5]
    (path.parent / "five.spv").write_bytes(assemble(FIVE.replace("%uint 5", "%uint 6")))
    assert outcome(path) == [4, 6]
    text = (path.parent / "v.comp").read_text()
    assert WHOLE in text
    (path.parent / "v.comp").write_text(text.replace(WHOLE, "gl_Position = vec4(2, 2, 0, 1);"))  # draws nothing
    assert outcome(path) == [0, 0]
