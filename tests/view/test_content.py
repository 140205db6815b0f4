"""Files as channels of numbers, and numbers as colours."""

import struct
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.errors import FileError, UsageError
from scenario_runner.files.elements import ELEMENTS
from scenario_runner.files.vk_formats import all_formats, format_named
from scenario_runner.view.contents import Content, read_content
from scenario_runner.view.picture import NAN_COLOR, heat_map, picture_of, shrink, value_range
from tests.image_files import write_dds, write_image

# Pillow, which decodes blocks, does not know these.
UNDECODABLE = ("VK_FORMAT_BC4_SNORM_BLOCK",)


def dds(folder: Path, name: str, width: int, height: int, *levels: bytes, stencils: tuple[bytes, ...] = ()) -> str:
    path = folder / "x.dds"
    write_dds(path, format_named(f"VK_FORMAT_{name}"), width, height, levels, stencils)
    return str(path)


def npy(folder: Path, array: Any) -> str:
    numpy.save(folder / "x.npy", array)
    return str(folder / "x.npy")


def values(content: Content) -> dict[str, list[float]]:
    return {channel.name: channel.numbers.reshape(-1).tolist() for channel in content.channels}


@pytest.mark.parametrize(
    "name, texel, expected",
    [
        ("R8G8B8A8_UNORM", bytes([1, 2, 3, 4]), {"R": [1], "G": [2], "B": [3], "A": [4]}),
        ("B8G8R8A8_UNORM", bytes([1, 2, 3, 4]), {"R": [3], "G": [2], "B": [1], "A": [4]}),
        ("R16G16_SINT", struct.pack("<2h", -7, 300), {"R": [-7], "G": [300]}),
        ("R32_SFLOAT", struct.pack("<f", 0.5), {"R": [0.5]}),
        ("D16_UNORM", struct.pack("<H", 500), {"depth": [500]}),
        ("A2B10G10R10_UNORM_PACK32", struct.pack("<I", 3 << 30 | 5 << 20 | 1023 << 10 | 9),
         {"R": [9], "G": [1023], "B": [5], "A": [3]}),
        ("R5G6B5_UNORM_PACK16", struct.pack("<H", 31 << 11 | 33 << 5 | 7), {"R": [31], "G": [33], "B": [7]}),
        ("A8B8G8R8_SNORM_PACK32", struct.pack("<4b", 127, -1, -128, 5), {"R": [127], "G": [-1], "B": [-128], "A": [5]}),
        ("B10G11R11_UFLOAT_PACK32", struct.pack("<I", 15 << 27 | (14 << 6 | 32) << 11 | 16 << 6),
         {"R": [2.0], "G": [0.75], "B": [1.0]}),
        ("E5B9G9R9_UFLOAT_PACK32", struct.pack("<I", 17 << 27 | 256 << 18 | 1 << 9 | 384),
         {"R": [3.0], "G": [1 / 128], "B": [2.0]}),
    ],
)  # fmt: skip
def test_channels_of_texels(tmp_path: Path, name: str, texel: bytes, expected: dict[str, list[float]]) -> None:
    """Channels come in the order R, G, B, A whatever the memory order; packed ones are taken apart."""
    assert values(read_content(dds(tmp_path, name, 1, 1, texel))) == expected


def test_depth_and_stencil(tmp_path: Path) -> None:
    """Depth and stencil are two channels."""
    depths = numpy.array([0.25, 0.75], "<f4").tobytes()
    content = read_content(dds(tmp_path, "D32_SFLOAT_S8_UINT", 2, 1, depths, stencils=(bytes([7, 200]),)))
    assert values(content) == {"depth": [0.25, 0.75], "stencil": [7, 200]}


def test_blocks_are_decoded(tmp_path: Path) -> None:
    """A BC1 block of one colour is sixteen texels of it: pure red is 31 of 31 in five bits."""
    block = struct.pack("<HHI", 0xF800, 0xF800, 0)
    content = read_content(dds(tmp_path, "BC1_RGBA_UNORM_BLOCK", 4, 4, block))
    assert values(content) == {"R": [255] * 16, "G": [0] * 16, "B": [0] * 16, "A": [255] * 16}


def test_mip_levels(tmp_path: Path) -> None:
    """Each level can be read; one that is not there is an error that says how many there are."""
    path = dds(tmp_path, "R8_UINT", 4, 2, bytes(8), bytes([1, 2]), bytes([9]))
    assert values(read_content(path, mip=1)) == {"R": [1, 2]}
    assert read_content(path, mip=2).shape == (1, 1)
    with pytest.raises(FileError, match=r"x\.dds: has 3 mip levels, but no level 3$"):
        read_content(path, mip=3)


@pytest.mark.parametrize("items", [1, 2, 3, 4])
@pytest.mark.parametrize("bits", [8, 16])
def test_png(tmp_path: Path, items: int, bits: int) -> None:
    """A PNG file of any kind has its stored values, with 8 or 16 bits."""
    texels = numpy.random.default_rng(items).integers(0, 1 << bits, (3, 5, items)).astype(f"<u{bits // 8}")
    pattern = "".join(f"{letter}{bits}" for letter in "RGBA"[:items])
    write_image(tmp_path / "x.png", format_named(f"VK_FORMAT_{pattern}_UNORM"), 5, 3, [texels.tobytes()])
    content = read_content(str(tmp_path / "x.png"))
    assert [channel.name for channel in content.channels] == [["gray"], ["gray", "A"], [*"RGB"], [*"RGBA"]][items - 1]
    for number, channel in enumerate(content.channels):
        assert (channel.numbers == texels[..., number]).all()


def test_arrays(tmp_path: Path) -> None:
    """The last axis of an array of three or more axes is its channels; indices count as in the file's array."""
    array = numpy.arange(2 * 3 * 5).reshape(2, 3, 5)
    content = read_content(npy(tmp_path, array))
    assert [channel.name for channel in content.channels] == ["0", "1", "2", "3", "4"]
    assert (content.channels[3].numbers == array[..., 3]).all()
    flat = int(numpy.ravel_multi_index((1, 2), (2, 3)))
    assert content.index(flat, 4) == (1, 2, 4)
    assert content.select("4").index(flat, 0) == (1, 2, 4)
    with pytest.raises(UsageError, match=r"--channel '5': .*x\.npy has the channels 0, 1, 2, 3, 4$"):
        content.select("5")


def test_what_bytes_are(tmp_path: Path) -> None:
    """Bytes of a buffer are read as the numbers and in the shape that they have; one length may be left open."""
    array = numpy.arange(24, dtype="f4").reshape(4, 6) / 3
    path = npy(tmp_path, array.reshape(-1).view("i1"))
    content = read_content(path, element=ELEMENTS["float32"], shape=(-1, 6))
    assert (content.channels[0].numbers == array).all()
    with pytest.raises(FileError, match=r"x\.npy: holds 24 elements, which are not \?x7$"):
        read_content(path, element=ELEMENTS["float32"], shape=(-1, 7))
    with pytest.raises(FileError, match="holds 24 elements, which are not 5x5"):
        read_content(path, element=ELEMENTS["float32"], shape=(5, 5))
    with pytest.raises(FileError, match="holds 7 bytes, which are not a whole number of float32 elements"):
        read_content(npy(tmp_path, numpy.zeros(7, "i1")), element=ELEMENTS["float32"])


def test_what_cannot_be_shown(tmp_path: Path) -> None:
    """Complex numbers, an unknown extension and options that a file does not have are errors in a sentence."""
    numpy.save(tmp_path / "x.npy", numpy.zeros(3, "c8"))
    with pytest.raises(FileError, match="holds items of the type '<c8', expected integers"):
        read_content(str(tmp_path / "x.npy"))
    with pytest.raises(FileError, match=r"has one mip level, but no level 1"):
        read_content(str(tmp_path / "x.npy"), mip=1)
    with pytest.raises(FileError, match=r"has the extension '\.jpg'"):
        read_content("x.jpg")
    with pytest.raises(UsageError, match=r"^x\.dds: --dtype and --shape reinterpret \.npy files"):
        read_content("x.dds", shape=(1,))


@pytest.mark.parametrize(
    "format", [each for each in all_formats() if each.dxgi is not None], ids=lambda each: each.name
)
def test_every_format_of_a_dds_file_is_read_or_refused(tmp_path: Path, format) -> None:  # type: ignore[no-untyped-def]
    """Any texels of any format have channels of the image's size; formats that no decoder has are named."""
    sizes = {"depth": 4 if format.block_size_bytes > 2 else 2}
    size = 8 * 4 * sizes["depth"] if format.aspects[0] == "depth" else format.level_size_bytes(8, 4)
    data = numpy.random.default_rng(1).integers(0, 256, size, dtype="u1").tobytes()
    path = dds(tmp_path, format.name.removeprefix("VK_FORMAT_"), 8, 4, data)
    if format.name in UNDECODABLE:
        with pytest.raises(FileError, match=f"x\\.dds: holds blocks of '{format.name}', which cannot be shown$"):
            read_content(path)
        return
    content = read_content(path)
    assert content.shape == (4, 8)
    assert len(content.channels) >= format.components


def content(folder: Path, array: Any) -> Content:
    numpy.save(folder / "x.npy", array)
    return read_content(str(folder / "x.npy"))


def test_numbers_are_stretched_over_their_range(tmp_path: Path) -> None:
    """By default the least value is black and the greatest white; NaN is magenta and infinities are at the ends."""
    array = numpy.array([[-1, 0, 3], [numpy.nan, numpy.inf, -numpy.inf]], "f4")
    shown = content(tmp_path, array)
    assert value_range(shown) == (-1, 3)
    picture = picture_of(shown, value_range(shown))
    assert picture[0].tolist() == [[0] * 3, [64] * 3, [255] * 3]
    assert picture[1].tolist() == [list(NAN_COLOR), [255] * 3, [0] * 3]


def test_arrays_with_many_channels_show_the_first(tmp_path: Path) -> None:
    """Up to three channels are colours, of four the first three; of more, the first is shown; outer axes lie under each
    other."""
    array = numpy.random.default_rng(2).integers(0, 256, (2, 3, 4, 5)).astype("f4")
    picture = picture_of(content(tmp_path, array), (0, 255))
    assert picture.shape == (6, 4, 3)
    assert (picture == array[..., 0].reshape(6, 4, 1)).all()
    for count in (3, 4):
        picture = picture_of(content(tmp_path, array[..., :count]), (0, 255))
        assert (picture == array[..., :3].reshape(6, 4, 3)).all()


def test_channels_with_different_numbers_of_bits(tmp_path: Path) -> None:
    """White is white: the greatest value of each channel is its brightest one."""
    path = tmp_path / "x.dds"
    write_dds(path, format_named("VK_FORMAT_R5G6B5_UNORM_PACK16"), 2, 1, [numpy.uint16([0xFFFF, 16 << 11]).tobytes()])
    shown = read_content(str(path))
    assert picture_of(shown, value_range(shown)).tolist() == [[[255, 255, 255], [132, 0, 0]]]


def test_nan_that_signals(tmp_path: Path) -> None:
    """Every bit pattern of a float has a colour, NaN that signal included."""
    bits = numpy.array([[0x7F800001, 0xFFBFFFFF, 0x3F800000, 0]], "u4")
    assert picture_of(content(tmp_path, bits.view("f4")), (0, 1))[0].tolist() == [
        list(NAN_COLOR), list(NAN_COLOR), [255] * 3, [0] * 3,
    ]  # fmt: skip


def test_a_picture_is_shrunk_by_means() -> None:
    """Texels that fall together become their mean; small pictures stay as they are."""
    picture = numpy.random.default_rng(3).integers(0, 256, (8, 12, 3), dtype="u1")
    expected = picture.reshape(4, 2, 6, 2, 3).mean(axis=(1, 3))
    assert numpy.abs(shrink(picture, 6, 100) - expected).max() <= 0.5
    assert (shrink(picture, 6, 4, brightest=True) == picture.reshape(4, 2, 6, 2, 3).max(axis=(1, 3))).all()
    assert shrink(picture, 12, 8) is picture
    assert shrink(picture, 1, 1).shape == (1, 1, 3)


def test_heat() -> None:
    """No error is black, the greatest is white, the smallest can still be seen, and NaN is magenta."""
    picture = heat_map(numpy.array([[0.0, 1e-9, 2.0, numpy.inf, numpy.nan]]), 2.0)
    assert picture[0, 0].tolist() == [0, 0, 0]
    assert picture[0, 1, 0] > 100
    assert picture[0, 2].tolist() == picture[0, 3].tolist() == [255, 255, 255]
    assert picture[0, 4].tolist() == list(NAN_COLOR)
