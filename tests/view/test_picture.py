"""Numbers as colours."""

from pathlib import Path
from typing import Any

import numpy

from scenario_runner.files.vk_formats import format_named
from scenario_runner.view.contents import Content, read_content
from scenario_runner.view.picture import NAN_COLOR, heat, picture_of, shrunk, value_range
from tests.image_files import write_dds


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
    assert numpy.abs(shrunk(picture, 6, 100) - expected).max() <= 0.5
    assert (shrunk(picture, 6, 4, brightest=True) == picture.reshape(4, 2, 6, 2, 3).max(axis=(1, 3))).all()
    assert shrunk(picture, 12, 8) is picture
    assert shrunk(picture, 1, 1).shape == (1, 1, 3)


def test_heat() -> None:
    """No error is black, the greatest is white, the smallest can still be seen, and NaN is magenta."""
    picture = heat(numpy.array([[0.0, 1e-9, 2.0, numpy.inf, numpy.nan]]), 2.0)
    assert picture[0, 0].tolist() == [0, 0, 0]
    assert picture[0, 1, 0] > 100
    assert picture[0, 2].tolist() == picture[0, 3].tolist() == [255, 255, 255]
    assert picture[0, 4].tolist() == list(NAN_COLOR)
