"""What doctor advises on a machine with nothing: all at once. The report is this machine's, with parts taken out."""

import shlex
from typing import Any

import pytest

from scenario_runner.doctor.advice import findings
from scenario_runner.doctor.machine_report import gather
from scenario_runner.errors import installation
from scenario_runner.shaders.compilers.table import has_dxc_wheels
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
    """`--fix` runs the pip commands, which are what the fix says; the system's packages are left to the user."""
    commands = {name: finding["command"] for name, finding in bare(report).items() if finding["command"]}
    assert "ml-missing" in commands
    assert set(commands) <= {"ml-missing", "vgf-missing", "tensor-compiler-missing", "dxc-missing"}
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
    """Where a usable driver's manifest is found, the loader alone is missing."""
    monkeypatch.setattr(installation, "family_here", lambda: "fedora")
    assert bare(report)["loader-missing"]["fix"].endswith("dnf install vulkan-loader mesa-vulkan-drivers")
    found = bare(report, drivers=report["drivers"])
    assert found["loader-missing"]["fix"].endswith("dnf install vulkan-loader")
