"""The report as a whole: a dictionary of JSON values with the keys that docs/doctor.md documents.

1. Three probes start, each a process: the drivers as a run would use them, the same with the ML emulation layers, and
   the validation layer.
2. Meanwhile this process looks at manifests, compilers, packages and the cache.
3. If the drivers' probe crashed or hung, the drivers are tried without layers and then one by one, to name the one
   that fails.
4. The ML path of each device and the findings follow from all of that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from scenario_runner import __version__, temporary
from scenario_runner.conversion import converter
from scenario_runner.doctor import system
from scenario_runner.doctor.findings import findings, ml_path
from scenario_runner.doctor.manifests import (
    DRIVER_OVERRIDES,
    EmulationLayers,
    Manifest,
    drivers,
    explicit_layers,
    find_emulation_layers,
)
from scenario_runner.doctor.system import compilers
from scenario_runner.errors import LimitError
from scenario_runner.program import Program
from scenario_runner.shaders import default_cache_dir
from scenario_runner.vulkan.devices.layers import PACKAGE

SCHEMA = 2
TIMEOUT_S = 30.0
_ALONE_TIMEOUT_S = 10.0
_ALONE_MAX = 16
CACHE_VARIABLE = "SCENARIO_RUNNER_CACHE"
VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"


def gather(*, timeout_s: float = TIMEOUT_S, compiler: str | None = None) -> dict[str, Any]:
    """Look at everything. ``timeout_s`` bounds how long drivers may take; ``compiler`` is a GLSL compiler's path.

    What is missing, broken or crashes is part of the report, so this raises nothing.
    """

    environ = dict(os.environ)
    manifests = drivers(environ)
    emulation = find_emulation_layers(environ)
    probes = {"drivers": Child(_drivers_request(manifests), timeout_s=timeout_s, environment=_talkative(environ))}
    scratch = _scratch()
    try:
        probes["validation"] = Child({"detail": "validation"}, timeout_s=timeout_s, environment=environ)
        if emulation is not None:
            changed = {CACHE_VARIABLE: scratch} if scratch else {}  # the layers' manifests are written into the cache
            probes["emulation"] = Child({"detail": "ml"}, timeout_s=timeout_s, environment={**environ, **changed})
        report: dict[str, Any] = {
            "schema": SCHEMA,
            "program": {"name": "scenario-runner", "version": __version__},
            "ready": False,
            "system": {**system.system(), "gpu_nodes": system.gpu_nodes()},
            "python": system.python(),
            "packages": system.packages(),
            "environment": system.variables(environ),
            "compilers": compilers(compiler),
            "vgf": _vgf(),
            "converter": _converter(),
            "cache": system.cache(default_cache_dir()),
        }
        outcomes = {name: probe.finish() for name, probe in probes.items()}
    finally:
        for probe in probes.values():
            probe.stop()
        if scratch:
            temporary.remove(scratch)
    asked = outcomes["drivers"]
    alone: dict[str, Outcome] = {}
    cause = None
    if asked.failure and asked.first("loader"):
        cause, alone = _search(manifests, environ, timeout_s)
    report["loader"] = _loader(asked)
    report["drivers"] = _drivers(manifests, asked, alone)
    report["driver_start"] = {
        "ok": bool(asked.first("instance")) and not asked.problem,
        "step": asked.step,
        "signal": asked.signal,
        "timed_out": asked.timed_out,
        "caused_by": cause,
        "problem": asked.problem or None,
        "help": (asked.first("error") or {}).get("help"),
        "messages": asked.messages,
    }
    report["layers"] = _layers(asked, outcomes["validation"], emulation, outcomes.get("emulation"), environ, report)
    report["devices"] = _devices(asked, report["layers"]["ml_emulation"], outcomes.get("emulation"), environ)
    usable = any(device["usable"] for device in report["devices"])
    report["ready"] = usable and bool(report["compilers"]["GLSL"])
    report["findings"] = findings(report)
    return report


def _drivers_request(manifests: list[Manifest]) -> dict[str, Any]:
    libraries = [one.library for one in manifests if one.problem is None and one.library is not None]
    return {"detail": "full", "libraries": list(dict.fromkeys(libraries))}


def _scratch() -> str | None:
    """A folder for what a probe writes, or None where none can be made."""
    try:
        return temporary.make_folder()
    except OSError:
        return None


def _talkative(environ: Mapping[str, str]) -> dict[str, str]:
    """With the loader's own messages on standard error, unless the user has chosen what it says."""
    return {"VK_LOADER_DEBUG": "error,warn", **environ}


def _search(
    manifests: list[Manifest], environ: Mapping[str, str], timeout_s: float
) -> tuple[str | None, dict[str, Outcome]]:
    """What makes the probe fail: "layers", when it ends well without any, else "drivers" when one of them fails alone;
    and how each driver does alone, by its manifest's path."""
    bare = {name: value for name, value in environ.items() if name != "VK_INSTANCE_LAYERS"}
    bare["VK_LOADER_LAYERS_DISABLE"] = "~all~"
    without = Child({"detail": "full"}, timeout_s=min(timeout_s, _ALONE_TIMEOUT_S), environment=bare)
    try:
        if not without.finish().failure:
            return "layers", {}
    finally:
        without.stop()
    alone = _each_alone(manifests, bare, timeout_s)
    return ("drivers" if any(outcome.failure for outcome in alone.values()) else None), alone


def _each_alone(manifests: list[Manifest], environ: Mapping[str, str], timeout_s: float) -> dict[str, Outcome]:
    """Each driver in a process of its own, by its manifest's path; two at a time."""
    found: dict[str, Outcome] = {}
    sound = [one for one in manifests if one.problem is None][:_ALONE_MAX]
    for start in range(0, len(sound), 2):
        running: dict[str, Child] = {}
        try:
            for one in sound[start : start + 2]:
                only = {name: value for name, value in environ.items() if name != "VK_ADD_DRIVER_FILES"}
                only.update(dict.fromkeys(DRIVER_OVERRIDES, one.path))
                running[one.path] = Child(
                    {"detail": "full"}, timeout_s=min(timeout_s, _ALONE_TIMEOUT_S), environment=_talkative(only)
                )
            found.update({path: child.finish() for path, child in running.items()})
        finally:
            for child in running.values():
                child.stop()
    return found


def _loader(asked: Outcome) -> dict[str, Any]:
    loader = asked.first("loader")
    return {
        "found": loader is not None,
        "path": loader["path"] if loader else None,
        "version": asked.first("loader_version"),
        "instance_extensions": asked.first("instance_extensions") or {},
        "problem": None if loader else asked.problem,
    }


def _drivers(manifests: list[Manifest], asked: Outcome, alone: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    opened = {fact["path"]: fact["problem"] for fact in asked.facts.get("library", ())}
    found = []
    for one in manifests:
        problem = one.problem
        if problem is None and one.library is not None and opened.get(one.library):
            problem = f"its library cannot be opened: {opened[one.library]}"
        outcome = alone.get(one.path)
        crash = outcome.failure if outcome is not None else ""
        if problem is None and crash:
            problem = f"used alone, the process {crash} in the step: {alone[one.path].step}"
        devices = None if outcome is None else [device["name"] for device in outcome.facts.get("device", ())]
        found.append({**one._asdict(), "usable": problem is None, "problem": problem, "devices_alone": devices})
    return found


def _layers(
    asked: Outcome,
    validation: Outcome,
    emulation: EmulationLayers | None,
    emulated: Outcome | None,
    environ: Mapping[str, str],
    report: Mapping[str, Any],
) -> dict[str, Any]:
    available = sorted(asked.facts.get("layer", ()), key=lambda layer: str(layer["name"]))
    named = next((layer for layer in available if layer["name"] == VALIDATION_LAYER), None)
    version = report["packages"].get(PACKAGE) if emulation is not None and emulation.source == "package" else None
    return {
        "available": available,
        "broken": [
            {"path": one.path, "source": one.source, "problem": one.problem}
            for one in explicit_layers(environ)
            if one.problem is not None
        ],
        "validation": {
            "name": VALIDATION_LAYER,
            "found": named is not None,
            "works": named is not None and bool(validation.first("instance")),
            "version": named["spec_version"] if named else None,
            "problem": None if validation.first("instance") else validation.problem,
        },
        "ml_emulation": {
            "found": emulation is not None,
            "works": emulated is not None and bool(emulated.first("instance")) and not emulated.failure,
            "source": emulation.source if emulation else None,
            "version": version,
            "graph_manifest": emulation.graph.path if emulation else None,
            "tensor_manifest": emulation.tensor.path if emulation else None,
            "library_folder": emulation.library_folder if emulation else None,
            "problem": (emulated.problem or None) if emulated is not None else None,
        },
    }


def _devices(
    asked: Outcome, emulation: Mapping[str, Any], emulated: Outcome | None, environ: Mapping[str, str]
) -> list[dict[str, Any]]:
    default = asked.first("default")
    emulated_devices = {
        (device["index"], device["uuid"]): device["ml_facts"]
        for device in (emulated.facts.get("device", ()) if emulated is not None else ())
    }
    found = []
    for facts in asked.facts.get("device", ()):
        device = dict(facts)
        native = device.pop("ml_facts")
        obstacle = device.pop("emulation_obstacle")
        reason = device.pop("unusable_because")
        ordered = {key: device.pop(key) for key in ("index", "name", "type", "uuid", "api_version")}
        ordered |= {"usable": reason is None, "unusable_because": reason, "default": ordered["index"] == default}
        ordered["ml"] = ml_path(
            ordered,
            obstacle,
            native,
            emulated_devices.get((ordered["index"], ordered["uuid"])),
            emulation,
            environ.get("VK_INSTANCE_LAYERS", ""),
        )
        found.append({**ordered, **device})
    return found


def _vgf() -> dict[str, Any]:
    """The library that reads VGF files."""

    problem = None
    try:
        import vgfpy  # noqa: F401
    except Exception as error:  # a wheel for another interpreter fails in ways of its own
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
    found = None
    try:
        found = version("ai_ml_sdk_vgf_library")
    except PackageNotFoundError:
        problem = problem and "the package ai_ml_sdk_vgf_library is not installed"
    return {
        "found": found is not None or problem is None,
        "works": problem is None,
        "version": found,
        "problem": problem,
    }


def _converter() -> dict[str, Any]:
    """The program that lowers the ML operations of models that are converted."""

    try:
        found = version(converter.PACKAGE)
    except PackageNotFoundError:
        found = None
    return {"path": converter.find_converter(), "version": found}


_MESSAGES_BYTES = 256 << 10
_MESSAGES_LINES = 200


class Outcome(NamedTuple):
    """The facts that a probe reported, by name. ``failure`` tells how the process ended if not well, in ``step``."""

    facts: Mapping[str, list[Any]]
    step: str
    failure: str = ""
    signal: str | None = None
    timed_out: bool = False
    messages: Sequence[str] = ()

    def first(self, key: str) -> Any:
        """The first fact of this name, or None."""
        return next(iter(self.facts.get(key, ())), None)

    @property
    def problem(self) -> str:
        """One sentence for an error that was reported or a bad end; ``""`` when all went well."""
        if self.failure:
            return f"the process {self.failure} in the step: {self.step}"
        error = self.first("error")
        return error["message"] if error else ""


class Child:
    """A running `probe`, bounded in time; a crash of it is a fact for the report."""

    def __init__(self, request: Mapping[str, Any], *, timeout_s: float, environment: Mapping[str, str]) -> None:
        self._program: Program | None = None
        self._refused = ""
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        with ExitStack() as stack:
            try:
                self._facts = stack.enter_context(TemporaryFile())
                self._messages = stack.enter_context(TemporaryFile())
                self._program = stack.enter_context(
                    Program(
                        [sys.executable, "-P", "-m", "scenario_runner.doctor.probe", json.dumps(dict(request))],
                        timeout_s,
                        stdin=subprocess.DEVNULL,
                        stdout=self._facts,
                        stderr=self._messages,
                        env={**environment, "PYTHONPATH": path},
                    )
                )
            except OSError as error:
                self._refused = f"could not be started ({(error.strerror or str(error)).lower()})"
            except LimitError as error:
                self._refused = f"could not be started: {error}"
            self._stack = stack.pop_all()

    def finish(self) -> Outcome:
        """Wait until it ends, or its time is over."""
        program = self._program
        if program is None:
            return Outcome({}, "starting the process", self._refused)
        code = program.wait()
        self._facts.seek(0)
        self._messages.seek(0)
        facts, step = _parse(self._facts.read())
        text = self._messages.read(_MESSAGES_BYTES).decode("utf-8", "replace")
        messages = [line.rstrip() for line in text.splitlines() if line.strip()]
        failure = program.failure or (f"ended with exit code {code}" if code else "")
        if not failure and "done" not in facts:
            failure = "ended early"
        name = None if program.timed_out or code >= 0 else failure.removeprefix("was ended by ")
        return Outcome(facts, step, failure, name, program.timed_out, messages[:_MESSAGES_LINES])

    def stop(self) -> None:
        """End the process and all that it started; doing so again does nothing."""
        self._stack.close()


def _parse(text: bytes) -> tuple[dict[str, list[Any]], str]:
    """Facts by name, and the last step; a line that was cut off is left out."""
    facts: dict[str, list[Any]] = {}
    step = "starting the process"
    for line in text.splitlines():
        try:
            key, value = json.loads(line)
        except (ValueError, TypeError):
            continue
        if key == "step":
            step = str(value)
        else:
            facts.setdefault(str(key), []).append(value)
    return facts, step
