"""A hundred GLSL shaders and ten thousand commands: what reading, compiling and checking a large scenario costs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.bounds import Bound
from benchmarks.programs import Program
from benchmarks.workloads.workload import Run, Workload, buffer, dispatch, shader, write_scenario

ADD = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Counters {{ uint counters[]; }};
void main() {{
    counters[gl_GlobalInvocationID.x] += {};
}}
"""
ITEMS = 256
BUFFERS = 16


class Shaders(Workload):
    """``cold``: nothing that ours keeps is there before each run. The reference compiles for every command."""

    ours_alone = True

    def __init__(self, what: Literal["validate", "run"], *, cold: bool) -> None:
        self._validates = what == "validate"
        self._cold = cold
        self._shaders = 100
        self._commands = 10_000
        self.name = f"shaders-{what}" + ("-cold" if cold else "")
        self.title = f"{what} 100 GLSL shaders, 10,000 commands" + (", empty caches" if cold else "")
        if self._validates:
            self.seconds_bound = Bound(must=2.0 if cold else 0.5)

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self._shaders, self._commands = 5, 50
        for number in range(self._shaders):
            (folder / f"add{number}.comp").write_text(ADD.format(number + 1), encoding="utf-8")
        resources = [shader(f"add{number}", f"add{number}.comp") for number in range(self._shaders)]
        resources += [buffer(f"buffer{k}", 4 * ITEMS, dst=f"counters{k}.npy") for k in range(BUFFERS)]
        commands = [
            dispatch(f"add{k % self._shaders}", [ITEMS // 64, 1, 1], f"buffer{k * 7 // 3 % BUFFERS}")
            for k in range(self._commands)
        ]
        write_scenario(folder / "scenario.json", commands, resources)

    def prepare(self, folder: Path) -> None:
        if self._cold:
            shutil.rmtree(folder / "cache", ignore_errors=True)

    def run(self, folder: Path, program: Program, output: Path) -> Run:
        scenario = folder / "scenario.json"
        command = program.arguments([scenario], output)
        if self._validates:
            command = [*program.command, "validate", str(scenario)]
        return Run([command], variables={"SCENARIO_RUNNER_CACHE": str(folder / "cache")})

    def check(self, folder: Path, program: Program, output: Path) -> None:
        modules = len(list((folder / "cache" / "shaders").iterdir()))
        assert modules == self._shaders, f"{modules} modules were kept of {self._shaders}"
        if self._validates:
            return
        numbers = np.arange(self._commands)
        weights = numbers % self._shaders + 1
        totals = np.bincount(numbers * 7 // 3 % BUFFERS, weights=weights, minlength=BUFFERS)
        for index, total in enumerate(totals):
            got = np.load(output / f"counters{index}.npy").view(np.uint32)
            np.testing.assert_array_equal(got, np.full(ITEMS, total, np.uint32))
