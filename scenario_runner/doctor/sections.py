"""The report in words: titled rows of text, which the command line prints with or without colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Row(NamedTuple):
    """``state`` is "ok", "bad" (broken or missing), or ``""`` for what is neither."""

    label: str
    text: str
    state: str = ""


class Section(NamedTuple):
    """A title and its rows."""

    title: str
    rows: list[Row]


def headline(report: Mapping[str, Any]) -> Row:
    """One line: can scenarios run here."""
    program = f"scenario-runner {report['program']['version']}"
    if not report["ready"]:
        return Row(program, "scenarios cannot run on this machine yet; see below", "bad")
    device = next((one for one in report["devices"] if one["default"]), None)
    name = device["name"] if device else next(one["name"] for one in report["devices"] if one["usable"])
    return Row(program, f"ready to run scenarios on {name}", "ok")


def sections(report: Mapping[str, Any]) -> list[Section]:
    """Everything but the headline and the findings."""
    return [
        Section("this machine", list(_machine(report))),
        Section("Vulkan", list(_vulkan(report))),
        *(Section(_title(device), list(_device(device))) for device in report["devices"]),
        Section("shader compilers", list(_compilers(report))),
        Section("ML", list(_ml(report))),
    ]


def _machine(report: Mapping[str, Any]) -> Iterator[Row]:
    system, python = report["system"], report["python"]
    os = f"{system['os']} {system['release']}"
    yield Row("system", f"{system['distribution'] or os}, {system['machine']}")
    yield Row("Python", f"{python['version']} ({python['executable']})")
    yield Row("packages", ", ".join(f"{name} {version}" for name, version in report["packages"].items() if version))
    cache = report["cache"]
    size = f"{cache['files']} files, {_bytes(cache['size_bytes'])}" if cache["exists"] else "not made yet"
    problem = f"; not writable: {cache['problem']}" if not cache["writable"] else ""
    yield Row("cache", f"{cache['path']} ({size}{problem})", "bad" if problem else "ok")
    for name, value in report["environment"].items():
        yield Row("variable", f"{name}={value}")


def _vulkan(report: Mapping[str, Any]) -> Iterator[Row]:
    loader = report["loader"]
    if loader["found"]:
        yield Row("loader", f"{loader['path'] or 'found'}, version {loader['version']}", "ok")
    else:
        yield Row("loader", str(loader["problem"]), "bad")
    for driver in report["drivers"]:
        state = "ok" if driver["usable"] else "bad"
        yield Row("driver", driver["path"] + (f": {driver['problem']}" if driver["problem"] else ""), state)
    if not report["drivers"]:
        yield Row("driver", "no manifest was found", "bad")
    for layer in report["layers"]["available"]:
        yield Row("layer", f"{layer['name']} {layer['spec_version']}")
    for layer in report["layers"]["broken"]:
        yield Row("layer", f"{layer['path']}: {layer['problem']}", "bad")
    validation = report["layers"]["validation"]
    if validation["works"]:
        yield Row("validation", f"works, version {validation['version']}", "ok")
    else:
        problem = validation["problem"] if validation["found"] else "not installed"
        yield Row("validation", str(problem), "bad")
    start = report["driver_start"]
    if start["problem"] and loader["found"]:
        yield Row("start", start["problem"], "bad")
        for line in start["messages"][:20]:
            yield Row("", line)


def _title(device: Mapping[str, Any]) -> str:
    return f"device {device['index']}: {device['name']}" + (" (default)" if device["default"] else "")


def _device(device: Mapping[str, Any]) -> Iterator[Row]:
    if device["usable"]:
        yield Row("usable", "yes", "ok")
    else:
        yield Row("usable", f"no: {device['unusable_because']}", "bad")
    driver = device["driver"]
    yield Row("type", f"{device['type']}, Vulkan {device['api_version']}, {driver['name']} {driver['info']}")
    yield Row("UUID", device["uuid"])
    ml = device["ml"]
    yield Row("ML path", f"{ml['path']}: {'because ' if ml['path'] == 'none' else ''}{ml['reason']}")
    heaps = device["memory"]["heaps"]
    words = [_bytes(heap["size_bytes"]) + (" (device)" if heap["device_local"] else " (host)") for heap in heaps]
    yield Row("memory", ", ".join(words))
    largest = device["properties"].get("VkPhysicalDeviceVulkan11Properties", {}).get("maxMemoryAllocationSize")
    if largest is not None:
        yield Row("allocation", f"{_bytes(largest)} at most (maxMemoryAllocationSize)")
    for family in device["queue_families"]:
        stamps = f"timestamps of {family['timestamp_valid_bits']} bits"
        stamps = stamps if family["timestamp_valid_bits"] else "no timestamps"
        yield Row("queues", f"{family['count']} with {', '.join(family['flags']) or 'nothing'}; {stamps}")
    yield Row("extensions", f"{len(device['extensions'])} (--json lists them, limits and features)")
    measured = device["shader_instrumentation"]
    if measured["supported"]:
        names = ", ".join(metric["name"] for metric in measured["metrics"])
        each = "basic block" if measured["per_basic_block"] else "shader"
        yield Row("instrumentation", f"{len(measured['metrics'])} metrics for each {each}: {names}")


def _compilers(report: Mapping[str, Any]) -> Iterator[Row]:
    compilers = report["compilers"]
    for language in ("GLSL", "HLSL"):
        problem = compilers["problems"][language]
        if problem:
            yield Row(language, problem["message"], "bad")
        for index, one in enumerate(compilers[language]):
            can = []
            if language == "GLSL":
                can.append("GL_ARM_tensors" if one["tensors"] else "no GL_ARM_tensors")
                can.append("any entry point" if one["renames_entry"] else "entry point main only")
            elif one["flavour"] == "glslang":
                can.append("simple HLSL only")
            can += ["many shaders at a time"] if one["batches"] else []
            words = f"{one['flavour']} {one['version']}, {one['path']}" + (f" ({', '.join(can)})" if can else "")
            yield Row(language, words, "ok" if index == 0 else "")
        if not compilers[language] and not problem:
            yield Row(language, "no compiler was found", "bad")
    validator = compilers["spirv_val"]
    if validator["path"]:
        yield Row("SPIR-V", f"spirv-val {validator['version'] or 'of unknown version'}, {validator['path']}", "ok")
    else:
        yield Row("SPIR-V", validator["problem"] or "spirv-val was not found", "bad")


def _ml(report: Mapping[str, Any]) -> Iterator[Row]:
    layers, vgf = report["layers"]["ml_emulation"], report["vgf"]
    if layers["found"]:
        version = f" {layers['version']}" if layers["version"] else ""
        place = f"found in {layers['source']}{version}: {layers['graph_manifest']}"
        yield Row("emulation", place + (f": {layers['problem']}" if layers["problem"] else ""), _state(layers["works"]))
    else:
        yield Row("emulation", "the ML emulation layers are not installed", "bad")
    if vgf["works"]:
        yield Row("VGF library", f"version {vgf['version'] or 'unknown'}", "ok")
    else:
        yield Row("VGF library", str(vgf["problem"]), "bad")
    converter = report["converter"]
    if converter["path"] is None:
        yield Row("converter", "model-converter was not found", "bad")
    else:
        version = f"version {converter['version']}, " if converter["version"] else ""
        yield Row("converter", f"{version}{converter['path']}", "ok")


def _state(good: bool) -> str:
    return "ok" if good else "bad"


def _bytes(count: int) -> str:
    """A size for people, exact enough to see what fits."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
