"""The base class of workloads, which make files, start processes and know the results."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.bounds import Bound
from benchmarks.programs import Program


@dataclass(frozen=True)
class Run:
    """One measured run: command lines to start in order, and environment variables.

    Their time is multiplied by ``scale``, which is above 1 if a program only runs some of the scenarios.
    """

    commands: list[list[str]]
    scale: float = 1.0
    variables: Mapping[str, str] = field(default_factory=dict)


class Workload(ABC):
    """A named workload. With ``quick`` it is small, to test the benchmark itself."""

    name: str
    title: str
    time_bound: Bound | None = None
    memory_bound: Bound | None = None
    file_bound: Bound | None = None  # our memory / `file_bytes`
    seconds_bound: Bound | None = None  # our time in seconds
    timeout_s = 120.0
    ours_alone = False  # no other program can do this
    items = 0  # of a suite, for the number of items per second

    def missing(self) -> str | None:
        """Explain why this workload cannot be measured here; None if it can."""
        return None

    @abstractmethod
    def make(self, folder: Path, *, quick: bool) -> None:
        """Write scenarios, shaders and inputs into the empty ``folder``."""

    def prepare(self, folder: Path) -> None:  # noqa: B027
        """Prepare a run; this is not measured."""

    def run(self, folder: Path, program: Program, output: Path) -> Run:
        """Return the commands of ``program`` for the workload, with results under ``output``."""
        return Run([program.arguments([folder / "scenario.json"], output)])

    @abstractmethod
    def check(self, folder: Path, program: Program, output: Path) -> None:
        """Compare results of ``program`` with NumPy. Raises AssertionError."""

    def file_bytes(self, folder: Path) -> int:
        """Return the loaded file's size, for workloads with a ``file_bound``."""
        return 0


class Changed(Workload):
    """The workload ``inner``, with another line break appended to each scenario file before each run.

    So our program cannot use cached plans of scenarios. Compiled shaders are cached.
    """

    def __init__(self, inner: Workload) -> None:
        self._inner = inner
        self.name = f"{inner.name}-changed"
        self.title = f"{inner.title}; edited before each run"
        self.time_bound = inner.time_bound
        self.memory_bound = inner.memory_bound
        self.timeout_s = inner.timeout_s

    def make(self, folder: Path, *, quick: bool) -> None:
        self._inner.make(folder, quick=quick)

    def prepare(self, folder: Path) -> None:
        for path in folder.glob("*.json"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def run(self, folder: Path, program: Program, output: Path) -> Run:
        return self._inner.run(folder, program, output)

    def check(self, folder: Path, program: Program, output: Path) -> None:
        self._inner.check(folder, program, output)


def write_scenario(path: Path, commands: list[dict[str, Any]], resources: list[dict[str, Any]]) -> None:
    """Write a scenario file with keys that every dialect of the format has."""
    path.write_text(json.dumps({"commands": commands, "resources": resources}), encoding="utf-8")


def dispatch(shader: str, groups: list[int], *resources: str, **more: Any) -> dict[str, Any]:
    """Make a dispatch_compute command that binds ``resources`` to set 0 from binding 0 on."""
    bindings = [{"set": 0, "id": index, "resource_ref": uid} for index, uid in enumerate(resources)]
    return {"dispatch_compute": {"shader_ref": shader, "rangeND": groups, "bindings": bindings, **more}}


def buffer(uid: str, size_bytes: int, **more: Any) -> dict[str, Any]:
    """Make a buffer resource."""
    return {"buffer": {"uid": uid, "size": size_bytes, "shader_access": "readwrite", **more}}


def shader(uid: str, source: str, **more: Any) -> dict[str, Any]:
    """Make a shader resource, SPIR-V or GLSL by the extension."""
    return {"shader": {"uid": uid, "src": source, "type": "SPIR-V" if source.endswith(".spv") else "GLSL", **more}}


def compile_shader(source: str, stage: Literal["compute", "vertex", "fragment"] = "compute") -> bytes:
    """Compile GLSL to SPIR-V, before anything is measured."""
    from scenario_runner.shaders.compile import compile_all
    from scenario_runner.shaders.source import CompileRequest

    (module,) = compile_all([CompileRequest(source=source, stage=stage)])
    return module
