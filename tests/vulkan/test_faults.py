"""Each Vulkan call fails once, and drivers that guard mapped memory or lack features."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.vulkan.layers import VALIDATION_LAYER, available_layers
from tests.gpu.fragment_scenes import draw, fragment, output, target, vertex
from tests.gpu.ml_scenes import VGF, bindings, random
from tests.layers import layer_from
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Program
from tests.scenes import Scene, glsl

TWO = "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { uint b[]; };\n"
PUSH = "layout(push_constant) uniform P { uint step; } p;\n"
DISCRETE = "2"
HOST_MEMORY, DEVICE_MEMORY, DEVICE_LOST, TIMEOUT = "-1", "-2", "-4", "2"


def failing(layer: dict[str, str], call: str, at: int = 1, memory: str = "unified", **more: str) -> dict[str, str]:
    """The environment in which a call of the driver fails, with FAULT_... variables."""
    faults = {"FAULT_CALL": call, "FAULT_AT": str(at), **({"FAULT_TYPE": DISCRETE} if memory == "staged" else {})}
    return layer | faults | more


@pytest.fixture
def everything(scene: Scene) -> Scene:
    """A small scenario with a bit of everything."""
    scene.shader("add", glsl("b[gl_WorkGroupID.x] += a[gl_WorkGroupID.x] + p.step;", TWO + PUSH), push_constants_size=4)
    scene.raw_data("step", numpy.array([5], numpy.uint32))
    scene.buffer("x", numpy.array([1, 2, 3, 4], numpy.uint32), dst=None).buffer("y", size=16)
    scene.buffer("z", size=16, memory_group={"id": "shared"}).buffer("w", size=64, memory_group={"id": "shared"})
    scene.dispatch("add", ["x", "y"], [4], push_data_ref="step").command("mark_boundary", resources=["y"])
    scene.dispatch("add", ["y", "z"], [4], push_data_ref="step")
    scene.write()
    return scene


def walked(scene: Scene, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Return the lines of fault_walk.py for every call, with the validation layer below the faults."""
    if VALIDATION_LAYER in [name for name, _, _ in available_layers()]:
        layers = f"{environment['VK_INSTANCE_LAYERS']}{os.pathsep}{VALIDATION_LAYER}"
        environment = {**environment, "VK_INSTANCE_LAYERS": layers}
    log = scene.folder / "log"
    log.write_text("")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fault_walk.py")), str(scene.folder / "scenario.json"), str(log)],
        env={**os.environ, "FAULT_LOG": str(log), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    lines = done.stdout.splitlines()
    reports = [json.loads(line) for line in lines if line.startswith("{")]
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:], reports[-1:], log.read_text())
    assert [line for line in lines if not line.startswith("{")] == []  # where the validation layer would speak
    return reports


Failure = tuple[str, str, str]
NO_MEMORY = (DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY", "SR-DEVICE-003")
LOST = (DEVICE_LOST, "VK_ERROR_DEVICE_LOST", "SR-DEVICE-005")


# Each kind of memory and each error once; the other two pairs take as long.
@pytest.mark.parametrize(
    "memory, failure",
    [
        ("unified", LOST),
        ("staged", NO_MEMORY),
        pytest.param("unified", NO_MEMORY, marks=pytest.mark.heavy),
        pytest.param("staged", LOST, marks=pytest.mark.heavy),
    ],
)
def test_every_call_fails_once(
    everything: Scene, shader_cache: Path, fault_layer: dict[str, str], memory: str, failure: Failure
) -> None:
    """Whichever call fails: the error names it, no file and no object is left, and the Runner works again."""
    result, name, expected_code = failure
    environment = {**fault_layer, "FAULT_RESULT": result, **({"FAULT_TYPE": DISCRETE} if memory == "staged" else {})}
    whole, *reports = walked(everything, environment)
    step = numpy.array([5], numpy.uint32)
    y = numpy.array([1, 2, 3, 4], numpy.uint32) + step
    z = y + step
    for report in [whole, *reports]:
        assert (report["alive"], report["live"], report["ended"]) == ([], {}, True), report
        if report is not whole:
            assert report["error"], report
            _, code, message = report["error"]
            assert report["failed"] is not None
            assert code == expected_code, report
            # the loader asks for the extensions itself, inside of vkCreateDevice
            callers = {report["failed"], report["failed"].replace("EnumerateDeviceExtensionProperties", "CreateDevice")}
            assert any(f"{caller} failed with {name}" in message for caller in callers)
            assert report["left"] == [], report
        assert report["again"] is None, report  # also after a loss: the device is opened again
        outputs = {uid: bytes.fromhex(content)[128:] for uid, content in report["outputs"].items()}
        assert outputs["y.out.npy"] == y.tobytes(), report
        assert outputs["z.out.npy"] == z.tobytes(), report
        assert outputs["w.out.npy"] == z.tobytes() + bytes(48), report
    failed = [report["failed"] for report in reports]
    assert set(failed) >= {
        *("vkCreateInstance", "vkEnumeratePhysicalDevices", "vkCreateDevice"),
        *("vkCreateBuffer", "vkAllocateMemory", "vkBindBufferMemory", "vkMapMemory"),
        *("vkCreateDescriptorSetLayout", "vkCreateDescriptorPool", "vkAllocateDescriptorSets"),
        *("vkCreateShaderModule", "vkCreatePipelineLayout", "vkCreateComputePipelines"),
        *("vkCreateCommandPool", "vkAllocateCommandBuffers", "vkBeginCommandBuffer", "vkEndCommandBuffer"),
        *("vkCreateFence", "vkQueueSubmit", "vkWaitForFences", "vkResetFences"),
    }
    assert failed.count("vkQueueSubmit") >= 4  # two frames, twice
    assert (whole["error"], whole["failed"]) == (None, None)


OUT_OF_BOUNDS = "a shader that reads or writes out of bounds is the usual cause; the system's log may say more"
DOCTOR = "'scenario-runner doctor' shows which loader and drivers are found"
# The exit code, message and help of a call that fails. <place> is a line and a column, <device> the device's name.
FAILURES = [
    ("vkWaitForFences", DEVICE_LOST, 11,
     ":<place>: /commands/2: vkWaitForFences failed with VK_ERROR_DEVICE_LOST (waiting for the submitted commands)",
     OUT_OF_BOUNDS),
    ("vkCreateInstance", "-9", 8, ": vkCreateInstance failed with VK_ERROR_INCOMPATIBLE_DRIVER", DOCTOR),
    ("vkCreateDevice", "-8", 6, ": vkCreateDevice failed with VK_ERROR_FEATURE_NOT_PRESENT ('<device>')", None),
    ("vkCreateComputePipelines", "-13", 7,
     ":<place>: /resources/0/shader: vkCreateComputePipelines failed with VK_ERROR_UNKNOWN (shader 'add')", None),
]  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: f"{failure[0]} {failure[1]}")
def test_exit_codes(
    program: Program, everything: Scene, fault_layer: dict[str, str], device_name: str, failure: tuple[Any, ...]
) -> None:
    """Each kind of failure has an exit code, the failed call, its place and a help."""
    call, result, code, message, help = failure
    at = 2 if call == "vkWaitForFences" else 1
    ended = program.fail(code, "scenario.json", env=failing(fault_layer, call, at, FAULT_RESULT=result))
    expected = f"error: scenario.json{message} <code>\n" + (f"  help: {help}\n" if help else "")
    pattern = re.escape(expected.replace("<device>", device_name)).replace("<place>", r"\d+:\d+")
    pattern = pattern.replace("<code>", r"\[SR-[A-Z]+-\d+\]")
    assert re.fullmatch(pattern, ended.err)
    assert not list(everything.folder.glob("*.out.npy"))


@pytest.mark.parametrize("memory", ["unified", "staged"])
def test_allocation_that_the_device_cannot_give(
    program: Program, scene: Scene, fault_layer: dict[str, str], memory: str
) -> None:
    """A failed allocation names its size, its purpose and its memory, and no output is written."""
    scene.buffer("large", size=3_000_000).buffer("small", size=100).write()
    environment = failing(fault_layer, "vkAllocateMemory", memory=memory, FAULT_RESULT=DEVICE_MEMORY)
    ended = program.fail(9, "scenario.json", env=environment)
    assert re.match(r"error: scenario\.json:\d+:\d+: /resources/0/buffer: vkAllocateMemory failed with ", ended.err)
    assert "VK_ERROR_OUT_OF_DEVICE_MEMORY: 'large', 'small' asked for 2.9 MiB (30" in ended.err
    assert "from a heap of " in ended.err
    assert not list(scene.folder.glob("*.out.npy"))


@pytest.mark.parametrize("pointer", [-1, 0])
@pytest.mark.parametrize("memory", ["unified", "staged"])
def test_memory_mapped_at_an_unusable_address(
    program: Program, scene: Scene, fault_layer: dict[str, str], memory: str, pointer: int
) -> None:
    """A vkMapMemory that succeeds with NULL or with MAP_FAILED, as Mesa's does, is an error and not a crash."""
    scene.buffer("large", size=3_000_000).write()
    environment = failing(fault_layer, "vkMapMemory", memory=memory, FAULT_POINTER=str(pointer))
    ended = program.fail(9, "scenario.json", env=environment)
    where, asked = {
        "unified": (r":\d+:\d+: /resources/0/buffer: ", r"'large' asked for 2\.9 MiB \(3000000 bytes\)"),
        "staged": (": ", r"staging memory asked for 8\.0 MiB \(\d+ bytes\)"),
    }[memory]
    failure = f"vkMapMemory returned VK_SUCCESS and the unusable address {pointer % (1 << 64):#x}: "
    assert re.match(rf"error: scenario\.json{where}{failure}{asked} \[SR-DEVICE-003\]\n  help: ", ended.err)
    assert not list(scene.folder.glob("*.out.npy"))


def test_fence_that_never_signals(program: Program, everything: Scene, fault_layer: dict[str, str]) -> None:
    """A fence that does not signal within --timeout ends with exit code 10; the process does not hang."""
    environment = failing(fault_layer, "vkWaitForFences", FAULT_STAYS="1", FAULT_RESULT=TIMEOUT)
    ended = program.fail(10, "scenario.json", "--timeout", "0.3", env=environment)
    assert "/commands/1/mark_boundary: frame 0 (" in ended.err
    assert " did not finish within 0.3 s [SR-DEVICE-004]\n" in ended.err
    assert not list(everything.folder.glob("*.out.npy"))


def test_next_file_after_a_lost_device(program: Program, everything: Scene, fault_layer: dict[str, str]) -> None:
    """After a lost device the next scenario runs on a new one."""
    everything.write("again.json")
    alone = Scene(everything.folder).buffer("q", numpy.array([3], numpy.uint8))
    alone.write("other.json")
    environment = failing(fault_layer, "vkQueueSubmit", at=2, FAULT_RESULT=DEVICE_LOST)
    ended = program("scenario.json", "other.json", env=environment, exit_code=11)
    assert ended.out.startswith("other.json: ok: ")
    assert alone.output("q").tolist() == [3]


def test_failure_while_reading_back_in_pieces(program: Program, scene: Scene, fault_layer: dict[str, str]) -> None:
    """When the device is lost in the middle of a large result, no part of it and no temporary file is left."""
    scene.buffer("large", size=40 << 20)
    scene.command("mark_boundary", resources=["large"]).write()
    counting = {**fault_layer, "FAULT_TYPE": DISCRETE, "FAULT_CALL": "vkWaitForFences", "FAULT_LOG": "log"}
    assert program("scenario.json", "--capture-dir", "frames", env=counting).code == 0
    waits = (scene.folder / "log").read_text().splitlines().count("vkWaitForFences")
    assert waits >= 8  # clearing, the frame, three pieces of the capture, three of the output
    for number in range(1, waits + 1):
        for path in [*scene.folder.glob("*.out.npy"), *scene.folder.glob("frames/*/*")]:
            path.unlink()
        environment = {**counting, "FAULT_AT": str(number), "FAULT_RESULT": DEVICE_LOST}
        program("scenario.json", "--capture-dir", "frames", env=environment, exit_code=11)
        assert not list(scene.folder.glob("*.out.npy"))
        assert scene.leftovers() == []
        assert {path.stat().st_size for path in scene.folder.glob("frames/*/*")} <= {128 + (40 << 20)}


@needs(VGF_LIBRARY)
@pytest.mark.parametrize("options", [(), ("--no-cache",)], ids=["cached", "no cache"])
def test_graph_pipelines_are_made_once(
    program: Program, fault_layer: dict[str, str], scene: Scene, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Four runs of a model in one call make one pipeline, also when their plans come from the cache."""
    scene.tensor("x", random((5, 16))).tensor("y", dims=[5, 16])
    scene.resource("graph", uid="graph", src=str(VGF / "dynamic.vgf"))
    scenario = scene.command("dispatch_graph", graph_ref="graph", bindings=bindings(["x", "y"])).write()
    log, call = tmp_path / "log", "vkCreateDataGraphPipelinesARM"
    places = {"FAULT_LOG": str(log), "SCENARIO_RUNNER_CACHE": str(tmp_path / "cache")}
    environment = {**fault_layer, "FAULT_CALL": call, **places}
    for _ in range(2):
        log.write_text("")
        ended = program.succeed(*[scenario] * 4, "--output", tmp_path / "out", *options, env=environment)
        assert ended.out.count(": ok: ") == 4
        assert log.read_text().splitlines() == [call, "END"]


NO_GRAPHICS = {"FAULT_QUEUES": "1"}


@pytest.fixture
def drawing(scene: Scene) -> Scene:
    """Two drawings of one pipeline: into an image of its own, and into one that shares memory with a buffer."""
    vertex(scene)
    fragment(scene, "color = 7u + uint(p.x);", output("uint"))
    target(scene, "x", size=(64, 2), dst="x.out.npy")
    target(scene, "y", size=(64, 2), memory_group={"id": "g"})
    scene.buffer("b", size=512, memory_group={"id": "g"})
    draw(scene, ["x"])
    draw(scene, ["y"])
    scene.write()
    return scene


def test_a_device_without_graphics(program: Program, drawing: Scene, fault_layer: dict[str, str]) -> None:
    """Exit code 6, with the device's name and the place of the command; nothing is written."""
    ended = program.fail(6, "scenario.json", env={**fault_layer, **NO_GRAPHICS})
    place, _, message = ended.err.partition(": /commands/0/dispatch_fragment: ")
    assert place.startswith("error: scenario.json:")
    assert message.startswith("a drawing needs a queue family with graphics and compute, which '")
    assert "' lacks [SR-FEATURE-004]" in message or "' lacks\n" in message
    assert not list(drawing.folder.glob("*.out.npy"))


def test_computing_takes_no_graphics(program: Program, scene: Scene, fault_layer: dict[str, str]) -> None:
    """A device without graphics runs a scenario without draws."""
    scene.shader("set", glsl("a[gl_WorkGroupID.x] = 5u;", "layout(binding = 0) buffer A { uint a[]; };\n"))
    scene.buffer("b", size=16).dispatch("set", ["b"], [4]).write()
    program.succeed("scenario.json", env={**fault_layer, **NO_GRAPHICS})
    assert scene.output("b", "u4").tolist() == [5] * 4


def test_pipelines_are_made_once(program: Program, drawing: Scene, fault_layer: dict[str, str]) -> None:
    """Equal shaders and formats are one pipeline, in one scenario and over several; also when plans come from the
    cache."""
    log, cache = drawing.folder / "log", str(drawing.folder / "cache")
    call = "vkCreateGraphicsPipelines"
    for _ in range(2):
        log.write_text("")
        environment = {**fault_layer, "FAULT_LOG": str(log), "FAULT_CALL": call, "SCENARIO_RUNNER_CACHE": cache}
        program.succeed(*["scenario.json"] * 3, "--output", "out", env=environment)
        assert log.read_text().splitlines() == [call, "END"]
    expected = numpy.tile(numpy.arange(7, 71, dtype="u4"), 2)
    assert (numpy.load(drawing.folder / "out" / "x.out.npy").ravel() == expected).all()
    assert (numpy.load(drawing.folder / "out" / "b.out.npy").view("u4") == expected).all()


def test_every_call_of_a_draw_fails_once(drawing: Scene, shader_cache: Path, fault_layer: dict[str, str]) -> None:
    """Whichever call fails: an error that names it, no object is left, and the Runner works again."""
    whole, *reports = walked(drawing, {**fault_layer, "FAULT_RESULT": DEVICE_MEMORY})
    assert whole["error"] is None
    for report in [whole, *reports]:
        assert (report["alive"], report["live"], report["again"]) == ([], {}, None), report
        if report is not whole:
            assert report["error"][0] == "OutOfMemoryError", report
            assert report["left"] == [], report
    failed = [report["failed"] for report in reports]
    assert {"vkCreateGraphicsPipelines", "vkCreateImage", "vkCreateImageView", "vkBindImageMemory"} <= set(failed)
    assert failed.count("vkCreateImage") >= 3  # one of them is what is drawn into in place of "y"


@pytest.mark.parametrize("lacking", [0, 4])
def test_atomic_texels_need_a_format_that_has_them(
    program: Program, scene: Scene, fault_layer: dict[str, str], lacking: int
) -> None:
    """A device without VK_FORMAT_FEATURE_STORAGE_IMAGE_ATOMIC_BIT (4) for a format refuses the image."""
    declarations = "layout(binding = 0, r32ui) uniform uimage2D counts;\n"
    scene.shader("s", glsl("imageAtomicAdd(counts, ivec2(0), 3u);", declarations))
    scene.image("i", "R32_UINT", size=(5, 1), dst="i.npy").dispatch("s", ["i"], [5]).write()
    ended = program("scenario.json", env={**fault_layer, "FAULT_FORMAT_FEATURES": str(lacking)})
    if lacking:
        assert (ended.code, ended.out) == (6, "")
        assert "image 'i' of VK_FORMAT_R32_UINT is not possible on" in ended.err
        assert "it lacks VK_FORMAT_FEATURE_STORAGE_IMAGE_ATOMIC_BIT" in ended.err
    else:
        assert (ended.code, ended.err) == (0, "")
        assert numpy.load(scene.folder / "i.npy").flat[0] == 15


DATA = "layout(binding = 0) buffer A { uint a[]; };\n"
Layer = dict[str, str]  # the environment variables with which the loader loads it


guard_layer = layer_from(Path(__file__).with_name("guard_layer.c"))


def above(layer: Layer, other: Layer) -> Layer:
    """The variables for both layers, ``layer`` nearer to the program."""
    both = {name: os.pathsep.join((layer[name], other[name])) for name in ("VK_ADD_LAYER_PATH", "VK_INSTANCE_LAYERS")}
    return {**other, **layer, **both}


@pytest.mark.parametrize("memory", ["unified", "staged"])
@pytest.mark.parametrize("repeat", [1, 2])
def test_files_of_every_kind(
    program: Program, scene: Scene, guard_layer: Layer, fault_layer: Layer, memory: str, repeat: int
) -> None:
    """Small and large files, in other orders of bytes and axes, go in and out, captured ones too."""
    random = numpy.random.default_rng(3)
    arrays = {
        "small": random.integers(0, 2**31, 25_000, numpy.uint32),
        "large": random.integers(0, 2**31, 9 << 20, numpy.uint32),  # read side by side, in pieces
        "fortran": numpy.asfortranarray(random.integers(0, 2**31, (300, 500), numpy.uint32)),
        "swapped": random.integers(0, 2**31, 50_013, numpy.uint32).astype(">u4"),
    }
    body = "uint i = gl_GlobalInvocationID.x; if (i < a.length()) a[i] += 7u;"
    scene.shader("add", glsl(body, DATA, local_size=256))
    for uid, array in arrays.items():
        scene.buffer(uid, array).dispatch("add", [uid], [36864])
    odd = random.integers(0, 256, 1237, numpy.uint8)
    scene.buffer("odd", odd).buffer("empty", size=100_000).command(
        "mark_boundary", resources=["small"], frame_id=1
    ).write()
    environment = guard_layer
    if memory == "staged":
        environment = {**above(guard_layer, fault_layer), "FAULT_TYPE": DISCRETE, "FAULT_LOG": "log"}
    program.succeed("scenario.json", "--capture-dir", "frames", "--repeat", str(repeat), env=environment)
    for uid, array in arrays.items():
        assert (scene.output(uid, "u4") == array.astype("<u4").reshape(-1) + 7).all(), uid
    assert (scene.output("odd", "u1") == odd).all()
    assert not scene.output("empty").any()
    folder = scene.folder / "frames" / (f"iteration_{repeat - 1}/frame_1" if repeat > 1 else "frame_1")
    assert (numpy.load(folder / "small.npy").view("u4") == arrays["small"] + 7).all()
    if memory == "staged":
        calls = (scene.folder / "log").read_text().splitlines()
        assert calls.count("vkMapMemory") == 1  # the staging buffer alone
        assert calls[-1] == "END"
        assert not [line for line in calls if line.startswith("ALIVE")]


@pytest.mark.parametrize("kind", ["png", "dds", "npy"])
def test_images(program: Program, scene: Scene, guard_layer: Layer, kind: str) -> None:
    """Images of every file format go out and in again."""
    texels = numpy.random.default_rng(5).integers(0, 256, (90, 70, 4), numpy.uint8)
    scene.npy("in.npy", texels)
    keys = {"dims": [1, 70, 90, 1], "mips": 1, "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite"}
    scene.resource("image", uid="i", src="in.npy", dst=f"middle.{kind}", **keys).write("out.json")
    again = Scene(scene.folder).resource("image", uid="i", src=f"middle.{kind}", dst="out.npy", **keys)
    again.write("in.json")
    for name in ("out.json", "in.json"):  # the second reads what the first wrote
        program.succeed(name, env=guard_layer)
    assert (numpy.load(scene.folder / "out.npy").reshape(texels.shape) == texels).all()
