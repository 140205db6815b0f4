"""Memory that a device keeps between runs, and pages of memory that are provided before they are touched."""

import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FenceTimeoutError
from scenario_runner.processes.system_limits import control_groups
from scenario_runner.vulkan.memory import left_in, populate
from tests.scenes import Scene, glsl

ONE = "layout(binding = 0) buffer A { uint a[]; };\n"
MIB = 1 << 20


@pytest.fixture(params=[False, True], ids=["in place", "staged"])
def own(request: pytest.FixtureRequest, shader_cache: Path) -> Iterator[Runner]:
    """A Runner that has run nothing before; it leaves nothing."""
    with Runner(timeout_s=60, staging=request.param) as runner:
        yield runner
    assert not any(runner.live_objects.values())


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


_SIZE_BYTES = 8 << 20


def _resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def test_pages_are_provided_and_what_they_hold_stays():
    """Fresh memory becomes resident, zero but for the bytes that were written before."""
    with mmap.mmap(-1, _SIZE_BYTES) as memory:
        memory[5_000_000] = 77
        before = _resident_bytes()
        with memoryview(memory) as view, view[1000 : _SIZE_BYTES - 1000] as inner:
            populate(inner)
            populate(inner[:16])  # nothing that is worth it
            assert _resident_bytes() - before > _SIZE_BYTES - (1 << 20)
            assert memory[5_000_000] == 77
            assert sum(view) == 77


_FIRST = {"memory.limit_in_bytes": 9000, "memory.usage_in_bytes": 5000}
_SECOND = {"memory.max": 9000, "memory.current": 5000}


@pytest.mark.parametrize(
    "line, folder, files, stat",
    [
        ("4:cpu,memory:/job/step", "memory/job", _FIRST, "cache 9\ntotal_active_file 100\ntotal_inactive_file 200\n"),
        ("0::/job/step", "job", _SECOND, "anon 5\nactive_file 100\ninactive_file 200\n"),
        ("0::/host/path/of/a/container", "", _SECOND, "active_file 300\n"),
    ],
)
def test_limits_of_control_groups(tmp_path: Path, line: str, folder: str, files: dict[str, int], stat: str) -> None:
    """The group of a process, or one around it, bounds its memory; cached files do not count as used."""
    (tmp_path / "cgroup").write_text(f"7:pids:/job/step\n{line}\n")
    group = tmp_path / folder
    group.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (group / name).write_text(f"{value}\n")
    (group / "memory.stat").write_text(stat)
    found = list(control_groups("memory", str(tmp_path / "cgroup"), str(tmp_path)))
    assert [left_in(each) for each in found if left_in(each) is not None] == [9000 - 5000 + 300]
    assert str(group) in found
    (group / "memory.stat").unlink()
    assert left_in(str(group)) is None
    assert list(control_groups("memory", str(tmp_path / "none"), str(tmp_path))) == []


def of_sizes(folder: Path, *sizes_bytes: int) -> str:
    """Memory groups, which do not share blocks, of one buffer each."""
    scene = Scene(folder)
    for number, size in enumerate(sizes_bytes):
        scene.buffer(f"b{number}", size=size, memory_group={"id": f"g{number}", "offset": 0})
    return str(scene.write(f"{'-'.join(map(str, sizes_bytes))[:80]}.json"))


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


def test_buffers_that_one_block_does_not_hold(scene: Scene, own: Runner) -> None:
    """Each has its own bytes."""
    inputs = {f"b{number}": numpy.full(5 << 20, number, numpy.uint32) for number in range(5)}
    for uid, content in inputs.items():
        scene.buffer(uid, size=content.nbytes, dst=None)
    result = own.run(scene.write(), inputs, outputs=list(inputs))
    assert [(result.array(uid, "u4") == content).all() for uid, content in inputs.items()] == [True] * 5
