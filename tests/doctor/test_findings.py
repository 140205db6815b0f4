"""Findings of doctor: a driver that crashes, the ML path, and advice for each machine."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.doctor.advice import findings, ml_path
from scenario_runner.doctor.machine_report import gather
from scenario_runner.errors import installation
from scenario_runner.shaders.compilers.table import has_dxc_wheels
from tests.doctor.machines import report_of, write_library
from tests.left_out import DXC_LIBRARY, REQUIREMENTS, VGF_LIBRARY, left_out

NO_MORE = {"named": None, "spirv_val": {"path": None, "version": None, "problem": None}}


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return gather()


def bare(report: dict[str, Any], **changed: Any) -> dict[str, dict[str, Any]]:
    """The findings by id where there is no loader, driver, compiler or ML package."""
    nothing = {
        "loader": {**report["loader"], "found": False, "path": None, "problem": "no Vulkan loader could be opened"},
        "drivers": [],
        "devices": [],
        "layers": {**report["layers"], "ml_emulation": {**report["layers"]["ml_emulation"], "found": False}},
        "compilers": {"GLSL": [], "HLSL": [], "problems": {"GLSL": None, "HLSL": None}, **NO_MORE},
        "vgf": {"found": False, "works": False, "version": None, "problem": "the package is not installed"},
        "converter": {"path": None, "version": None},
        "environment": {},
    }
    return {finding["id"]: finding for finding in findings({**report, **nothing, **changed})}


def test_a_bare_machine_is_told_everything_at_once(report: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Loader with driver, compilers and ML packages: whoever obeys once is not sent for more afterwards."""
    monkeypatch.setattr(installation, "family_here", lambda: "debian")
    monkeypatch.setattr(installation, "has_package_lists", lambda family, root: False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    found = bare(report)
    update = "sudo apt-get update && sudo apt-get install"
    assert found["loader-missing"]["fix"] == f"{update} libvulkan1 mesa-vulkan-drivers"
    assert found["glsl-compiler-missing"]["fix"] == f"{update} glslang-tools"
    assert found["batch-compiler-missing"]["fix"] == f"{update} glslc"
    assert found["ml-missing"]["fix"].endswith(" -m pip install ai_ml_emulation_layer_for_vulkan")
    if not installation.requirement(VGF_LIBRARY).without_wheels:
        assert found["vgf-missing"]["fix"].endswith(" -m pip install 'ai_ml_sdk_vgf_library>=0.11'")
    assert found["converter-missing"]["fix"].endswith(" -m pip install ai_ml_sdk_model_converter")
    if has_dxc_wheels():
        assert found["dxc-missing"]["fix"].endswith(" -m pip install 'compushady-lrtu>=0.18'")
    if installation.has_arm_wheels():
        assert found["tensor-compiler-missing"]["fix"].endswith(" 'ai_ml_sdk_scenario_runner>=0.11'")


def test_only_commands_without_a_superuser_are_run(report: dict[str, Any]) -> None:
    """`--fix` runs the pip commands of the advice, and leaves packages of the system to the user."""
    commands = {name: finding["command"] for name, finding in bare(report).items() if finding["command"]}
    assert "ml-missing" in commands
    assert set(commands) <= {"ml-missing", "vgf-missing", "converter-missing", "tensor-compiler-missing", "dxc-missing"}
    assert "converter-missing" in commands
    for name, command in commands.items():
        assert bare(report)[name]["fix"] == shlex.join(command)


def test_a_package_without_wheels_is_not_installed(report: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """`--fix` asks for the versions of pyproject.toml where it does, and leaves the package out elsewhere."""
    for name, has_wheels in (
        (VGF_LIBRARY, not installation.requirement(VGF_LIBRARY).without_wheels),
        (DXC_LIBRARY, has_dxc_wheels()),
    ):
        assert name + str(REQUIREMENTS[name].specifier) == installation.requirement(name).text
        assert left_out(name) == (not has_wheels)
    monkeypatch.setattr("sys.version_info", (3, 15, 0))
    found = bare(report)
    assert (found["vgf-missing"]["command"], found["vgf-missing"]["fix"]) == (
        None, "use CPython 3.14 or older: the package has no wheels for newer versions"
    )  # fmt: skip
    assert found["dxc-missing"]["command"] is None


def test_a_driver_that_is_there_is_not_advised(report: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a manifest of a usable driver, only the missing loader is reported."""
    monkeypatch.setattr(installation, "family_here", lambda: "fedora")
    assert bare(report)["loader-missing"]["fix"].endswith("dnf install vulkan-loader mesa-vulkan-drivers")
    found = bare(report, drivers=report["drivers"])
    assert found["loader-missing"]["fix"].endswith("dnf install vulkan-loader")


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
    """A crashing driver among several is named, and the facts about the others stay."""
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
    """A driver file that is no library is a warning beside working drivers."""
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


ML = {
    "extensions": {"VK_ARM_tensors": 2, "VK_ARM_data_graph": 1},
    "features": {
        "VkPhysicalDeviceTensorFeaturesARM": {"tensors": True},
        "VkPhysicalDeviceDataGraphFeaturesARM": {"dataGraph": True},
    },
    "properties": {},
}
NO_ML: dict[str, Any] = {"extensions": {}, "features": {}, "properties": {}}
LACKS = "the driver lacks VK_ARM_tensors and VK_ARM_data_graph"
LAYERS = {"found": True, "works": True, "problem": None}


USABLE = {"usable": True, "unusable_because": None}
ABSENT = {"found": False, "works": False, "problem": None}
NO_GRAPHS = {**ML, "extensions": {"VK_ARM_tensors": 2}}
NO_TENSORS = {**ML, "features": {**ML["features"], "VkPhysicalDeviceTensorFeaturesARM": {"tensors": False}}}
NO_INT64 = "it lacks shaderInt64, which the layers need"


def path_of(native: dict[str, Any], emulated: dict[str, Any] | None, **changed: Any) -> dict[str, Any]:
    given = {"device": USABLE, "obstacle": None, "layers": LAYERS, "instance_layers": "", **changed}
    return ml_path(native=native, emulated=emulated, **given)


@pytest.mark.parametrize(
    "native, emulated, changed, path, reason",
    [
        (ML, None, {}, "native", "the driver has VK_ARM_tensors and VK_ARM_data_graph"),
        (ML, ML, {"instance_layers": "VK_LAYER_ML_Graph_Emulation:VK_LAYER_ML_Tensor_Emulation"}, "emulation",
         "VK_INSTANCE_LAYERS enables the ML emulation layers"),
        (NO_ML, ML, {}, "emulation", f"{LACKS}; the ML emulation layers bring them"),
        (NO_TENSORS, ML, {}, "emulation", "the driver lacks VK_ARM_tensors; the ML emulation layers bring them"),
        (ML, ML, {"device": {"usable": False, "unusable_because": "it is too old"}}, "none", "it is too old"),
        (NO_ML, None, {"obstacle": NO_INT64}, "none",
         f"{LACKS}, and the ML emulation layers cannot run on it: {NO_INT64}"),
        (NO_ML, None, {"layers": ABSENT}, "none", f"{LACKS}, and the ML emulation layers are not installed"),
        (NO_ML, None, {"layers": {"found": True, "works": False, "problem": "it crashed"}}, "none",
         f"{LACKS}, and the ML emulation layers fail: it crashed"),
        (NO_GRAPHS, NO_ML, {}, "none", "the driver lacks VK_ARM_data_graph, and the ML emulation layers do not bring"
         " VK_ARM_tensors and VK_ARM_data_graph here"),
    ],
)  # fmt: skip
def test_path_and_reason(
    native: dict[str, Any], emulated: dict[str, Any] | None, changed: dict[str, Any], path: str, reason: str
) -> None:
    """Each combination of device and ML extensions has a path, a sentence and a result for tensors."""
    found = path_of(native, emulated, **changed)
    assert (found["path"], found["reason"]) == (path, reason)
    facts = ML if path == "emulation" else native if "device" not in changed else NO_ML
    assert found["extensions"] == facts["extensions"]


def test_what_is_missing_comes_with_its_command() -> None:
    """Layers that are not installed are fixed by one pip command."""
    assert path_of(NO_ML, None, layers=ABSENT)["fix"].endswith(" -m pip install ai_ml_emulation_layer_for_vulkan")
