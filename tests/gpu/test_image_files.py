"""Image files in and out of the device; mip levels, made on the device from the content or taken from the file."""

import struct
from pathlib import Path
from typing import Any

import imageio.v3
import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError, UnsupportedError
from scenario_runner.files.dds import DdsReader
from tests.gpu.image_scenes import format_of, per_texel, storage, texels
from tests.image_files import read_image_header, write_dds
from tests.scenes import Scene, at_level


@pytest.mark.parametrize("source, target", [("dds", "npy"), ("npy", "dds"), ("png", "png"), ("png", "dds")])
def test_conversions(scene: Scene, both: Runner, source: str, target: str) -> None:
    """Texels go from any kind of file to any other without a change."""
    content = texels("R8G8B8A8_UNORM", 19, 11)
    name = f"in.{source}"
    if source == "dds":
        write_dds(scene.folder / name, format_of("R8G8B8A8_UNORM"), 19, 11, [content.tobytes()])
    elif source == "npy":
        numpy.save(scene.folder / name, content[None])
    else:
        imageio.v3.imwrite(scene.folder / name, content)
    scene.image("x", "R8G8B8A8_UNORM", size=(19, 11), src=name, dst=f"results/out.{target}")
    both.run_to_files(scene.write())
    path = scene.folder / "results" / f"out.{target}"
    if target == "npy":
        got: Any = numpy.load(path)[0]
    elif target == "png":
        got = imageio.v3.imread(path)
    else:
        with DdsReader(path) as stored:
            data = bytearray(stored.level_size_bytes())
            stored.read_into(memoryview(data))
        got = numpy.frombuffer(data, numpy.uint8).reshape(content.shape)
    assert (got == content).all()
    assert scene.leftovers() == []


def test_depth_and_stencil(scene: Scene, both: Runner) -> None:
    """Depths and stencils of a .dds file come back in the file that is written, and in the result."""
    depth = numpy.random.default_rng(1).random((7, 9), numpy.float32)
    stencil = numpy.random.default_rng(2).integers(0, 256, (7, 9), numpy.uint8)
    format = format_of("D32_SFLOAT_S8_UINT")
    write_dds(scene.folder / "in.dds", format, 9, 7, [depth.tobytes()], [stencil.tobytes()])
    scene.image("x", "D32_SFLOAT_S8_UINT", size=(9, 7), src="in.dds", dst="out.dds")
    result = both.run(scene.write())
    assert (result["x"][..., 0] == depth).all()
    assert (result.level("x", 0, "stencil")[..., 0] == stencil).all()
    assert (scene.folder / "out.dds").read_bytes() == (scene.folder / "in.dds").read_bytes()


def test_depth_file_as_float_image(scene: Scene, both: Runner) -> None:
    """A D32_SFLOAT_S8_UINT file serves an R32_SFLOAT image with its depths, which shaders can write to."""
    depth = numpy.random.default_rng(1).random((7, 9), numpy.float32)
    write_dds(scene.folder / "in.dds", format_of("D32_SFLOAT_S8_UINT"), 9, 7, [depth.tobytes()])
    scene.shader("double", per_texel("imageStore(dst, p, imageLoad(dst, p) * 2.0);", storage(0, "R32_SFLOAT", "dst")))
    scene.image("x", "R32_SFLOAT", size=(9, 7), src="in.dds", dst="out.npy").dispatch("double", ["x"], (9, 7))
    both.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "out.npy")[0, ..., 0] == depth * 2).all()


def test_packed_depth_and_stencil(scene: Scene, both: Runner) -> None:
    """Items of a .npy file with 24 bits of depth below the stencil keep both, and so does a .dds file."""
    items = numpy.random.default_rng(4).integers(0, 2**32, (5, 6, 1), numpy.uint32)
    scene.image("x", "D24_UNORM_S8_UINT", items, dst="out.npy").image("y", "D24_UNORM_S8_UINT", items, dst="out.dds")
    result = both.run(scene.write())
    assert (result["x"] == items).all()
    assert (result.level("x", 0, "stencil") == items >> 24).all()
    assert (numpy.load(scene.folder / "out.npy")[0] == items).all()
    assert (scene.folder / "out.dds").read_bytes()[148:] == items.tobytes()


@pytest.mark.parametrize("name", ["BC1_RGBA_UNORM_BLOCK", "BC3_SRGB_BLOCK", "BC5_SNORM_BLOCK", "BC6H_UFLOAT_BLOCK"])
def test_block_compressed_files(scene: Scene, both: Runner, name: str) -> None:
    """Blocks pass through the device bit by bit, edges of incomplete blocks included."""
    format = format_of(name)
    blocks = numpy.random.default_rng(5).bytes(format.level_size_bytes(18, 7))
    write_dds(scene.folder / "in.dds", format, 18, 7, [blocks])
    scene.image("x", name, size=(18, 7), src="in.dds", dst="out.dds")
    result = both.run(scene.write())
    assert result["x"].tobytes() == blocks
    assert (scene.folder / "out.dds").read_bytes() == (scene.folder / "in.dds").read_bytes()


@pytest.mark.parametrize(
    "name, dst, message",
    [
        ("R8G8B8A8_UNORM", "x.tga", "has the extension '.tga'"),
        ("R32_SFLOAT", "x.png", "x.png"),
        ("R64_SINT", "x.dds", "it has no DXGI_FORMAT"),
        ("BC1_RGBA_UNORM_BLOCK", "x.npy", "NumPy has no block-compressed types"),
    ],
)
def test_destinations_are_checked_first(scene: Scene, runner: Runner, name: str, dst: str, message: str) -> None:
    """A dst that cannot hold the image is an error before anything runs, at the scenario's dst."""
    scene.image("x", name, size=(4, 4), dst=dst)
    problem = scene.refusal(runner.run, FileError)
    assert message in problem.message
    assert problem.pointer == "/resources/0/image/dst"
    assert list(scene.folder.glob("x.*")) == []


def test_nothing_is_written_when_a_file_fails(scene: Scene, runner: Runner) -> None:
    """When one destination cannot be written none appears."""
    content = texels("R8G8B8A8_UNORM", 4, 4)
    (scene.folder / "b.dds").mkdir()
    for uid in ("a", "b"):
        scene.image(uid, "R8G8B8A8_UNORM", content, dst=f"{uid}.dds")
    with pytest.raises(FileError, match="is a folder"):
        runner.run_to_files(scene.write())
    assert not (scene.folder / "a.dds").exists()
    assert scene.leftovers() == []


def halved(array: Any) -> Any:
    """The mean of each two by two texels; of an array with even sides."""
    rows = array[0::2].astype(numpy.float64) + array[1::2]
    return (rows[:, 0::2] + rows[:, 1::2]) / 4


@pytest.mark.parametrize("name", ["R8G8B8A8_UINT", "R32_SINT", "R16G16B16A16_UINT", "R8_UINT"])
def test_levels_of_integers(scene: Scene, both: Runner, name: str) -> None:
    """Levels of an integer image hold integers of the level above, one of each two by two: no filter mixes them."""
    content = texels(name, 16, 8)
    scene.image("x", name, content, mips=5)
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
    """A level has half the size of the level above, rounded down, and at least one texel. Levels of a depth image hold
    depths of the level above."""
    scene.image("x", name, content, mips=4)
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
    scene.image("x", name, size=(16, 16), mips=mips, src="x.dds", dst="y.dds")
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
    scene.image("x", "R8_UNORM", size=(8, 3), mips=mips)
    problem = scene.refusal(runner.run)
    assert f"image 'x' has {mips} mip levels; 8x3 texels have at most {most}" in problem.message
    assert problem.pointer == "/resources/0/image/mips"


def test_lod_of_a_sampled_image(scene: Scene, both: Runner) -> None:
    """A sampled binding with a lod shows that level alone, as its level 0; without one all levels."""
    declarations = "layout(set = 0, binding = 0) uniform sampler2D src;\n" + storage(1, "R32_SFLOAT", "dst")
    body = "imageStore(dst, p, vec4(textureQueryLevels(src) * 1000 + textureSize(src, 0).x));"
    scene.shader("query", per_texel(body, declarations)).image("x", "R32_SFLOAT", size=(16, 16), mips=5)
    for number, binding in enumerate(["x", at_level("x", 0), at_level("x", 3)]):
        scene.image(f"y{number}", "R32_SFLOAT", size=(1, 1)).dispatch("query", [binding, f"y{number}"])
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
    scene.image("x", "BC7_UNORM_BLOCK", size=(16, 12), mips=5, src="x.dds", dst="y.dds")
    both.run(scene.write())
    assert (scene.folder / "y.dds").read_bytes() == (scene.folder / "x.dds").read_bytes()
    scene.image("z", "BC7_UNORM_BLOCK", size=(16, 12), mips=5, src="short.dds")
    with pytest.raises(UnsupportedError, match="its file must contain all mip levels"):
        both.run(scene.write())


def test_png_and_npy_hold_the_first_level(scene: Scene, both: Runner) -> None:
    """Files without levels get the first one, and are read back without the others."""
    content = texels("R8G8B8A8_UNORM", 8, 8)
    scene.image("x", "R8G8B8A8_UNORM", content, mips=4, dst="x.out.npy")
    scene.image("y", "R8G8B8A8_UNORM", content, mips=4, dst="y.png")
    path = scene.write()
    both.run_to_files(path)
    assert (numpy.load(scene.folder / "x.out.npy")[0] == content).all()
    assert both.plan(path).resources["x"].size_bytes == content.nbytes
    assert png_size(scene.folder / "y.png") == (8, 8)


def png_size(path: Path) -> tuple[int, int]:
    """Width and height from the header chunk."""
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height
