"""A small scenario in a whole process, as a user starts it at the prompt, and many small scenarios."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.bounds import Bound
from benchmarks.programs import Program
from benchmarks.workloads.workload import Run, Workload, buffer, compile_shader, dispatch, shader, write_scenario

ADD = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer Sum { float sum[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    sum[i] = a[i] + b[i];
}
"""
COUNT = 1024


def write_small(folder: Path, name: str, *, spirv: bool, seed: int = 0) -> Path:
    """Write a small scenario ``name``.json with the sum 3 i + ``seed``."""
    source = "add.spv" if spirv else "add.comp"
    if not (folder / source).exists():
        (folder / source).write_bytes(compile_shader(ADD) if spirv else ADD.encode())
    values = np.arange(COUNT, dtype=np.float32)
    np.save(folder / f"{name}_a.npy", values)
    np.save(folder / f"{name}_b.npy", 2 * values + seed)
    path = folder / f"{name}.json"
    write_scenario(
        path,
        [dispatch("add", [COUNT // 64, 1, 1], "a", "b", "sum")],
        [
            shader("add", source),
            buffer("a", 4 * COUNT, src=f"{name}_a.npy"),
            buffer("b", 4 * COUNT, src=f"{name}_b.npy"),
            buffer("sum", 4 * COUNT, dst=f"{name}_sum.npy"),
        ],
    )
    return path


def check_small(output: Path, name: str, seed: int = 0) -> None:
    got = np.load(output / f"{name}_sum.npy").view(np.float32)
    np.testing.assert_array_equal(got, 3 * np.arange(COUNT, dtype=np.float32) + seed)


class Small(Workload):
    """One dispatch over three small buffers. Our program caches compiled GLSL, the reference compiles each time."""

    def __init__(self, *, spirv: bool = False) -> None:
        self._spirv = spirv
        self.name = "small-spirv" if spirv else "small"
        self.title = f"one small scenario, {'SPIR-V' if spirv else 'GLSL'}, whole process"
        self.time_bound = None if spirv else Bound(must=1.3, aim=1.0)

    def make(self, folder: Path, *, quick: bool) -> None:
        write_small(folder, "small", spirv=self._spirv)

    def run(self, folder: Path, program: Program, output: Path) -> Run:
        return Run([program.arguments([folder / "small.json"], output)])

    def check(self, folder: Path, program: Program, output: Path) -> None:
        check_small(output, "small")


# Such a program starts so many processes, and their time is multiplied.
SAMPLE = 20


class Many(Workload):
    """200 small scenarios with separate inputs and outputs."""

    def __init__(self, *, spirv: bool = False) -> None:
        self._spirv = spirv
        self._count = 200
        self.name = "many-spirv" if spirv else "many"
        self.title = f"200 small scenarios, {'SPIR-V' if spirv else 'GLSL'} (reference: {SAMPLE} processes, time x 10)"
        # ten and forty times the throughput
        self.time_bound = None if spirv else Bound(must=1 / 10, aim=1 / 40)

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self._count = 3
        for number in range(self._count):
            write_small(folder, f"small{number}", spirv=self._spirv, seed=number)

    def run(self, folder: Path, program: Program, output: Path) -> Run:
        files = [folder / f"small{number}.json" for number in range(self._count)]
        if program.runs_many:
            return Run([program.arguments(files, output)])
        sample = files[:SAMPLE]
        return Run([program.arguments([file], output) for file in sample], scale=len(files) / len(sample))

    def check(self, folder: Path, program: Program, output: Path) -> None:
        for number in range(self._count if program.runs_many else min(SAMPLE, self._count)):
            check_small(output, f"small{number}", seed=number)
