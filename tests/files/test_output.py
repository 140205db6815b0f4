"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scenario_runner.errors import FileError
from scenario_runner.files.output import OutputFile


def test_fewer_bytes_than_reserved_give_a_file_of_what_was_written(tmp_path: Path) -> None:
    """The reservation is not a promise: the file ends where the writing did."""
    with OutputFile(tmp_path / "a", 1000) as output:
        output.write(b"abc")
    assert (tmp_path / "a").read_bytes() == b"abc"


def test_an_impossible_reservation_is_our_error(tmp_path: Path) -> None:
    """More bytes than any disk has, or than the system can count, are refused before anything is written."""
    for size in (1 << 62, 1 << 70):
        with pytest.raises(FileError, match=f"a: cannot be given {size} bytes: "):
            OutputFile(tmp_path / "a", size)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "statement, message",
    [
        ("with OutputFile(path) as output: output.write(bytes(4 << 20))", "cannot be written: file too large"),
        ("write_npy(path, '|u1', (4 << 20,), [bytes(4 << 20)])", "cannot be given 4194432 bytes: file too large"),
    ],
    ids=["a file of unknown size", "an array, whose size is known before"],
)
def test_a_full_disk_is_our_error_and_leaves_nothing(tmp_path: Path, statement: str, message: str) -> None:
    """A limit on file sizes, which acts like a full disk, gives a FileError and no file."""
    code = (
        "import resource, signal, sys\n"
        "from scenario_runner.errors import FileError\n"
        "from scenario_runner.files.npy import write_npy\n"
        "from scenario_runner.files.output import OutputFile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "path = sys.argv[1]\n"
        f"try:\n    {statement}\n"
        "except FileError as error:\n    print(error)\n"
    )
    path = tmp_path / "a"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}: {message}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_name_as_long_as_the_file_system_allows_is_written(tmp_path: Path) -> None:
    """The temporary name is short, whatever the target's is."""
    with OutputFile(tmp_path / ("x" * 255)) as output:
        output.write(b"abc")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"abc"


def test_a_folder_that_vanishes_is_our_error(tmp_path: Path) -> None:
    """When the file cannot get its name in the end, that is a FileError too."""
    folder = tmp_path / "folder"
    output = OutputFile(folder / "a")
    for entry in folder.iterdir():
        entry.unlink()
    folder.rmdir()
    with pytest.raises(FileError, match="a: cannot be written: no such file or directory"):
        output.commit()


def test_more_than_is_free_is_refused_without_taking_what_is_left(tmp_path: Path) -> None:
    """Other programs on the disk do not notice a file that cannot fit."""
    room = os.statvfs(tmp_path)
    with pytest.raises(FileError, match=r"a: cannot be given \d+ bytes: only \d+ bytes are free"):
        OutputFile(tmp_path / "a", room.f_blocks * room.f_frsize)
    assert list(tmp_path.iterdir()) == []
