"""A hundred shaders and ten thousand commands: the cost of reading, compiling and checking a large scenario."""

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
ADD_HLSL = """RWStructuredBuffer<uint> counters : register(u0);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {{
    counters[id.x] += {};
}}
"""
ITEMS = 256
BUFFERS = 16


class Shaders(Workload):
    """Runs or validation of many shaders. With ``cold`` the caches are empty.

    The reference compiles for each command.
    """

    ours_alone = True

    def __init__(
        self, what: Literal["validate", "run"], *, cold: bool, language: Literal["GLSL", "HLSL"] = "GLSL"
    ) -> None:
        self._validates = what == "validate"
        self._cold = cold
        self._language = language
        self._shaders = 100
        # With HLSL the compiler dominates: 5 ms for each shader.
        self._commands = 10_000 if language == "GLSL" else 100
        self.name = f"{'shaders' if language == 'GLSL' else 'hlsl'}-{what}" + ("-cold" if cold else "")
        commands = f"{self._commands:,} commands"
        self.title = f"{what} 100 {language} shaders, {commands}" + (", empty caches" if cold else "")
        if self._validates:
            self.seconds_bound = Bound(must=0.5 if not cold or language == "HLSL" else 2.0)

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self._shaders, self._commands = 5, 50
        text, extension = (ADD, "comp") if self._language == "GLSL" else (ADD_HLSL, "hlsl")
        files = [f"add{number}.{extension}" for number in range(self._shaders)]
        for number, file in enumerate(files):
            (folder / file).write_text(text.format(number + 1), encoding="utf-8")
        resources = [shader(f"add{number}", file, type=self._language) for number, file in enumerate(files)]
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
        packs = len(list((folder / "cache" / "shaders").iterdir()))  # several modules may share a pack
        assert 0 < packs <= self._shaders, f"{packs} packs keep {self._shaders} modules"
        if self._validates:
            return
        numbers = np.arange(self._commands)
        weights = numbers % self._shaders + 1
        totals = np.bincount(numbers * 7 // 3 % BUFFERS, weights=weights, minlength=BUFFERS)
        for index, total in enumerate(totals):
            got = np.load(output / f"counters{index}.npy").view(np.uint32)
            np.testing.assert_array_equal(got, np.full(ITEMS, total, np.uint32))
