"""Buffers that share memory."""

from __future__ import annotations

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import OutOfMemoryError
from tests.scenes import Scene, glsl

ONE = "layout(set = 0, binding = 0) buffer A { uint a[]; };\n"
TWO = ONE + "layout(set = 0, binding = 1) buffer B { uint b[]; };\n"


def group(offset: int = 0, name: str = "g") -> dict[str, object]:
    return {"id": name, "offset": offset}


def test_sources_meet_in_one_memory(scene: Scene, runner: Runner) -> None:
    """Members with content fill their own parts; a member without content shows them, and zeros elsewhere."""
    first, second = numpy.arange(1, 17, dtype=numpy.uint32), numpy.arange(101, 117, dtype=numpy.uint32)
    scene.shader("copy", glsl("b[gl_WorkGroupID.x] = a[gl_WorkGroupID.x];", TWO))
    scene.buffer("first", first, memory_group=group(0)).buffer("second", second, memory_group=group(128))
    scene.buffer("all", size=256, memory_group=group()).buffer("y", size=256)
    result = runner.run(scene.dispatch("copy", ["all", "y"], [64]).write())
    zeros = [0] * 16
    assert result.array("y", "u4").tolist() == first.tolist() + zeros + second.tolist() + zeros


def test_repeat_starts_from_the_same_memory(scene: Scene, runner: Runner) -> None:
    """Memory that members share is as in the first iteration when the next one begins."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u + gl_WorkGroupID.x;", ONE))
    scene.buffer("whole", size=256, memory_group=group()).buffer("part", size=64, memory_group=group(128))
    path = scene.dispatch("add", ["whole"], [64]).write()
    expected = numpy.arange(1, 65, dtype=numpy.uint32)
    assert (runner.run(path, repeat=3).array("whole", "u4") == expected).all()
    assert (runner.run(path, repeat=3, keep_state=True).array("whole", "u4") == 3 * expected).all()


def test_large_members_keep_their_content(scene: Scene, runner: Runner) -> None:
    """Clearing a member of several MiB does not run over the content that another one is given."""
    size = 8 << 20
    content = numpy.arange(size // 8, dtype=numpy.uint32)
    scene.buffer("whole", size=size, memory_group=group(), dst=None)
    scene.buffer("upper", content, memory_group=group(size // 2), dst=None)
    path = scene.write()
    for _ in range(5):
        result = runner.run(path)
        assert (result.array("whole", "u4")[size // 8 :] == content).all()
        assert not result.array("whole", "u4")[: size // 8].any()


@pytest.mark.parametrize("offset", [2**40, 2**64 - 64])
def test_group_too_large(scene: Scene, runner: Runner, offset: int) -> None:
    """A group that reaches further than the device's memory is an error that says how much was asked."""
    runner.run(Scene(scene.folder).buffer("x", size=64).write("before.json"))
    before = runner.live_objects
    scene.buffer("x", size=64, memory_group=group()).buffer("y", size=64, memory_group=group(offset))
    problem = scene.refusal(runner.run, OutOfMemoryError)
    assert f"({offset + 64} bytes)" in problem.message
    assert problem.message.startswith("memory group 'g' needs ")
    assert runner.live_objects == before
