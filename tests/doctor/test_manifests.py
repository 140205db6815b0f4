"""Manifests of drivers and layers: the files that the loader reads, and each fault."""

import json
import sys
from pathlib import Path

import pytest

from scenario_runner.doctor.manifests import drivers, explicit_layers, find_emulation_layers, read_manifest

ABSENT = "/nonexistent"
linux = pytest.mark.skipif(sys.platform != "linux", reason="the folders are those of Linux")


def write(path: Path, content: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def icd(**members: object) -> dict[str, object]:
    return {"file_format_version": "1.0.0", "ICD": members}


@linux
def test_order_and_sources(tmp_path: Path) -> None:
    """Added files come first; then the folders of the user, in the order of the XDG specification."""
    added = write(tmp_path / "added.json", icd(library_path="libadded.so", api_version="1.1.0"))
    config = write(tmp_path / "config/vulkan/icd.d/b.json", icd(library_path="libb.so"))
    data = write(tmp_path / "data/vulkan/icd.d/a.json", icd(library_path="liba.so"))
    environ = {
        "VK_ADD_DRIVER_FILES": added,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_DATA_DIRS": ABSENT,
    }
    found = [(one.path, one.source, one.library) for one in drivers(environ) if str(tmp_path) in one.path]
    assert found == [
        (added, "VK_ADD_DRIVER_FILES", "libadded.so"),
        (config, "system", "libb.so"),
        (data, "system", "liba.so"),
    ]
    assert drivers(environ)[0].api_version == "1.1.0"


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"])
def test_an_override_hides_the_system(tmp_path: Path, variable: str) -> None:
    """The variable's files and folders replace the folders of the system, even if they do not exist."""
    one = write(tmp_path / "folder/one.json", icd(library_path="libone.so"))
    older = {"VK_ICD_FILENAMES": f"{ABSENT}/old.json"}  # without effect beside VK_DRIVER_FILES
    environ = {**older, variable: f"{tmp_path / 'folder'}:{ABSENT}/two.json"}
    assert [(each.path, each.source, each.problem) for each in drivers(environ)] == [
        (one, variable, None),
        (f"{ABSENT}/two.json", variable, "the file does not exist"),
    ]


@pytest.mark.parametrize(
    "content, problem",
    [
        ("", "it is not valid JSON: expecting value: line 1 column 1 (char 0)"),
        ("[" * 100_000, "it is not valid JSON: it is nested too deeply"),
        (b"\xff\xfe\xff\x00\xd8", "it is not valid JSON: "),
        ("[]", "it has no 'ICD' object"),
        ({"ICD": 1}, "it has no 'ICD' object"),
        (icd(), "it has no library_path"),
        (icd(library_path=7), "it has no library_path"),
        (icd(library_path="a\0b"), "it has no library_path"),
        (icd(library_path="/nonexistent/x.so"), "its library '/nonexistent/x.so' does not exist"),
        (icd(library_path="x.so", library_arch="32"), "its library is for 32-bit programs"),
    ],
)
def test_what_is_wrong_with_a_manifest(tmp_path: Path, content: object, problem: str) -> None:
    """Each fault of a manifest has a sentence."""
    path = write(tmp_path / "icd.json", content)
    (manifest,) = drivers({"VK_DRIVER_FILES": path})
    assert manifest.problem is not None
    assert manifest.problem.startswith(problem)


def test_a_library_path_is_relative_to_its_manifest(tmp_path: Path) -> None:
    """A path with a slash counts from the manifest's folder; a bare name is the linker's to find."""
    (tmp_path / "libx.so").touch()
    path = write(tmp_path / "icd.d/icd.json", icd(library_path="../libx.so"))
    (manifest,) = drivers({"VK_DRIVER_FILES": path})
    assert (manifest.library, manifest.problem) == (str(tmp_path / "libx.so"), None)


@linux
def test_layers_of_a_folder(tmp_path: Path) -> None:
    """VK_LAYER_PATH hides the system's layers, VK_ADD_LAYER_PATH comes before it; names are read from the files."""
    for name in ("one", "two"):
        write(tmp_path / name / "layer.json", {"layer": {"name": f"VK_LAYER_{name}", "library_path": "libx.so"}})
    environ = {"VK_LAYER_PATH": str(tmp_path / "one"), "VK_ADD_LAYER_PATH": str(tmp_path / "two")}
    assert [(one.name, one.source) for one in explicit_layers(environ)] == [
        ("VK_LAYER_two", "VK_ADD_LAYER_PATH"),
        ("VK_LAYER_one", "VK_LAYER_PATH"),
    ]
    assert explicit_layers({"VK_LAYER_PATH": ABSENT})[0].problem == "the file does not exist"


def test_a_layer_of_layers_needs_no_library(tmp_path: Path) -> None:
    """A meta layer has component_layers instead of a library."""
    path = write(tmp_path / "meta.json", {"layer": {"name": "VK_LAYER_meta", "component_layers": []}})
    manifest = read_manifest(path, "system", "layer")
    assert (manifest.name, manifest.problem) == ("VK_LAYER_meta", None)


def test_emulation_layers_of_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The package's layers are found without importing it."""
    folder = tmp_path / "emulation_layer"
    manifests = folder / "deploy/share/vulkan/explicit_layer.d"
    for kind in ("Graph", "Tensor"):
        layer = {"name": f"VK_LAYER_ML_{kind}_Emulation", "library_path": f"libVkLayer_{kind}.so"}
        write(manifests / f"VkLayer_{kind}.json", {"layer": layer})
    write(folder / "__init__.py", "raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_emulation_layers({})
    assert found is not None
    assert (found.source, found.graph.name) == ("package", "VK_LAYER_ML_Graph_Emulation")
    assert found.tensor.path == str(manifests / "VkLayer_Tensor.json")
    assert found.library_folder == str(folder / "deploy/lib")
