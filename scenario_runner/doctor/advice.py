"""Findings about this machine, derived from the report alone. Each finding has a one-line fix.

Before an "error" is fixed, nothing runs. A "warning" is about an installed part that does not work. A "note" is about a
missing part that only some scenarios need.
"""

import shlex
from collections.abc import Iterator, Mapping
from itertools import chain

from scenario_runner.doctor.manifests import DRIVER_OVERRIDES, LAYERS
from scenario_runner.errors.installation import (
    MIXED_PACKAGES_FIX,
    glslc_command,
    has_arm_wheels,
    install_here,
    pip_install,
    requirement,
)
from scenario_runner.errors.text import Json
from scenario_runner.ml import vgf_tables
from scenario_runner.shaders.compilers.search import VALIDATOR_VARIABLE
from scenario_runner.shaders.compilers.table import DXC_PACKAGE, DXC_VARIABLE, GLSLANG_VARIABLE, has_dxc_wheels
from scenario_runner.tosa import model_converter
from scenario_runner.vulkan.layers import LAYERS_VARIABLE, PACKAGE, unknown_layers

_LEVELS = ("error", "warning", "note")
_LOADER_VARIABLE = "SCENARIO_RUNNER_VULKAN_LOADER"

_Finding = tuple[str, str, str, str | list[str]]
"""Level, id, message and fix: a sentence for a person, or a command that ``doctor --fix`` runs without root."""


def findings(report: Mapping[str, object]) -> list[dict[str, object]]:
    """List all findings, errors first."""
    checks = (_loader_and_devices, _manifests, _layers, _ml, _compilers, _cache, _packages)
    rows = chain.from_iterable(check(report) for check in checks)
    return [
        {
            "level": level,
            "id": id,
            "message": message,
            "fix": fix if isinstance(fix, str) else shlex.join(fix),
            "command": None if isinstance(fix, str) else fix,
        }
        for level, id, message, fix in sorted(rows, key=lambda row: _LEVELS.index(row[0]))
    ]


def _loader_and_devices(report: Mapping[str, Json]) -> Iterator[_Finding]:
    start, loader, devices = report["driver_start"], report["loader"], report["devices"]
    usable = any(device["usable"] for device in devices)
    if not loader["found"] and not start["timed_out"]:
        message = loader["problem"] or "no Vulkan loader was found"
        if report["environment"].get(_LOADER_VARIABLE):
            yield "error", "loader-unusable", message, f"unset {_LOADER_VARIABLE}, or correct it"
        else:
            parts = ("loader",) if any(driver["usable"] for driver in report["drivers"]) else ("loader", "driver")
            yield "error", "loader-missing", message, install_here(*parts)
        return
    if not usable:
        yield _no_device(report)
    elif start["problem"]:
        message = f"a driver failed while it was asked: {start['problem']}"
        yield "warning", "driver-failed", message, _guilty(report) or "update the driver"
    for device in devices:
        if not device["usable"]:
            message = f"{device['name']} cannot run scenarios: {device['unusable_because']}"
            fix = "update its driver" if usable else f"update its driver, or: {install_here('driver')}"
            yield "warning" if usable else "error", "device-unusable", message, fix


def _no_device(report: Mapping[str, Json]) -> _Finding:
    start, devices, drivers = report["driver_start"], report["devices"], report["drivers"]
    environment, nodes = report["environment"], report["system"]["gpu_nodes"]
    if start["timed_out"] or start["signal"]:
        verb, what = ("hangs", "hang") if start["timed_out"] else ("crashes", "crash")
        if start["caused_by"] == "layers":
            fix = "leave out the layers that start by themselves: export VK_LOADER_LAYERS_DISABLE=~implicit~"
            if environment.get("VK_INSTANCE_LAYERS"):
                fix = "unset VK_INSTANCE_LAYERS"
            return "error", f"layer-{what}", f"a layer {verb}: {start['problem']}", fix
        fix = _guilty(report) or "update the drivers, or try them one by one: export VK_DRIVER_FILES=<a manifest>"
        return "error", f"driver-{what}", f"a driver {verb}: {start['problem']}", fix
    layers = environment.get("VK_INSTANCE_LAYERS")
    if layers and "LAYER_NOT_PRESENT" in (start["problem"] or ""):
        message = f"VK_INSTANCE_LAYERS={layers!r} names a layer that cannot be loaded: {start['problem']}"
        return "error", "layer-broken", message, "unset VK_INSTANCE_LAYERS"
    override = next((name for name in DRIVER_OVERRIDES if environment.get(name)), None)
    works = any(driver["usable"] for driver in drivers)
    if override and not works:
        value = environment[override]
        message = f"{override}={value!r} names no usable driver manifest, and hides the system's drivers"
        return "error", "driver-missing", message, f"unset {override}, or correct it"
    has_nvidia_node = any("nvidia" in node["path"] for node in nodes)
    if has_nvidia_node and not any("nvidia" in driver["path"].lower() for driver in drivers):
        message = "an NVIDIA GPU is here, but the part of its driver that does Vulkan is not"
        fix = "start the container with NVIDIA_DRIVER_CAPABILITIES=all, or install the driver's libnvidia-gl package"
        return "error", "driver-missing", message, fix
    closed = [node["path"] for node in nodes if not node["accessible"]]
    if closed and not devices:
        message = f"this user may not open the GPU ({', '.join(closed)})"
        return "error", "gpu-no-access", message, 'sudo usermod -aG render,video "$USER", then log in again'
    id, message = "no-usable-device", "no device can run scenarios"
    if not devices and works:
        id, message = "no-device", "the drivers show no device"
    elif not devices:
        id, message = "driver-missing", "no Vulkan driver is installed"
    detail = f": {start['problem']}" if start["problem"] else ""
    return "error", id, message + detail, install_here("driver")


def _guilty(report: Mapping[str, Json]) -> str | None:
    """Advise to leave out the drivers that fail even when loaded alone. Return None without such a driver."""
    tried = [driver for driver in report["drivers"] if not driver["usable"] and driver["devices_alone"] is not None]
    sound = [driver["path"] for driver in report["drivers"] if driver["usable"]]
    if not tried:
        return None
    names = ", ".join(driver["path"] for driver in tried)
    variables = sorted({driver["source"] for driver in tried if driver["source"] != "system"})
    if variables:
        return f"take {names} out of {' and '.join(variables)}"
    if not sound:
        return f"repair or remove the driver of {names}, then: {install_here('driver')}"
    return f"repair or remove the driver of {names}, or leave it out: export VK_DRIVER_FILES={':'.join(sound)}"


def _manifests(report: Mapping[str, Json]) -> Iterator[_Finding]:
    """Report broken manifests. A driver that failed alone is left to the finding about the crash."""
    broken = [driver for driver in report["drivers"] if not driver["usable"] and driver["devices_alone"] is None]
    kinds = [("driver", "driver-broken", driver) for driver in broken]
    kinds += [("layer", "layer-broken", layer) for layer in report["layers"]["broken"]]
    for kind, id, manifest in kinds:
        path, source = manifest["path"], manifest["source"]
        fix = f"install its {kind} anew, or remove {path}" if source == "system" else f"correct {source}, or unset it"
        yield "warning", id, f"{kind} manifest {path}: {manifest['problem']}", fix


def _layers(report: Mapping[str, Json]) -> Iterator[_Finding]:
    layers, validation = report["layers"], report["layers"]["validation"]
    if not report["loader"]["found"]:
        return
    available = {layer["name"] for layer in layers["available"]}
    message = unknown_layers(report["environment"].get(LAYERS_VARIABLE, ""), available)
    if message and available:
        yield "warning", "layer-unknown", message, "correct VK_INSTANCE_LAYERS, or unset it"
    fix = install_here("validation")
    if not validation["found"]:
        message = "the validation layer, which --validation and --printf load, is not installed"
        if report["environment"].get("VK_LAYER_PATH"):
            message = "the validation layer is not found; VK_LAYER_PATH hides the system's layers"
            fix = f"unset VK_LAYER_PATH; where that does not help: {fix}"
        yield "note", "validation-missing", message, fix
    elif not validation["works"] and report["driver_start"]["ok"]:
        yield "warning", "validation-broken", f"the validation layer cannot be used: {validation['problem']}", fix


def _ml(report: Mapping[str, Json]) -> Iterator[_Finding]:
    """Report obstacles to tensors and graphs on every usable device, to reading VGF files, and to converting models."""
    devices = [device for device in report["devices"] if device["usable"]]
    layers = report["layers"]["ml_emulation"]
    if devices and all(device["ml"]["path"] == "none" for device in devices):
        device = next((device for device in devices if device["default"]), devices[0])
        level = "warning" if layers["found"] and not layers["works"] else "note"
        fix: str | list[str] = "use another device or driver"
        if device["ml"]["fix"]:
            fix = pip_install(PACKAGE)
        elif level == "warning":
            fix = pip_install("--force-reinstall", "--no-deps", PACKAGE)
        message = f"tensors and ML graphs do not run on {device['name']}: {device['ml']['reason']}"
        yield level, "ml-missing", message, fix
    elif not devices and not layers["found"]:
        message = "the ML emulation layers, which run tensors and ML graphs on most devices, are not installed"
        yield "note", "ml-missing", message, pip_install(PACKAGE)
    vgf = report["vgf"]
    if not vgf["works"]:
        level, message = "warning" if vgf["found"] else "note", f"VGF files cannot be read: {vgf['problem']}"
        library = requirement(vgf_tables.PACKAGE)
        yield level, "vgf-missing", message, library.without_wheels or pip_install(library.text)
    if report["converter"]["path"] is None:
        message = "model-converter, which 'convert' lowers ML operations with, was not found"
        yield "note", "converter-missing", message, pip_install(model_converter.PACKAGE)


def _compilers(report: Mapping[str, Json]) -> Iterator[_Finding]:
    compilers, problems = report["compilers"], report["compilers"]["problems"]
    for language, variable in (("GLSL", GLSLANG_VARIABLE), ("HLSL", DXC_VARIABLE)):
        problem = problems[language]
        if problem and not (language == "HLSL" and problem == problems["GLSL"]):
            level = "error" if language == "GLSL" else "warning"
            fix = f"unset {variable}, or correct it" if report["environment"].get(variable) else problem["help"]
            yield level, f"{language.lower()}-compiler-unusable", problem["message"], fix
    glsl, hlsl = compilers["GLSL"], compilers["HLSL"]
    if not glsl and not problems["GLSL"]:
        yield "error", "glsl-compiler-missing", "no GLSL compiler was found", install_here("glslang")
    if not any(compiler["tensors"] for compiler in glsl) and not problems["GLSL"]:
        message = "no GLSL compiler found knows GL_ARM_tensors, which shaders with tensors need"
        how = glslc_command() if has_arm_wheels() else "install glslang 15.4 or newer"
        yield "note", "tensor-compiler-missing", message, how
    if not compilers["named"] and not any(compiler["batches"] for compiler in glsl):
        message = "glslc of Google, which compiles many shaders in one process, was not found"
        yield "note", "batch-compiler-missing", message, install_here("glslc")
    if all(compiler["flavour"] == "glslang" for compiler in hlsl) and not problems["HLSL"]:
        message = "dxc, the compiler that takes all of HLSL, was not found"
        message += "; simple HLSL is left to glslang" if hlsl else ""
        advice = f"put dxc on PATH, or set {DXC_VARIABLE} to its path"
        install = pip_install(requirement(DXC_PACKAGE).text)
        yield "note", "dxc-missing", message, install if has_dxc_wheels() else advice
    validator = compilers["spirv_val"]
    if validator["problem"]:
        message = f"spirv-val is not used: {validator['problem']}"
        yield "note", "spirv-val-missing", message, f"unset {VALIDATOR_VARIABLE}, or correct it"
    elif validator["path"] is None:
        message = "spirv-val was not found: SPIR-V files are checked by simpler rules only before a driver sees them"
        yield "note", "spirv-val-missing", message, install_here("spirv_tools")


def _cache(report: Mapping[str, Json]) -> Iterator[_Finding]:
    cache = report["cache"]
    if not cache["writable"]:
        message = f"compiled shaders are not kept: {cache['path']!r} cannot be written: {cache['problem']}"
        yield "warning", "cache-unwritable", message, "set SCENARIO_RUNNER_CACHE to a folder that can be written"


def _packages(report: Mapping[str, Json]) -> Iterator[_Finding]:
    if report["mixed_packages"]:
        yield "warning", "packages-mixed", report["mixed_packages"], MIXED_PACKAGES_FIX


_NEEDED = {
    "VK_ARM_tensors": ("VkPhysicalDeviceTensorFeaturesARM", "tensors"),
    "VK_ARM_data_graph": ("VkPhysicalDeviceDataGraphFeaturesARM", "dataGraph"),
}
_NOTHING: dict[str, object] = {"extensions": {}, "features": {}, "properties": {}}


def ml_path(
    device: Mapping[str, Json],
    obstacle: str | None,
    native: Mapping[str, Json],
    emulated: Mapping[str, Json] | None,
    layers: Mapping[str, Json],
    instance_layers: str,
) -> dict[str, Json]:
    """Choose the path of tensors and graphs on a device: "native", "emulation" or "none".

    Return ``path``, ``reason`` and ``fix``, with the ML extensions, features and properties there.

    ``obstacle`` says why the layers cannot run on the device (`vulkan.capabilities.emulation_obstacle`). ``native`` and
    ``emulated`` come from `probe.ml_facts`, without and with the layers. ``instance_layers`` is VK_INSTANCE_LAYERS, by
    which a user can load the layers into every program.
    """
    lacking = _lacking(native)
    if not device["usable"]:
        return _path("none", str(device["unusable_because"]), _NOTHING)
    if not lacking:
        if any(name in instance_layers for name in LAYERS):
            return _path("emulation", "VK_INSTANCE_LAYERS enables the ML emulation layers", native)
        return _path("native", "the driver has VK_ARM_tensors and VK_ARM_data_graph", native)
    lacks = f"the driver lacks {' and '.join(lacking)}"
    if obstacle:
        return _path("none", f"{lacks}, and the ML emulation layers cannot run on it: {obstacle}", native)
    if not layers["found"]:
        fix = shlex.join(pip_install(PACKAGE))
        return _path("none", f"{lacks}, and the ML emulation layers are not installed", native, fix)
    if emulated is None or not layers["works"]:
        why = layers["problem"] or "they do not show this device"
        return _path("none", f"{lacks}, and the ML emulation layers fail: {why}", native)
    still = _lacking(emulated)
    if still:
        return _path("none", f"{lacks}, and the ML emulation layers do not bring {' and '.join(still)} here", native)
    return _path("emulation", f"{lacks}; the ML emulation layers bring them", emulated)


def _path(path: str, reason: str, facts: Mapping[str, object], fix: str | None = None) -> dict[str, object]:
    return {"path": path, "reason": reason, "fix": fix, **facts}


def _lacking(facts: Mapping[str, Json]) -> list[str]:
    """Return the graph extensions that a device lacks or offers without their main feature."""
    return [
        extension
        for extension, (structure, member) in _NEEDED.items()
        if extension not in facts["extensions"] or not facts["features"].get(structure, {}).get(member)
    ]
