"""From a scenario to a plan, without a device."""

from pathlib import Path

import numpy
import pytest

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.plan.plan import Barrier
from scenario_runner.plan.records import Dispatch
from scenario_runner.plan.resolve import resolve
from scenario_runner.scenario import load
from tests.scenes import Scene, glsl

TWO = "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { uint b[]; };\n"


@pytest.fixture(autouse=True)
def _shader_cache(shader_cache: Path) -> None:
    """Shaders are kept for the session."""


def test_plan_of_a_scenario(scene: Scene) -> None:
    """Equal dispatches share a pipeline and descriptors; frames, captures, barriers and outputs follow the file."""
    scene.shader("s", glsl("b[0] = a[0];", TWO)).buffer("x", numpy.zeros(4, numpy.uint32), dst=None)
    scene.buffer("y", size=16).buffer("z", size=16, dst="/absolute/z.npy")
    scene.resource("memory_barrier", uid="m", src_access="memory_write", dst_access="memory_read")
    scene.dispatch("s", ["x", "y"], [4, 2]).dispatch("s", ["x", "y"], [7], implicit_barrier=False)
    scene.command("dispatch_barrier", memory_barrier_refs=["m"]).command("dispatch_barrier")
    scene.command("mark_boundary", resources=["y", "z", "y"], frame_id=9).dispatch("s", ["x", "z"])
    plan = resolve(load(scene.write()))
    assert len(plan.pipelines) == 1
    assert len(plan.descriptor_lists) == 2
    first, second = plan.frames
    assert [type(operation) for operation in first.operations] == [Dispatch, Dispatch, Barrier]
    dispatches = [operation for operation in first.operations if isinstance(operation, Dispatch)]
    assert [dispatch.workgroup_count for dispatch in dispatches] == [(4, 2, 1), (7, 1, 1)]
    assert [dispatch.barrier_after for dispatch in dispatches] == [True, False]
    assert (first.frame_id, first.boundary, first.captures) == (9, True, ("y", "z"))
    assert (second.boundary, second.captures, len(second.operations)) == (False, (), 1)
    assert [(output.uid, output.destination) for output in plan.outputs] == [
        ("y", str(scene.folder / "y.out.npy")),
        ("z", "/absolute/z.npy"),
    ]
    assert plan.dispatch_count == 3
    assert plan.resources["x"].source is not None
    assert plan.resources["y"].source is None


def test_everything_wrong_is_reported_together(scene: Scene) -> None:
    """Mistakes in files and sizes are one error with a problem each, in the order of the file, each with its place."""
    scene.buffer("x", numpy.zeros(3, numpy.uint32), size=16).buffer("y", size=16, src="missing.npy")
    scene.resource("raw_data", uid="p", src="also missing.npy").buffer("z", numpy.zeros(4, numpy.uint8))
    path = scene.write()
    with pytest.raises(ScenarioRunnerError) as caught:
        resolve(load(path))
    pointers = [problem.pointer for problem in caught.value.problems]
    assert pointers == ["/resources/0/buffer/size", "/resources/1/buffer/src", "/resources/2/raw_data/src"]
    assert all(problem.path == str(path) and problem.line for problem in caught.value.problems)
    assert caught.value.exit_code == 4


def test_mistakes_of_dispatches_are_reported_together(scene: Scene) -> None:
    """Mistakes in several commands and shaders are one error."""
    push = "layout(push_constant) uniform P { uvec2 n; } p;\n"
    scene.shader("s", glsl("b[0] = a[0];", TWO)).shader("t", glsl("b[0] = p.n.y;", TWO + push), push_constants_size=4)
    scene.buffer("x", size=16).dispatch("s", ["x"]).dispatch("t", ["x", "x"]).dispatch("s", [])
    with pytest.raises(ScenarioRunnerError) as caught:
        resolve(load(scene.write()))
    assert {problem.pointer for problem in caught.value.problems} == {
        "/commands/0/dispatch_compute/bindings",
        "/resources/1/shader/push_constants_size",
        "/commands/2/dispatch_compute/bindings",
    }
    assert len(caught.value.problems) == 4  # the last command lacks both bindings


def test_planning_leaves_the_scenario_alone(scene: Scene) -> None:
    """A scenario can be planned again and again: nothing is written back into it."""
    scene.shader("s", glsl("b[0] = a[0];", TWO)).buffer("x", size=16).buffer("y", size=16).dispatch("s", ["x", "y"])
    scenario = load(scene.write())
    before = repr(scenario)
    plans = [resolve(scenario, inputs={"x": bytes(16)} if number else None) for number in range(2)]
    assert repr(scenario) == before
    assert plans[0].resources["x"].source is None
    assert plans[1].resources["x"].source is not None
    assert plans[0].pipelines == plans[1].pipelines
