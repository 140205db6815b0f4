"""fill and copy: values that NumPy computes, hazards, wrong commands, and the other ways to see a command."""

import json
import re
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner, from_dict, loads
from scenario_runner.errors import UnsupportedError
from scenario_runner.scenario import Buffer, Copy, Fill, Scenario
from tests.gpu.fragment_scenes import draw, fragment, output, target, vertex
from tests.program import Program
from tests.scenes import Scene, findings_of, glsl

COUNT = numpy.arange(8, dtype="u4")
DOUBLE = glsl("a[gl_WorkGroupID.x] *= 2u;", "layout(binding = 0) buffer A { uint a[]; };")
FETCH = glsl(
    "b[0] = texelFetch(p, ivec2(1), 0);",
    "layout(binding = 0) uniform sampler2D p; layout(binding = 1) buffer B { vec4 b[]; };",
)


def place(uid: str, **keys: int) -> dict[str, Any]:
    return {"resource_ref": uid, **keys}


def test_copies_between_buffers(scene: Scene, both: Runner) -> None:
    """A copy moves the bytes from an offset to another, also inside one buffer; a dispatch sees them."""
    scene.shader("double", DOUBLE).buffer("x", COUNT).buffer("y", size=32)
    scene.command("copy", **{"from": place("x", offset=8), "to": place("y", offset=4), "size": 12})
    scene.dispatch("double", ["y"], [8])
    scene.command("copy", **{"from": place("y", offset=0), "to": place("y", offset=16), "size": 16})
    scene.command("copy", **{"from": "y", "to": "x", "size": 4})
    result = both.run(scene.write())
    half = [0, 4, 6, 8]
    assert result.array("y", "u4").tolist() == half + half
    assert result.array("x", "u4").tolist() == [0, *range(1, 8)]


@pytest.mark.parametrize("dtype, value", [("float32", 1.5), ("int32", -7), ("uint32", 2**32 - 1)])
def test_fills_of_buffers(scene: Scene, both: Runner, dtype: str, value: float) -> None:
    """A fill repeats a number of 32 bits in a part of a buffer, or in the rest of it."""
    scene.buffer("x", COUNT).buffer("y", size=16)
    scene.command("fill", resource_ref="x", offset=8, size=16, value=value, dtype=dtype)
    scene.command("fill", resource_ref="y", offset=12, value=[value], dtype=dtype)
    result = both.run(scene.write())
    word = numpy.array(value, dtype).view("u4")
    assert result.array("x", "u4").tolist() == [0, 1, word, word, word, word, 6, 7]
    assert result.array("y", "u4").tolist() == [0, 0, 0, word]


FILLS: list[tuple[str, Any, list[float], str]] = [
    ("R8G8B8A8_UNORM", [1, 0.2, 0, 1], [255, 51, 0, 255], "u1"),
    ("B8G8R8A8_UNORM", [1, 0.2], [0, 51, 255, 255], "u1"),
    ("R8G8_SNORM", [-1, 1], [-127, 127], "i1"),
    ("R8_UINT", 200, [200], "u1"),
    ("R16G16_SINT", [-5, 32767], [-5, 32767], "i2"),
    ("R32G32B32A32_UINT", [2**32 - 1], [2**32 - 1, 0, 0, 1], "u4"),
    ("R16G16_SFLOAT", [0.5, -65504], [0.5, -65504], "f2"),
    ("R32_SFLOAT", -1e30, [-1e30], "f4"),
    ("D32_SFLOAT", 0.75, [0.75], "f4"),
    ("D16_UNORM", [1], [65535], "u2"),
]


@pytest.mark.parametrize("format, value, texel, dtype", FILLS, ids=[row[0] for row in FILLS])
def test_fills_of_images(scene: Scene, both: Runner, format: str, value: Any, texel: list[float], dtype: str) -> None:
    """A fill gives each texel of one mip level the channels of the value; other levels stay."""
    scene.image("i", format, size=(5, 3), mips=2).command("fill", resource_ref="i", value=value)
    scene.command("fill", resource_ref="i", lod=1, value=0)
    result = both.run(scene.write())
    expected = numpy.broadcast_to(numpy.array(texel, dtype), (3, 5, len(texel)))
    assert (result.level("i", 0) == expected).all()
    alpha = numpy.zeros(len(texel), dtype)
    if len(texel) == 4:
        alpha[3] = expected[0, 0, 3]
    assert (result.level("i", 1) == alpha).all()


def test_fill_of_depth_and_stencil(scene: Scene, both: Runner) -> None:
    """The numbers are the depth and the stencil."""
    scene.image("i", "D32_SFLOAT_S8_UINT", size=(4, 4)).command("fill", resource_ref="i", value=[0.25, 7])
    result = both.run(scene.write())
    assert (result.level("i", 0, "depth") == numpy.float32(0.25)).all()
    assert (result.level("i", 0, "stencil") == 7).all()


TEXELS = numpy.arange(4 * 6 * 4, dtype="u1").reshape(4, 6, 4)


def test_copies_of_mip_levels(scene: Scene, both: Runner) -> None:
    """A level goes to a buffer with packed rows, from there to another level of the same size, and to other images."""
    scene.image("i", "R8G8B8A8_UINT", TEXELS).image("k", "R8G8B8A8_UINT", size=(6, 4))
    scene.image("m", "R8G8B8A8_UINT", size=(12, 8), mips=2).buffer("x", size=200)
    scene.command("copy", **{"from": "i", "to": place("x", offset=4)})
    scene.command("copy", **{"from": place("x", offset=4), "to": place("m", lod=1), "size": 96})
    scene.command("copy", **{"from": place("m", lod=1), "to": "k"})
    result = both.run(scene.write())
    assert result.array("x", "u1").tolist() == [0] * 4 + TEXELS.ravel().tolist() + [0] * 100
    assert (result["k"].reshape(TEXELS.shape) == TEXELS).all()
    assert (result.level("m", 1) == TEXELS).all()
    assert not result.level("m", 0).any()


def test_copies_of_depths(scene: Scene, both: Runner) -> None:
    """A depth image goes to a buffer and back."""
    scene.image("i", "D32_SFLOAT", size=(4, 2)).image("k", "D32_SFLOAT", size=(4, 2)).buffer("x", size=32)
    scene.command("fill", resource_ref="i", value=0.5).command("copy", **{"from": "i", "to": "x"})
    scene.command("copy", **{"from": "x", "to": "k"})
    result = both.run(scene.write())
    assert result.array("x", "f4").tolist() == [0.5] * 8
    assert (result["k"] == 0.5).all()


def test_filled_image_in_a_shader(scene: Scene, both: Runner) -> None:
    """A shader samples an image that nothing else writes, before and after a fill."""
    scene.shader("fetch", FETCH).image("i", "R8G8B8A8_UNORM", TEXELS).buffer("x", size=16).buffer("y", size=16)
    scene.dispatch("fetch", ["i", "x"]).command("fill", resource_ref="i", value=[0.2, 1]).dispatch("fetch", ["i", "y"])
    result = both.run(scene.write())
    assert numpy.allclose(result.array("x", "f4"), TEXELS[1, 1] / 255)
    assert numpy.allclose(result.array("y", "f4"), [0.2, 1, 0, 1])


def shared(scene: Scene, offset: int = 0) -> Scene:
    """Add an image and a buffer in one memory group."""
    group = {"id": "g"}
    scene.image("i", "R8G8B8A8_UNORM", size=(16, 4), memory_group=group)
    return scene.buffer("x", size=256, memory_group={**group, "offset": offset})


def test_fills_and_copies_through_a_memory_group(scene: Scene, both: Runner) -> None:
    """A buffer sees the texels of an image that shares its memory, and the image the bytes of the buffer.

    A device that pads rows of 64 bytes refuses the scenario, and the message has the driver's distance of the rows.
    """
    texels = numpy.random.default_rng(1).integers(0, 256, (4, 16, 4), "u1")
    shared(scene).image("k", "R8G8B8A8_UNORM", texels).buffer("y", texels[::-1]).buffer("z", size=256)
    scene.command("fill", resource_ref="i", value=[1, 0, 0.2, 1]).command("copy", **{"from": "x", "to": "z"})
    scene.command("mark_boundary", resources=["x", "z"])
    scene.command("copy", **{"from": "k", "to": "i"}).command("mark_boundary", resources=["x"])
    scene.command("copy", **{"from": "y", "to": "i"}).command("copy", **{"from": "i", "to": "z"})
    scene.command("mark_boundary", resources=["x", "z"])
    path = scene.write()
    try:
        filled, copied, last = both.run(path).frames
    except UnsupportedError as error:
        (problem,) = error.problems
        distance = re.search(
            r"rows of image 'i' are (\d+) bytes apart, although their texels take 64; ", problem.message
        )
        assert (problem.code, problem.pointer) == ("SR-MEMORY-007", "/resources/0/image/memory_group")
        assert distance is not None
        assert int(distance[1]) > 64
        return
    for uid in "xz":
        assert filled.array(uid, "u1").tolist() == [255, 0, 51, 255] * 64
    assert (copied.array("x", "u1") == texels.ravel()).all()
    for uid in "xz":
        assert (last.array(uid, "u1") == texels[::-1].ravel()).all()


def test_fill_between_draws(scene: Scene, both: Runner) -> None:
    """A fill ends the rendering of the draw before it, and the next draw keeps what it does not cover."""
    fragment(vertex(scene), "if (gl_FragCoord.x > 2) discard; color = vec4(1);", output("vec4"))
    draw(target(scene, "i", "R8_UNORM", size=(4, 4)).buffer("x", size=16), ["i"])
    scene.command("copy", **{"from": "i", "to": "x"}).command("fill", resource_ref="i", value=0.2)
    result = both.run(draw(scene, ["i"]).write())
    assert result.array("x", "u1").tolist() == [255, 255, 0, 0] * 4
    assert result["i"].ravel().tolist() == [255, 255, 51, 51] * 4


# Commands on buffers x and y, separated by barriers, and the hazards that validate must find.
ALL = {"src_stage": ["all"], "dst_stage": ["all"]}
FILL_X, FILL_END = {"resource_ref": "x", "value": 1}, {"resource_ref": "x", "value": 1, "offset": 16}
TO_Y = {"from": place("x"), "to": "y", "size": 16}
HAZARDS: list[tuple[list[dict[str, Any]], list[str]]] = [
    ([{"fill": FILL_X}, {"copy": TO_Y}], ["SR-HAZARD-001"]),
    ([{"fill": FILL_END}, {"copy": TO_Y}], []),
    ([{"copy": TO_Y}, {"fill": FILL_X}], ["SR-HAZARD-002"]),
    ([{"copy": TO_Y}, {"fill": {**FILL_X, "resource_ref": "y"}}], ["SR-HAZARD-003"]),
    ([{"fill": FILL_X}, {"dispatch_barrier": {"memory_barrier_refs": ["all"]}}, {"copy": TO_Y}], []),
    ([{"fill": FILL_X}, {"dispatch_barrier": {"memory_barrier_refs": ["shaders"]}}, {"copy": TO_Y}], ["SR-HAZARD-004"]),
    ([{"fill": FILL_X}, {"dispatch_barrier": {"buffer_barrier_refs": ["half"]}}, {"copy": TO_Y}], []),
    ([{"copy": TO_Y}, {"copy": {"from": "y", "to": "z"}}], ["SR-HAZARD-001"]),
]


@pytest.mark.parametrize("commands, codes", HAZARDS)
def test_hazards(scene: Scene, check_hazards: Any, commands: list[dict[str, Any]], codes: list[str]) -> None:
    """validate and the synchronization checks of the validation layer find the same missing barriers."""
    for uid in "xyz":
        scene.buffer(uid, size=32)
    scene.barrier("all", **ALL).barrier("shaders", src_stage=["compute"], dst_stage=["compute"])
    keys = {"buffer_resource": "x", "offset": 0, "size": 16, "src_access": "memory_write", "dst_access": "memory_read"}
    scene.resource("buffer_barrier", uid="half", **keys, **ALL)
    for command in commands:
        for kind, body in command.items():
            barrier = {} if kind == "dispatch_barrier" else {"implicit_barrier": False}
            scene.command(kind, **body, **barrier)
    check_hazards(scene.write(), codes)


# The resources of `test_wrong`: x and y are buffers of 32 and 16 bytes, i an image of 4 x 4 RGBA, its level 1 is 2 x 2.
WRONG: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "fill behind the end": (
        {"fill": {"resource_ref": "y", "value": 1, "offset": 16}},
        "SR-COPY-001", "", "buffer 'y' has 16 bytes, got offset 16",
    ),
    "fill too long": (
        {"fill": {"resource_ref": "y", "value": 1, "offset": 8, "size": 12}},
        "SR-COPY-001", "", "buffer 'y' has 16 bytes, got 12 bytes from offset 8",
    ),
    "fill from an odd offset": (
        {"fill": {"resource_ref": "y", "value": 1, "offset": 2, "size": 4}},
        "SR-COPY-001", "/offset", "the offset 2 in buffer 'y' is not a multiple of 4",
    ),
    "fill of an odd size": (
        {"fill": {"resource_ref": "y", "value": 1, "size": 6}},
        "SR-COPY-001", "/size", "a fill of buffer 'y' has the size 6, which is not a multiple of 4",
    ),
    "several numbers for a buffer": (
        {"fill": {"resource_ref": "y", "value": [1, 2]}},
        "SR-COPY-003", "/value", "a fill of buffer 'y' takes one number, got 2",
    ),
    "a number that is no integer": (
        {"fill": {"resource_ref": "y", "value": 1.5, "dtype": "int32"}},
        "SR-COPY-003", "/value", "a fill of buffer 'y' cannot hold 1.5 as int32",
    ),
    "a channel above 1": (
        {"fill": {"resource_ref": "i", "value": [0, 2]}},
        "SR-COPY-003", "/value",
        "a fill of image 'i' gives G the value 2; VK_FORMAT_R8G8B8A8_UNORM holds numbers from 0 to 1",
    ),
    "a fraction in an integer": (
        {"fill": {"resource_ref": "u", "value": 0.5}},
        "SR-COPY-003", "/value",
        "a fill of image 'u' gives R the value 0.5; VK_FORMAT_R8_UINT holds integers from 0 to 255",
    ),
    "stencil without stencil": (
        {"fill": {"resource_ref": "d", "value": [1, 0]}},
        "SR-COPY-003", "/value", "a fill of image 'd' takes 1 number at most, got 2",
    ),
    "a compressed image": (
        {"fill": {"resource_ref": "b", "value": 0}},
        "SR-COPY-003", "/value", "a fill of image 'b' is not possible: VK_FORMAT_BC1_RGB_UNORM_BLOCK is compressed",
    ),
    "copy behind the end": (
        {"copy": {"from": place("x", offset=32), "to": "y"}},
        "SR-COPY-001", "/from", "buffer 'x' has 32 bytes, got offset 32",
    ),
    "copy to too small a buffer": (
        {"copy": {"from": "x", "to": "y"}},
        "SR-COPY-001", "/to", "buffer 'y' has 16 bytes, got 32 bytes from offset 0",
    ),
    "copy onto itself": (
        {"copy": {"from": "x", "to": place("x", offset=8), "size": 12}},
        "SR-COPY-002", "", "the copy reads bytes of 'x' that it also writes through 'x': the result is undefined",
    ),
    "copy onto itself in a memory group": (
        {"copy": {"from": place("g", offset=16), "to": "h"}},
        "SR-COPY-002", "", "the copy reads bytes of 'g' that it also writes through 'h': the result is undefined",
    ),
    "a level onto itself": (
        {"copy": {"from": "i", "to": "i"}},
        "SR-COPY-002", "", "the copy reads bytes of 'i' that it also writes through 'i': the result is undefined",
    ),
    "levels of different sizes": (
        {"copy": {"from": "i", "to": place("i", lod=1)}},
        "SR-COPY-003", "",
        "image 'i' has 4 x 4 texels of VK_FORMAT_R8G8B8A8_UNORM; image 'i', mip level 1, has 2 x 2 texels of"
        " VK_FORMAT_R8G8B8A8_UNORM",
    ),
    "another number of bytes": (
        {"copy": {"from": "x", "to": "i"}},
        "SR-COPY-003", "", "32 bytes of buffer 'x' are copied to image 'i', whose mip level 0 has 64",
    ),
    "an offset between texels": (
        {"copy": {"from": place("x", offset=2), "to": place("i", lod=1), "size": 16}},
        "SR-COPY-001", "/from/offset", "the offset 2 in buffer 'x' is not a multiple of 4",
    ),
    "a compressed level": (
        {"copy": {"from": "b", "to": "x"}},
        "SR-COPY-003", "/from", "image 'b' of VK_FORMAT_BC1_RGB_UNORM_BLOCK cannot be copied",
    ),
    "depth with stencil": (
        {"copy": {"from": "s", "to": "x"}},
        "SR-COPY-003", "/from", "image 's' of VK_FORMAT_D32_SFLOAT_S8_UINT cannot be copied",
    ),
    "a layout of tensors": (
        {"fill": {"resource_ref": "moved", "value": 0}},
        "SR-IMAGE-011", "", "mip level 0 of image 'moved' is in the layout tensor_aliasing here;"
        " the command needs it in general",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong(scene: Scene, program: Program, shader_cache: Path, case: str) -> None:
    """A wrong command is one error of validate and of a run, which ends with exit code 3 and writes nothing."""
    command, code, inside, message = WRONG[case]
    scene.buffer("x", size=32).buffer("y", size=16).image("i", "R8G8B8A8_UNORM", size=(4, 4), mips=2, dst="i.dds")
    scene.image("u", "R8_UINT", size=(4, 4)).image("d", "D32_SFLOAT", size=(4, 4)).image(
        "b", "BC1_RGB_UNORM_BLOCK", size=(4, 4)
    )
    scene.image("s", "D32_SFLOAT_S8_UINT", size=(2, 2)).image("moved", "R8_UNORM", size=(4, 4), tiling="OPTIMAL")
    for uid, offset in (("g", 0), ("h", 24)):
        scene.buffer(uid, size=32 if uid == "g" else 16, memory_group={"id": "group", "offset": offset})
    scene.barrier("move", "moved", layouts=("general", "tensor_aliasing"))
    if "moved" in str(command):
        scene.command("dispatch_barrier", image_barrier_refs=["move"])
    scene.commands.append(command)
    path = scene.write()
    (finding,) = findings_of(path)
    (kind,) = command
    assert (finding.code, finding.message) == (code, message)
    assert finding.pointer == f"/commands/{len(scene.commands) - 1}/{kind}{inside}"
    ended = program.fail(3, path.name)
    assert message in ended.err
    assert not list(scene.folder.glob("*.out.npy"))


def test_settings_without_effect(scene: Scene) -> None:
    """Keys of buffers on images, keys of images on buffers, and a copy that nothing reads, are warnings."""
    scene.buffer("x", size=16).buffer("y", size=16, dst=None).image("i", "R8_UINT", size=(4, 4), dst="i.npy")
    scene.command("fill", resource_ref="x", value=1, lod=1).command("fill", resource_ref="i", value=1, offset=4)
    scene.command("copy", **{"from": "i", "to": "x", "size": 16}).command("copy", **{"from": "x", "to": "y"})
    found = [(finding.code, finding.pointer, finding.message) for finding in findings_of(scene.write())]
    assert found == [
        ("SR-CONFLICT-002", "/commands/0/fill/lod", "has no effect on the buffer 'x'"),
        ("SR-CONFLICT-002", "/commands/1/fill/offset", "has no effect on the image 'i'"),
        ("SR-CONFLICT-002", "/commands/2/copy/size", "has no effect: a copy from an image reads a whole mip level"),
        ("SR-COPY-004", "/commands/3/copy/to", "the copy to buffer 'y' has no effect: nothing reads it"),
    ]


def test_copy_to_an_output_of_python(scene: Scene, runner: Runner) -> None:
    """A copy to a resource that the caller reads back has an effect."""
    scene.buffer("x", COUNT).buffer("y", size=32, dst=None).command("copy", **{"from": "x", "to": "y"})
    result = runner.run(scene.write(), outputs=["y"])
    assert result.warnings == ()
    assert (result.array("y", "u4") == COUNT).all()


def simple(scene: Scene) -> Path:
    scene.buffer("x", COUNT).buffer("y", size=32).command("fill", resource_ref="x", value=0, size=16, dtype="uint32")
    return scene.command("copy", debug_name="all", **{"from": "x", "to": "y"}).write()


def test_times_and_labels(scene: Scene, program: Program) -> None:
    """Profiles, traces and debug labels name fills and copies."""
    path = simple(scene)
    program.succeed("--profiling-dump-path", "times.json", "--debug-labels", path.name)
    times = json.loads((scene.folder / "times.json").read_text(encoding="utf-8"))
    assert [(entry["Command type"], entry["Command name"]) for entry in times["Timestamps"]] == [
        ("Fill", "x"),
        ("Copy", "all"),
    ]


def test_dumps(scene: Scene, program: Program) -> None:
    """A dump after a fill or a copy has the resource that the command changes."""
    path = simple(scene)
    program("--dump-after", "0", "--dump-after", "1", "--dump-dir", "dumps", path.name, exit_code=0)
    dumped = {file.name: numpy.load(file).view("u4").tolist() for file in (scene.folder / "dumps").rglob("*.npy")}
    assert list(dumped.values()) == [[0, 0, 0, 0, 4, 5, 6, 7]] * 2


def test_stored_plan(scene: Scene, program: Program) -> None:
    """A second run takes the plan from the cache, with the same results."""
    path = simple(scene)
    for _ in range(2):
        program.succeed(path.name)
        assert scene.output("y", "u4").tolist() == [0, 0, 0, 0, 4, 5, 6, 7]


def test_pack(scene: Scene, program: Program) -> None:
    """A packed scenario gives the same results."""
    program.succeed("pack", simple(scene).name, "--output", "packed")
    program.succeed("packed/scenario.json")
    assert numpy.load(scene.folder / "packed" / "y.out.npy").view("u4").tolist() == [0, 0, 0, 0, 4, 5, 6, 7]


def test_in_python(runner: Runner) -> None:
    """Models in code, their JSON and their picture in a notebook; `from` is called `from_` in code."""
    buffers = [
        Buffer(uid="x", data=COUNT, shader_access="readonly"),
        Buffer(uid="y", size=32, shader_access="writeonly"),
    ]
    fill = Fill(resource_ref="y", value=7, dtype="uint32")
    commands = [fill, Copy(from_={"resource_ref": "x", "offset": 4}, to="y", size=8)]
    scenario = Scenario(resources=buffers, commands=commands)
    assert runner.run(scenario).array("y", "u4").tolist() == [1, 2] + [7] * 6
    assert "from: {resource_ref: x, offset: 4}" in scenario._repr_html_()
    without_data = Scenario(resources=[buffers[1]], commands=[fill])
    assert loads(without_data.to_json()).commands == without_data.commands
    tree = {"resources": [{"buffer": {"uid": "x", "size": 8, "shader_access": "readwrite"}}]}
    again = from_dict(
        {**tree, "commands": [{"copy": {"from": "x", "to": {"resource_ref": "x", "offset": 4}, "size": 4}}]}
    )
    assert json.loads(again.to_json())["commands"] == [
        {"copy": {"from": {"resource_ref": "x"}, "to": {"resource_ref": "x", "offset": 4}, "size": 4}}
    ]
