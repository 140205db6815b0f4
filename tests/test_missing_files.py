"""Files that are not there: errors of ours that are Python's FileNotFoundError as well."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path
from typing import Any

import pytest

from scenario_runner import Runner, load
from scenario_runner.errors import FileError, MissingFileError, ScenarioRunnerError
from scenario_runner.files.dds import read_header as read_dds_header
from scenario_runner.files.npy import read_header
from scenario_runner.graphs import read_vgf
from tests.scenes import Scene, glsl


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


@pytest.mark.parametrize("kind", ["scenario", "source", "shader", "module", "raw_data", "image", "graph"])
def test_missing_files_of_a_run(kind: str, scene: Scene, shader_cache: Path) -> None:
    """Each file that a scenario names and that is not there is such an error of a run."""
    keys: dict[str, Any] = {"uid": "x", "src": "none.npy"}
    match kind:
        case "source":
            scene.resource("buffer", **keys, size=4, shader_access="readonly")
        case "image":
            keys |= {"format": "VK_FORMAT_R8_UNORM", "dims": [1, 2, 2, 1]}
            scene.resource("image", **keys, shader_access="readonly")
        case "shader":
            scene.resource("shader", uid="s", src="none.comp").dispatch("s", [])
        case "module":
            scene.resource("shader", uid="s", src="none.spv", type="SPIR-V").dispatch("s", [])
        case "raw_data":
            text = glsl("", "layout(push_constant) uniform P { float factor; } p;\n")
            scene.shader("s", text, push_constants_size=4).resource("raw_data", **keys)
            scene.dispatch("s", [], push_data_ref="x")
        case "graph":
            scene.resource("graph", uid="g", src="none.vgf").command("dispatch_graph", graph_ref="g", bindings=[])
    path = scene.folder / "none.json" if kind == "scenario" else scene.write()
    with Runner() as runner, pytest.raises(FileNotFoundError) as caught:
        runner.run(path)
    assert isinstance(caught.value, ScenarioRunnerError)
    assert "no such file or directory" in str(caught.value)
