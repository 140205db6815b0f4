"""Reading and writing .npy files, checked against numpy.load and numpy.save."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scenario_runner.errors import FileError
from scenario_runner.files.elements import read_array
from scenario_runner.files.npy import NpyCodec, NpyReader, read_header, write_npy
from tests.image_files import mutated
from tests.scenes import error_of

MANY_EXAMPLES = settings(max_examples=150)


def npy_bytes(header: str, payload: bytes = b"", version: tuple[int, int] = (1, 0), length: int | None = None) -> bytes:
    text = header.encode("latin-1")
    size = len(text) if length is None else length
    return b"\x93NUMPY" + bytes(version) + size.to_bytes(2 if version == (1, 0) else 4, "little") + text + payload


def payload_of(path: Path) -> bytes:
    with NpyReader(path) as reader:
        data = bytearray(reader.header.data_size_bytes)
        assert reader.read_into(memoryview(data)) == len(data)
    return bytes(data)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_that_numpy_writes_is_read(tmp_path: Path, version: tuple[int, int]) -> None:
    """Headers of versions 1.0, 2.0 and 3.0 give type, shape and the place of the payload."""
    array = np.arange(24, dtype="<f4").reshape(2, 3, 4)
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=version)
    header = read_header(path)
    assert (header.descr, header.byte_order, header.kind, header.item_size_bytes) == ("<f4", "<", "f", 4)
    assert (header.shape, header.fortran_order, header.data_size_bytes) == ((2, 3, 4), False, 96)
    assert path.read_bytes()[header.data_offset :] == array.tobytes()
    assert payload_of(path) == array.tobytes()


@pytest.mark.parametrize(
    "descr",
    ["|b1", "|i1", "|u1", "<i2", "<u2", "<i8", "<u8", "<f2", "<f8", "<c8", "<c16", "|V2", "|S3", "<U2", "<M8[ns]"],
)
def test_plain_types_pass_through(tmp_path: Path, descr: str) -> None:
    """The payload of every plain type arrives byte for byte."""
    dtype = np.dtype(descr)
    array = np.frombuffer(bytes(range(1, 1 + dtype.itemsize)) * 6, dtype=dtype).reshape(2, 3)
    np.save(tmp_path / "a.npy", array)
    assert read_header(tmp_path / "a.npy").item_size_bytes == dtype.itemsize
    assert payload_of(tmp_path / "a.npy") == array.tobytes()


arrays = hnp.arrays(
    dtype=st.sampled_from([">i2", ">u4", ">f8", ">c8", ">U2", "<f4", "|u1", ">i8", "<c16"]),
    shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6),
    elements=None,
    fill=st.nothing(),
)


@MANY_EXAMPLES
@given(array=arrays, fortran=st.booleans(), data=st.data())
def test_any_order_reads_as_c_order_little_endian(
    tmp_path: Path, array: np.ndarray, fortran: bool, data: st.DataObject
) -> None:
    """Big-endian items and Fortran order arrive as C order, little-endian, whole and in any part."""
    path = tmp_path / "a.npy"
    np.save(path, np.asfortranarray(array) if fortran and array.ndim else array)
    expected = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
    assert payload_of(path) == expected
    start = data.draw(st.integers(0, len(expected)))
    size = data.draw(st.integers(0, len(expected) - start))
    part = bytearray(b"\xaa" * (size + 3))
    with NpyReader(path) as reader:
        assert reader.read_into(memoryview(part), 0, start, size) == size
    assert part == expected[start : start + size] + b"\xaa" * 3
    again = read_array(path)
    assert again.shape == array.shape
    assert again.tobytes() == expected


def test_a_range_outside_the_payload_is_refused(tmp_path: Path) -> None:
    """A range beyond the payload or a destination that is too small is a ValueError, not a short read."""
    np.save(tmp_path / "a.npy", np.zeros(4, "u1"))
    with NpyReader(tmp_path / "a.npy") as reader:
        for offset, size, room in [(0, 5, 8), (-1, 2, 8), (3, 2, 8), (0, 4, 3), (5, None, 8)]:
            with pytest.raises(ValueError, match="of 4 were asked for"):
                reader.read_into(memoryview(bytearray(room)), 0, offset, size)


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"
UNREADABLE = "has a .npy header that cannot be read:"
ENTRIES = (
    f"{UNREADABLE} expected {{'descr': a type in quotes, 'fortran_order': True or False, 'shape': a tuple like (3,)}}"
)


def good_but(old: str, new: str) -> bytes:
    """A file of two floats, with a part of its header replaced."""
    return npy_bytes(GOOD.replace(old, new), bytes(8))


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "is empty, expected a .npy file"),
        (b"PK\x03\x04abcdefgh",
         "is a zip archive or pickle, such as a file of torch.save or torch.export.save, expected a .npy file"),
        (b"abcdefgh", r"is not a .npy file: it begins with b'abcdef', expected b'\x93NUMPY'"),
        (b"\x93NUMPY\x01", "has the .npy version '1', expected 1.0, 2.0 or 3.0"),
        (npy_bytes(GOOD, bytes(8), (4, 0)), "has the .npy version '4.0', expected 1.0, 2.0 or 3.0"),
        (b"\x93NUMPY\x01\x00\x10", "ends after 9 bytes, within the .npy header (truncated?)"),
        (npy_bytes(GOOD, length=500), "ends after 68 bytes, but the .npy header says it takes 500 bytes (truncated?)"),
        (npy_bytes(GOOD + " " * 70000, bytes(8), (2, 0)), "has a .npy header of 70058 bytes, expected at most 65536"),
        (npy_bytes(GOOD, bytes(7)),
         "is truncated: 7 bytes follow the header, expected 8 bytes for shape (2,) of '<f4'"),
        (npy_bytes(GOOD, bytes(9)),
         "has bytes after its data: 9 bytes follow the header, expected 8 bytes for shape (2,) of '<f4'"),
        (good_but("(2,)", "(999999999999, 999999999999)"),
         "is truncated: 8 bytes follow the header, expected more bytes than any file has"
         " for shape (999999999999, 999999999999) of '<f4'"),
        (good_but("(2,)", "(-2,)"), f"{ENTRIES}, found the shape '-2,'"),
        (good_but("(2,)", "(2)"), f"{ENTRIES}, found the shape '2'"),
        (good_but("(2,)", "(2,,3)"), f"{ENTRIES}, found the shape '2,,3'"),
        (good_but("(2,)", "(" + "1," * 65 + ")"), f"{UNREADABLE} the shape has more than 64 axes"),
        (good_but("'<f4'", "'|O'"),
         "holds items of the type '|O': Python objects (the file would need pickle, which can run any code)"),
        (good_but("'<f4'", "[('a', '<f4')]"),
         "holds records, expected items of one type"),
        (good_but("<f4", "<f3"),
         "holds items of the type '<f3': no type of NumPy's plain kinds"
         " (bool, integer, float, complex, raw bytes (V), text or time)"),
        (good_but("<f4", "<q8"),
         "holds items of the type '<q8': no type of NumPy's plain kinds"
         " (bool, integer, float, complex, raw bytes (V), text or time)"),
        (good_but("'shape'", "'shade'"),
         f"{ENTRIES}, found \"'shade': (2,), }}\" at character 42"),
        (npy_bytes("{'descr': '<f4', 'shape': (2,)}", bytes(8)), f"{ENTRIES}, found '}}' at character 31"),
        (npy_bytes("{'shape': (2,), 'shape': (2,)}", bytes(8)),
         f"{ENTRIES}, found \"'shape': (2,)}}\" at character 17"),
        (npy_bytes(GOOD + "x", bytes(8)), f"{ENTRIES}, found '}}\\nx' at character 57"),
        (npy_bytes("\xff", b"", (3, 0)).replace(b"\xc3\xbf", b"\xff"), f"{UNREADABLE} it is not UTF-8"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    """Each lie in a file has a message with the found and the expected value."""
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    error = error_of(FileError, read_header, path)
    assert str(error) == f"{path}: {message}"
    is_sound = message.startswith(("holds items", "holds records", "has the .npy version", "has a .npy header of"))
    assert error.problems[0].code == ("SR-FILE-008" if is_sound else "SR-FILE-007")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder and a pipe without a writer are errors at once."""
    os.mkfifo(tmp_path / "pipe.npy")
    for name, message in [
        ("missing.npy", "cannot be opened: no such file or directory"),
        (".", "is a folder, expected a file"),
        ("pipe.npy", "is a pipe, a device or a socket, expected a file"),
        ("nul\0.npy", "cannot be opened: no path can hold a NUL character"),
    ]:
        path = os.path.join(tmp_path, name)  # a Path would drop the dot
        assert str(error_of(FileError, NpyReader, path)) == f"{path}: {message}".replace("\0", "\\x00")


def test_a_header_of_python_2_and_of_the_reference_are_read(tmp_path: Path) -> None:
    """Long integers, keys in another order and a header without spaces are read, as NumPy reads them."""
    for text in [
        "{'shape': (2L,), \"fortran_order\": False, 'descr': '<f4'}\n",
        "{'descr':'<f4','fortran_order':False,'shape':(2,)}\n",
    ]:
        path = tmp_path / "a.npy"
        path.write_bytes(npy_bytes(text, bytes(8)))
        assert read_header(path).shape == (2,)


@MANY_EXAMPLES
@given(data=st.data())
def test_a_mutated_file_gives_a_result_or_our_error(tmp_path: Path, data: st.DataObject) -> None:
    """A mutated file is read like NumPy reads it, or refused with an error of this program."""
    buffer = io.BytesIO()
    np.save(buffer, np.arange(12, dtype=data.draw(st.sampled_from(["<f4", ">i2", "|u1"]))).reshape(3, 4))
    path = tmp_path / "a.npy"
    path.write_bytes(mutated(data, buffer.getvalue()))
    try:
        array = read_array(path)
    except FileError as error:
        assert str(error).startswith(f"{path}: ")  # noqa: PT017
        return
    expected = np.load(path)
    assert array.shape == expected.shape
    assert array.tobytes() == np.ascontiguousarray(expected).astype(expected.dtype.newbyteorder("<")).tobytes()


@MANY_EXAMPLES
@given(
    array=hnp.arrays(
        dtype=st.sampled_from(["<f4", "|i1", "<u2", "|b1", "<c8", "<i8"]),
        shape=hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4),
    ),
    pieces=st.integers(1, 4),
)
def test_what_is_written_is_what_numpy_loads(tmp_path: Path, array: np.ndarray, pieces: int) -> None:
    """numpy.load gives back type, shape and items, however the payload was cut into chunks."""
    path = tmp_path / "new" / "folder" / "a.npy"
    raw = array.tobytes()
    step = len(raw) // pieces + 1
    write_npy(path, array.dtype.str, array.shape, (memoryview(raw)[i : i + step] for i in range(0, len(raw), step)))
    loaded = np.load(path)
    assert (loaded.dtype, loaded.shape, loaded.tobytes()) == (array.dtype, array.shape, raw)
    assert [entry.name for entry in path.parent.iterdir()] == ["a.npy"]
    assert read_header(path).data_offset % 64 == 0


def test_raw_types_of_the_reference_are_written(tmp_path: Path) -> None:
    """'<V2' (bfloat16) is written so that NumPy loads two raw bytes per item."""
    write_npy(tmp_path / "a.npy", "<V2", (2,), [b"abcd"])
    assert np.load(tmp_path / "a.npy").view("u2").tobytes() == b"abcd"


def test_an_array_with_an_empty_axis_is_written(tmp_path: Path) -> None:
    """A chunk without bytes, whatever its shape, is nothing."""
    write_npy(tmp_path / "a.npy", "<f4", (0, 3), [memoryview(np.zeros((0, 3), "<f4"))])
    assert np.load(tmp_path / "a.npy").shape == (0, 3)


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
def test_a_failed_write_leaves_nothing(tmp_path: Path, stop: type[BaseException]) -> None:
    """When the chunks end in an exception the old file stays as it was and no temporary file is left."""
    path = tmp_path / "a.npy"
    path.write_bytes(b"old")

    def chunks():
        yield b"ab"
        raise stop

    with pytest.raises(stop):
        write_npy(path, "|u1", (4,), chunks())
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"a.npy": b"old"}


def test_a_payload_of_the_wrong_size_is_not_stored(tmp_path: Path) -> None:
    """Too few or too many bytes for the shape are refused and leave nothing."""
    for payload, message in [(b"abc", "1 bytes less"), (b"abcde", "1 bytes more")]:
        with pytest.raises(ValueError, match=message):
            write_npy(tmp_path / "a.npy", "|u1", (4,), [payload])
    with pytest.raises(ValueError, match="big-endian"):
        NpyCodec().create_array(tmp_path / "a.npy", ">f4", (1,))
    assert list(tmp_path.iterdir()) == []


def test_a_link_as_target_is_followed(tmp_path: Path) -> None:
    """The file that it leads to is written."""
    (tmp_path / "link.npy").symlink_to("real.npy")
    write_npy(tmp_path / "link.npy", "|u1", (1,), [b"a"])
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "real.npy").tolist() == [97]
