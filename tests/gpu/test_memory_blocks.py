"""Memory that a device keeps between runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FenceTimeoutError
from tests.scenes import Scene, glsl

ONE = "layout(binding = 0) buffer A { uint a[]; };\n"
MIB = 1 << 20


@pytest.fixture(params=[False, True], ids=["in place", "staged"])
def own(request: pytest.FixtureRequest, shader_cache: Path) -> Iterator[Runner]:
    """A Runner that has run nothing before; it leaves nothing."""
    with Runner(timeout_s=60, staging=request.param) as runner:
        yield runner
    assert not any(runner.live_objects.values())


def of_sizes(folder: Path, *sizes_bytes: int) -> str:
    """Memory groups, which do not share blocks, of one buffer each."""
    scene = Scene(folder)
    for number, size in enumerate(sizes_bytes):
        scene.buffer(f"b{number}", size=size, memory_group={"id": f"g{number}", "offset": 0})
    return str(scene.write(f"{'-'.join(map(str, sizes_bytes))[:80]}.json"))


def test_one_block_serves_many_runs(scene: Scene, own: Runner) -> None:
    """Runs of the same needs use the same block."""
    scene.shader("s", glsl("a[gl_WorkGroupID.x] += 5u;", ONE)).buffer("x", size=64)
    path = scene.dispatch("s", ["x"], [16]).write()
    for _ in range(4):
        assert own.run(path).array("x", "u4").tolist() == [5] * 16
        assert own.live_objects["memory block"] == 1
        assert own.live_objects.get("memory", 0) == 0


def test_nothing_of_an_earlier_run_is_seen(scene: Scene, own: Runner) -> None:
    """A buffer without content, and a member of a group, are zero where an earlier run has left something else."""
    fill = Scene(scene.folder).buffer("x", numpy.full(1024, 0xDEADBEEF, numpy.uint32)).write("fill.json")
    plain = Scene(scene.folder).buffer("y", size=2048).write("plain.json")
    small = {"id": "g", "offset": 2048}
    group = Scene(scene.folder).buffer("y", size=1024, memory_group={"id": "g", "offset": 0})
    groups = group.buffer("z", size=512, memory_group=small).write("groups.json")
    keys = {"format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 8, 8, 1], "shader_access": "readwrite", "dst": "i.npy"}
    image = Scene(scene.folder).resource("image", uid="i", **keys).write("image.json")
    for _ in range(2):
        for path, outputs in ((plain, ["y"]), (groups, ["y", "z"]), (image, ["i"])):
            own.run(fill)
            result = own.run(path, outputs=outputs)
            for uid in outputs:
                assert not numpy.asarray(result.array(uid)).view("u1").any(), (path, uid)
    assert own.live_objects["memory block"] <= 2


def test_what_is_kept_is_bounded(tmp_path: Path, own: Runner) -> None:
    """At most 16 MiB wait for the next run, and of them those that were used last; large ones are never kept."""
    own.run(of_sizes(tmp_path, *[4 * MIB] * 6))
    assert own.live_objects["memory block"] == 4
    own.run(of_sizes(tmp_path, 4 * MIB + 1))
    assert own.live_objects["memory block"] == 4
    assert own.live_objects.get("memory", 0) == 0
    own.run(of_sizes(tmp_path, 900 << 10, 16, 16))
    assert own.live_objects["memory block"] == 6  # three of 4 MiB, and the new ones
    own.run(of_sizes(tmp_path, 8, 256 << 10, 4))
    assert own.live_objects["memory block"] == 6
    own.run(of_sizes(tmp_path, *[16] * 100))
    assert own.live_objects["memory block"] == 64


def test_memory_in_use_is_not_given_to_another_run(scene: Scene, shader_cache: Path) -> None:
    """After work that did not end in time the device is opened anew, and so is its memory."""
    scene.shader("long", glsl("for (uint i = 0u; i < a[0] * 60000u; i++) a[3] = a[3] * 3u + i;", ONE))
    scene.buffer("x", numpy.full(4, 1, numpy.uint32)).dispatch("long", ["x"], [65535, 65535, 64])
    path, plain = scene.write(), Scene(scene.folder).buffer("y", size=16).write("plain.json")
    with Runner(timeout_s=60) as runner:
        assert not runner.run(plain).array("y").any()
        runner.timeout_s = 0.5
        with pytest.raises(FenceTimeoutError):
            runner.run(path)
        runner.timeout_s = 60
        assert not runner.run(plain).array("y").any()
        assert runner.live_objects["memory block"] == 1
