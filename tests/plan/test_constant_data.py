"""Constants of graphs: found again by content, read when they are needed, and safe from changes of their files."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import numpy
import pytest

from scenario_runner.errors import FileError
from scenario_runner.files.source import SourceFile, lease
from scenario_runner.plan.sources import ConstantData, FilePart, in_memory

LARGE_BYTES = 65 << 20


def part(path: Path, start: int = 0, size: int | None = None) -> ConstantData:
    """A constant in a file, as a plan has it."""
    with SourceFile(path) as file:
        return ConstantData(FilePart(str(path), file.identity, start, file.size_bytes if size is None else size))


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
