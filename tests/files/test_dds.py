"""Reading and writing .dds files, against headers packed by hand, NumPy and Pillow."""

import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenario_runner.errors import FileError
from scenario_runner.files.codec_table import create_image
from scenario_runner.files.dds import DdsReader, read_header
from scenario_runner.files.vk_formats import all_formats, format_named
from tests.image_files import mutated, write_dds
from tests.scenes import error_of

MANY_EXAMPLES = settings(max_examples=150)
WITH_DXGI = [entry for entry in all_formats() if entry.dxgi is not None]
R8 = format_named("VK_FORMAT_R8_UNORM")


def dds_bytes(payload: bytes = b"", /, **fields: int | bytes) -> bytes:
    """A .dds file packed by hand; one R8_UNORM texel and a DX10 header unless said otherwise."""
    field = {
        "magic": b"DDS ", "size": 124, "flags": 0x1007, "height": 1, "width": 1, "pitch": 0, "depth": 1, "mips": 1,
        "pf_size": 32, "pf_flags": 4, "fourcc": b"DX10", "bits": 0, "r": 0, "g": 0, "b": 0, "a": 0,
        "caps": 0x1000, "caps2": 0, "dxgi": 61, "dimension": 3, "misc": 0, "array": 1, "misc2": 0,
    } | fields  # fmt: skip
    names = "magic size flags height width pitch depth mips pf_size pf_flags fourcc bits r g b a caps caps2"
    header = struct.pack("<4s7I44xII4s5III12x", *(field[name] for name in names.split()))
    if field["fourcc"] == b"DX10":
        header += struct.pack("<5I", *(field[name] for name in ("dxgi", "dimension", "misc", "array", "misc2")))
    return header + payload


def level_extents(width: int, height: int, count: int) -> list[tuple[int, int]]:
    return [(max(1, width >> level), max(1, height >> level)) for level in range(count)]


def read_level(path: Path, level: int = 0, aspect: str | None = None) -> bytes:
    with DdsReader(path) as reader:
        data = bytearray(reader.level_size_bytes(level, aspect))
        assert reader.read_into(memoryview(data), level, aspect=aspect) == len(data)
    return bytes(data)


def test_the_header_is_the_one_that_the_reference_writes(tmp_path: Path) -> None:
    """A single level has the reference's 148 bytes, field by field."""
    write_dds(tmp_path / "a.dds", format_named("VK_FORMAT_R16G16B16A16_SFLOAT"), 3, 2, [bytes(range(48))])
    expected = dds_bytes(bytes(range(48)), flags=0x100F, height=2, width=3, pitch=24, dxgi=10)
    assert (tmp_path / "a.dds").read_bytes() == expected


@MANY_EXAMPLES
@given(data=st.data())
def test_every_format_round_trips_with_all_its_levels(tmp_path: Path, data: st.DataObject) -> None:
    """Texels come back bit by bit at every level, in pieces of any size."""
    texel_format = data.draw(st.sampled_from(WITH_DXGI), label="format")
    width, height = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    count = data.draw(st.integers(1, max(width, height).bit_length()))
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    is_two_planes = texel_format.aspects == ("depth", "stencil")
    levels, stencils = [], []
    for level_width, level_height in level_extents(width, height, count):
        if is_two_planes:
            depth = random.integers(0, 1 << 24, level_width * level_height, "u4")
            levels.append(depth.tobytes())
            stencils.append(random.bytes(level_width * level_height))
        elif texel_format.is_compressed:
            levels.append(random.bytes(-(-level_width // 4) * -(-level_height // 4) * texel_format.block_size_bytes))
        else:
            levels.append(random.bytes(level_width * level_height * texel_format.block_size_bytes))
    path = tmp_path / "a.dds"
    if is_two_planes:
        write_dds(path, texel_format, width, height, levels, stencils)
    else:
        whole = b"".join(levels)
        step = data.draw(st.integers(1, len(whole)))
        with create_image(path, texel_format, width, height, tuple(map(len, levels))) as writer:
            for start in range(0, len(whole), step):
                writer.write(whole[start : start + step])
    header = read_header(path)
    assert header.format.dxgi == texel_format.dxgi
    assert (header.width, header.height, header.is_srgb_known) == (width, height, True)
    assert [(level.width, level.height) for level in header.mip_levels] == level_extents(width, height, count)
    for level, expected in enumerate(levels):
        assert read_level(path, level) == expected
        start = data.draw(st.integers(0, len(expected)))
        size = data.draw(st.integers(0, len(expected) - start))
        part = bytearray(size)
        with DdsReader(path) as reader:
            assert reader.read_into(memoryview(part), level, start, size) == size
        assert part == expected[start : start + size]
    for level, expected in enumerate(stencils):
        assert read_level(path, level, "stencil") == expected


def test_three_bytes_a_texel_take_four_in_the_file(tmp_path: Path) -> None:
    """B8G8R8 is stored as B8G8R8X8 with an opaque fourth byte, and R8G8B8_SINT is stored unchanged."""
    write_dds(tmp_path / "a.dds", format_named("VK_FORMAT_B8G8R8_UNORM"), 2, 1, [b"abcdef"])
    expected = dds_bytes(b"abc\xffdef\xff", flags=0x100F, width=2, pitch=8, dxgi=88)
    assert (tmp_path / "a.dds").read_bytes() == expected
    write_dds(tmp_path / "b.dds", format_named("VK_FORMAT_R8G8B8_SINT"), 2, 1, [b"abcdef"])
    assert (tmp_path / "b.dds").read_bytes() == dds_bytes(b"abcdef", flags=0x100F, width=2, pitch=6, dxgi=134)


def test_depth_and_stencil_are_two_planes(tmp_path: Path) -> None:
    """D32S8 has a float, the stencil and three bytes of padding a texel; D24S8 the stencil above 24 bits."""
    texels = struct.pack("<fB3xfB3x", 0.25, 7, 1.0, 9)
    (tmp_path / "a.dds").write_bytes(dds_bytes(texels, width=2, dxgi=20))
    assert read_level(tmp_path / "a.dds") == struct.pack("<2f", 0.25, 1.0)
    assert read_level(tmp_path / "a.dds", aspect="stencil") == bytes([7, 9])
    (tmp_path / "b.dds").write_bytes(dds_bytes(struct.pack("<2I", 0x07000001, 0x09FFFFFF), width=2, dxgi=45))
    assert read_level(tmp_path / "b.dds") == struct.pack("<2I", 1, 0xFFFFFF)
    assert read_level(tmp_path / "b.dds", aspect="stencil") == bytes([7, 9])
    depth = struct.pack("<2f", 0.25, 1.0)
    write_dds(tmp_path / "c.dds", format_named("VK_FORMAT_D32_SFLOAT_S8_UINT"), 2, 1, [depth], [bytes([7, 9])])
    assert (tmp_path / "c.dds").read_bytes()[148:] == texels
    write_dds(tmp_path / "c.dds", format_named("VK_FORMAT_D32_SFLOAT_S8_UINT"), 2, 1, [depth])
    assert (tmp_path / "c.dds").read_bytes()[148:] == struct.pack("<fB3xfB3x", 0.25, 0, 1.0, 0)


def test_conversions_work_across_chunks(tmp_path: Path) -> None:
    """Images larger than the scratch memory are converted the same way."""
    width, height = 1000, 700
    texels = np.random.default_rng(1).integers(0, 256, (height, width, 3), "u1")
    write_dds(tmp_path / "a.dds", format_named("VK_FORMAT_B8G8R8_SRGB"), width, height, [texels.tobytes()])
    assert read_level(tmp_path / "a.dds") == texels.tobytes()
    stored = np.fromfile(tmp_path / "a.dds", "u1", offset=148).reshape(height, width, 4)
    assert np.array_equal(stored[..., :3], texels)
    depth = np.random.default_rng(2).random((height, width), "f4")
    write_dds(tmp_path / "b.dds", format_named("VK_FORMAT_D32_SFLOAT_S8_UINT"), width, height, [depth.tobytes()])
    assert read_level(tmp_path / "b.dds") == depth.tobytes()


def masked(flags: int, bits: int, *masks: int) -> dict[str, int | bytes]:
    """The fields of a header without the DX10 part that has the masks of red, green, blue and alpha."""
    return {"fourcc": b"", "pf_flags": flags, "bits": bits, **dict(zip("rgba", masks, strict=True))}


LEGACY = [
    *[({"fourcc": code}, name) for code, name in [
        (b"DXT1", "BC1_RGBA_UNORM_BLOCK"), (b"DXT3", "BC2_UNORM_BLOCK"), (b"DXT5", "BC3_UNORM_BLOCK"),
        (b"ATI1", "BC4_UNORM_BLOCK"), (b"BC4U", "BC4_UNORM_BLOCK"),
        (b"ATI2", "BC5_UNORM_BLOCK"), (b"BC5U", "BC5_UNORM_BLOCK"),
    ]],
    (masked(0x41, 32, 0xFF, 0xFF00, 0xFF0000, 0xFF000000), "R8G8B8A8_UNORM"),
    (masked(0x41, 32, 0xFF0000, 0xFF00, 0xFF, 0xFF000000), "B8G8R8A8_UNORM"),
    (masked(0x40, 24, 0xFF0000, 0xFF00, 0xFF, 0), "B8G8R8_UNORM"),
    (masked(0x40, 24, 0xFF0000, 0xFF00, 0xFF, 0xFF000000), "B8G8R8_UNORM"),
    (masked(0x20000, 8, 0xFF, 0xFF, 0xFF, 0), "R8_UNORM"),
    (masked(0x20001, 16, 0xFF, 0, 0, 0xFF00), "R8G8_UNORM"),
]  # fmt: skip


@pytest.mark.parametrize("fields, name", LEGACY)
def test_legacy_headers_are_read(tmp_path: Path, fields: dict, name: str) -> None:
    """FourCC codes and channel masks give the format they stand for."""
    texel_format = format_named("VK_FORMAT_" + name)
    payload = bytes(range(256))[: texel_format.block_size_bytes]
    (tmp_path / "a.dds").write_bytes(dds_bytes(payload, **fields))
    header = read_header(tmp_path / "a.dds")
    assert (header.format.name, header.is_srgb_known) == ("VK_FORMAT_" + name, False)
    assert read_level(tmp_path / "a.dds") == payload


@pytest.mark.parametrize(
    "fields, found",
    [
        ({"fourcc": b"YUY2"}, "the FourCC b'YUY2'"),
        ({"fourcc": b"BC4S"}, "the FourCC b'BC4S'"),
        ({"fourcc": struct.pack("<I", 116)}, "the FourCC b't\\x00\\x00\\x00'"),
        (masked(0x41, 32, 0x3FF00000, 0xFFC00, 0x3FF, 0xC0000000),
         "32 bits with the masks 0x3ff00000, 0xffc00, 0x3ff, 0xc0000000 and the flags 0x41"),
        (masked(0x40, 32, 0xFF0000, 0xFF00, 0xFF, 0xFF000000),
         "32 bits with the masks 0xff0000, 0xff00, 0xff, 0xff000000 and the flags 0x40"),
        (masked(0x40, 16, 0xF800, 0x7E0, 0x1F, 0),
         "16 bits with the masks 0xf800, 0x7e0, 0x1f, 0x0 and the flags 0x40"),
        (masked(0x20000, 16, 0xFFFF, 0, 0, 0), "16 bits with the masks 0xffff, 0x0, 0x0, 0x0 and the flags 0x20000"),
        (masked(0x2, 8, 0, 0, 0, 0xFF), "8 bits with the masks 0x0, 0x0, 0x0, 0xff and the flags 0x2"),
        (masked(0x80000, 32, 0xFF, 0xFF00, 0xFF0000, 0xFF000000),
         "32 bits with the masks 0xff, 0xff00, 0xff0000, 0xff000000 and the flags 0x80000"),
    ],
)  # fmt: skip
def test_other_legacy_headers_are_refused(tmp_path: Path, fields: dict, found: str) -> None:
    """A legacy header with another layout is refused."""
    path = tmp_path / "a.dds"
    path.write_bytes(dds_bytes(bytes(64), **fields))
    error = error_of(FileError, read_header, path)
    reason = "has a header without the DX10 part, and its texels are not supported there"
    assert str(error) == f"{path}: {reason}: {found}"
    assert error.problems[0].code == "SR-FILE-010"


@pytest.mark.parametrize(
    "mode, name", [("RGB", "B8G8R8_UNORM"), ("RGBA", "B8G8R8A8_UNORM"), ("L", "R8_UNORM"), ("LA", "R8G8_UNORM")]
)
def test_what_pillow_writes_is_read(tmp_path: Path, mode: str, name: str) -> None:
    """Files of another writer give the texels that were stored."""
    from PIL import Image

    components = len(mode)
    texels = np.random.default_rng(3).integers(0, 256, (5, 7, components), "u1")
    Image.fromarray(texels if components > 1 else texels[..., 0]).save(tmp_path / "a.dds")
    header = read_header(tmp_path / "a.dds")
    assert (header.format.name, header.width, header.height) == ("VK_FORMAT_" + name, 7, 5)
    order = [2, 1, 0, 3][:components] if components > 2 else [0, 1][:components]
    assert read_level(tmp_path / "a.dds") == texels[..., order].tobytes()


@pytest.mark.parametrize("pixel_format, name", [("DXT1", "BC1_RGBA"), ("DXT5", "BC3"), ("BC5", "BC5")])
def test_blocks_of_pillow_pass_through(tmp_path: Path, pixel_format: str, name: str) -> None:
    """Compressed blocks of another writer survive reading and writing, and Pillow decodes them to the same image."""
    from PIL import Image

    texels = np.random.default_rng(4).integers(0, 256, (8, 12, 3 if name == "BC5" else 4), "u1")
    Image.fromarray(texels).save(tmp_path / "a.dds", pixel_format=pixel_format)
    header = read_header(tmp_path / "a.dds")
    assert header.format.name == f"VK_FORMAT_{name}_UNORM_BLOCK"
    write_dds(tmp_path / "b.dds", header.format, 12, 8, [read_level(tmp_path / "a.dds")])
    with Image.open(tmp_path / "a.dds") as first, Image.open(tmp_path / "b.dds") as second:
        assert np.array_equal(np.asarray(first), np.asarray(second))


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "is empty, expected a .dds file"),
        (b"\x89PNG\r\n\x1a\n", "is a PNG file, expected a .dds file"),
        (b"abcdefgh", "is not a .dds file: it begins with b'abcd', expected b'DDS '"),
        (dds_bytes()[:127], "ends after 127 bytes, expected at least the 128 bytes of its header (truncated?)"),
        (dds_bytes()[:147], "ends after 147 bytes, expected at least the 148 bytes of its header (truncated?)"),
        (dds_bytes(b"a", size=100), "has a .dds header of size 100, expected 124"),
        (dds_bytes(b"a", pf_size=0), "has a pixel format of size 0 in its .dds header, expected 32"),
        (dds_bytes(b"a", caps2=0xFE00), "holds a cube map, expected one two-dimensional image"),
        (dds_bytes(b"a", misc=4), "holds a cube map, expected one two-dimensional image"),
        (dds_bytes(b"a", caps2=0x200000, depth=4), "holds a volume of depth 4, expected one two-dimensional image"),
        (dds_bytes(b"a", dimension=4),
         "holds a resource of dimension 4 (three-dimensional), expected 3 (two-dimensional)"),
        (dds_bytes(b"a", array=6), "holds an array of 6 images, expected one"),
        (dds_bytes(b"a", dxgi=27), "has the DXGI_FORMAT 27, which matches no supported VkFormat"),
        (dds_bytes(b"", width=0), "says it has 0x1 texels, expected at least one"),
        (dds_bytes(b"a", mips=2), "says it has 2 mip levels, but 1x1 texels have at most 1"),
        (dds_bytes(b"a", mips=0xFFFFFFFF), "says it has 4294967295 mip levels, but 1x1 texels have at most 1"),
        (dds_bytes(b"abc", width=2, height=2),
         "is truncated: 3 bytes follow the header, expected 4 bytes for 2x2 texels of 'VK_FORMAT_R8_UNORM'"),
        (dds_bytes(b"abcde", width=2, height=2),
         "has bytes after its texels: 5 bytes follow the header, expected 4 bytes for 2x2 texels of"
         " 'VK_FORMAT_R8_UNORM'"),
        (dds_bytes(b"abcd", width=2, height=2, mips=2),
         "is truncated: 4 bytes follow the header, expected 5 bytes for 2 mip levels of 2x2 texels of"
         " 'VK_FORMAT_R8_UNORM'"),
        (dds_bytes(b"a", width=0xFFFFFFFF, height=0xFFFFFFFF, mips=32),
         "is truncated: 1 bytes follow the header,"
         f" expected {sum((0xFFFFFFFF >> level) ** 2 for level in range(32))} bytes for 32 mip levels of"
         " 4294967295x4294967295 texels of 'VK_FORMAT_R8_UNORM'"),
        (dds_bytes(b"a", flags=0x100F, pitch=0xFFFFFFF0),
         "says that a row or level has -16 bytes, expected at most the 1 bytes of its texels"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    """Each lie in a file has a message with the found and the expected value."""
    path = tmp_path / "a.dds"
    path.write_bytes(content)
    error = error_of(FileError, read_header, path)
    assert str(error) == f"{path}: {message}"
    assert error.problems[0].code in ("SR-FILE-009", "SR-FILE-010")


@MANY_EXAMPLES
@given(data=st.data())
def test_a_mutated_file_gives_a_result_or_our_error(tmp_path: Path, data: st.DataObject) -> None:
    """A mutated file gives texels or an error of this program, with little memory."""
    fields = data.draw(st.sampled_from([{"dxgi": 28}, {"dxgi": 20}, *(fields for fields, _ in LEGACY)]))
    whole = dds_bytes(bytes(64), **(fields | {"width": 4, "height": 4, "mips": 1}))
    content = mutated(data, whole, places=150)
    path = tmp_path / "a.dds"
    path.write_bytes(content)
    problem = ""
    tracemalloc.start()
    try:
        with DdsReader(path) as reader:
            for level in range(len(reader.header.mip_levels)):
                size = reader.level_size_bytes(level)
                assert size <= len(content)
                assert reader.read_into(memoryview(bytearray(size)), level) == size
    except FileError as error:
        problem = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert problem == "" or problem.startswith(f"{path}: ")
    assert peak < 1 << 20


def test_texels_of_the_wrong_size_are_not_stored(tmp_path: Path) -> None:
    """Too few bytes, and impossible extents, are refused and leave nothing."""
    path = tmp_path / "a.dds"
    bgr, depth = format_named("VK_FORMAT_B8G8R8_UNORM"), format_named("VK_FORMAT_D24_UNORM_S8_UINT")
    for texel_format, planes in [(R8, (4,)), (bgr, (12,)), (depth, (16, 4))]:
        with (
            pytest.raises(ValueError, match=r"^\d+ bytes less than announced"),
            create_image(path, texel_format, 2, 2, planes) as writer,
        ):
            writer.write(bytes(3))
    with pytest.raises(ValueError, match="1 bytes more than announced"):
        write_dds(path, R8, 2, 2, [bytes(5)])
    for width, height, count in [(0, 1, 1), (1, -1, 1), (2, 2, 3)]:
        with pytest.raises(ValueError, match="are not an image"):
            create_image(path, R8, width, height, (1,) * count)
    write_dds(path, R8, 2, 2, [b"abcd"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.dds"]
