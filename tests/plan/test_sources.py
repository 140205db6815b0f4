"""Where initial bytes come from; constants of graphs are safe from changes of their files while a run needs them."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.errors import FileError, UsageError
from scenario_runner.files.input import SourceFile, lease
from scenario_runner.plan.sources import ArraySource, FilePart, NpySource, in_memory

ARRAY = numpy.arange(24, dtype=numpy.int32).reshape(2, 3, 4)

NO_ARRAY = ", expected a NumPy array, an object with __array__ or __dlpack__ (tensors of PyTorch and JAX), or bytes"


def content(source: Any, piece: int | None = None) -> bytes:
    """All bytes of a source, read at once or in pieces."""
    data = bytearray(source.size_bytes)
    view = memoryview(data)
    step = piece or len(data) or 1
    for offset in range(0, len(data), step):
        source.read_into(view[offset : offset + step], offset)
    return bytes(data)


@pytest.mark.parametrize("piece", [None, 1, 7, 16, 95])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_npy_in_pieces(tmp_path: Path, piece: int | None, order: Any, byte_order: str) -> None:
    """A file gives the same bytes whole and in pieces, twice, whatever its byte and memory order."""
    numpy.save(tmp_path / "x.npy", ARRAY.astype(f"{byte_order}i4").copy(order=order))
    source = NpySource(str(tmp_path / "x.npy"))
    for _ in range(2):
        assert content(source, piece) == ARRAY.astype("<i4").tobytes()


def test_npy_that_changes(tmp_path: Path) -> None:
    """A file with another header than when it was planned is a FileError."""
    path = tmp_path / "x.npy"
    numpy.save(path, ARRAY)
    source = NpySource(str(path))
    numpy.save(path, ARRAY.astype(numpy.int64))
    with pytest.raises(FileError, match=r"the file changed while the scenario was running$"):
        content(source)


@pytest.mark.parametrize(
    "data, expected",
    [
        (ARRAY, ARRAY.tobytes()),
        (ARRAY.astype(">i4"), ARRAY.tobytes()),
        (numpy.asfortranarray(ARRAY), ARRAY.tobytes()),
        (ARRAY[:, ::2, ::-1], ARRAY[:, ::2, ::-1].tobytes()),
        (numpy.float16(1.5), b"\x00\x3e"),
        (numpy.zeros((3, 0)), b""),
        (numpy.array([True, False]), b"\x01\x00"),
        (b"abc", b"abc"),
        (bytearray(b"abc"), b"abc"),
        (memoryview(b"abcdef")[::2], b"ace"),
        (memoryview(ARRAY), ARRAY.tobytes()),
    ],
)
@pytest.mark.parametrize("piece", [None, 5])
def test_arrays(data: Any, expected: bytes, piece: int | None) -> None:
    """An array gives little-endian bytes in C order."""
    assert content(ArraySource(data, "x"), piece) == expected


@pytest.mark.parametrize(
    "data, message",
    [
        ([1, 2], "input 'x' is a list" + NO_ARRAY),
        ("text", "input 'x' is a str" + NO_ARRAY),
        (None, "input 'x' is a NoneType" + NO_ARRAY),
        (numpy.array([object()]), "input 'x' is an array of Python objects, expected numbers"),
    ],
)
def test_what_is_no_array(data: Any, message: str) -> None:
    """What has no plain bytes is a UsageError that names the input."""
    with pytest.raises(UsageError) as caught:
        ArraySource(data, "x")
    assert str(caught.value) == message


LARGE_BYTES = 65 << 20


def part(path: Path, start: int = 0, size: int | None = None) -> FilePart:
    """A constant in a file, as a plan has it."""
    with SourceFile(path) as file:
        return FilePart(str(path), file.identity, start, file.size_bytes if size is None else size)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file of more bytes than are copied."""
    path = tmp_path / "large"
    numpy.arange(LARGE_BYTES // 4, dtype="<u4").tofile(path)
    return path


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    """A file that is not what was planned is an error, whether it got longer, shorter or another time."""
    path = tmp_path / "a"
    for change in (lambda: path.write_bytes(bytes(99)), lambda: path.write_bytes(b"x" * 200), lambda: os.utime(path)):
        path.write_bytes(bytes(100))
        time.sleep(0.05)
        constant = part(path)
        change()
        with pytest.raises(FileError, match="the file changed while the scenario was running"), in_memory([constant]):
            pass


def test_nobody_cuts_a_large_file_while_it_is_mapped(large: Path) -> None:
    """Somebody who copies another file over it waits until its bytes are not needed any more."""
    constant = part(large, 4, LARGE_BYTES - 4)
    small = large.with_name("small")
    small.write_bytes(b"small")
    with in_memory([constant]) as (view,):
        copying = subprocess.Popen(["cp", str(small), str(large)])
        while large.stat().st_size == LARGE_BYTES and not _waits(copying.pid):
            time.sleep(0.01)
        assert copying.poll() is None
        assert int(numpy.frombuffer(view, "<u4").sum(dtype="u8")) == sum(range(LARGE_BYTES // 4))
    assert copying.wait(30) == 0
    assert large.read_bytes() == b"small"


def _waits(pid: int) -> bool:
    """Whether a process waits for a lease to be given back."""
    return "lease" in Path(f"/proc/{pid}/wchan").read_text() or "break" in Path(f"/proc/{pid}/wchan").read_text()


def test_a_large_file_without_a_lease_is_copied(large: Path) -> None:
    """A file that somebody has open for writing is read before it is used: what happens to it then does not matter."""
    constant = part(large)
    with large.open("r+b") as writing, SourceFile(large) as file:
        with lease(file) as granted:
            assert not granted
        with in_memory([constant]) as (view,):
            writing.truncate(0)
            assert int(numpy.frombuffer(view, "<u4").sum(dtype="u8")) == sum(range(LARGE_BYTES // 4))
