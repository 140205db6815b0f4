"""Drivers, layers and loaders that crash or hang when they are opened: doctor reports them and lives."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.doctor.machines import report_of, write_library


def manifest_of(name: str, library: Path | str) -> dict[str, object]:
    """The manifest of a layer."""
    about = {"type": "GLOBAL", "api_version": "1.3.0", "implementation_version": "1", "description": "of the tests"}
    return {"file_format_version": "1.0.0", "layer": {"name": name, "library_path": str(library), **about}}


def driver(folder: Path, *, hangs: bool) -> str:
    """The path of a manifest of a broken driver in ``folder``."""
    library = write_library(folder, hangs=hangs)
    manifest = folder / "broken_icd.json"
    content = {"file_format_version": "1.0.0", "ICD": {"library_path": str(library), "api_version": "1.3.0"}}
    manifest.write_text(json.dumps(content), encoding="utf-8")
    return str(manifest)


def errors(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["id"], one["fix"]) for one in report["findings"] if one["level"] == "error"]


def test_a_driver_that_crashes_is_named(tmp_path: Path) -> None:
    """Of several drivers the one that crashes is found; what the others show alone and all other facts stay."""
    manifest = driver(tmp_path, hangs=False)
    report = report_of(VK_ADD_DRIVER_FILES=manifest)
    assert errors(report) == [("driver-crash", f"take {manifest} out of VK_ADD_DRIVER_FILES")]
    start = report["driver_start"]
    assert (start["ok"], start["signal"], start["caused_by"]) == (False, "SIGSEGV", "drivers")
    by_path = {one["path"]: one for one in report["drivers"]}
    assert not by_path[manifest]["usable"]
    assert "was ended by SIGSEGV" in by_path[manifest]["problem"]
    assert any(one["usable"] and one["devices_alone"] for one in report["drivers"])
    assert report["loader"]["version"]
    assert report["compilers"]["GLSL"]
    assert report["devices"] == []


def test_a_driver_that_hangs_is_given_up(tmp_path: Path) -> None:
    """A driver that never returns is given up after the time limit, and is named."""
    manifest = driver(tmp_path, hangs=True)
    report = report_of("--timeout", "3", VK_DRIVER_FILES=manifest, VK_ICD_FILENAMES=manifest)
    ((id, fix),) = errors(report)
    assert (id, fix) == ("driver-hang", f"take {manifest} out of VK_DRIVER_FILES")
    assert report["driver_start"]["timed_out"]
    assert "did not finish within 3 s" in report["driver_start"]["problem"]


def test_a_layer_that_crashes_is_no_driver(tmp_path: Path) -> None:
    """A crash that goes away without layers is a layer's, and no driver is blamed."""
    library = write_library(tmp_path, hangs=False)
    content = manifest_of("VK_LAYER_TEST_broken", library)
    (tmp_path / "broken.json").write_text(json.dumps(content), encoding="utf-8")
    report = report_of(VK_LAYER_PATH=str(tmp_path), VK_INSTANCE_LAYERS="VK_LAYER_TEST_broken")
    assert errors(report) == [("layer-crash", "unset VK_INSTANCE_LAYERS")]
    assert report["driver_start"]["caused_by"] == "layers"
    assert all(one["usable"] for one in report["drivers"])


def test_a_loader_that_crashes(tmp_path: Path) -> None:
    """A library that crashes when it is opened as the loader is reported as the loader's problem."""
    library = write_library(tmp_path, hangs=False)
    report = report_of(SCENARIO_RUNNER_VULKAN_LOADER=str(library))
    assert errors(report) == [("loader-unusable", "unset SCENARIO_RUNNER_VULKAN_LOADER, or correct it")]
    assert report["loader"]["problem"] == ("the process was ended by SIGSEGV in the step: opening the Vulkan loader")


def test_a_library_that_is_none(tmp_path: Path) -> None:
    """A driver whose library is not a library is a warning beside drivers that work."""
    (tmp_path / "libtext.so").write_text("text", encoding="utf-8")
    manifest = tmp_path / "text_icd.json"
    content = {"file_format_version": "1.0.0", "ICD": {"library_path": "./libtext.so", "api_version": "1.3.0"}}
    manifest.write_text(json.dumps(content), encoding="utf-8")
    report = report_of(code=0, VK_ADD_DRIVER_FILES=str(manifest))
    (finding,) = [one for one in report["findings"] if one["id"] == "driver-broken"]
    assert finding["level"] == "warning"
    assert finding["message"].startswith(f"driver manifest {manifest}: its library cannot be opened: ")
    assert finding["fix"] == "correct VK_ADD_DRIVER_FILES, or unset it"


def test_emulation_layers_without_their_libraries(tmp_path: Path) -> None:
    """Layers that are installed but cannot be loaded leave scenarios running, and say that tensors do not."""
    folder = tmp_path / "emulation_layer"
    manifests = folder / "deploy" / "share" / "vulkan" / "explicit_layer.d"
    manifests.mkdir(parents=True)
    (folder / "__init__.py").touch()
    for kind in ("Graph", "Tensor"):
        content = manifest_of(f"VK_LAYER_ML_{kind}_Emulation", f"libGone_{kind}.so")
        (manifests / f"VkLayer_{kind}.json").write_text(json.dumps(content), encoding="utf-8")
    report = report_of(code=0, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    layers = report["layers"]["ml_emulation"]
    assert (layers["found"], layers["works"]) == (True, False)
    assert layers["graph_manifest"] == str(manifests / "VkLayer_Graph.json")
    assert "VK_ERROR_LAYER_NOT_PRESENT" in layers["problem"]
    (device,) = [each for each in report["devices"] if each["default"]]
    if "VK_ARM_tensors" not in device["extensions"]:
        assert device["ml"]["path"] == "none"
        (finding,) = [one for one in report["findings"] if one["id"] == "ml-missing"]
        assert finding["level"] == "warning"
        assert "the ML emulation layers fail" in finding["message"]
