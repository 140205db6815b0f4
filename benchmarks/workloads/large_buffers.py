"""Two large inputs and a large output: the cost of a byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.bounds import Bound
from benchmarks.programs import Program
from benchmarks.workloads.workload import Workload, buffer, compile_shader, dispatch, shader, write_scenario

ADD = """#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer A { vec4 a[]; };
layout(set = 0, binding = 1) readonly buffer B { vec4 b[]; };
layout(set = 0, binding = 2) writeonly buffer Sum { vec4 sum[]; };
void main() {
    uint i = gl_GlobalInvocationID.y * gl_NumWorkGroups.x * 256 + gl_GlobalInvocationID.x;
    sum[i] = a[i] + b[i];
}
"""
PERIOD = 65_521  # a prime, so that every block has another pattern


class LargeBuffers(Workload):
    """A sum of two float32 buffers; each file has 256 MiB."""

    name = "large-buffers"
    title = "two 256 MiB inputs, one 256 MiB output"
    time_bound = Bound(must=0.5)
    memory_bound = Bound(must=0.6)

    def __init__(self) -> None:
        self._size_bytes = 256 << 20

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self._size_bytes = 1 << 20
        (folder / "add.spv").write_bytes(compile_shader(ADD))
        for name, factor in (("a", 1), ("b", 3)):
            array = np.lib.format.open_memmap(
                folder / f"{name}.npy", mode="w+", dtype=np.float32, shape=(self._size_bytes // 4,)
            )
            array[:] = self._values(factor)
            array.flush()
            del array
        groups = self._size_bytes // 16 // 256
        write_scenario(
            folder / "scenario.json",
            [dispatch("add", [min(groups, 1024), max(groups // 1024, 1), 1], "a", "b", "sum")],
            [
                shader("add", "add.spv"),
                buffer("a", self._size_bytes, src="a.npy"),
                buffer("b", self._size_bytes, src="b.npy"),
                buffer("sum", self._size_bytes, dst="sum.npy"),
            ],
        )

    def _values(self, factor: int) -> np.ndarray:
        pattern = np.arange(PERIOD, dtype=np.float32) * np.float32(factor)
        return np.resize(pattern, self._size_bytes // 4)

    def check(self, folder: Path, program: Program, output: Path) -> None:
        got = np.load(output / "sum.npy", mmap_mode="r").view(np.float32)
        assert np.array_equal(got, self._values(4)), "the sums are wrong"
