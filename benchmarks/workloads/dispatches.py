"""Ten thousand dispatches of a shader: the cost of a command."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.bounds import Bound
from benchmarks.programs import Program
from benchmarks.workloads.workload import Workload, buffer, compile_shader, dispatch, shader, write_scenario

COUNT_UP = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint step = 1;
layout(set = 0, binding = 0) buffer Counters { uint counters[]; };
void main() {
    counters[gl_GlobalInvocationID.x] += step;
}
"""
ITEMS = 256
BUFFERS = 16
SHADERS = 4


class Dispatches(Workload):
    """Dispatches that each add to a buffer and wait for the previous dispatch. The shader is SPIR-V for the
    reference's sake.

    With ``varied``, dispatches alternate between 16 buffers and four specializations, so that neighbours differ.
    """

    timeout_s = 300.0

    def __init__(self, *, varied: bool = False) -> None:
        self._varied = varied
        self._count = 10_000
        self.name = "dispatches-varied" if varied else "dispatches"
        self.title = "10,000 dispatches" + (f", {BUFFERS} buffers, {SHADERS} pipelines" if varied else " of one shader")
        if not varied:
            self.time_bound = Bound(must=0.25, aim=0.1)
            self.memory_bound = Bound(must=0.3)

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self._count = 100
        (folder / "count_up.spv").write_bytes(compile_shader(COUNT_UP))
        shaders, buffers = (SHADERS, BUFFERS) if self._varied else (1, 1)
        resources = [
            shader(f"count{step}", "count_up.spv", specialization_constants=[{"id": 0, "value": step + 1}])
            for step in range(shaders)
        ]
        resources += [buffer(f"buffer{k}", 4 * ITEMS, dst=f"counters{k}.npy") for k in range(buffers)]
        commands = [
            dispatch(f"count{k % shaders}", [ITEMS // 64, 1, 1], f"buffer{k * 7 // 3 % buffers}")
            for k in range(self._count)
        ]
        write_scenario(folder / "scenario.json", commands, resources)

    def check(self, folder: Path, program: Program, output: Path) -> None:
        shaders, buffers = (SHADERS, BUFFERS) if self._varied else (1, 1)
        numbers = np.arange(self._count)
        totals = np.bincount(numbers * 7 // 3 % buffers, weights=numbers % shaders + 1, minlength=buffers)
        for index, total in enumerate(totals):
            got = np.load(output / f"counters{index}.npy").view(np.uint32)
            np.testing.assert_array_equal(got, np.full(ITEMS, total, np.uint32))
