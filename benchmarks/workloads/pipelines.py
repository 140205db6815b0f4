"""Fifty different shaders, each dispatched once: the driver compiler's cost, and a pipeline cache's gain."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.programs import Program
from benchmarks.workloads.workload import Run, Workload, buffer, compile_shader, dispatch, shader, write_scenario

ITEMS = 256
STEPS = 24
SEED = 12

# Drivers' own caches would make every process after the first fast.
WITHOUT_DRIVER_CACHES = {"MESA_SHADER_CACHE_DISABLE": "true", "__GL_SHADER_DISK_CACHE": "0"}


def constants(number: int) -> np.ndarray:
    """Return the factors, summands and shifts of a shader's steps."""
    generator = np.random.default_rng([SEED, number])
    return generator.integers([1, 0, 1], [1 << 32, 1 << 32, 31], (STEPS, 3), dtype=np.uint64)


def source(number: int) -> str:
    steps = "\n".join(
        f"    x = (x ^ (x >> {shift}u)) * {factor}u + {summand}u;" for factor, summand, shift in constants(number)
    )
    return (
        "#version 450\nlayout(local_size_x = 64) in;\nlayout(set = 0, binding = 0) buffer Data { uint data[]; };\n"
        f"void main() {{\n    uint x = data[gl_GlobalInvocationID.x];\n{steps}\n"
        "    data[gl_GlobalInvocationID.x] = x;\n}\n"
    )


def expected(shaders: int) -> np.ndarray:
    """Apply the shaders to 0, 1, 2, … in order."""
    x = np.arange(ITEMS, dtype=np.uint32)
    for number in range(shaders):
        for factor, summand, shift in constants(number).astype(np.uint32):
            x = (x ^ (x >> shift)) * factor + summand
    return x


class Pipelines(Workload):
    """Runs without ``--pipeline-caching`` ("none"), with an empty cache ("cold"), or the previous run's cache."""

    ours_alone = True

    def __init__(self, cache: Literal["none", "cold", "warm"]) -> None:
        self._cache = cache
        self._shaders = 50
        self.name = f"pipelines-{cache}"
        words = {"none": "no pipeline cache", "cold": "empty pipeline cache", "warm": "warm pipeline cache"}
        self.title = f"50 different shaders, {words[cache]}"

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self._shaders = 3
        for number in range(self._shaders):
            (folder / f"s{number}.spv").write_bytes(compile_shader(source(number)))
        np.save(folder / "data.npy", np.arange(ITEMS, dtype=np.uint32))
        resources = [shader(f"s{number}", f"s{number}.spv") for number in range(self._shaders)]
        resources.append(buffer("data", 4 * ITEMS, src="data.npy", dst="result.npy"))
        commands = [dispatch(f"s{number}", [ITEMS // 64, 1, 1], "data") for number in range(self._shaders)]
        write_scenario(folder / "scenario.json", commands, resources)
        (folder / "kept").mkdir()

    def prepare(self, folder: Path) -> None:
        if self._cache == "cold":
            shutil.rmtree(folder / "kept")
            (folder / "kept").mkdir()

    def run(self, folder: Path, program: Program, output: Path) -> Run:
        command = program.arguments([folder / "scenario.json"], output)
        if self._cache != "none":
            command += ["--pipeline-caching", "--log-level", "warning", "--cache-path", str(folder / "kept")]
        return Run([command], variables=WITHOUT_DRIVER_CACHES)

    def check(self, folder: Path, program: Program, output: Path) -> None:
        got = np.load(output / "result.npy").view(np.uint32)
        np.testing.assert_array_equal(got, expected(self._shaders))
