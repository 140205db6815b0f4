"""The report of ``doctor`` about this machine: JSON values with the keys of docs/doctor.md.

1. Three processes start. The first asks the drivers as a run does, the second asks them with the ML emulation layers,
   the third loads the validation layer.
2. Meanwhile this process looks at manifests, compilers, packages, the system, the environment and the cache.
3. If the first process crashed or hung, doctor tries the drivers without layers, then each driver alone, and so finds
   the driver that fails.
4. The ML path of each device and the findings follow from these facts.

`cli.doctor` prints the rows. Runs do not import this module.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from glob import glob
from tempfile import TemporaryFile

from scenario_runner.doctor import manifests
from scenario_runner.doctor.advice import findings, ml_path
from scenario_runner.doctor.manifests import EmulationLayers, Manifest
from scenario_runner.errors import LimitError, ScenarioRunnerError
from scenario_runner.errors.installation import family_here, mixed_packages_problem, own_version, version_of
from scenario_runner.errors.text import Json
from scenario_runner.files.cache_folder import KINDS, default_cache_dir, kept_files
from scenario_runner.ml import vgf_tables
from scenario_runner.processes.programs import Program
from scenario_runner.processes.signals import signal_name
from scenario_runner.shaders.compilers.search import OFF, VALIDATOR_VARIABLE, find_compilers, find_validator
from scenario_runner.shaders.compilers.table import GLSLANG_VARIABLE, Compiler
from scenario_runner.shaders.spirv_val import validator_version
from scenario_runner.tosa import model_converter
from scenario_runner.vulkan.layers import PACKAGE, VALIDATION_LAYER

SCHEMA = 2
_ALONE_TIMEOUT_S = 10.0
_ALONE_MAX = 16
_MESSAGES_BYTES = 256 << 10
_MESSAGES_LINES = 200
# Lets the loader print messages to standard error, unless the user has set the variable.
_TALKATIVE = {"VK_LOADER_DEBUG": "error,warn"}


def gather(*, timeout_s: float = 30.0, compiler: str | None = None) -> dict[str, Json]:
    """Make the report. Missing parts, broken parts and crashes are facts in the report, not errors.

    ``timeout_s`` limits the drivers' time. ``compiler`` is the path of a GLSL compiler.
    """
    environ = dict(os.environ)
    drivers = manifests.drivers(environ)
    layers = manifests.find_emulation_layers(environ)
    libraries = [driver.library for driver in drivers if driver.problem is None and driver.library]
    with ExitStack() as stack:
        started = Probe(stack, "full", timeout_s, _TALKATIVE | environ, list(dict.fromkeys(libraries)))
        validation = Probe(stack, "validation", timeout_s, environ)
        emulation = None if layers is None else Probe(stack, "ml", timeout_s, environ)
        report: dict[str, Json] = {
            "schema": SCHEMA,
            "program": {"name": "scenario-runner", "version": own_version()},
            "ready": False,
            **_machine(environ),
            "compilers": _compilers(compiler),
            "vgf": _vgf(),
            "converter": {
                "path": model_converter.find_converter(),
                "version": version_of(model_converter.PACKAGE),
            },
            "cache": _cache_folder(default_cache_dir()),
        }
        for probe in (started, validation, emulation):
            if probe is not None:
                probe.wait()
    alone: dict[str, Probe] = {}
    cause = None
    loader = started.first("loader")
    if started.failure and loader:
        cause, alone = _search(drivers, environ, min(timeout_s, _ALONE_TIMEOUT_S))
    report["loader"] = {
        "found": loader is not None,
        "path": loader["path"] if loader else None,
        "version": started.first("loader_version"),
        "instance_extensions": started.first("instance_extensions") or {},
        "problem": None if loader else started.problem,
    }
    report["drivers"] = _drivers(drivers, started, alone)
    report["driver_start"] = {
        "ok": bool(started.first("instance")) and not started.problem,
        "step": started.facts["step"][-1],
        "signal": started.signal,
        "timed_out": started.timed_out,
        "caused_by": cause,
        "problem": started.problem or None,
        "help": (started.first("error") or {}).get("help"),
        "messages": started.messages,
    }
    report["layers"] = _layers(started, validation, layers, emulation, environ)
    report["devices"] = _devices(started, report["layers"]["ml_emulation"], emulation, environ)
    usable = any(device["usable"] for device in report["devices"])
    report["ready"] = usable and bool(report["compilers"]["GLSL"])
    report["findings"] = findings(report)
    return report


def _search(
    drivers: list[Manifest], environ: Mapping[str, str], timeout_s: float
) -> tuple[str | None, dict[str, Probe]]:
    """Find the cause of a failed probe, and probe each driver alone.

    The cause is "layers" if a probe without layers succeeds, "drivers" if a driver fails alone, else None. Return the
    cause, and the probes of single drivers by manifest path.
    """

    def ask(environment: Mapping[str, str]) -> Probe:
        with ExitStack() as stack:
            probe = Probe(stack, "full", timeout_s, environment)
            probe.wait()
            return probe

    bare = {name: value for name, value in environ.items() if name != "VK_INSTANCE_LAYERS"}
    bare["VK_LOADER_LAYERS_DISABLE"] = "~all~"
    if not ask(bare).failure:
        return "layers", {}
    bare.pop("VK_ADD_DRIVER_FILES", None)
    sound = [driver.path for driver in drivers if driver.problem is None][:_ALONE_MAX]
    alone = {path: ask(_TALKATIVE | bare | dict.fromkeys(manifests.DRIVER_OVERRIDES, path)) for path in sound}
    return ("drivers" if any(probe.failure for probe in alone.values()) else None), alone


def _drivers(drivers: list[Manifest], started: Probe, alone: Mapping[str, Probe]) -> list[dict[str, object]]:
    opened = {fact["path"]: fact["problem"] for fact in started.facts.get("library", ())}
    described = []
    for driver in drivers:
        problem, probe = driver.problem, alone.get(driver.path)
        if problem is None and opened.get(driver.library):
            problem = f"its library cannot be opened: {opened[driver.library]}"
        if problem is None and probe is not None and probe.failure:
            problem = f"used alone, {probe.problem}"
        names = None if probe is None else [device["name"] for device in probe.facts.get("device", ())]
        described.append({**driver._asdict(), "usable": not problem, "problem": problem, "devices_alone": names})
    return described


def _layers(
    started: Probe,
    validation: Probe,
    layers: EmulationLayers | None,
    emulation: Probe | None,
    environ: Mapping[str, str],
) -> dict[str, object]:
    available = sorted(started.facts.get("layer", ()), key=lambda layer: str(layer["name"]))
    named = next((layer for layer in available if layer["name"] == VALIDATION_LAYER), None)
    is_packaged = layers is not None and layers.source == "package"
    return {
        "available": available,
        "broken": [
            {"path": layer.path, "source": layer.source, "problem": layer.problem}
            for layer in manifests.explicit_layers(environ)
            if layer.problem is not None
        ],
        "validation": {
            "name": VALIDATION_LAYER,
            "found": named is not None,
            "works": named is not None and bool(validation.first("instance")),
            "version": named["spec_version"] if named else None,
            "problem": None if validation.first("instance") else validation.problem,
        },
        "ml_emulation": {
            "found": layers is not None,
            "works": emulation is not None and bool(emulation.first("instance")) and not emulation.failure,
            "source": layers.source if layers else None,
            "version": version_of(PACKAGE) if is_packaged else None,
            "graph_manifest": layers.graph.path if layers else None,
            "tensor_manifest": layers.tensor.path if layers else None,
            "library_folder": layers.library_folder if layers else None,
            "problem": (emulation.problem or None) if emulation else None,
        },
    }


def _devices(
    started: Probe, layers: Mapping[str, object], emulation: Probe | None, environ: Mapping[str, str]
) -> list[dict[str, object]]:
    layered = emulation.facts.get("device", ()) if emulation else ()
    emulated_facts = {(device["index"], device["uuid"]): device["ml_facts"] for device in layered}
    named = environ.get("VK_INSTANCE_LAYERS", "")
    devices = []
    for device in started.facts.get("device", ()):
        native, obstacle = device.pop("ml_facts"), device.pop("emulation_obstacle")
        device["usable"] = device["unusable_because"] is None
        device["default"] = device["index"] == started.first("default")
        emulated = emulated_facts.get((device["index"], device["uuid"]))
        devices.append({**device, "ml": ml_path(device, obstacle, native, emulated, layers, named)})
    return devices


def _vgf() -> dict[str, object]:
    """Describe the library that reads VGF files."""
    installed, problem = version_of(vgf_tables.PACKAGE), None
    try:
        import vgfpy  # noqa: F401
    except Exception as error:  # a wheel for another interpreter may raise anything
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
        problem = problem if installed else f"the package {vgf_tables.PACKAGE} is not installed"
    found, works = installed is not None or problem is None, problem is None
    return {"found": found, "works": works, "version": installed, "problem": problem}


class Probe:
    """A process that runs `probe` within a time limit. Leaving ``stack`` ends it; a crash is a fact for the report.

    After `wait`, ``facts`` has lists of values by name, and ``failure`` says how the process failed. The process failed
    in the last "step".
    """

    def __init__(
        self,
        stack: ExitStack,
        detail: str,
        timeout_s: float,
        environment: Mapping[str, str],
        libraries: Sequence[str] = (),
    ) -> None:
        self.facts: dict[str, list[Json]] = {"step": ["starting the process"]}
        self.failure = ""
        self.signal: str | None = None
        self.timed_out = False
        self.messages: list[str] = []
        self._output, self._errors = (stack.enter_context(TemporaryFile()) for _ in range(2))  # noqa: SIM115
        request = json.dumps({"detail": detail, "libraries": libraries})
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        try:
            self._program = stack.enter_context(
                Program(
                    [sys.executable, "-P", "-m", "scenario_runner.doctor.probe", request],
                    timeout_s,
                    stdin=subprocess.DEVNULL,
                    stdout=self._output,
                    stderr=self._errors,
                    env={**environment, "PYTHONPATH": path},
                )
            )
        except LimitError as error:
            self.failure = f"could not be started: {error}"

    def wait(self) -> None:
        """Wait until the process ends or exceeds the time limit, and read the answers."""
        if self.failure:
            return
        program = self._program
        code = program.wait()
        self._output.seek(0)
        for line in self._output:
            try:
                key, value = json.loads(line)
            except (ValueError, TypeError):
                continue  # the crash cut the line off
            self.facts.setdefault(key, []).append(value)
        self._errors.seek(0)
        text = self._errors.read(_MESSAGES_BYTES).decode("utf-8", "replace")
        self.messages = [line.rstrip() for line in text.splitlines() if line.strip()][:_MESSAGES_LINES]
        self.failure = program.failure or (f"ended with exit code {code}" if code else "")
        self.timed_out = program.timed_out
        if code < 0 and not self.timed_out:
            self.signal = signal_name(-code)
        if not self.failure and "done" not in self.facts:
            self.failure = "ended early"

    def first(self, key: str) -> Json:
        """Return the first fact of this name, or None."""
        return next(iter(self.facts.get(key, ())), None)

    @property
    def problem(self) -> str:
        """A sentence about the failure or the reported error; empty if the process succeeded."""
        if self.failure:
            return f"the process {self.failure} in the step: {self.facts['step'][-1]}"
        error = self.first("error")
        return error["message"] if error else ""


PACKAGES = (
    "vulkan", "cffi", "numpy", "pydantic", "imageio", "rich", "ml_dtypes", "ai_ml_sdk_vgf_library",
    "ai_ml_emulation_layer_for_vulkan", "tosa-tools",
)  # fmt: skip
# Prefixes of variables that choose or change loader, drivers and layers. Shorter prefixes would match credentials such
# as NVIDIA_API_KEY, and people publish this report.
_VARIABLES = (
    "DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LP_", "LVP_", "MESA_VK_", "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES", "SCENARIO_RUNNER_", "VK_ADD_", "VK_DRIVER_FILES", "VK_ICD_FILENAMES",
    "VK_IMPLICIT_LAYER_PATH", "VK_INSTANCE_LAYERS", "VK_LAYER_", "VK_LOADER_", "VMEL_", "XDG_CONFIG_DIRS",
    "XDG_DATA_DIRS",
)  # fmt: skip
_GPU_NODES = ("/dev/dri/renderD*", "/dev/nvidiactl*", "/dev/kfd*", "/dev/mali*")


def _machine(environ: Mapping[str, str]) -> dict[str, object]:
    """Describe the operating system, the interpreter, packages, and environment variables that matter here."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    paths = [path for pattern in _GPU_NODES for path in sorted(glob(pattern))]
    return {
        "system": {
            "os": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "distribution": release.get("PRETTY_NAME"),
            "family": family_here(),
            "gpu_nodes": [{"path": path, "accessible": os.access(path, os.R_OK | os.W_OK)} for path in paths],
        },
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
        },
        "packages": {name: version_of(name) for name in PACKAGES},
        "mixed_packages": mixed_packages_problem(),
        "environment": {
            name: value for name, value in sorted(environ.items()) if value and name.startswith(_VARIABLES)
        },
    }


def _cache_folder(folder: str) -> dict[str, object]:
    """Describe the cache folder: the size, and whether files can be written there."""
    files = [file for kind in KINDS for file in kept_files(folder, kind)]
    problem = _write_problem(folder)
    return {
        "path": folder,
        "exists": os.path.isdir(folder),
        "files": len(files),
        "size_bytes": sum(file.size_bytes for file in files),
        "writable": problem is None,
        "problem": problem,
    }


def _write_problem(folder: str) -> str | None:
    """Explain why a folder is not writable; return None if it is writable. A missing folder is not created."""
    parent = os.path.abspath(folder)
    while not os.path.lexists(parent) and os.path.dirname(parent) != parent:
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent):
        return f"{parent!r} is not a folder"
    return None if os.access(parent, os.W_OK | os.X_OK) else f"{parent!r} cannot be written"


def _compilers(named: str | None = None) -> dict[str, Json]:
    """Describe the compilers by language, preferred compilers first.

    ``problems`` explains by language why a compiler that the user named is unusable. ``named`` is that GLSL compiler.
    """
    by_language: dict[str, Json] = {"GLSL": [], "HLSL": []}
    problems: dict[str, Json] = {"GLSL": None, "HLSL": None}
    for language, described in by_language.items():
        try:
            # Without the cache: doctor asks the programs themselves.
            described += map(_describe, find_compilers(named, language=language, use_cache=False))  # type: ignore[arg-type]
        except ScenarioRunnerError as error:
            problems[language] = {"message": str(error), "help": error.problems[0].help}
    named = named or os.environ.get(GLSLANG_VARIABLE) or None
    return {**by_language, "problems": problems, "named": named, "spirv_val": _spirv_val()}


def _spirv_val() -> dict[str, object]:
    """Describe spirv-val: path, version, and the problem with it."""
    try:
        validator = find_validator()
    except ScenarioRunnerError as error:
        return {"path": None, "version": None, "problem": str(error)}
    if validator is None:
        off = os.environ.get(VALIDATOR_VARIABLE) == OFF
        return {"path": None, "version": None, "problem": f"{VALIDATOR_VARIABLE} is {OFF!r}" if off else None}
    return {"path": validator.path, "version": validator_version(validator), "problem": None}


def _describe(compiler: Compiler) -> dict[str, object]:
    return {
        "path": compiler.path,
        "flavour": compiler.flavour,
        "version": compiler.version,
        "languages": list(compiler.languages),
        "tensors": compiler.knows_tensors,
        "renames_entry": compiler.renames_entry,
        "batches": compiler.many_at_once,
    }
