"""`scenario-runner doctor`: the real program on this machine, and on this machine with parts taken away or broken."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.machines import doctor, program_of, report_of
from tests.program import on_terminal

DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")


def found(report: dict[str, Any], id: str) -> dict[str, Any]:
    """Return the only finding of a kind."""
    (finding,) = [finding for finding in report["findings"] if finding["id"] == id]
    assert "\n" not in finding["fix"]
    return dict(finding)


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """The program's report about this machine."""
    return report_of(code=0)


@pytest.fixture(scope="module")
def vulkaninfo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The text that vulkaninfo, a program of the Vulkan tools, prints about the first device."""
    folder = tmp_path_factory.mktemp("vulkaninfo")
    path = folder / "profile.json"
    command = ["vulkaninfo", "--json=0", "--output", str(path)]
    try:
        subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=True)
    except FileNotFoundError:
        pytest.skip("vulkaninfo is not installed (package vulkan-tools)")
    if not path.exists():  # older ones choose the name themselves
        (path,) = folder.glob("*.json")
    device: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["capabilities"]["device"]
    return device


def test_this_machine_is_ready(report: dict[str, Any]) -> None:
    """With a loader, a driver and a compiler the exit code is 0, one device is the default, and nothing is wrong."""
    assert report["schema"] == 2
    assert report["driver_start"]["ok"]
    assert os.path.basename(report["loader"]["path"]).startswith("libvulkan")
    assert [device["default"] for device in report["devices"]].count(True) == 1
    assert any(driver["usable"] for driver in report["drivers"])
    assert os.path.isfile(report["compilers"]["GLSL"][0]["path"])
    assert [finding for finding in report["findings"] if finding["level"] == "error"] == []


def test_a_device_is_what_vulkaninfo_says(report: dict[str, Any], vulkaninfo: dict[str, Any]) -> None:
    """Name, version, UUID, limits, extensions and queue families agree with vulkaninfo's own."""
    device, theirs = report["devices"][0], vulkaninfo["properties"]
    core = theirs["VkPhysicalDeviceProperties"]
    assert device["name"] == core["deviceName"]
    version = core["apiVersion"]
    assert device["api_version"] == f"{version >> 22}.{version >> 12 & 0x3FF}.{version & 0xFFF}"
    identity = theirs["VkPhysicalDeviceVulkan11Properties"]
    assert device["uuid"].replace("-", "") == bytes(identity["deviceUUID"]).hex()
    assert device["extensions"] == vulkaninfo["extensions"]
    plain = {
        name: value
        for name, value in core["limits"].items()
        if isinstance(value, int | float | list) and not isinstance(value, bool)
    }
    assert len(plain) > 80
    ours = {name: device["limits"][name] for name in plain}
    flags = {
        name for name, value in plain.items() if isinstance(value, list) and any(isinstance(x, str) for x in value)
    }
    assert {name: ours[name] for name in plain.keys() - flags} == {
        name: pytest.approx(plain[name], rel=1e-6) for name in plain.keys() - flags
    }
    largest = device["properties"]["VkPhysicalDeviceVulkan11Properties"]["maxMemoryAllocationSize"]
    assert largest == identity["maxMemoryAllocationSize"]
    families = [family["VkQueueFamilyProperties"] for family in vulkaninfo["queueFamiliesProperties"]]
    assert [(family["count"], family["timestamp_valid_bits"]) for family in device["queue_families"]] == [
        (family["queueCount"], family["timestampValidBits"]) for family in families
    ]


def test_ml_path_says_why(report: dict[str, Any]) -> None:
    """The ML path is native, emulated with the layers, or missing with a reason."""
    for device in report["devices"]:
        ml = device["ml"]
        core = device["features"]["VkPhysicalDeviceFeatures"]
        if {"VK_ARM_tensors", "VK_ARM_data_graph"} <= device["extensions"].keys():
            assert ml["path"] == "native"
        elif report["layers"]["ml_emulation"]["works"] and core["shaderInt64"]:
            assert ml["path"] == "emulation"
            assert ml["extensions"].keys() >= {"VK_ARM_tensors", "VK_ARM_data_graph"}
            assert ml["properties"]["VkPhysicalDeviceTensorPropertiesARM"]["maxTensorDimensionCount"] >= 4
        else:
            assert ml["path"] == "none"
            assert "VK_ARM_tensors" in ml["reason"]


def test_plain_text_has_no_drawings(report: dict[str, Any]) -> None:
    """Away from a terminal the output is plain ASCII text with the device, every finding and its fix."""
    done = doctor()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    lines = [line.strip() for line in done.stdout.splitlines()]
    name = report["devices"][0]["name"]
    assert lines[0].endswith(f"ready to run scenarios on {name}")
    assert f"device 0: {name} (default)" in lines
    for finding in report["findings"]:
        assert f"{finding['level']}: {finding['message']}" in lines
        assert f"fix: {finding['fix']}" in lines


def test_a_pipe_with_a_small_alphabet_is_no_crash(tmp_path: Path) -> None:
    """A pipe with a small alphabet prints the name of a cache folder escaped."""
    done = doctor(PYTHONIOENCODING="ascii", SCENARIO_RUNNER_CACHE=str(tmp_path / "caché"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "cach\\xe9" in done.stdout


def test_a_terminal_gets_colours(report: dict[str, Any], tmp_path: Path) -> None:
    """On a terminal the same report is coloured."""
    code, output = on_terminal(tmp_path, "doctor")
    assert code == 0
    assert "\x1b[" in output
    assert report["devices"][0]["uuid"] in output


@pytest.mark.parametrize("variable", DRIVER_VARIABLES)
def test_a_variable_that_hides_every_driver(variable: str) -> None:
    """A driver variable that names nothing is the error, and unsetting it the fix; compilers are reported all the
    same. Variables that may hold credentials of others are not shown."""
    gone = "/nonexistent/icd.json"
    report = report_of(code=1, **{**dict.fromkeys(DRIVER_VARIABLES, ""), variable: gone, "NVIDIA_API_KEY": "secret"})
    finding = found(report, "driver-missing")
    assert finding["level"] == "error"
    assert finding["message"].startswith(f"{variable}={gone!r} names no usable driver manifest")
    assert finding["fix"] == f"unset {variable}, or correct it"
    assert report["environment"][variable] == gone
    assert "NVIDIA_API_KEY" not in report["environment"]
    assert [(one["path"], one["problem"]) for one in report["drivers"]] == [(gone, "the file does not exist")]
    assert report["devices"] == []
    assert report["loader"]["found"]
    assert report["compilers"]["GLSL"]


def test_a_loader_that_is_none() -> None:
    """A loader variable with a wrong file is the error, and nothing else about drivers is guessed."""
    report = report_of(code=1, SCENARIO_RUNNER_VULKAN_LOADER=__file__)
    finding = found(report, "loader-unusable")
    assert repr(__file__) in finding["message"]
    assert finding["fix"] == "unset SCENARIO_RUNNER_VULKAN_LOADER, or correct it"
    assert not report["loader"]["found"]
    assert [one["id"] for one in report["findings"] if one["level"] == "error"] == ["loader-unusable"]
    assert "validation-missing" not in [one["id"] for one in report["findings"]]


def test_no_glsl_compiler(tmp_path: Path) -> None:
    """Without any GLSL compiler the exit code is 1 and the fix installs one; the device is usable all the same."""
    base = os.path.realpath(sys.executable)  # outside the environment, where Arm's compiler may be
    report = report_of(code=1, python=base, PATH=str(tmp_path), XDG_DATA_HOME=str(tmp_path))
    assert report["compilers"]["GLSL"] == []
    finding = found(report, "glsl-compiler-missing")
    assert (finding["level"], finding["message"]) == ("error", "no GLSL compiler was found")
    assert "glslang" in finding["fix"]
    assert any(device["usable"] for device in report["devices"])


def test_glslc_is_recommended(tmp_path: Path) -> None:
    """Without Google's glslc a note explains how to install it, unless the user named a compiler."""
    glslang = shutil.which("glslangValidator")
    assert glslang is not None
    (tmp_path / "glslangValidator").symlink_to(glslang)
    finding = found(report_of(code=0, PATH=str(tmp_path)), "batch-compiler-missing")
    assert finding["level"] == "note"
    assert "glslc" in finding["message"]
    assert any(package in finding["fix"] for package in ("glslc", "shaderc"))
    named = report_of("--glslang", glslang, code=0, PATH=str(tmp_path))
    assert named["compilers"]["named"] == glslang
    assert "batch-compiler-missing" not in [one["id"] for one in named["findings"]]


def test_a_named_compiler_that_is_none() -> None:
    """`--glslang` with a program that is not a compiler is an error that names it."""
    report = report_of("--glslang", sys.executable, code=1)
    finding = found(report, "glsl-compiler-unusable")
    assert f"{sys.executable!r} (named by --glslang) is not a known shader compiler" in finding["message"]


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    """An unwritable cache folder is a warning: scenarios run without it."""
    file = tmp_path / "file"
    file.touch()
    report = report_of(code=0, SCENARIO_RUNNER_CACHE=str(file / "cache"))
    assert not report["cache"]["writable"]
    finding = found(report, "cache-unwritable")
    assert finding["level"] == "warning"
    assert f"{str(file)!r} is not a folder" in finding["message"]


def test_looking_leaves_nothing_behind(tmp_path: Path) -> None:
    """A cache folder that does not exist is reported as writable and is not made."""
    folder = tmp_path / "cache"
    report = report_of(code=0, SCENARIO_RUNNER_CACHE=str(folder))
    assert (report["cache"]["exists"], report["cache"]["writable"]) == (False, True)
    assert list(tmp_path.iterdir()) == []


def test_list_devices_agrees(report: dict[str, Any]) -> None:
    """`--list-devices` prints one line for each device with the value for `--device`, and marks the default."""
    done = program_of(sys.executable, "--list-devices")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == len(report["devices"])
    for line, device in zip(lines, report["devices"], strict=True):
        assert line.startswith(
            f"{device['index']}: {device['name']} ({device['type']}, Vulkan {device['api_version']}, "
        )
        assert f" uuid {device['uuid']}" in line
        assert line.endswith(" - default") is device["default"]


def test_list_devices_without_any() -> None:
    """`--list-devices` without a driver is an error with the exit code of a missing device, and points to doctor."""
    done = program_of(sys.executable, "--list-devices", **dict.fromkeys(DRIVER_VARIABLES, "/nonexistent/icd.json"))
    assert (done.returncode, done.stdout) == (8, "")
    assert "'scenario-runner doctor'" in done.stderr
    assert "Traceback" not in done.stderr
