"""Files that appear complete or not at all, alone and together."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scenario_runner.errors import FileError
from scenario_runner.files.output import MARKER_PREFIX, OutputFile, OutputSet, marker_path
from tests.program import files_in, run_python
from tests.scenes import error_of

# Three files of "new" over files of "old"; the process ends itself before the rename of the third.
KILLED = """
import os, signal, sys
from scenario_runner.files.output import OutputSet
rename, count = os.replace, 0
def replace(source, target):
    global count
    count += 1
    if count == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target)
os.replace = replace
with OutputSet() as files:
    for name in "abc":
        with files.create(os.path.join(sys.argv[1], name)) as file:
            file.write(b"new")
"""


def write(files: OutputSet, path: Path, content: bytes = b"new") -> None:
    with files.create(path) as file:
        file.write(content)


def test_nothing_has_its_name_before_all_are_complete(tmp_path: Path) -> None:
    """Complete files wait under temporary names, and then all have theirs; nothing else stays."""
    with OutputSet() as files:
        for name in ("a", "folder/b", "folder/deep/c"):
            write(files, tmp_path / name)
        assert not any(name.rpartition("/")[2] in "abc" for name in files_in(tmp_path))
    assert files_in(tmp_path) == {"a": b"new", "folder/b": b"new", "folder/deep/c": b"new"}


def test_a_failure_leaves_neither_files_nor_folders(tmp_path: Path) -> None:
    """A failure removes the complete files of the set and the folders made for them."""
    (tmp_path / "folder").mkdir()

    def fail() -> None:
        with OutputSet() as files:
            for name in ("a", "folder/b", "folder/deep/c", "other/deep/d"):
                write(files, tmp_path / name)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "folder"]


def test_a_target_that_became_a_folder_stops_all(tmp_path: Path) -> None:
    """A folder in place of a target is found before the first file gets its name."""
    (tmp_path / "a").write_bytes(b"old")
    files = OutputSet()
    write(files, tmp_path / "a")
    write(files, tmp_path / "b")
    (tmp_path / "b").mkdir()
    with pytest.raises(FileError, match="b: is a folder, expected the name of a file to write"):
        files.__exit__(None, None, None)
    assert files_in(tmp_path) == {"a": b"old"}


def test_a_rename_that_fails_puts_the_others_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old files come back, new names go away, and no temporary file stays, when the system refuses one name."""
    (tmp_path / "a").write_bytes(b"old")
    rename = os.replace

    def refuse_c(source: str, target: str) -> None:
        if target.endswith("c"):
            raise PermissionError(1, "Operation not permitted")
        rename(source, target)

    files = OutputSet()
    for name in "abcd":
        write(files, tmp_path / name)
    monkeypatch.setattr(os, "replace", refuse_c)
    with pytest.raises(FileError, match="c: cannot be written: operation not permitted"):
        files.__exit__(None, None, None)
    assert files_in(tmp_path) == {"a": b"old"}


def test_a_kill_between_renames_leaves_a_marker(tmp_path: Path) -> None:
    """After SIGKILL a marker names the files of the set, some of them new, and the next complete set removes the
    marker."""
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(b"old")
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    marker = marker_path(map(str, paths))
    assert marker is not None
    assert [path.read_bytes() for path in paths] == [b"new", b"new", b"old"]
    assert Path(marker).read_text().splitlines()[1:] == list(map(str, paths))
    with OutputSet() as files:
        for path in paths:
            write(files, path)
    assert not os.path.lexists(marker)


@pytest.mark.heavy
def test_a_signal_at_any_line_leaves_nothing(checkout: Path, tmp_path: Path) -> None:
    """SIGTERM at each line of the writing modules leaves the whole set or nothing, and no temporary file or folder."""
    script = Path(__file__).with_name("interrupted_writer.py")
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    arguments = [sys.executable, str(script), str(tmp_path / "root")]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


def test_a_marker_belongs_to_one_set_of_files(tmp_path: Path) -> None:
    """Order and spelling do not matter, another file does, and a single file needs none."""
    marker = marker_path([str(tmp_path / "a"), str(tmp_path / "b")])
    assert marker is not None
    assert os.path.dirname(marker) == str(tmp_path)
    assert os.path.basename(marker).startswith(MARKER_PREFIX)
    assert marker == marker_path([str(tmp_path / "x" / ".." / "b"), str(tmp_path / "a")])
    assert marker != marker_path([str(tmp_path / "a"), str(tmp_path / "c")])
    assert marker_path([str(tmp_path / "a")]) is None


def test_many_files_need_few_descriptors(tmp_path: Path) -> None:
    """A set keeps no file open, so that it can be larger than the number of files that a process may have open."""
    code = (
        "import os, resource, sys\n"
        "from scenario_runner.files.output import OutputSet\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n"
        "with OutputSet() as files:\n"
        "    for number in range(300):\n"
        "        with files.create(os.path.join(sys.argv[1], str(number))) as file:\n"
        "            file.write(b'new')\n"
        "    assert not os.path.exists(os.path.join(sys.argv[1], '0'))\n"
    )
    run_python(code, tmp_path)
    assert files_in(tmp_path) == {str(number): b"new" for number in range(300)}


def test_a_single_file_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    """Folders made for one file go away with it."""
    file = OutputFile(tmp_path / "folder" / "deep" / "a")
    file.write(b"new")
    file.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name, message",
    [
        ("x" * 256, "cannot be created: file name too long"),
        ("new/" + "x" * 256, "cannot be created: file name too long"),
        ("x" * 256 + "/new/a", "cannot be created: file name too long"),
        ("x/" * 3000 + "a", "cannot be created: file name too long"),
        ("file/a", "cannot be created: not a directory"),
        ("file/new/a", "cannot be created: not a directory"),
        ("folder", "is a folder, expected the name of a file to write"),
        ("/dev/null", "is a pipe, a device or a socket, expected the name of a file to write"),
    ],
)
def test_names_that_no_file_can_get(tmp_path: Path, name: str, message: str) -> None:
    """Too long a name, also in folders that do not exist yet, is found without making anything."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    (problem,) = error_of(FileError, OutputFile, tmp_path / name).problems
    assert (problem.path, problem.message) == (str(tmp_path / name), message)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


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
    assert run_python(code, path) == f"{path}: {message}\n"
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
