"""Repeating the commands of a scenario."""

from __future__ import annotations

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UsageError
from tests.scenes import Scene, glsl

ADD = glsl(
    "uint i = gl_WorkGroupID.x; a[i] += b[i]; b[i] += 1u;",
    "layout(set = 0, binding = 0) buffer A { uint a[]; };\nlayout(set = 0, binding = 1) buffer B { uint b[]; };\n",
)


def accumulating(scene: Scene) -> Scene:
    scene.shader("add", ADD).buffer("sum", size=8).buffer("step", numpy.array([1, 10], numpy.uint32))
    return scene.dispatch("add", ["sum", "step"], [2])


def test_input_is_read_again(scene: Scene, runner: Runner) -> None:
    """Arrays given in code are inputs of every iteration as well."""
    result = runner.run(accumulating(scene).write(), {"sum": numpy.array([100, 200], numpy.uint32)}, repeat=3)
    assert result.array("sum", "u4").tolist() == [101, 210]


@pytest.mark.parametrize("repeat", [0, -1])
def test_at_least_once(scene: Scene, runner: Runner, repeat: int) -> None:
    """Fewer than one iteration is an error."""
    with pytest.raises(UsageError, match=f"scenario.json: repeat is {repeat}, expected 1 or more$"):
        runner.run(accumulating(scene).write(), repeat=repeat)


def test_dry_run(scene: Scene, runner: Runner) -> None:
    """A dry run checks everything, runs nothing and writes nothing."""
    result = runner.run(accumulating(scene).write(), dry_run=True)
    assert dict(result) == {}
    assert sorted(path.name for path in scene.folder.iterdir()) == ["add.comp", "scenario.json", "step.npy"]
