"""Images: every format through the device, shaders that read and write them, arrays in and out."""

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError, UnsupportedError, UsageError
from scenario_runner.files.vk_formats import all_formats
from tests.gpu.image_scenes import LAYOUTS, fetched, per_texel, storage, texels
from tests.scenes import Scene, at_level, error_of

# Formats that every Vulkan device must be able to sample, blit and store (specification, "Required Format Support").
REQUIRED = [name for name in LAYOUTS if name not in ("R16_SFLOAT",)]
COPY = "imageStore(dst, p, imageLoad(src, p));"


def copy_shader(name: str) -> str:
    return per_texel(COPY, storage(0, name, "src", "readonly") + storage(1, name, "dst", "writeonly"))


@pytest.mark.parametrize(
    "name, keys",
    [
        *((name, {}) for name in LAYOUTS),
        ("R8G8B8A8_UNORM", {"tiling": "OPTIMAL"}),
        ("R8G8B8A8_UNORM", {"tiling": "LINEAR"}),
    ],
)
def test_a_shader_copies_every_texel(scene: Scene, both: Runner, name: str, keys: dict[str, str]) -> None:
    """A storage image of each format and tiling is read and written without a bit changing; odd sizes have no edge
    cases."""
    content = texels(name, 13, 7)
    scene.shader("copy", copy_shader(name)).image("src", name, content, **keys)
    scene.image("dst", name, size=(13, 7), dst="dst.npy", **keys).dispatch("copy", ["src", "dst"], (13, 7))
    result = both.run(scene.write())
    assert result["dst"].tobytes() == content.tobytes()
    stored = numpy.load(scene.folder / "dst.npy")
    assert stored.shape == (1, *content.shape)
    assert stored.dtype == content.dtype
    assert stored.tobytes() == content.tobytes()


@pytest.mark.parametrize("format", all_formats(), ids=lambda each: each.name)
def test_every_format_passes_through_or_is_refused(scene: Scene, both: Runner, format: Any) -> None:
    """Texels of any format come out as they went in; a device that lacks the format says so, by name."""
    name = format.name.removeprefix("VK_FORMAT_")
    if format.numpy_dtype is None:
        size = format.level_size_bytes(11, 6)
        content = numpy.random.default_rng(3).integers(0, 256, size, dtype=numpy.uint8)
        scene.image("x", name, size=(11, 6))
    else:
        content = texels(name, 11, 6) if format.numpy_dtype[1] != "V" else numpy.zeros((6, 11, 1), format.numpy_dtype)
        if name == "X8_D24_UNORM_PACK32":
            content &= 0xFF_FFFF
        elif format.aspects == ("depth",) and content.dtype.kind == "f":
            content = numpy.abs(content) / 2
        scene.image("x", name, content)
    refusal = None
    try:
        result = both.run(scene.write(), inputs={"x": content} if format.numpy_dtype is None else None)
    except UnsupportedError as error:
        refusal = str(error)
    if refusal is None:
        assert result["x"].tobytes() == content.tobytes()
        return
    assert format.name in refusal
    assert "lacks" in refusal or "not supported" in refusal
    assert name not in REQUIRED


@pytest.mark.parametrize(
    "name, shader_type, convert",
    [
        ("R8G8B8A8_UNORM", "sampler2D", lambda a: a / numpy.float32(255)),
        ("R8G8B8A8_SNORM", "sampler2D", lambda a: numpy.maximum(a / numpy.float32(127), -1)),
        ("R16G16B16A16_SFLOAT", "sampler2D", lambda a: a.astype("f4")),
        ("R8G8B8A8_UINT", "usampler2D", lambda a: a.astype("f4")),
        ("R8G8B8A8_SINT", "isampler2D", lambda a: a.astype("f4")),
        ("B8G8R8A8_UNORM", "sampler2D", lambda a: a[..., [2, 1, 0, 3]] / numpy.float32(255)),
    ],
)
def test_sampled_texels(scene: Scene, both: Runner, name: str, shader_type: str, convert: Any) -> None:
    """texelFetch of a sampled image gives the number that the format means by its bits."""
    content = texels(name, 9, 5)
    got = fetched(scene, both, name, content, sampler=shader_type)
    numpy.testing.assert_allclose(got, convert(content), rtol=1e-6)


def test_depth_is_sampled(scene: Scene, both: Runner) -> None:
    """A depth image is sampled as its depths."""
    content = (numpy.arange(35, dtype=numpy.float32).reshape(5, 7, 1)) / 64
    texel = "texelFetch(src, p, 0).rrrr"
    assert (
        fetched(scene, both, "D32_SFLOAT", content, into="R32_SFLOAT", texel=texel, dst="depth.npy") == content
    ).all()
    assert (numpy.load(scene.folder / "depth.npy")[0] == content).all()


def test_images_without_content_are_zero(scene: Scene, both: Runner) -> None:
    """An image without src starts as zeros in every level, also when a run is repeated."""
    declarations = storage(0, "R32_UINT", "dst")
    scene.shader("add", per_texel("imageStore(dst, p, imageLoad(dst, p) + 5u);", declarations))
    scene.image("dst", "R32_UINT", size=(8, 4), mips=4).dispatch("add", [at_level("dst", 1)], (4, 2))
    path = scene.write()
    result = both.run(path, repeat=3)
    assert not result.level("dst", 0).any()
    assert (result.level("dst", 1) == 5).all()
    assert not result.level("dst", 2).any()
    assert (both.run(path, repeat=3, keep_state=True).level("dst", 1) == 15).all()


def test_arrays_go_in_and_come_out(scene: Scene, both: Runner) -> None:
    """Inputs replace the file; results have the shape (height, width, items) and the format's own type."""
    scene.shader("copy", copy_shader("R32_SFLOAT")).image("src", "R32_SFLOAT", numpy.zeros((4, 6), numpy.float32))
    scene.image("dst", "R32_SFLOAT", size=(6, 4)).dispatch("copy", ["src", "dst"], (6, 4))
    path = scene.write()
    content = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)
    for given in (content, content[..., None], content[None, ..., None], content.T.copy().T, content.astype(">f4")):
        result = both.run(path, inputs={"src": given})
        assert result["dst"].shape == (4, 6, 1)
        assert result["dst"].dtype == numpy.float32
        assert (result["dst"][..., 0] == content).all()
    assert (both.run(path, inputs={"src": content.tobytes()})["dst"][..., 0] == content).all()


@pytest.mark.parametrize(
    "given, message",
    [
        (
            numpy.zeros((6, 4), numpy.float32),
            "input 'src' has the shape (6, 4); 6x4 texels of VK_FORMAT_R32_SFLOAT are (4, 6, 1) (height, width, items)",
        ),
        (
            numpy.zeros((4, 6), numpy.float64),
            "input 'src' is an array of float64; texels of VK_FORMAT_R32_SFLOAT are float32",
        ),
        (
            numpy.zeros((4, 6), numpy.int32),
            "input 'src' is an array of int32; texels of VK_FORMAT_R32_SFLOAT are float32",
        ),
        (bytes(7), "input 'src' holds 7 bytes; 6x4 texels of VK_FORMAT_R32_SFLOAT are 96"),
    ],
)
def test_arrays_that_do_not_fit(scene: Scene, runner: Runner, given: Any, message: str) -> None:
    """An array of another shape, type or size is refused in a sentence."""
    scene.image("src", "R32_SFLOAT", size=(6, 4))
    assert message in str(error_of(UsageError, runner.run, scene.write(), inputs={"src": given}))


@pytest.mark.parametrize(
    "dims", [[], [4], [4, 4], [1, 4, 4], [2, 4, 4, 1], [1, 4, 4, 4], [1, 0, 4, 1], [1, 4, 4, 1, 1], [0] * 999]
)
def test_dims_are_one_width_height_one(scene: Scene, runner: Runner, dims: list[int]) -> None:
    """Other dims than one width, height and 1 are an error with the expected form."""
    scene.resource("image", uid="x", format="VK_FORMAT_R8_UNORM", dims=dims, shader_access="readonly")
    problem = scene.refusal(runner.run)
    given = str(dims) if len(dims) < 9 else f"[{'0, ' * 33}...{', 0' * 32}]"
    expected = f"image 'x' has dims {given}, expected [1, width, height, 1] of a texel or more"
    assert expected in problem.message
    assert problem.pointer == "/resources/0/image/dims"


def test_a_format_without_storage(scene: Scene, runner: Runner) -> None:
    """A use that the device lacks for a format is refused, naming format, tilings and the missing feature."""
    content = texels("R8G8B8A8_SRGB", 4, 4)
    declarations = "layout(set = 0, binding = 0) uniform writeonly image2D dst;\n"
    scene.shader("store", per_texel("imageStore(dst, p, vec4(1));", declarations))
    scene.image("dst", "R8G8B8A8_SRGB", content).dispatch("store", ["dst"], (4, 4))
    problem = scene.refusal(runner.run, UnsupportedError)
    text = problem.message
    assert "image 'dst' of VK_FORMAT_R8G8B8A8_SRGB is not possible on" in text
    assert "with LINEAR tiling it lacks VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT" in text
    assert "with OPTIMAL tiling it lacks VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT" in text
    assert problem.pointer == "/resources/1/image"


def test_an_image_beyond_the_device(scene: Scene, runner: Runner) -> None:
    """An image larger than the device allows is refused with both sizes, before anything is allocated."""
    scene.image("x", "R8_UNORM", size=(1 << 20, 1))
    with pytest.raises(UnsupportedError, match="1048576"):
        runner.run(scene.write())


def test_an_image_larger_than_the_staging_buffer(scene: Scene, both: Runner) -> None:
    """A 67 MB image with rows of an odd size passes through in pieces."""
    content = numpy.random.default_rng(5).integers(0, 2**32, (4111, 4079, 1), dtype=numpy.uint32)
    scene.image("x", "R32_UINT", size=(4079, 4111), dst="x.dds")
    result = both.run(scene.write(), inputs={"x": content}, write_files=False)
    assert (result["x"] == content).all()


def test_sampled_and_stored_at_once(scene: Scene, both: Runner) -> None:
    """One image may be sampled and stored to by different commands, and by the same one at different levels."""
    declarations = "layout(set = 0, binding = 0) uniform sampler2D src;\n" + storage(1, "R32_SFLOAT", "dst")
    scene.shader("halve", per_texel("imageStore(dst, p, texelFetch(src, p * 2, 0) * 10.0);", declarations))
    content = numpy.arange(64, dtype=numpy.float32).reshape(8, 8)
    scene.image("x", "R32_SFLOAT", content, mips=4)
    for level in (1, 2):
        scene.dispatch("halve", [at_level("x", level - 1), at_level("x", level)], (8 >> level, 8 >> level))
    result = both.run(scene.write())
    assert (result.level("x", 1)[..., 0] == content[::2, ::2] * 10).all()
    assert (result.level("x", 2)[..., 0] == content[::4, ::4] * 100).all()


def test_texture_and_sampler_apart(scene: Scene, both: Runner) -> None:
    """A texture2D and a sampler are two bindings; an image bound to the latter gives its sampler."""
    declarations = (
        "layout(set = 0, binding = 0) uniform texture2D picture;\n"
        "layout(set = 0, binding = 1) uniform sampler taking;\n" + storage(2, "R32_SFLOAT", "dst")
    )
    body = "imageStore(dst, p, textureLod(sampler2D(picture, taking), vec2(0.5, 0.5), 0.0));"
    scene.shader("mix", per_texel(body, declarations))
    scene.image("picture", "R32_SFLOAT", numpy.array([[1, 3]], numpy.float32))
    scene.image("taking", "R32_SFLOAT", size=(1, 1), min_filter="LINEAR", mag_filter="LINEAR")
    scene.image("dst", "R32_SFLOAT", size=(1, 1)).dispatch("mix", ["picture", "taking", "dst"], (1, 1))
    assert both.run(scene.write())["dst"].item() == 2.0


def test_a_missing_file(scene: Scene, runner: Runner) -> None:
    """A missing file of an image is a file error at its src."""
    scene.image("x", "R8_UNORM", size=(4, 4), src="none.dds")
    problem = scene.refusal(runner.run, FileError)
    assert problem.pointer == "/resources/0/image/src"
