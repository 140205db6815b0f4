"""Mip levels: made on the device from the content, or taken from the file."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from scenario_runner.files.dds import DdsReader
from tests.gpu.image_scenes import add_image, binding, dispatch, format_of, per_texel, storage, texels
from tests.image_files import read_image_header, write_dds
from tests.scenes import Scene


def halved(array: Any) -> Any:
    """The mean of each two by two texels; of an array with even sides."""
    rows = array[0::2].astype(numpy.float64) + array[1::2]
    return (rows[:, 0::2] + rows[:, 1::2]) / 4


@pytest.mark.parametrize("name, steps", [("R32G32B32A32_SFLOAT", 0.0), ("R8G8B8A8_UNORM", 1.01)])
def test_levels_are_means(scene: Scene, both: Runner, name: str, steps: float) -> None:
    """Each level is the mean of the level above, down to one texel, give or take the rounding to ``steps``."""
    content = texels(name, 32, 16)
    add_image(scene, "x", name, content, mips=5)
    result = both.run(scene.write())
    assert (result["x"] == content).all()
    for number in range(1, 5):
        level = result.level("x", number)
        assert level.shape == (16 >> number, 32 >> number, 4)
        above = result.level("x", number - 1)
        numpy.testing.assert_allclose(level, halved(above), rtol=1e-5, atol=steps * number or 1e-6)


@pytest.mark.parametrize("name", ["R8G8B8A8_UINT", "R32_SINT", "R16G16B16A16_UINT", "R8_UINT"])
def test_levels_of_integers(scene: Scene, both: Runner, name: str) -> None:
    """Levels of an integer image hold integers of the level above, one of each two by two: no filter mixes them."""
    content = texels(name, 16, 8)
    add_image(scene, "x", name, content, mips=5)
    result = both.run(scene.write())
    above = content
    for number in range(1, 5):
        level = result.level("x", number)
        height, width = level.shape[:2]
        steps = (max(1, above.shape[0] // height), max(1, above.shape[1] // width))
        choices = [above[y :: steps[0], x :: steps[1]] for y in range(steps[0]) for x in range(steps[1])]
        assert numpy.logical_or.reduce([(level == choice).all(axis=-1) for choice in choices]).all()
        above = level


@pytest.mark.parametrize(
    "name, content, shapes",
    [
        ("R32_SFLOAT", numpy.full((5, 13, 1), 3, "f4"), [(5, 13, 1), (2, 6, 1), (1, 3, 1), (1, 1, 1)]),
        (
            "D32_SFLOAT",
            (numpy.arange(64, dtype="f4") / 64).reshape(8, 8, 1),
            [(8, 8, 1), (4, 4, 1), (2, 2, 1), (1, 1, 1)],
        ),
    ],
)
def test_odd_sizes_and_depths(scene: Scene, both: Runner, name: str, content: Any, shapes: list[Any]) -> None:
    """Levels of an image with odd sides are half as large, rounded down, and at least one texel; those of a depth image
    hold depths of the level above."""
    add_image(scene, "x", name, content, mips=4)
    result = both.run(scene.write())
    for number, shape in enumerate(shapes):
        level, above = result.level("x", number), result.level("x", max(0, number - 1))
        assert level.shape == shape
        if name == "D32_SFLOAT":
            assert numpy.isin(level, above).all()
        else:
            numpy.testing.assert_allclose(level, 3.0, rtol=1e-6)


@pytest.mark.parametrize("mips", [5, 3])
def test_levels_from_a_file(scene: Scene, both: Runner, mips: int) -> None:
    """A .dds file with fewer levels than the image gives its own, and the rest is made from its last one."""
    name = "R32G32B32A32_SFLOAT"
    levels = [texels(name, 16 >> number, 16 >> number, seed=number) for number in range(3)]
    write_dds(scene.folder / "x.dds", format_of(name), 16, 16, [level.tobytes() for level in levels])
    add_image(scene, "x", name, size=(16, 16), mips=mips, src="x.dds", dst="y.dds")
    result = both.run(scene.write())
    for number, level in enumerate(levels):
        assert (result.level("x", number) == level).all()
    if mips == 5:
        numpy.testing.assert_allclose(result.level("x", 3), halved(levels[2]), rtol=1e-5, atol=1e-6)
    assert read_image_header(scene.folder / "y.dds")[1:] == (16, 16, mips)
    with DdsReader(scene.folder / "y.dds") as stored:
        for number in range(mips):
            data = bytearray(stored.level_size_bytes(number))
            stored.read_into(memoryview(data), number)
            assert data == result.level("x", number).tobytes()


@pytest.mark.parametrize("mips, most", [(5, 4), (32, 4)])
def test_more_levels_than_there_are(scene: Scene, runner: Runner, mips: int, most: int) -> None:
    """More levels than the size allows is an error that says how many there can be."""
    add_image(scene, "x", "R8_UNORM", size=(8, 3), mips=mips)
    problem = scene.refusal(runner.run)
    assert f"image 'x' has {mips} mip levels; 8x3 texels have {most} at most" in problem.message
    assert problem.pointer == "/resources/0/image/mips"


def test_lod_of_a_sampled_image(scene: Scene, both: Runner) -> None:
    """A sampled binding with a lod shows that level alone, as its level 0; without one all levels."""
    declarations = "layout(set = 0, binding = 0) uniform sampler2D src;\n" + storage(1, "R32_SFLOAT", "dst")
    body = "imageStore(dst, p, vec4(textureQueryLevels(src) * 1000 + textureSize(src, 0).x));"
    scene.shader("query", per_texel(body, declarations))
    add_image(scene, "x", "R32_SFLOAT", size=(16, 16), mips=5)
    for number, keys in enumerate([{}, {"lod": 0}, {"lod": 3}]):
        add_image(scene, f"y{number}", "R32_SFLOAT", size=(1, 1))
        dispatch(scene, "query", [binding(0, "x", **keys), binding(1, f"y{number}")], (1, 1))
    result = both.run(scene.write())
    assert [result[f"y{number}"].item() for number in range(3)] == [5016, 1016, 1002]


def test_compressed_levels(scene: Scene, both: Runner) -> None:
    """Block-compressed images bring all their levels in the file; missing ones cannot be made and are refused."""
    format = format_of("BC7_UNORM_BLOCK")
    sizes = [(16, 12), (8, 6), (4, 3), (2, 1), (1, 1)]
    random = numpy.random.default_rng(7)
    levels = [random.bytes(format.level_size_bytes(*size)) for size in sizes]
    write_dds(scene.folder / "x.dds", format, 16, 12, levels)
    write_dds(scene.folder / "short.dds", format, 16, 12, levels[:2])
    add_image(scene, "x", "BC7_UNORM_BLOCK", size=(16, 12), mips=5, src="x.dds", dst="y.dds")
    both.run(scene.write())
    assert (scene.folder / "y.dds").read_bytes() == (scene.folder / "x.dds").read_bytes()
    add_image(scene, "z", "BC7_UNORM_BLOCK", size=(16, 12), mips=5, src="short.dds")
    with pytest.raises(UnsupportedError, match="its file must hold all mip levels"):
        both.run(scene.write())


def test_png_and_npy_hold_the_first_level(scene: Scene, both: Runner) -> None:
    """Files without levels get the first one, and are read back without the others."""
    content = texels("R8G8B8A8_UNORM", 8, 8)
    add_image(scene, "x", "R8G8B8A8_UNORM", content, mips=4, dst="x.out.npy")
    add_image(scene, "y", "R8G8B8A8_UNORM", content, mips=4, dst="y.png")
    path = scene.write()
    both.run_to_files(path)
    assert (numpy.load(scene.folder / "x.out.npy")[0] == content).all()
    assert both.plan(path).resources["x"].size_bytes == content.nbytes
    assert png_size(scene.folder / "y.png") == (8, 8)


def png_size(path: Path) -> tuple[int, int]:
    """Width and height from the header chunk."""
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height
