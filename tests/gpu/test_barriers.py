"""Implicit and explicit barriers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from tests.scenes import Scene, glsl

NEXT = glsl(
    "uint i = gl_GlobalInvocationID.x; uint n = gl_NumWorkGroups.x * 64u; b[i] = a[(i + 1u) % n] + 1u;",
    "layout(set = 0, binding = 0) buffer A { uint a[]; };\nlayout(set = 0, binding = 1) buffer B { uint b[]; };\n",
    local_size=64,
)
COUNT = 4096
STEPS = 20


def chain(scene: Scene, barrier: dict[str, list[str]] | None, **keys: Any) -> Any:
    """Dispatches that each need everything the one before wrote; returns the expected end."""
    start = numpy.arange(COUNT, dtype=numpy.uint32) * 7
    scene.shader("next", NEXT).buffer("even", start).buffer("odd", size=COUNT * 4)
    for step in range(STEPS):
        pair = ["even", "odd"] if step % 2 == 0 else ["odd", "even"]
        scene.dispatch("next", pair, [COUNT // 64], **keys)
        if barrier is not None:
            scene.command("dispatch_barrier", **barrier)
    return numpy.roll(start, -STEPS) + STEPS


@pytest.mark.parametrize("stages", [{}, {"src_stage": ["compute"], "dst_stage": ["compute"]}, {"dst_stage": ["ALL"]}])
@pytest.mark.parametrize("access", [("compute_shader_write", "compute_shader_read"), ("memory_write", "memory_read")])
def test_memory_barrier(scene: Scene, runner: Runner, stages: dict[str, list[str]], access: tuple[str, str]) -> None:
    """With implicit_barrier off a memory barrier orders the dispatches, for every stage and access that covers them."""
    scene.resource("memory_barrier", uid="wait", src_access=access[0], dst_access=access[1], **stages)
    expected = chain(scene, {"memory_barrier_refs": ["wait"]}, implicit_barrier=False)
    assert (runner.run(scene.write()).array("even", "u4") == expected).all()


def test_every_stage_and_access(scene: Scene, runner: Runner) -> None:
    """Barriers of every stage, none included, and every access are taken, in both spellings; nothing is disturbed."""
    stages = ["graph", "compute", "graphics", "all"]
    accesses = ["memory_write", "memory_read", "graph_write", "graph_read", "compute_shader_write"]
    accesses += ["compute_shader_read", "ACCESS_MEMORY_WRITE", "ACCESS_GRAPH_READ"]
    scene.shader("next", NEXT).buffer("even", size=256).buffer("odd", size=256)
    for number, (source, destination) in enumerate(itertools.product([*stages, None], repeat=2)):
        keys = {
            "src_stage": [source] if source else [],
            "dst_stage": [destination.upper()] if destination else [],
            "src_access": accesses[number % len(accesses)],
            "dst_access": accesses[(number * 3 + 1) % len(accesses)],
        }
        scene.resource("memory_barrier", uid=f"m{number}", **keys)
        scene.resource("buffer_barrier", uid=f"b{number}", buffer_resource="odd", size=12, offset=4 * number, **keys)
        scene.command("dispatch_barrier", memory_barrier_refs=[f"m{number}"], buffer_barrier_refs=[f"b{number}"])
    scene.command("pipeline_barrier").dispatch("next", ["even", "odd"])
    assert runner.run(scene.write()).array("odd", "u4").tolist() == [1] * 64


def test_barrier_over_the_rest_of_a_buffer(scene: Scene, runner: Runner) -> None:
    """A size of 2^64 - 1 (VK_WHOLE_SIZE) covers all from the offset on."""
    access = {"src_access": "memory_write", "dst_access": "memory_read"}
    scene.resource("buffer_barrier", uid="rest", buffer_resource="odd", size=2**64 - 1, offset=8, **access)
    scene.shader("next", NEXT).buffer("even", size=256).buffer("odd", size=256)
    scene.command("dispatch_barrier", buffer_barrier_refs=["rest"]).dispatch("next", ["even", "odd"])
    assert runner.run(scene.write()).array("odd", "u4").tolist() == [1] * 64
