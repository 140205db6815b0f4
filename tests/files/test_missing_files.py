"""Files that are not there: errors of ours that are Python's FileNotFoundError as well."""

import errno
import pickle
from pathlib import Path
from typing import Any

import pytest

from scenario_runner import Runner, load
from scenario_runner.errors import FileError, MissingFileError, ScenarioRunnerError
from scenario_runner.files.dds import read_header as read_dds_header
from scenario_runner.files.npy import read_header
from scenario_runner.ml.vgf_file import read_vgf
from tests.files.test_unusual_paths import KINDS, add_resource
from tests.scenes import Scene


@pytest.mark.parametrize("read", [load, read_header, read_dds_header, read_vgf])
def test_a_missing_file(read: Any, tmp_path: Path) -> None:
    """Whatever reads a file says so in both languages, with the path; the message is what it was."""
    path = str(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError) as caught:
        read(path)
    error = caught.value
    assert isinstance(error, FileError)
    assert (error.exit_code, error.filename, error.errno) == (4, path, errno.ENOENT)
    assert str(error).startswith(f"{path}: ")
    assert str(error).endswith("no such file or directory")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.filename) == (MissingFileError, str(error), path)


def test_a_folder_is_not_missing(tmp_path: Path) -> None:
    """What is there and cannot be read is another error."""
    with pytest.raises(FileError) as caught:
        load(tmp_path)
    assert not isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("kind", ["scenario", *KINDS])
def test_missing_files_of_a_run(kind: str, scene: Scene, shader_cache: Path) -> None:
    """Each file that a scenario names and that is not there is such an error of a run."""
    if kind != "scenario":
        add_resource(scene, kind, "none.npy")
    path = scene.folder / "none.json" if kind == "scenario" else scene.write()
    with Runner() as runner, pytest.raises(FileNotFoundError) as caught:
        runner.run(path)
    assert isinstance(caught.value, ScenarioRunnerError)
    assert "no such file or directory" in str(caught.value)
