"""Memory groups, and the blocks of device memory that allocations share."""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FenceTimeoutError, OutOfMemoryError, ScenarioError, UnsupportedError
from scenario_runner.processes.system_limits import control_groups
from scenario_runner.vulkan.memory import left_in, populate
from tests.scenes import Scene, glsl

ONE = "layout(set = 0, binding = 0) buffer A { uint a[]; };\n"
TWO = ONE + "layout(set = 0, binding = 1) buffer B { uint b[]; };\n"


def group(offset: int = 0) -> dict[str, Any]:
    return {"memory_group": {"id": "g", "offset": offset}}


def test_sources_meet_in_one_memory(scene: Scene, runner: Runner) -> None:
    """Members with content fill their own parts; a member without content shows them, and zeros elsewhere."""
    first, second = numpy.arange(1, 17, dtype=numpy.uint32), numpy.arange(101, 117, dtype=numpy.uint32)
    scene.shader("copy", glsl("b[gl_WorkGroupID.x] = a[gl_WorkGroupID.x];", TWO))
    scene.buffer("first", first, **group(0)).buffer("second", second, **group(128))
    scene.buffer("all", size=256, **group()).buffer("y", size=256)
    result = runner.run(scene.dispatch("copy", ["all", "y"], [64]).write())
    zeros = [0] * 16
    assert result.array("y", "u4").tolist() == first.tolist() + zeros + second.tolist() + zeros


def test_large_members_keep_their_content(scene: Scene, runner: Runner) -> None:
    """Clearing a member of several MiB does not run over the content that another one is given."""
    size = 8 << 20
    content = numpy.arange(size // 8, dtype=numpy.uint32)
    scene.buffer("whole", size=size, **group(), dst=None)
    scene.buffer("upper", content, **group(size // 2), dst=None)
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
    scene.buffer("x", size=64, **group()).buffer("y", size=64, **group(offset))
    problem = scene.refusal(runner.run, OutOfMemoryError)
    assert f"({offset + 64} bytes)" in problem.message
    assert problem.message.startswith("memory group 'g' needs ")
    assert runner.live_objects == before


BUFFER = "layout(set = 0, binding = 0) buffer A { float a[]; };\n"
# A row of 256 bytes needs no padding on any device known; one of 64 does on some, and one of 20 on most.
WIDTH, HEIGHT = 64, 5
SIZE_BYTES = WIDTH * HEIGHT * 4
# A multiple of the alignment that any device known asks of images.
OFFSET_BYTES = 64 << 10


def test_an_image_behind_an_offset(scene: Scene, both: Runner) -> None:
    """A member begins at its offset, and bytes without content are zero."""
    before = OFFSET_BYTES // 4
    content = numpy.arange(WIDTH * HEIGHT, dtype=numpy.float32).reshape(HEIGHT, WIDTH)
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 0.5;", BUFFER))
    scene.image("x", "R32_SFLOAT", content, **group(OFFSET_BYTES))
    scene.buffer("b", size=OFFSET_BYTES + SIZE_BYTES, **group())
    scene.dispatch("add", ["b"], [before + WIDTH * HEIGHT])
    result = both.run(scene.write())
    got = result.array("b", "f4")
    assert (got[:before] == 0.5).all()
    assert (got[before:].reshape(HEIGHT, WIDTH) == content + 0.5).all()
    assert (result["x"][..., 0] == content + 0.5).all()


def test_two_images_of_other_formats(scene: Scene, both: Runner) -> None:
    """Two images in one memory show the same bytes in their own formats."""
    content = numpy.random.default_rng(1).random((HEIGHT, WIDTH, 1)).astype(numpy.float32)
    scene.image("x", "R32_SFLOAT", content, **group()).image("y", "R8G8B8A8_UINT", size=(WIDTH, HEIGHT), **group())
    result = both.run(scene.write())
    assert result["y"].tobytes() == content.tobytes()


def test_a_group_of_one(scene: Scene, both: Runner) -> None:
    """An image alone in its group shares nothing: mip levels and OPTIMAL tiling are as without a group."""
    content = numpy.ones((8, 8, 1), numpy.float32)
    scene.image("x", "R32_SFLOAT", content, mips=4, tiling="OPTIMAL", **group())
    result = both.run(scene.write())
    assert (result.level("x", 3) == 1).all()


def test_identical_optimal_images(scene: Scene, both: Runner) -> None:
    """Equal OPTIMAL images may share memory, and both show the texels of the image with content."""
    content = numpy.random.default_rng(1).random((33, 21, 1)).astype(numpy.float32)
    scene.image("x", "R32_SFLOAT", content, tiling="OPTIMAL", **group())
    scene.image("y", "R32_SFLOAT", size=(21, 33), tiling="OPTIMAL", **group())
    result = both.run(scene.write())
    assert (result["x"] == content).all()
    assert (result["y"] == content).all()


def test_padded_rows(scene: Scene, both: Runner) -> None:
    """A buffer sees the rows of an image as they are, or is refused because this device pads them; never garbage."""
    content = numpy.arange(35, dtype=numpy.float32).reshape(7, 5)
    scene.image("x", "R32_SFLOAT", content, **group()).buffer("b", size=content.nbytes, **group())
    try:
        result = both.run(scene.write())
    except UnsupportedError as error:
        refusal = error
    else:
        assert (result.array("b", "f4", (7, 5)) == content).all()
        return
    text = str(refusal)
    assert "rows of image 'x' are " in text
    assert "although their texels take 20; buffer 'b' of 140 bytes would see the padding as data" in text
    assert refusal.problems[0].pointer == "/resources/0/image/memory_group"


def test_a_buffer_that_counts_on_padding(scene: Scene, both: Runner) -> None:
    """A buffer that is as large as the padded image gets it with its padding."""
    content = numpy.arange(1, 36, dtype=numpy.float32).reshape(7, 5)
    scene.image("x", "R32_SFLOAT", content, **group()).buffer("b", size=7 * 1024, **group())
    result = both.run(scene.write())
    got = result.array("b", "f4")
    pitch = int(numpy.flatnonzero(got == content[1, 0])[0])
    assert (got[: 7 * pitch].reshape(7, pitch)[:, :5] == content).all()


def test_two_contents_for_one_memory(scene: Scene, runner: Runner) -> None:
    """Content for two members that overlap is an error, whether it comes from files or from arrays."""
    content = numpy.zeros((8, 16), numpy.float32)
    scene.image("x", "R32_SFLOAT", content, **group()).buffer("b", size=content.nbytes, **group())
    with pytest.raises(ScenarioError, match=r"the initial contents of '[bx]' and '[bx]' overlap"):
        runner.run(scene.write(), inputs={"b": content})
    scene.buffer("c", numpy.ones(4, numpy.float32), **group(256))
    with pytest.raises(ScenarioError, match="overlap in memory group"):
        runner.run(scene.write())


@pytest.mark.parametrize("kind", ["image", "buffer"])
def test_one_file_in_two_places(scene: Scene, runner: Runner, kind: str) -> None:
    """A file is content once for one place in memory: a bit further on it would write over itself."""
    content = numpy.arange(64, dtype=numpy.float32).reshape(4, 16)
    for uid, offset in (("x", 0), ("y", 64)):
        if kind == "image":
            scene.image(uid, "R32_SFLOAT", content, **group(offset))
        else:
            scene.buffer(uid, content, **group(offset))
    for resource in scene.resources:
        next(iter(resource.values()))["src"] = "x.npy"
    with pytest.raises(ScenarioError, match="the initial contents of 'y' and 'x' overlap"):
        runner.run(scene.write())
    for resource in scene.resources:
        next(iter(resource.values()))["memory_group"] = {"id": "g"}
    result = runner.run(scene.write())
    assert result["x"].tobytes() == result["y"].tobytes() == content.tobytes()


def test_a_content_behind_padded_rows(scene: Scene, both: Runner) -> None:
    """Content that begins where the texels of an image end alone: padding may move it into them, which is an error."""
    content = numpy.arange(5 * 320, dtype=numpy.float32).reshape(320, 5)
    more = numpy.zeros(64 << 10, numpy.float32)
    scene.image("x", "R32_SFLOAT", content, **group())
    scene.buffer("b", more, **group(8 << 10))  # 6400 bytes of texels, 20 KiB where rows are 64 bytes apart
    try:
        result = both.run(scene.write())
    except ScenarioError as error:
        refusal = error
    else:
        assert (result["x"][..., 0] == content).all()
        return
    assert "the initial contents of 'b' and image 'x' overlap, because the image's rows are " in str(refusal)
    assert refusal.problems[0].pointer == "/resources/1/buffer/memory_group"


@pytest.mark.parametrize(
    "keys, message, place, help",
    [
        ({"mips": 2}, "has 2 mip levels and", "/mips", None),
        ({"tiling": "OPTIMAL"}, "has OPTIMAL tiling and", "/tiling", "leave tiling out, or use LINEAR"),
    ],
)
def test_images_that_share_nothing(
    scene: Scene, runner: Runner, keys: dict[str, Any], message: str, place: str, help: str | None
) -> None:
    """An image with levels, or of OPTIMAL tiling, cannot share memory with a buffer; the error says why."""
    scene.image("x", "R32_SFLOAT", size=(8, 8), **keys, **group())
    problem = scene.buffer("b", size=256, **group()).refusal(runner.run, UnsupportedError)
    assert problem.message.startswith(f"image 'x' {message} shares the memory of group 'g'")
    assert problem.pointer == f"/resources/0/image{place}"
    assert help is None or problem.help == help


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
    """At most 16 MiB are kept for the next run, the most recently used first; large blocks are never kept."""
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
