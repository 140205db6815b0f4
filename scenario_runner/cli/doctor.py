"""``scenario-runner doctor``: the rows about installed and missing parts, from `doctor.machine_report`."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeAlias

from scenario_runner.cli.console import show, write
from scenario_runner.doctor.machine_report import gather
from scenario_runner.errors.text import Json
from scenario_runner.processes.programs import Program
from scenario_runner.shaders.compilers.search import search_again

_FIX_TIMEOUT_S = 1800.0
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_MESSAGE_LINES = 20

Row: TypeAlias = "tuple[bool | None, str, str]"
"""A state (true: works, false: broken, None: neither), a label and a text."""


def main(options: argparse.Namespace) -> int:
    """Print the report. Return 0 if the machine has a usable device and a GLSL compiler, else 1."""
    report = gather(timeout_s=options.timeout, compiler=options.glslang)
    fixed = True
    commands = {tuple(finding["command"]): finding["fix"] for finding in report["findings"] if finding["command"]}
    if options.fix and commands and (options.yes or _is_confirmed(commands.values())):
        fixed = _fix(commands)
        search_again()
        report = gather(timeout_s=options.timeout, compiler=options.glslang)
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _show(report)
    return 0 if report["ready"] and fixed else 1


def _is_confirmed(lines: Iterable[str]) -> bool:
    """Ask on a terminal whether to run commands. Without a terminal, nobody is asked."""
    if sys.stdin is None or not sys.stdin.isatty():
        return True
    for line in lines:
        write("info", f"would run: {line}")
    with suppress(EOFError):
        return input("run these commands? [Y/n] ").strip().lower() in ("", "y", "yes")
    return False


def _fix(commands: Mapping[tuple[str, ...], str]) -> bool:
    """Run commands, with output on standard error. Return whether all succeed."""
    succeeded = True
    for command, line in commands.items():
        write("info", f"running: {line}")
        with Program(list(command), _FIX_TIMEOUT_S, stdin=subprocess.DEVNULL, stdout=2) as program:
            code = program.wait()
        if code:
            succeeded = False
            how = program.failure or f"ended with exit code {code}"
            write("error", f"the command {how}: {line}")
    return succeeded


def _show(report: Mapping[str, Json]) -> None:
    program = f"scenario-runner {report['program']['version']}: "
    if report["ready"]:
        usable = [device for device in report["devices"] if device["usable"]]
        device = next((device for device in usable if device["default"]), usable[0])
        show((program, "bold"), (f"ready to run scenarios on {device['name']}", "bold green"))
    else:
        show((program, "bold"), ("scenarios cannot run on this machine yet; see below", "bold red"))
    _show_section("this machine", _machine(report))
    _show_section("Vulkan", _vulkan(report))
    for device in report["devices"]:
        default = " (default)" if device["default"] else ""
        _show_section(f"device {device['index']}: {device['name']}{default}", _device(device))
    _show_section("shader compilers", _compilers(report["compilers"]))
    _show_section("ML", _ml(report))
    _show_section("findings", ())
    for finding in report["findings"]:
        show("  ", (f"{finding['level']}: ", _STYLES[finding["level"]]), finding["message"])
        show("    ", (f"fix: {finding['fix']}", "green"))
    if not report["findings"]:
        show("  ", ("nothing is missing", "green"))


def _show_section(title: str, rows: Iterator[Row] | tuple[()]) -> None:
    show()
    show((title, "bold"))
    for works, label, text in rows:
        mark, style = {True: ("+", "green"), False: ("-", "red"), None: (" ", "")}[works]
        show(f"  {mark} {label:15}  ", (text, style))


def _machine(report: Mapping[str, Json]) -> Iterator[Row]:
    system, python, cache = report["system"], report["python"], report["cache"]
    os = f"{system['os']} {system['release']}"
    yield None, "system", f"{system['distribution'] or os}, {system['machine']}"
    yield None, "Python", f"{python['version']} ({python['executable']})"
    yield cache["writable"], "cache", cache["path"] + ("" if cache["writable"] else f": {cache['problem']}")
    for name, value in report["environment"].items():
        yield None, "variable", f"{name}={value}"


def _vulkan(report: Mapping[str, Json]) -> Iterator[Row]:
    loader, start, layers = report["loader"], report["driver_start"], report["layers"]
    yield loader["found"], "loader", loader["problem"] or f"{loader['path'] or 'found'}, version {loader['version']}"
    for driver in report["drivers"]:
        yield driver["usable"], "driver", driver["path"] + (f": {driver['problem']}" if driver["problem"] else "")
    if not report["drivers"]:
        yield False, "driver", "no manifest was found"
    for layer in layers["broken"]:
        yield False, "layer", f"{layer['path']}: {layer['problem']}"
    validation = layers["validation"]
    problem = validation["problem"] if validation["found"] else "not installed"
    yield validation["works"], "validation", problem or f"works, version {validation['version']}"
    if start["problem"] and loader["found"]:
        yield False, "start", start["problem"]
        yield from ((None, "", line) for line in start["messages"][:_MESSAGE_LINES])


def _device(device: Mapping[str, Json]) -> Iterator[Row]:
    driver, ml = device["driver"], device["ml"]
    yield device["usable"], "usable", "yes" if device["usable"] else f"no: {device['unusable_because']}"
    yield None, "type", f"{device['type']}, Vulkan {device['api_version']}, {driver['name']} {driver['info']}"
    yield None, "UUID", device["uuid"]
    yield None, "ML path", f"{ml['path']}: {'because ' if ml['path'] == 'none' else ''}{ml['reason']}"
    measured = device["shader_instrumentation"]
    if measured["supported"]:
        names = ", ".join(metric["name"] for metric in measured["metrics"])
        part = "basic block" if measured["per_basic_block"] else "shader"
        yield None, "instrumentation", f"{len(measured['metrics'])} metrics for each {part}: {names}"


def _compilers(compilers: Mapping[str, Json]) -> Iterator[Row]:
    for language in ("GLSL", "HLSL"):
        problem = compilers["problems"][language]
        if problem or not compilers[language]:
            yield False, language, problem["message"] if problem else "no compiler was found"
        for index, compiler in enumerate(compilers[language]):
            tensors = ", knows GL_ARM_tensors" if compiler["tensors"] and language == "GLSL" else ""
            text = f"{compiler['flavour']} {compiler['version']}, {compiler['path']}{tensors}"
            yield index == 0 or None, language, text
    validator = compilers["spirv_val"]
    text = validator["problem"] or "no spirv-val"
    if validator["path"]:
        text = f"spirv-val {validator['version'] or 'of unknown version'}, {validator['path']}"
    yield bool(validator["path"]), "SPIR-V", text


def _ml(report: Mapping[str, Json]) -> Iterator[Row]:
    layers, vgf, converter = report["layers"]["ml_emulation"], report["vgf"], report["converter"]
    place = f"{layers['graph_manifest']}: {layers['problem'] or 'works'}"
    yield layers["works"], "emulation", place if layers["found"] else "the ML emulation layers are not installed"
    yield vgf["works"], "VGF library", vgf["problem"] or f"version {vgf['version'] or 'unknown'}"
    yield converter["path"] is not None, "converter", converter["path"] or "model-converter was not found"
