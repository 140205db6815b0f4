"""Runs as capture tools see them, in the log of a layer: frames, object names and labels."""

from pathlib import Path

import numpy
import pytest

from scenario_runner.vulkan.layers import GRAPH_LAYER, TENSOR_LAYER
from tests.gpu.ml_scenes import emulation_layers
from tests.layers import layer_from
from tests.program import Program
from tests.scenes import Scene, glsl

END_OF_FRAME = "insert vr-marker,frame_end,type,application"
ONE = "layout(set = 0, binding = 0) buffer A { uint a[]; };\n"
SOURCE = Path(__file__).with_name("tool_layer.c")


layer = layer_from(SOURCE)
# A tool that brings VK_EXT_frame_boundary, which the driver lacks.
boundary_layer = layer_from(SOURCE, ["VK_EXT_frame_boundary"])


def seen(scene: Scene, program: Program, layer: dict[str, str], *options: str) -> list[str]:
    """Run the scenario, and return the layer's log."""
    log = scene.folder / "log"
    log.unlink(missing_ok=True)
    scene.write()
    program("scenario.json", *options, env={**layer, "TOOL_LOG": str(log)}, exit_code=0)
    return log.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def two_frames(scene: Scene) -> Scene:
    """A frame that captures a buffer and an image, one that captures nothing, and a command after them."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE)).buffer("x", numpy.zeros(4, numpy.uint32))
    keys = {"dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite"}
    scene.resource("image", uid="picture", **keys)
    scene.dispatch("add", ["x"], [4]).command("mark_boundary", resources=["x", "picture"], frame_id=7)
    scene.dispatch("add", ["x"], [4]).dispatch("add", ["x"], [4]).command("mark_boundary", resources=[], frame_id=9)
    return scene.dispatch("add", ["x"], [4])


def test_frame_boundaries_of_a_layer(two_frames: Scene, program: Program, boundary_layer: dict[str, str]) -> None:
    """With VK_EXT_frame_boundary each frame has the scenario's id and its resources, and later iterations continue
    the count."""
    log = seen(two_frames, program, boundary_layer, "--repeat", "2")
    frames = [line for line in log if line.startswith("frame ")]
    # 2 is the frame of the command after the last boundary
    assert frames == [f"frame {number} 1 {counts}" for number, counts in (
        (7, "1 1 0"), (9, "0 0 0"), (2, "0 0 0"), (18, "1 1 0"), (20, "0 0 0"), (13, "0 0 0"),
    )]  # fmt: skip
    assert END_OF_FRAME not in log


def test_frame_boundaries_can_be_disabled(two_frames: Scene, program: Program, boundary_layer: dict[str, str]) -> None:
    """With --disable-extension the label stands for the end of each frame."""
    log = seen(two_frames, program, boundary_layer, "--disable-extension", "VK_EXT_frame_boundary")
    assert not [line for line in log if line.startswith("frame ")]
    assert log.count(END_OF_FRAME) == 3


def test_frame_ends_are_labels_elsewhere(two_frames: Scene, program: Program, layer: dict[str, str]) -> None:
    """Without the extension each frame's command buffer ends with the label that tools know, in one submission for
    each frame."""
    log = seen(two_frames, program, layer)
    assert log.count(END_OF_FRAME) == 3
    at = [index for index, line in enumerate(log) if line == END_OF_FRAME]
    assert [log[index + 1] for index in at] == ["submit 1"] * 3
    between = log[at[0] + 2 : at[1]]
    assert not [line for line in between if line.startswith("submit")]


def test_labels_and_names(two_frames: Scene, program: Program, layer: dict[str, str]) -> None:
    """Frames and commands have labels, which nest; resources and pipelines have the names of the scenario."""
    log = seen(two_frames, program, layer)
    assert {"name 9 x", "name 10 picture", "name 19 add", "name 6 frame 7", "name 6 frame 9"} <= set(log)
    labels = [line for line in log if line.partition(" ")[0] in ("begin", "end", "insert")]
    command = "begin command {}: add"
    assert labels == [
        "begin frame 7", command.format(0), "end", "end", END_OF_FRAME,
        "begin frame 9", command.format(2), "end", command.format(3), "end", "end", END_OF_FRAME,
        "begin command 5", command.format(5), "end", "end", END_OF_FRAME,
    ]  # fmt: skip


def test_views_of_images_have_names(scene: Scene, program: Program, layer: dict[str, str]) -> None:
    """Tools that are about a view, such as a hazard of an image in a shader, can name the image."""
    scene.shader("store", glsl("imageStore(p, ivec2(0), vec4(1));", "layout(rgba8, binding = 0) uniform image2D p;"))
    keys = {"dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite"}
    scene.resource("image", uid="picture", **keys).dispatch("store", ["picture"])
    assert {"name 10 picture", "name 14 picture"} <= set(seen(scene, program, layer))


def test_nothing_is_labelled_without_a_tool(two_frames: Scene, program: Program, layer: dict[str, str]) -> None:
    """A layer that the environment does not name sees no label, unless --debug-labels (or the reference's
    --enable-gpu-debug-markers) asks for them."""
    hidden = {key: value for key, value in layer.items() if key != "VK_INSTANCE_LAYERS"}
    manifest = next(Path(layer["VK_ADD_LAYER_PATH"]).glob("*.json"))
    implicit = two_frames.folder / "implicit_layer.d"
    implicit.mkdir()
    text = manifest.read_text(encoding="utf-8")
    text = text.replace('"type"', '"disable_environment": {"NO_TOOL": "1"}, "type"')
    (implicit / "tool.json").write_text(text, encoding="utf-8")
    hidden["VK_ADD_IMPLICIT_LAYER_PATH"] = str(implicit)
    home = two_frames.folder / "home" / ".local" / "share" / "vulkan" / "implicit_layer.d"
    home.mkdir(parents=True)
    (home / "tool.json").write_text(text, encoding="utf-8")
    hidden |= {"HOME": str(two_frames.folder / "home"), "XDG_DATA_HOME": str(home.parent.parent)}
    log = seen(two_frames, program, hidden)
    assert {line.partition(" ")[0] for line in log} == {"submit"}
    for option in ("--debug-labels", "--enable-gpu-debug-markers"):
        assert "begin command 0: add" in seen(two_frames, program, hidden, option)


@pytest.mark.parametrize("loaded_by", ["the program", "the environment"])
def test_tensors_under_the_emulation_layers(
    scene: Scene, program: Program, layer: dict[str, str], loaded_by: str
) -> None:
    """Handles that are the emulation layers' own get no names; the run works as without a tool."""
    if loaded_by == "the environment":
        libraries, manifests = emulation_layers(scene)
        layer = {
            **layer,
            "VK_INSTANCE_LAYERS": f"{GRAPH_LAYER}:{TENSOR_LAYER}:{layer['VK_INSTANCE_LAYERS']}",
            "VK_ADD_LAYER_PATH": f"{manifests}:{layer['VK_ADD_LAYER_PATH']}",
            "LD_LIBRARY_PATH": libraries,
        }
    scene.tensor("t", dims=[4]).buffer("x", numpy.zeros(4, numpy.uint32))
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE)).dispatch("add", ["x"], [4])
    scene.command("mark_boundary", resources=["t", "x"])
    log = seen(scene, program, layer, "--capture-dir", "captured")
    assert "name 9 x" in log
    assert not [line for line in log if line.endswith(" t")]


def test_long_frames_have_labels_of_groups(scene: Scene, program: Program, layer: dict[str, str]) -> None:
    """In a frame of many commands some that follow each other share a label; the result is right."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE)).buffer("x", numpy.zeros(1, numpy.uint32))
    for _ in range(1100):
        scene.dispatch("add", ["x"])
    log = seen(scene, program, layer)
    begun = [line for line in log if line.startswith("begin from")]
    assert begun[:2] == ["begin from command 0: add", "begin from command 32: add"]
    assert len(begun) == 35
    assert log.count("end") == 36
    assert scene.output("x", "u4").tolist() == [1100]
