"""Dumps: the content of resources after each command, compared with NumPy."""

import hashlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError, NoDeviceError, UnsupportedError, UsageError
from scenario_runner.plan.accesses import DumpTarget
from scenario_runner.run.dump_files import DumpRequest
from tests.gpu import flow_scenes, fragment_scenes
from tests.gpu.image_scenes import per_texel, storage, texels
from tests.gpu.ml_scenes import mixed_model, random
from tests.gpu.test_tensors_groups import TWICE, add_shader, optimal_image
from tests.left_out import VGF_LIBRARY, needs
from tests.program import files_in
from tests.scenes import Scene, at_level, error_of, glsl

ONE = "layout(set = 0, binding = 0) buffer A { uint a[]; };\n"
START = numpy.array([0, 10, 20, 30], numpy.uint32)


def everything(folder: Path, **keys: Any) -> dict[str, Any]:
    return {"dump": DumpRequest(str(folder), everything=True), **keys}


def after(folder: Path, *wanted: Sequence[Any], **keys: Any) -> dict[str, Any]:
    return {"dump": DumpRequest(str(folder), tuple(DumpTarget(*each) for each in wanted)), **keys}


def entries(folder: Path) -> list[dict[str, Any]]:
    """The index of a dump; it must list every file that is there, with its hash."""
    index = json.loads((folder / "index.json").read_text())
    found: list[dict[str, Any]] = index["files"]
    for entry in found:
        assert hashlib.sha256((folder / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]
    assert files_in(folder).keys() == {"index.json", *(entry["file"] for entry in found)}
    return found


def texels_of(path: Path, shape: tuple[int, ...], dtype: Any) -> Any:
    """The end of a .dds file, as the texels that it holds."""
    size = numpy.dtype(dtype).itemsize * math.prod(shape)
    return numpy.frombuffer(path.read_bytes()[-size:], dtype).reshape(shape)


def contents(folder: Path, dtype: Any = "u4") -> list[tuple[int | None, str, list[Any]]]:
    """(command, resource, values) of each file of a dump, in its order."""
    return [
        (each["command"], each["resource"], numpy.load(folder / each["file"]).view(dtype).reshape(-1).tolist())
        for each in entries(folder)
    ]


def counting(scene: Scene) -> Scene:
    """Dispatches that add 1 to x, or store x + 100 in y, with boundaries and a barrier between them."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE))
    scene.shader(
        "copy",
        glsl(
            "y[gl_WorkGroupID.x] = a[gl_WorkGroupID.x] + 100u;",
            ONE.replace("buffer A", "readonly buffer A") + "layout(set = 0, binding = 1) buffer Y { uint y[]; };\n",
        ),
    )
    scene.buffer("x", START).buffer("y", size=16)
    scene.barrier("wait", access=("compute_shader_write", "compute_shader_read"))
    scene.dispatch("add", ["x"], [4], implicit_barrier=False)
    scene.command("dispatch_barrier", memory_barrier_refs=["wait"])
    scene.dispatch("copy", ["x", "y"], [4]).command("mark_boundary", resources=["x"], frame_id=7)
    return scene.dispatch("add", ["x"], [4]).dispatch("add", ["x"], [4])


def plus(number: int) -> list[int]:
    return [int(value) for value in START + numpy.uint32(number)]


def test_everything_after_every_command(scene: Scene, both: Runner, tmp_path: Path) -> None:
    """The dump has all resources at the start, and after each command exactly the changed ones. The results equal a run
    without a dump."""
    path = counting(scene).write()
    both.run_to_files(path, **everything(tmp_path / "dump", capture_dir=tmp_path / "frames"))
    assert contents(tmp_path / "dump") == [
        (None, "x", plus(0)),
        (None, "y", [0] * 4),
        (0, "x", plus(1)),
        (2, "y", plus(101)),
        (4, "x", plus(2)),
        (5, "x", plus(3)),
    ]
    first = entries(tmp_path / "dump")[2]
    assert {key: first[key] for key in ("command_kind", "pointer", "kind", "element", "shape", "file")} == {
        "command_kind": "dispatch_compute",
        "pointer": "/commands/0/dispatch_compute",
        "kind": "buffer",
        "element": "uint32",
        "shape": [16],
        "file": "0_dispatch_compute/x.npy",
    }
    assert (scene.output("x", "u4").tolist(), scene.output("y", "u4").tolist()) == (plus(3), plus(101))
    assert numpy.load(tmp_path / "frames" / "frame_7" / "x.npy").view("u4").tolist() == plus(1)
    assert sorted(os.listdir(tmp_path / "frames")) in (["frame_7"], ["frame_7", "manifest.json"])


@pytest.mark.parametrize(
    "wanted, expected",
    [
        ([(0, 0)], [(0, "x", plus(1))]),
        ([(1, 1, "y")], [(1, "y", [0] * 4)]),
        ([(3, 3, "y"), (3, 3, "x")], [(3, "x", plus(1)), (3, "y", plus(101))]),
        ([(0, 4)], [(4, "x", plus(2)), (4, "y", plus(101))]),
        ([(5, 5, "x"), (2, 2), (5, 5)], [(2, "y", plus(101)), (5, "x", plus(3))]),
    ],
)
def test_what_is_asked_for(scene: Scene, runner: Runner, tmp_path: Path, wanted: Any, expected: Any) -> None:
    """A command, a resource after it, or a range of commands; in the order of the commands."""
    runner.run_to_files(counting(scene).write(), **after(tmp_path / "dump", *wanted))
    assert contents(tmp_path / "dump") == expected
    assert scene.output("x", "u4").tolist() == plus(3)


@pytest.mark.parametrize("keep_state", [False, True])
def test_repeated_runs(scene: Scene, runner: Runner, tmp_path: Path, keep_state: bool) -> None:
    """Each iteration has a folder of its own, with the inputs restored or not."""
    path = counting(scene).write()
    runner.run_to_files(path, **everything(tmp_path / "dump", repeat=3, keep_state=keep_state))
    found = [(each["iteration"], each["command"]) for each in entries(tmp_path / "dump") if each["resource"] == "x"]
    assert found == [(iteration, command) for iteration in range(3) for command in (None, 0, 4, 5)]
    last = [
        numpy.load(tmp_path / "dump" / f"iteration_{number}" / "5_dispatch_compute" / "x.npy").view("u4").tolist()
        for number in range(3)
    ]
    assert last == ([plus(3), plus(6), plus(9)] if keep_state else [plus(3)] * 3)


@needs(VGF_LIBRARY)
def test_values_between_segments(ml: Runner, scene: Scene, tmp_path: Path) -> None:
    """A model of a graph, a shader and a graph: after each segment its values, which the scenario does not name."""
    ml.run_to_files(mixed_model(scene).write(), **everything(tmp_path / "dump"))
    x, y = random((4, 16)), random((4, 16), seed=2)
    folder = tmp_path / "dump"
    found = {(each["segment"], each["resource"]): each for each in entries(folder) if each["command"] == 0}
    total = x + y
    wanted = {0: total, 1: total * total + x / 2, 2: total * total + x / 2 + y}
    assert {segment for segment, _ in found} == {0, 1, 2}
    for (segment, uid), each in found.items():
        values = numpy.load(folder / each["file"]).view("f4").reshape(4, 16)
        assert numpy.allclose(values, wanted[segment], rtol=0, atol=1e-6), (segment, uid)
        assert each["file"].startswith(f"0_dispatch_graph/segment_{segment}/")
    assert [uid for segment, uid in found if segment == 2] == ["z"]
    value = next(uid for segment, uid in found if segment == 1)
    assert "graph_partition_1" in found[1, value]["segment_name"]
    ml.run_to_files(scene.write(), **after(tmp_path / "one", (0, 0, value)))
    (only,) = entries(tmp_path / "one")
    assert (only["segment"], only["resource"]) == (1, value)
    assert (numpy.load(scene.folder / "z.out.npy") == numpy.load(folder / found[2, "z"]["file"])).all()


def test_members_of_a_memory_group(scene: Scene, both: Runner, tmp_path: Path) -> None:
    """A member that shares the written bytes changes with them, and a member beside them does not."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE))
    scene.buffer("x", START, memory_group={"id": "g"})
    scene.buffer("same", size=16, memory_group={"id": "g"})
    scene.buffer("beside", size=16, memory_group={"id": "g", "offset": 256})
    scene.dispatch("add", ["x"], [4]).dispatch("add", ["same"], [4]).dispatch("add", ["beside"], [4])
    both.run_to_files(scene.write(), **everything(tmp_path / "dump"))
    assert [each for each in contents(tmp_path / "dump") if each[0] is not None] == [
        (0, "x", plus(1)),
        (0, "same", plus(1)),
        (1, "x", plus(2)),
        (1, "same", plus(2)),
        (2, "beside", [1] * 4),
    ]


def test_a_tensor_that_shares_an_optimal_image(ml: Runner, scene: Scene, tmp_path: Path) -> None:
    """Image and tensor show the values after each command in any layout of the image."""
    content = random((5, 7, 4))
    optimal_image(scene, 7, 5, content)
    scene.tensor("t", dims=[5, 7, 4], tiling="OPTIMAL", memory_group={"id": "shared"})
    add_shader(scene, 7, 5, 3).shader("twice", TWICE)
    scene.dispatch("add", ["t"], [140])
    scene.dispatch("twice", ["image"], (7, 5))
    scene.dispatch("add", ["t"], [140])
    ml.run_to_files(scene.write(), **everything(tmp_path / "dump"))
    values = [content, content + 0.5, 2 * (content + 0.5), 2 * (content + 0.5) + 0.5]
    folder = tmp_path / "dump"
    for number, name in enumerate(["start", "0_dispatch_compute", "1_dispatch_compute", "2_dispatch_compute"]):
        assert numpy.allclose(numpy.load(folder / name / "t.npy"), values[number], rtol=0, atol=1e-6), name
        assert numpy.allclose(
            texels_of(folder / name / "image.dds", (5, 7, 4), "f4"), values[number], rtol=0, atol=1e-6
        )
    entries(folder)


@pytest.mark.parametrize("dst", [None, "x.png"])
def test_levels_of_an_image(scene: Scene, both: Runner, tmp_path: Path, dst: str | None) -> None:
    """All mip levels are in one .dds file, also where the scenario stores the first one alone."""
    scene.shader("add", per_texel("imageStore(dst, p, imageLoad(dst, p) + 1u);", storage(0, "R8G8B8A8_UINT", "dst")))
    content = texels("R8G8B8A8_UINT", 4, 4)
    scene.image("x", "R8G8B8A8_UINT", content, mips=3, **({"dst": dst} if dst else {}))
    scene.dispatch("add", [at_level("x", 1)], (2, 2))
    both.run_to_files(scene.write(), **everything(tmp_path / "dump"))
    folder = tmp_path / "dump"
    levels = []
    for name in ("start", "0_dispatch_compute"):
        data = texels_of(folder / name / "x.dds", (84,), "u1")
        levels.append([data[:64], data[64:80], data[80:]])
    assert (levels[0][0].reshape(4, 4, 4) == content).all()
    assert (levels[1][0] == levels[0][0]).all()
    assert (levels[1][1] == levels[0][1] + numpy.uint8(1)).all()
    assert (levels[1][2] == levels[0][2]).all()
    assert [each["mips"] for each in entries(folder)] == [3, 3]
    assert dst is None or (scene.folder / dst).exists()


def test_levels_that_no_file_format_holds_together(tmp_path: Path, runner: Runner) -> None:
    """Each level has a file of its own where no format of files holds them all."""
    opaque_red = {  # generated levels are exact; few devices generate them for both formats
        "R5G5B5A1_UNORM_PACK16": numpy.full((4, 4, 1), 0b11111_00000_00000_1, "u2"),
        "A2R10G10B10_UNORM_PACK32": numpy.full((4, 4, 1), 0b11 << 30 | 0x3FF << 20, "u4"),
    }
    dumped = 0
    for name, content in opaque_red.items():
        scene = Scene(tmp_path / name)
        scene.image("x", name, content, mips=2)
        dump = tmp_path / name / "dump"
        try:
            runner.run_to_files(scene.write(), **everything(dump))
        except UnsupportedError:
            continue
        dumped += 1
        found = entries(dump)
        assert [(each["mip"], each["shape"], each["file"]) for each in found] == [
            (0, [1, 4, 4, 1], "start/x.mip0.npy"),
            (1, [1, 2, 2, 1], "start/x.mip1.npy"),
        ]
        for each in found:
            level = numpy.load(dump / each["file"])
            assert (list(level.shape), level.dtype) == (each["shape"], content.dtype)
            assert (level == content[0, 0, 0]).all()
    assert dumped


def test_images_in_another_layout(scene: Scene, both: Runner, tmp_path: Path) -> None:
    """An image that barriers have moved to another layout is read where it is, and the run goes on with it there."""
    scene.shader("add", per_texel("imageStore(dst, p, imageLoad(dst, p) + 1u);", storage(0, "R32_UINT", "dst")))
    scene.image("x", "R32_UINT", size=(4, 4))
    scene.barrier("away", "x", layouts=("general", "tensor_aliasing"))
    scene.barrier("back", "x", layouts=("tensor_aliasing", "general"))
    scene.dispatch("add", ["x"], (4, 4))
    scene.command("dispatch_barrier", image_barrier_refs=["away"])
    scene.command("dispatch_barrier", image_barrier_refs=["back"])
    scene.dispatch("add", ["x"], (4, 4))
    wanted = [(number, number, "x") for number in range(4)]
    both.run_to_files(scene.write(), **after(tmp_path / "dump", *wanted, repeat=2))
    for each in entries(tmp_path / "dump"):
        assert (
            texels_of(tmp_path / "dump" / each["file"], (4, 4), "u4") == (2 if each["command"] == 3 else 1)
        ).all(), each


def test_drawings(scene: Scene, both: Runner, tmp_path: Path) -> None:
    """After a drawing the image that it was drawn into."""
    fragment_scenes.vertex(scene)
    fragment_scenes.fragment(scene, "color = uint(p.x) + 10u * uint(p.y);", fragment_scenes.output("uint"))
    fragment_scenes.target(scene, "x", size=(6, 3))
    fragment_scenes.draw(scene, ["x"])
    both.run_to_files(scene.write(), **everything(tmp_path / "dump"))
    x, y = fragment_scenes.grid(6, 3)
    assert (texels_of(tmp_path / "dump" / "0_dispatch_fragment" / "x.dds", (3, 6), "u4") == x + 10 * y).all()
    assert [each["command"] for each in entries(tmp_path / "dump")] == [None, 0]


def test_optical_flow(ml: Runner, scene: Scene, tmp_path: Path) -> None:
    """After an optical flow its vectors: the motion of the picture."""
    flow_scenes.two_pictures(scene)
    ml.run_to_files(scene.folder / "scenario.json", **after(tmp_path / "dump", (0, 0)))
    (entry,) = entries(tmp_path / "dump")
    assert (entry["resource"], entry["format"]) == ("vectors", flow_scenes.VECTORS)
    shape = (flow_scenes.HEIGHT, flow_scenes.WIDTH, 2)
    found = flow_scenes.inside(texels_of(tmp_path / "dump" / entry["file"], shape, "f2"))
    assert numpy.median(numpy.abs(found), axis=(0, 1)).tolist() == pytest.approx([3, 2], abs=0.25)


@pytest.mark.parametrize(
    "wanted, message",
    [
        ((9, 9), "--dump-after: the scenario has no command 9: the commands are 0 to 5"),
        ((1, 1), "--dump-after: command 1 (dispatch_barrier) changes no resource"),
        ((0, 0, "X"), "--dump-after: no resource has the uid 'X' (did you mean 'x'?)"),
        ((0, 0, "add"), "--dump-after: 'add' is a shader, which has no content on the device"),
    ],
)
def test_what_does_not_exist(scene: Scene, runner: Runner, tmp_path: Path, wanted: Any, message: str) -> None:
    """Unknown commands and resources are errors before the run."""
    error = error_of(UsageError, runner.run_to_files, counting(scene).write(), **after(tmp_path / "dump", wanted))
    assert str(error).endswith(message)
    assert not (tmp_path / "dump").exists()
    assert not (scene.folder / "x.out.npy").exists()


def test_files_that_are_in_the_way(scene: Scene, runner: Runner, tmp_path: Path) -> None:
    """A dump replaces an earlier dump, but neither a file of the scenario nor a foreign index."""
    counting(scene)
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "index.json").write_text("{}")
    with pytest.raises(FileError, match="is not the index of a dump"):
        runner.run_to_files(scene.write(), **everything(tmp_path / "dump"))
    assert (tmp_path / "dump" / "index.json").read_text() == "{}"
    scene.resources[2]["buffer"]["dst"] = str(tmp_path / "other" / "start" / "x.npy")
    with pytest.raises(FileError, match="cannot become the dump, because the scenario writes"):
        runner.run_to_files(scene.write(), **everything(tmp_path / "other"))
    assert not (tmp_path / "other").exists()
    for _ in range(2):
        runner.run_to_files(scene.write(), **everything(tmp_path / "third"))
    assert len(entries(tmp_path / "third")) == 6
    with pytest.raises(NoDeviceError), Runner("none") as other:
        other.run_to_files(scene.write(), **everything(tmp_path / "third"))
    assert not (tmp_path / "third" / "index.json").exists()  # nobody takes the earlier dump for that of the failed run


def test_a_scenario_without_commands(scene: Scene, runner: Runner, tmp_path: Path) -> None:
    """Resources that exist are dumped at the start."""
    scene.buffer("x", START)
    runner.run_to_files(scene.write(), **everything(tmp_path / "dump"))
    assert contents(tmp_path / "dump") == [(None, "x", START.tolist())]


def test_a_dry_run_writes_nothing(scene: Scene, runner: Runner, tmp_path: Path) -> None:
    """A dry run checks the arguments of a dump, and writes nothing."""
    runner.run_to_files(counting(scene).write(), **everything(tmp_path / "dump", dry_run=True))
    assert not (tmp_path / "dump").exists()
    with pytest.raises(UsageError):
        runner.run_to_files(scene.write(), **after(tmp_path / "dump", (6, 6), dry_run=True))
