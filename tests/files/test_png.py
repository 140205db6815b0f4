"""Reading and writing PNG files, against imageio, Pillow and a plain PNG encoder of the test's own."""

import struct
import tracemalloc
import zlib
from pathlib import Path

import imageio.v3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from scenario_runner.errors import FileError
from scenario_runner.files.png import PngHeader, read_header
from scenario_runner.files.vk_formats import format_named
from tests.effort import calls_of
from tests.image_files import mutated, read_texels, write_image
from tests.scenes import error_of

MANY_EXAMPLES = settings(max_examples=100)
RGBA8 = format_named("VK_FORMAT_R8G8B8A8_UNORM")
WITH_PNG_FORM = (
    *("R8_UNORM", "R8_UINT", "R8G8_UNORM", "R8G8B8_SRGB", "B8G8R8_UNORM"),
    *("R8G8B8A8_UNORM", "R8G8B8A8_SRGB", "B8G8R8A8_SRGB", "R16_UNORM", "R16_UINT"),
    *("R16G16_UNORM", "R16G16B16_UNORM", "R16G16B16A16_UNORM", "R16G16B16A16_UINT"),
)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_bytes(
    width: int, height: int, bits: int, color: int, rows: bytes, before: bytes = b"", interlace: int = 0
) -> bytes:
    """A PNG file of unfiltered ``rows`` (packed, without filter bytes)."""
    size = len(rows) // height
    scanlines = b"".join(b"\0" + rows[i * size : (i + 1) * size] for i in range(height))
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlace)
    texels = chunk(b"IDAT", zlib.compress(scanlines))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + texels + chunk(b"IEND", b"")


def texels_of(path: Path, name: str, dtype: str) -> np.ndarray:
    header, texel_format = read_header(path), format_named("VK_FORMAT_" + name)
    data = np.frombuffer(read_texels(path, texel_format), dtype)
    return data.reshape(header.height, header.width, texel_format.components)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("color, channels", [(0, 1), (4, 2), (2, 3), (6, 4)])
def test_every_colour_type_becomes_rgba(tmp_path: Path, bits: int, color: int, channels: int) -> None:
    """Gray is repeated and missing alpha is opaque, with all bits of 8 and 16 bit channels."""
    dtype, full = f"u{bits // 8}", (1 << bits) - 1
    array = np.random.default_rng(bits + color).integers(0, full, (5, 7, channels), dtype, endpoint=True)
    (tmp_path / "a.png").write_bytes(png_bytes(7, 5, bits, color, array.astype(f">{dtype}").tobytes()))
    assert read_header(tmp_path / "a.png") == PngHeader(7, 5, channels, bits, False)
    expected = np.full((5, 7, 4), full, dtype)
    expected[..., :3] = array[..., :3] if channels >= 3 else array[..., :1]
    if channels in (2, 4):
        expected[..., 3] = array[..., -1]
    name = f"R{bits}G{bits}B{bits}A{bits}_UNORM"
    assert np.array_equal(texels_of(tmp_path / "a.png", name, dtype), expected)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_few_bits_are_widened(tmp_path: Path, bits: int) -> None:
    """Gray of 1, 2 and 4 bits spreads over 0 to 255."""
    values = np.arange(8) % (1 << bits)
    packed = np.packbits(np.unpackbits(values.astype("u1")[:, None], axis=1)[:, -bits:]).tobytes()
    (tmp_path / "a.png").write_bytes(png_bytes(8, 1, bits, 0, packed))
    expected = (values * 255 // ((1 << bits) - 1)).reshape(1, 8, 1)
    assert np.array_equal(texels_of(tmp_path / "a.png", "R8_UNORM", "u1"), expected)


def test_a_palette_is_looked_up(tmp_path: Path) -> None:
    """Indices become colours, with the alpha of a tRNS chunk where there is one."""
    palette = chunk(b"PLTE", bytes([1, 2, 3, 40, 50, 60, 7, 8, 9]))
    (tmp_path / "a.png").write_bytes(png_bytes(3, 1, 8, 3, bytes([2, 0, 1]), palette))
    assert texels_of(tmp_path / "a.png", "R8G8B8_UNORM", "u1").tolist() == [[[7, 8, 9], [1, 2, 3], [40, 50, 60]]]
    (tmp_path / "a.png").write_bytes(png_bytes(3, 1, 8, 3, bytes([2, 0, 1]), palette + chunk(b"tRNS", b"\0\x80")))
    assert texels_of(tmp_path / "a.png", "R8G8B8A8_UNORM", "u1").tolist() == [
        [[7, 8, 9, 255], [1, 2, 3, 0], [40, 50, 60, 128]]
    ]


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("color, samples", [(0, 1), (2, 3)])
def test_a_colour_key_is_transparent(tmp_path: Path, bits: int, color: int, samples: int) -> None:
    """The colour that a tRNS chunk names has alpha 0, all others are opaque, compared with all bits."""
    dtype = f">u{bits // 8}"
    array = np.array([[[5] * samples, [5] * (samples - 1) + [6]]], dtype)
    key = chunk(b"tRNS", struct.pack(">H", 5) * samples)
    (tmp_path / "a.png").write_bytes(png_bytes(2, 1, bits, color, array.tobytes(), key))
    found = texels_of(tmp_path / "a.png", f"R{bits}G{bits}B{bits}A{bits}_UNORM", f"u{bits // 8}")
    assert found[0, :, 3].tolist() == [0, (1 << bits) - 1]
    assert found[0, :, 2].tolist() == [5, 6]


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_a_gray_key_of_few_bits_is_transparent(tmp_path: Path, bits: int) -> None:
    """The gray that a tRNS chunk names is found among texels of 1, 2 and 4 bits, too."""
    most = (1 << bits) - 1
    for gray in range(most + 1):
        packed = np.packbits(np.unpackbits(np.array([[0], [gray], [most]], "u1"), axis=1)[:, -bits:]).tobytes()
        key = chunk(b"tRNS", struct.pack(">H", gray))
        (tmp_path / "a.png").write_bytes(png_bytes(3, 1, bits, 0, packed, key))
        found = texels_of(tmp_path / "a.png", "R8G8_UNORM", "u1")
        assert found[0, :, 0].tolist() == [0, gray * 255 // most, 255]
        assert found[0, :, 1].tolist() == [255 * (gray != 0), 0, 255 * (gray != most)]


def test_bits_are_widened(tmp_path: Path) -> None:
    """8 bits become 16, so that 0 and 1 keep their values."""
    (tmp_path / "a.png").write_bytes(png_bytes(3, 1, 8, 0, bytes([0, 128, 255])))
    assert texels_of(tmp_path / "a.png", "R16_UNORM", "u2").ravel().tolist() == [0, 0x8080, 0xFFFF]


@pytest.mark.parametrize("name", ["R8G8B8A8_UNORM", "B8G8R8A8_SRGB", "R8G8B8A8_UINT"])
@pytest.mark.parametrize("color, samples", [(0, 1), (2, 3), (4, 2), (6, 4)])
def test_16_bits_do_not_go_into_8(tmp_path: Path, name: str, color: int, samples: int) -> None:
    """A file of 16 bits a channel is refused for a format of 8, whatever its colour type: half of it would be lost."""
    path = tmp_path / "a.png"
    path.write_bytes(png_bytes(2, 1, 16, color, bytes(4 * samples)))
    error = error_of(FileError, read_texels, path, format_named("VK_FORMAT_" + name))
    assert str(error) == f"{path}: has channels of 16 bits, but the scenario declares 'VK_FORMAT_{name}' with 8"


@pytest.mark.parametrize(
    "color, more, found, names",
    [
        (4, b"", "2 channels (gray and alpha)", ["R8_UNORM", "R8G8B8_UNORM", "B8G8R8_UNORM"]),
        (0, chunk(b"tRNS", b"\0\0"), "2 channels (gray and alpha)", ["R8_UNORM", "R8G8B8_UNORM"]),
        (2, b"", "3 channels (RGB)", ["R8_UNORM", "R8G8_UNORM"]),
        (6, b"", "4 channels (RGBA)", ["R8_UNORM", "R8G8_UNORM", "R8G8B8_UNORM"]),
        (2, chunk(b"tRNS", bytes(6)), "4 channels (RGBA)", ["R8_UNORM", "R8G8_UNORM", "R8G8B8_UNORM"]),
        (3, chunk(b"PLTE", bytes(3)), "3 channels (RGB)", ["R8_UNORM", "R8G8_UNORM"]),
        (3, chunk(b"PLTE", bytes(3)) + chunk(b"tRNS", b"\0"), "4 channels (RGBA)", ["R8_UNORM", "R8G8B8_UNORM"]),
    ],
)
def test_no_channel_is_lost(tmp_path: Path, color: int, more: bytes, found: str, names: list[str]) -> None:
    """Colours and alpha, also from palettes and colour keys, need channels in the format."""
    path = tmp_path / "a.png"
    path.write_bytes(png_bytes(2, 1, 8, color, bytes(8), more))
    for name in names:
        format = format_named("VK_FORMAT_" + name)
        message = f"has {found}, but the scenario declares '{format.name}' with {format.components}"
        assert str(error_of(FileError, read_texels, path, format)) == f"{path}: {message}"


@MANY_EXAMPLES
@given(data=st.data())
def test_what_is_written_comes_back(tmp_path: Path, data: st.DataObject) -> None:
    """Every format with a PNG form survives writing and reading, and other programs see the same channels."""
    name = data.draw(st.sampled_from(WITH_PNG_FORM))
    texel_format = format_named("VK_FORMAT_" + name)
    shape = (data.draw(st.integers(1, 30)), data.draw(st.integers(1, 30)), texel_format.components)
    full = (1 << texel_format.channel_bits[0]) - 1
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    array = random.integers(0, full, shape, texel_format.numpy_dtype, endpoint=True)
    path = tmp_path / "new" / "a.png"
    write_image(path, texel_format, shape[1], shape[0], [array.tobytes()])
    assert read_texels(path, texel_format) == array.tobytes()
    header = read_header(path)
    assert (header.channels, header.bit_depth) == (texel_format.components, texel_format.channel_bits[0])
    if full == 255 or texel_format.components == 1:  # Pillow shows only the high byte of other 16-bit channels
        order = [2, 1, 0, 3][: shape[2]] if name.startswith("B") else list(range(shape[2]))
        seen = imageio.v3.imread(path, plugin="pillow").reshape(shape)
        assert np.array_equal(seen, array[..., order])
    elif texel_format.components > 2:
        seen = np.asarray(Image.open(path))
        assert np.array_equal(seen, array >> 8)


def test_an_interlaced_file_is_read(tmp_path: Path) -> None:
    """Adam7 files, 16 bit ones too, are read like others."""
    array = np.array([[[1, 2, 3, 4]]], ">u2")
    (tmp_path / "a.png").write_bytes(png_bytes(1, 1, 16, 6, array.tobytes(), interlace=1))
    assert texels_of(tmp_path / "a.png", "R16G16B16A16_UNORM", "u2").tolist() == [[[1, 2, 3, 4]]]


GOOD = png_bytes(2, 2, 8, 6, bytes(range(16)))
END = chunk(b"IEND", b"")


def with_header(*fields: int) -> bytes:
    return GOOD[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", *fields)) + GOOD[33:]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "is empty, expected a PNG file"),
        (b"DDS |" + bytes(40), "is a DDS file, expected a PNG file"),
        (b"DDT |" + bytes(40), r"is not a PNG file: it begins with b'DDT |\x00\x00\x00',"),
        (GOOD[:20], "ends after 20 bytes, within its PNG header (truncated?)"),
        (GOOD[:35], "ends after 35 bytes, before its texels (truncated?)"),
        (GOOD[:-20], f"ends after {len(GOOD) - 20} bytes, expected an IEND chunk at the end (truncated?)"),
        (GOOD[:-4], f"ends after {len(GOOD) - 4} bytes, expected an IEND chunk at the end (truncated?)"),
        (GOOD.replace(b"IDATx", b"IDATy"), "has a chunk b'IDAT' with a wrong check sum (damaged?)"),
        (GOOD[:33] + chunk(b"IDAT", b"yz") + END, "cannot be decoded as a PNG file: error -3 while decompressing data"),
        (GOOD[:33] + chunk(b"IDAT", zlib.compress(bytes(9))) + END, "has 9 bytes of rows, expected 18 of an image"),
        (png_bytes(5, 5, 8, 0, bytes(25), interlace=1), "has 30 bytes of rows, expected 36 of an image"),
        (png_bytes(2, 2, 8, 3, bytes(4)), "has texels that index colours, but no chunk b'PLTE' with"),
        (GOOD[:33] + chunk(b"ABCD", b"") + GOOD[33:], "has a chunk b'ABCD', which is essential for its texels and"),
        (with_header(2, 2, 3, 6, 0, 0, 0), "has a PNG header with bit depth 3, colour type 6,"),
        (with_header(2, 2, 8, 5, 0, 0, 0), "has a PNG header with bit depth 8, colour type 5,"),
        (with_header(0, 2, 8, 6, 0, 0, 0), "says it has 0x2 texels, expected 1 to 67108864 in all"),
        (with_header(1 << 31, 2, 8, 6, 0, 0, 0), "says it has 2147483648x2 texels, expected 1 to 67108864 in all"),
        (with_header(4096, 4096, 8, 6, 0, 0, 0), "says it has 4096x4096 texels (67108864 bytes), more than a file of"),
        (GOOD[:12] + b"IDAT" + GOOD[16:], "begins with a chunk b'IDAT' of 13 bytes, expected b'IHDR' of 13 bytes"),
        (GOOD[:33] + chunk(b"teST", b"") * 1001 + GOOD[33:], "has more than 1000 chunks before its texels"),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    """Truncated files, lying headers and bombs have a message with the found and the expected value."""
    path = tmp_path / "a.png"
    path.write_bytes(content)
    error = error_of(FileError, read_texels, path, RGBA8)
    assert str(error).startswith(f"{path}: {message}")
    assert error.problems[0].code in ("SR-FILE-011", "SR-FILE-012")


@pytest.mark.parametrize("bits, color, samples", [(8, 6, 4), (8, 3, 1), (16, 2, 3)])
@pytest.mark.parametrize(
    "extra",
    [
        chunk(b"zTXt", b"comment\0\0" + zlib.compress(bytes(3 << 20))),
        chunk(b"eXIf", b"nothing of the kind"),
        chunk(b"iCCP", b"profile\0\0" + zlib.compress(b"nothing of the kind")),
        chunk(b"acTL", struct.pack(">II", 3, 0)),
    ],
)
def test_what_does_not_concern_the_texels_does_not_matter(
    tmp_path: Path, extra: bytes, bits: int, color: int, samples: int
) -> None:
    """Long texts, broken Exif data and profiles, and animations that stop short change nothing about the texels."""
    rows = bytes(range(6 * samples * bits // 8))
    palette = chunk(b"PLTE", bytes(range(48))) if color == 3 else b""
    (tmp_path / "plain.png").write_bytes(png_bytes(2, 3, bits, color, rows, palette))
    (tmp_path / "more.png").write_bytes(png_bytes(2, 3, bits, color, rows, extra + palette))
    format = format_named("VK_FORMAT_R16G16B16A16_UNORM")
    assert read_texels(tmp_path / "more.png", format) == read_texels(tmp_path / "plain.png", format)


def test_a_bomb_is_refused_without_decoding(tmp_path: Path) -> None:
    """A small file of many texels costs neither time nor memory."""
    rows = zlib.compress(bytes(100_000_000), 9)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0))
    (tmp_path / "a.png").write_bytes(GOOD[:8] + header + chunk(b"IDAT", rows) + END)

    def read() -> None:
        with pytest.raises(FileError, match="says it has 60000x60000 texels"):
            read_texels(tmp_path / "a.png", format_named("VK_FORMAT_R8_UNORM"))

    tracemalloc.start()
    _, calls = calls_of(read)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert calls < 5_000


@MANY_EXAMPLES
@given(data=st.data())
def test_a_mutated_file_gives_a_result_or_our_error(tmp_path: Path, data: st.DataObject) -> None:
    """A mutated file gives texels or an error of this program, in memory bounded by the file."""
    bits, color, samples = data.draw(
        st.sampled_from([(8, 6, 4), (16, 6, 4), (16, 2, 3), (8, 3, 1), (16, 4, 2), (2, 0, 1)])
    )
    palette = chunk(b"PLTE", bytes(range(48))) + chunk(b"tRNS", bytes(8)) if color == 3 else b""
    row_bytes = max(1, 4 * bits * samples // 8)
    rows = data.draw(st.binary(min_size=4 * row_bytes, max_size=4 * row_bytes))
    content = mutated(data, png_bytes(4, 4, bits, color, rows, palette))
    if data.draw(st.booleans()):  # a header that is well formed but says something else
        fields = struct.pack(">IIBB", *(data.draw(st.integers(1, 40)) for _ in range(2)), bits, color)
        content = content[:8] + chunk(b"IHDR", fields + bytes(3)) + content[33:]
    path = tmp_path / "a.png"
    path.write_bytes(content)
    problem = ""
    tracemalloc.start()
    try:
        read_texels(path, format_named("VK_FORMAT_R16G16B16A16_UNORM"))
    except FileError as error:
        problem = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert problem == "" or problem.startswith(f"{path}: ")
    assert peak < 32 << 20  # far above what a 4x4 image needs, far below what its header may claim


@pytest.mark.parametrize(
    "name, message",
    [
        (
            "R16G16B16A16_UINT",
            "has channels of 8 bits, but the scenario declares 'VK_FORMAT_R16G16B16A16_UINT' with 16",
        ),
        (
            "R32_SFLOAT",
            "cannot hold texels of the format 'VK_FORMAT_R32_SFLOAT': a PNG file has unsigned channels of 8 or 16 bits",
        ),
    ],
)
def test_channels_of_other_bits_are_refused(tmp_path: Path, name: str, message: str) -> None:
    """A file that the format cannot hold is an error that shows both."""
    (tmp_path / "a.png").write_bytes(GOOD)
    error = error_of(FileError, read_texels, tmp_path / "a.png", format_named("VK_FORMAT_" + name))
    assert str(error) == f"{tmp_path / 'a.png'}: {message}"


@pytest.mark.parametrize(
    "name, others",
    [
        ("R8_SNORM", ".npy or .dds"),
        ("R32_UINT", ".npy or .dds"),
        ("BC1_RGBA_UNORM_BLOCK", ".dds"),
        ("A8_UNORM", ".npy or .dds"),
        ("D16_UNORM", ".npy or .dds"),
        ("R5G6B5_UNORM_PACK16", ".npy or .dds"),
        ("R64_UINT", ".npy"),
    ],
)
def test_formats_without_png_form_are_refused(tmp_path: Path, name: str, others: str) -> None:
    """A format that no PNG file holds is an error before anything is written, which names the files that do."""
    with pytest.raises(FileError, match=f"cannot hold texels of the format 'VK_FORMAT_{name}'") as caught:
        write_image(tmp_path / "a.png", format_named("VK_FORMAT_" + name), 1, 1, [b"\0" * 16])
    assert caught.value.problems[0].help == f"choose the name of a {others} file"
    assert list(tmp_path.iterdir()) == []
