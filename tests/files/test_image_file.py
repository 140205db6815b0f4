"""Image files against the declaration of a scenario, their texels, and the table of file formats."""

import struct
from pathlib import Path

import imageio.v3
import numpy
import numpy as np
import pytest

from scenario_runner.errors import FileError
from scenario_runner.files.codec_table import (
    CODECS,
    check_image_format,
    codec_for,
    codec_of,
    create_image,
    is_known,
    open_image,
    stored_levels,
)
from scenario_runner.files.vk_formats import Format, format_named
from tests.image_files import read_image_header, write_dds, write_image
from tests.scenes import error_of


def named(name: str) -> Format:
    return format_named("VK_FORMAT_" + name)


def texels_of(path: Path, declared: Format, width: int, height: int, mip_count: int = 1) -> list[bytes]:
    with open_image(path, declared, width, height, mip_count) as reader:
        levels = []
        for level in range(reader.mip_count):
            data = bytearray(reader.level_size_bytes(level))
            assert reader.read_into(memoryview(data), level) == len(data)
            levels.append(bytes(data))
    return levels


@pytest.mark.parametrize("name", ["R8G8B8A8_UNORM", "R16G16B16A16_UNORM", "B8G8R8_UNORM", "R8_UNORM"])
@pytest.mark.parametrize("extension", [".dds", ".png", ".npy", ".NPY"])
def test_every_kind_of_file_holds_the_same_texels(tmp_path: Path, name: str, extension: str) -> None:
    """A .dds, .png or .npy file gives back the written texels, whole and in parts."""
    declared, path = named(name), tmp_path / ("a" + extension)
    texels = np.random.default_rng(1).bytes(declared.level_size_bytes(6, 4))
    check_image_format(path, declared)
    write_image(path, declared, 6, 4, [texels])
    assert texels_of(path, declared, 6, 4) == [texels]
    assert read_image_header(path)[1:] == (6, 4, 1)
    with open_image(path, declared, 6, 4) as reader:
        part = bytearray(7)
        assert reader.read_into(memoryview(part), 0, 5, 7) == 7
        assert part == texels[5:12]
        with pytest.raises(ValueError, match="were asked for, into 3 bytes"):
            reader.read_into(memoryview(bytearray(3)))


def test_only_dds_files_take_all_levels(tmp_path: Path) -> None:
    """All levels go into a .dds file and come back, the first one goes into others."""
    levels = [bytes([level]) * size for level, size in enumerate([8, 2, 1])]
    assert [stored_levels("x/a" + end, 3) for end in (".dds", ".png", ".npy")] == [3, 1, 1]
    write_image(tmp_path / "a.dds", named("R8_UINT"), 4, 2, levels)
    assert texels_of(tmp_path / "a.dds", named("R8_UINT"), 4, 2, 3) == levels
    assert read_image_header(tmp_path / "a.dds") == (named("R8_UINT"), 4, 2, 3)
    write_image(tmp_path / "a.npy", named("R8_UINT"), 4, 2, levels)
    assert texels_of(tmp_path / "a.npy", named("R8_UINT"), 4, 2) == levels[:1]


def test_an_image_array_has_the_axes_of_the_reference(tmp_path: Path) -> None:
    """A .npy image is [1, height, width, items] when written, and [height, width, items] is read as well."""
    array = np.arange(3 * 5 * 4, dtype="<f2").reshape(1, 3, 5, 4)
    write_image(tmp_path / "a.npy", named("R16G16B16A16_SFLOAT"), 5, 3, [array.tobytes()])
    loaded = np.load(tmp_path / "a.npy")
    assert loaded.dtype == array.dtype
    assert np.array_equal(loaded, array)
    np.save(tmp_path / "b.npy", array[0].astype(">f2"))
    assert texels_of(tmp_path / "b.npy", named("R16G16B16A16_SFLOAT"), 5, 3) == [array.tobytes()]
    np.save(tmp_path / "c.npy", np.arange(15, dtype="<u4").reshape(3, 5))
    assert texels_of(tmp_path / "c.npy", named("B10G11R11_UFLOAT_PACK32"), 5, 3) == [
        np.arange(15, dtype="<u4").tobytes()
    ]


def test_integers_of_either_sign_and_raw_bytes_are_texels(tmp_path: Path) -> None:
    """As in the reference the sign of integers is not looked at, and raw bytes serve any format of their size."""
    for dtype, name in [("i1", "R8G8B8A8_UNORM"), ("u1", "R8G8B8A8_SNORM"), ("V1", "R8G8B8A8_UINT")]:
        np.save(tmp_path / "a.npy", np.zeros((1, 2, 2, 4), dtype))
        assert texels_of(tmp_path / "a.npy", named(name), 2, 2) == [bytes(16)]


def test_depth_with_stencil_serves_single_floats(tmp_path: Path) -> None:
    """A D32_SFLOAT_S8_UINT file gives its depths where R32_SFLOAT or D32_SFLOAT is declared."""
    depth = struct.pack("<2f", 0.5, 0.25)
    write_image(tmp_path / "a.dds", named("D32_SFLOAT_S8_UINT"), 2, 1, [depth, b"\x01\x02"])
    for name in ["R32_SFLOAT", "D32_SFLOAT", "D32_SFLOAT_S8_UINT"]:
        assert texels_of(tmp_path / "a.dds", named(name), 2, 1) == [depth]
    with open_image(tmp_path / "a.dds", named("D32_SFLOAT_S8_UINT"), 2, 1) as reader:
        stencil = bytearray(reader.level_size_bytes(aspect="stencil"))
        reader.read_into(memoryview(stencil), aspect="stencil")
    assert stencil == b"\x01\x02"


def test_formats_with_the_same_bytes_fit(tmp_path: Path) -> None:
    """A DXGI code that stands for two formats fits both, and a legacy header fits the sRGB format too."""
    write_dds(tmp_path / "a.dds", named("R8G8B8A8_UNORM"), 1, 1, [b"abcd"])
    assert len(texels_of(tmp_path / "a.dds", named("A8B8G8R8_UNORM_PACK32"), 1, 1)) == 1
    with pytest.raises(FileError, match="has texels of 'VK_FORMAT_R8G8B8A8_UNORM'"):
        open_image(tmp_path / "a.dds", named("R8G8B8A8_SRGB"), 1, 1)
    imageio.v3.imwrite(tmp_path / "b.dds", np.zeros((1, 1, 4), "u1"), plugin="pillow")
    assert len(texels_of(tmp_path / "b.dds", named("B8G8R8A8_SRGB"), 1, 1)) == 1
    assert len(texels_of(tmp_path / "b.dds", named("B8G8R8A8_UNORM"), 1, 1)) == 1


@pytest.mark.parametrize(
    "extension, declared, width, height, message",
    [
        (".dds", "R8G8B8A8_UNORM", 3, 2, "has 2x3 texels, but the scenario declares 3x2 (width x height)"),
        (".png", "R8G8B8A8_UNORM", 3, 2, "has 2x3 texels, but the scenario declares 3x2 (width x height)"),
        (".npy", "R8G8B8A8_UNORM", 3, 2,
         "has the shape (1, 3, 2, 4), but the scenario declares 3x2 texels of 'VK_FORMAT_R8G8B8A8_UNORM':"
         " expected (1, 2, 3, 4) (1, height, width, items)"),
        (".dds", "R32_UINT", 2, 3,
         "has texels of 'VK_FORMAT_R8G8B8A8_UNORM', but the scenario declares 'VK_FORMAT_R32_UINT'"),
        (".npy", "R16G16B16A16_SFLOAT", 2, 3,
         "has items of the type '|u1', but the scenario declares 'VK_FORMAT_R16G16B16A16_SFLOAT': expected '<f2'"),
        (".npy", "BC7_UNORM_BLOCK", 2, 3,
         "cannot hold texels of the format 'VK_FORMAT_BC7_UNORM_BLOCK': NumPy has no block-compressed types"),
        (".png", "R8_UNORM", 2, 3, "has 4 channels (RGBA), but the scenario declares 'VK_FORMAT_R8_UNORM' with 1"),
    ],
)  # fmt: skip
def test_a_contradiction_shows_both_sides(
    tmp_path: Path, extension: str, declared: str, width: int, height: int, message: str
) -> None:
    """A file of another format or size than declared is an error, never an override."""
    path = tmp_path / ("a" + extension)
    write_image(path, named("R8G8B8A8_UNORM"), 2, 3, [bytes(24)])
    assert str(error_of(FileError, open_image, path, named(declared), width, height)) == f"{path}: {message}"


def test_more_levels_than_declared_are_refused(tmp_path: Path) -> None:
    """A file may have fewer mip levels than the image, not more."""
    write_image(tmp_path / "a.dds", named("R8_UINT"), 2, 2, [bytes(4), bytes(1)])
    assert len(texels_of(tmp_path / "a.dds", named("R8_UINT"), 2, 2, 2)) == 2
    with pytest.raises(FileError, match="has 2 mip levels, but the scenario declares 1"):
        open_image(tmp_path / "a.dds", named("R8_UINT"), 2, 2)


def test_destinations_are_checked_without_touching_them(tmp_path: Path) -> None:
    """Unknown extensions, and formats that the kind of file cannot hold, are errors before the run."""
    for name, declared, message in [
        ("a.jpg", "R8_UNORM", "has the extension '.jpg', expected one of an image: '.npy', '.dds', '.png'"),
        ("a.dds", "R64_SINT", "cannot hold texels of the format 'VK_FORMAT_R64_SINT': it has no DXGI_FORMAT,"),
        ("a.png", "R32_SFLOAT", "cannot hold texels of the format 'VK_FORMAT_R32_SFLOAT': a PNG file has unsigned"),
        ("a.npy", "BC1_RGBA_UNORM_BLOCK", "cannot hold texels of the format 'VK_FORMAT_BC1_RGBA_UNORM_BLOCK': NumPy"),
    ]:
        error = error_of(FileError, check_image_format, tmp_path / name, named(declared))
        assert str(error).startswith(f"{tmp_path / name}: {message}")
    check_image_format(tmp_path / "new" / "a.dds", named("BC1_RGBA_UNORM_BLOCK"))
    assert list(tmp_path.iterdir()) == []


def test_an_array_that_is_no_image_has_no_extent(tmp_path: Path) -> None:
    """A .npy file of another rank cannot be shown as an image."""
    np.save(tmp_path / "a.npy", np.zeros(4, "u1"))
    with pytest.raises(FileError, match=r"has the shape \(4,\), expected \(1, height, width, items\) of an image"):
        read_image_header(tmp_path / "a.npy")


RGBA8 = format_named("VK_FORMAT_R8G8B8A8_UNORM")
DEPTH = format_named("VK_FORMAT_D32_SFLOAT_S8_UINT")
PACKED = format_named("VK_FORMAT_D24_UNORM_S8_UINT")
LEVELS = [numpy.random.default_rng(7).bytes(4 * size) for size in (6 * 4, 3 * 2, 1)]
PLANES = tuple(map(len, LEVELS))


def write(
    path: Path, cuts: list[int], data: bytes, planes: tuple[int, ...], format_name: str, extent: tuple[int, int]
) -> None:
    with create_image(path, format_named(format_name), *extent, planes) as writer:
        for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
            writer.write(memoryview(data)[start:stop])


@pytest.mark.parametrize("cut", [0, 1, 48, 59, 60])
def test_depth_and_stencil(tmp_path: Path, cut: int) -> None:
    """Depths and stencils come one after the other, and lie together in a .dds file; .npy takes the depths."""
    depth, stencil = numpy.arange(12, dtype=numpy.float32), numpy.arange(100, 112, dtype=numpy.uint8)
    data = depth.tobytes() + stencil.tobytes()
    write(tmp_path / "x.dds", [cut], data, (48, 12), DEPTH.name, (4, 3))
    write_dds(tmp_path / "expected.dds", DEPTH, 4, 3, [depth.tobytes()], [stencil.tobytes()])
    assert (tmp_path / "x.dds").read_bytes() == (tmp_path / "expected.dds").read_bytes()
    write(tmp_path / "x.npy", [cut], data, (48, 12), DEPTH.name, (4, 3))
    assert (numpy.load(tmp_path / "x.npy").reshape(-1) == depth).all()


def test_packed_depth_and_stencil(tmp_path: Path) -> None:
    """24 bits of depth and the stencil make one item; whatever is above the depth in a copy is dropped."""
    depth = numpy.array([0xAB000001, 0x00FFFFFF], "<u4")
    write(tmp_path / "x.npy", [], depth.tobytes() + bytes([0x12, 0xFF]), (8, 2), PACKED.name, (2, 1))
    assert numpy.load(tmp_path / "x.npy").reshape(-1).tolist() == [0x12000001, 0xFFFFFFFF]


def test_nothing_stays_after_a_failure(tmp_path: Path) -> None:
    """A writer with a failing block leaves no file."""
    for name in ("x.dds", "x.npy", "x.png"):
        writer = create_image(tmp_path / name, RGBA8, 6, 4, PLANES[:1])
        writer.write(LEVELS[0])
        writer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert list(tmp_path.iterdir()) == []


def test_each_line_of_the_table_is_true() -> None:
    """Each codec stands under its own extension, and no signature begins another one."""
    assert [each.extension for each in CODECS] == [".npy", ".dds", ".png"]
    assert all(codec_of("x" + each.extension.upper()) is each for each in CODECS)
    signatures = [each.signature for each in CODECS]
    assert not [(a, b) for a in signatures for b in signatures if a is not b and a.startswith(b)]


@pytest.mark.parametrize(
    "resource, name, mips, extension",
    [
        ("buffer", None, 1, ".npy"),
        ("tensor", None, 1, ".npy"),
        ("image", "R8G8B8A8_UNORM", 1, ".npy"),
        ("image", "R8G8B8A8_UNORM", 3, ".dds"),
        ("image", "BC1_RGBA_UNORM_BLOCK", 1, ".dds"),
        ("image", "R64_SINT", 3, ".npy"),  # no file holds the levels of these
    ],
)
def test_the_first_codec_that_holds_everything_is_chosen(
    resource: str, name: str | None, mips: int, extension: str
) -> None:
    """Files that the program names itself are of the first format in the table that loses nothing."""
    format = None if name is None else format_named("VK_FORMAT_" + name)
    assert codec_for(resource, format, mips).extension == extension


def test_a_name_without_a_codec() -> None:
    """The error lists the extensions that hold such a resource; arrays need none."""
    with pytest.raises(FileError, match=r"^a\.txt: has the extension '\.txt', expected one of an image: '\.npy',"):
        codec_of("a.txt")
    with pytest.raises(FileError, match=r"^a\.png: has the extension '\.png', expected '\.npy' for a tensor$"):
        codec_of("a.png", "tensor")
    assert codec_of("a", "buffer").extension == ".npy"
    assert not is_known("a")
