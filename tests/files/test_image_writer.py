"""Images written piece by piece: the same files whatever the cuts, and only what a file can hold."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenario_runner.files.codec import create_image
from scenario_runner.formats import format_named
from tests.image_files import write_dds

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


@settings(max_examples=50)
@given(cuts=st.lists(st.integers(0, sum(PLANES)), max_size=6).map(sorted))
def test_cuts_change_nothing(tmp_path: Path, cuts: list[int]) -> None:
    """A .dds file with levels and a .npy file of the first one are the same however the bytes come."""
    write(tmp_path / "x.dds", cuts, b"".join(LEVELS), PLANES, RGBA8.name, (6, 4))
    write_dds(tmp_path / "expected.dds", RGBA8, 6, 4, LEVELS)
    assert (tmp_path / "x.dds").read_bytes() == (tmp_path / "expected.dds").read_bytes()
    write(tmp_path / "x.npy", cuts, b"".join(LEVELS), PLANES, RGBA8.name, (6, 4))
    assert numpy.load(tmp_path / "x.npy").tobytes() == LEVELS[0]


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
    """A writer whose block fails leaves no file."""
    for name in ("x.dds", "x.npy", "x.png"):
        writer = create_image(tmp_path / name, RGBA8, 6, 4, PLANES[:1])
        writer.write(LEVELS[0])
        writer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert list(tmp_path.iterdir()) == []
