"""Drawings on a device that fails or lacks graphics, and how often the driver is asked for their pipelines."""

from pathlib import Path

import numpy
import pytest

from tests.gpu.fragment_scenes import draw, fragment, output, target, vertex
from tests.program import Program
from tests.scenes import Scene, glsl
from tests.vulkan.test_faults import DEVICE_MEMORY, walked

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
    ended = program("scenario.json", env={**fault_layer, **NO_GRAPHICS})
    assert (ended.code, ended.out) == (6, "")
    place, _, message = ended.err.partition(": /commands/0/dispatch_fragment: ")
    assert place.startswith("error: scenario.json:")
    assert message.startswith("a drawing needs a queue family with graphics and compute, which '")
    assert "' lacks [SR-FEATURE-004]" in message or "' lacks\n" in message
    assert not list(drawing.folder.glob("*.out.npy"))


def test_computing_takes_no_graphics(program: Program, scene: Scene, fault_layer: dict[str, str]) -> None:
    """The same device runs a scenario without drawings."""
    scene.shader("set", glsl("a[gl_WorkGroupID.x] = 5u;", "layout(binding = 0) buffer A { uint a[]; };\n"))
    scene.buffer("b", size=16).dispatch("set", ["b"], [4]).write()
    ended = program("scenario.json", env={**fault_layer, **NO_GRAPHICS})
    assert (ended.code, ended.err) == (0, "")
    assert scene.output("b", "u4").tolist() == [5] * 4


def test_pipelines_are_made_once(program: Program, drawing: Scene, fault_layer: dict[str, str]) -> None:
    """Equal shaders and formats are one pipeline, in one scenario and over several; also when plans come from the
    cache."""
    log, cache = drawing.folder / "log", str(drawing.folder / "cache")
    call = "vkCreateGraphicsPipelines"
    for _ in range(2):
        log.write_text("")
        environment = {**fault_layer, "FAULT_LOG": str(log), "FAULT_CALL": call, "SCENARIO_RUNNER_CACHE": cache}
        ended = program(*["scenario.json"] * 3, "--output", "out", env=environment)
        assert (ended.code, ended.err) == (0, "")
        assert log.read_text().splitlines() == [call, "END"]
    expected = numpy.tile(numpy.arange(7, 71, dtype="u4"), 2)
    assert (numpy.load(drawing.folder / "out" / "x.out.npy").ravel() == expected).all()
    assert (numpy.load(drawing.folder / "out" / "b.out.npy").view("u4") == expected).all()


def test_every_call_fails_once(drawing: Scene, shader_cache: Path, fault_layer: dict[str, str]) -> None:
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
