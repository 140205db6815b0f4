"""A report of what this machine has and lacks for running scenarios: JSON values with the keys of docs/doctor.md.

1. Three probes start, each a process: the drivers as a run would use them, the same with the ML emulation layers, and
   the validation layer.
2. Meanwhile this process looks at manifests, compilers, packages and the cache.
3. If the drivers' probe crashed or hung, the drivers are tried without layers and then one by one, to name the one
   that fails.
4. The ML path of each device and the findings follow from all of that.

Nothing here is imported by a run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from scenario_runner import __version__
from scenario_runner.content_cache import default_cache_dir
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
from scenario_runner.errors import LimitError
from scenario_runner.program import Program
from scenario_runner.temporary import temporary_folder
from scenario_runner.vulkan.layers import PACKAGE, VALIDATION_LAYER

SCHEMA = 2
_ALONE_TIMEOUT_S = 10.0
_ALONE_MAX = 16
_VGF_PACKAGE = "ai_ml_sdk_vgf_library"


def gather(*, timeout_s: float = 30.0, compiler: str | None = None) -> dict[str, Any]:
    """Look at everything. ``timeout_s`` bounds how long drivers may take; ``compiler`` is a GLSL compiler's path.

    What is missing, broken or crashes is part of the report.
    """
    environ = dict(os.environ)
    manifests = drivers(environ)
    emulation = find_emulation_layers(environ)
    libraries = [one.library for one in manifests if one.problem is None and one.library is not None]
    with ExitStack() as stack:
        probes = {
            "drivers": Probe(stack, "full", timeout_s, _talkative(environ), dict.fromkeys(libraries)),
            "validation": Probe(stack, "validation", timeout_s, environ),
        }
        if emulation is not None:  # their manifests are written into the cache
            scratch = stack.enter_context(temporary_folder())
            probes["emulation"] = Probe(stack, "ml", timeout_s, {**environ, "SCENARIO_RUNNER_CACHE": scratch})
        report: dict[str, Any] = {
            "schema": SCHEMA,
            "program": {"name": "scenario-runner", "version": __version__},
            "ready": False,
            **system.machine(environ),
            "compilers": system.compilers(compiler),
            "vgf": _vgf(),
            "converter": {"path": converter.find_converter(), "version": system.version_of(converter.PACKAGE)},
            "cache": system.cache(default_cache_dir()),
        }
        outcomes = {name: probe.outcome() for name, probe in probes.items()}
    asked, emulated = outcomes["drivers"], outcomes.get("emulation")
    alone: dict[str, Outcome] = {}
    cause = None
    if asked.failure and asked.first("loader"):
        cause, alone = _search(manifests, environ, min(timeout_s, _ALONE_TIMEOUT_S))
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
    report["layers"] = _layers(asked, outcomes["validation"], emulation, emulated, environ)
    report["devices"] = _devices(asked, report["layers"]["ml_emulation"], emulated, environ)
    usable = any(device["usable"] for device in report["devices"])
    report["ready"] = usable and bool(report["compilers"]["GLSL"])
    report["findings"] = findings(report)
    return report


def _talkative(environ: Mapping[str, str]) -> dict[str, str]:
    """With the loader's own messages on standard error, unless the user has chosen what it says."""
    return {"VK_LOADER_DEBUG": "error,warn", **environ}


def _search(
    manifests: list[Manifest], environ: Mapping[str, str], timeout_s: float
) -> tuple[str | None, dict[str, Outcome]]:
    """Find what makes the probe fail: "layers", when it ends well without any, else "drivers" when one of them fails
    alone. Returns that, and how each driver does alone, by its manifest's path."""
    bare = {name: value for name, value in environ.items() if name != "VK_INSTANCE_LAYERS"}
    bare["VK_LOADER_LAYERS_DISABLE"] = "~all~"
    if not _ask(timeout_s, bare).failure:
        return "layers", {}
    bare.pop("VK_ADD_DRIVER_FILES", None)
    sound = [one.path for one in manifests if one.problem is None][:_ALONE_MAX]
    alone = {path: _ask(timeout_s, _talkative(bare | dict.fromkeys(DRIVER_OVERRIDES, path))) for path in sound}
    return ("drivers" if any(outcome.failure for outcome in alone.values()) else None), alone


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
) -> dict[str, Any]:
    available = sorted(asked.facts.get("layer", ()), key=lambda layer: str(layer["name"]))
    named = next((layer for layer in available if layer["name"] == VALIDATION_LAYER), None)
    is_packaged = emulation is not None and emulation.source == "package"
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
            "version": system.version_of(PACKAGE) if is_packaged else None,
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
        native, obstacle = device.pop("ml_facts"), device.pop("emulation_obstacle")
        device["usable"] = device["unusable_because"] is None
        device["default"] = device["index"] == default
        layered = emulated_devices.get((device["index"], device["uuid"]))
        named = environ.get("VK_INSTANCE_LAYERS", "")
        found.append({**device, "ml": ml_path(device, obstacle, native, layered, emulation, named)})
    return found


def _vgf() -> dict[str, Any]:
    """The library that reads VGF files."""
    found = system.version_of(_VGF_PACKAGE)
    problem = None
    try:
        import vgfpy  # noqa: F401
    except Exception as error:  # a wheel for another interpreter fails in ways of its own
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
        if found is None:
            problem = f"the package {_VGF_PACKAGE} is not installed"
    return {
        "found": found is not None or problem is None,
        "works": problem is None,
        "version": found,
        "problem": problem,
    }


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


class Probe:
    """A running `probe`, bounded in time and ended with ``stack``; a crash of it is a fact for the report."""

    def __init__(
        self,
        stack: ExitStack,
        detail: str,
        timeout_s: float,
        environment: Mapping[str, str],
        libraries: Iterable[str] = (),
    ) -> None:
        self._facts = stack.enter_context(TemporaryFile())  # noqa: SIM115
        self._messages = stack.enter_context(TemporaryFile())  # noqa: SIM115
        request = json.dumps({"detail": detail, "libraries": list(libraries)})
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self._program: Program | LimitError
        try:
            self._program = stack.enter_context(
                Program(
                    [sys.executable, "-P", "-m", "scenario_runner.doctor.probe", request],
                    timeout_s,
                    stdin=subprocess.DEVNULL,
                    stdout=self._facts,
                    stderr=self._messages,
                    env={**environment, "PYTHONPATH": path},
                )
            )
        except LimitError as error:
            self._program = error

    def outcome(self) -> Outcome:
        """Wait until it ends, or its time is over."""
        program = self._program
        if isinstance(program, LimitError):
            return Outcome({}, "starting the process", f"could not be started: {program}")
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


def _ask(timeout_s: float, environment: Mapping[str, str]) -> Outcome:
    """Run a probe of the drivers in this environment to its end."""
    with ExitStack() as stack:
        return Probe(stack, "full", timeout_s, environment).outcome()


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
