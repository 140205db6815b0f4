"""ML graphs in VGF files: a small convolution, a thousand convolutions, and a model with large constants."""

from __future__ import annotations

import shutil
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bounds import Bound
from benchmarks.programs import CHECKOUT, Program
from benchmarks.workloads.workload import Workload, write_scenario

# y = clamp(conv2d(x, w, b), 0, 6): a 3 x 3 convolution of 2 channels to 4, padded by 1; conv.mlir beside it.
CONVOLUTION = CHECKOUT / "tests" / "ml" / "fixtures" / "conv.vgf"
# sum = t0[rows] + t1[rows] + t2[rows] + t3[rows], four tables of [1, 11, 13]: lookup.mlir by model-converter 0.11.
LOOKUP = Path(__file__).with_name("lookup.vgf")
LOOKUP_SHAPE = (11, 13)
TABLES = 4
LOOKED_UP = 9
# Modules of the ml extra (pyproject.toml).
ML_MODULES = ("emulation_layer", "vgfpy")
OP_CONSTANT = 43


class Graph(Workload):
    """A model that needs the ml extra."""

    def missing(self) -> str | None:
        absent = [name for name in ML_MODULES if find_spec(name) is None]
        return f"it needs pip install 'scenario-runner[ml]' (no {', '.join(absent)})" if absent else None


class GraphDispatches(Graph):
    """A small convolution, dispatched once or a thousand times. The reference builds a pipeline for every dispatch.

    All numbers are small multiples of 1/64, so that any summing order gives the same floats.
    """

    timeout_s = 300.0

    def __init__(self, count: int = 1) -> None:
        self._count = count
        self.name = "graph-small" if count == 1 else f"graph-{count}"
        self.title = f"a small convolution in a VGF file, {f'{count:,} dispatches' if count > 1 else 'whole process'}"
        self.time_bound = Bound(must=1.2) if count == 1 else Bound(must=0.1)
        self.memory_bound = None if count == 1 else Bound(must=0.3)

    def make(self, folder: Path, *, quick: bool) -> None:
        count = min(self._count, 5) if quick else self._count
        shutil.copyfile(CONVOLUTION, folder / "model.vgf")
        np.save(folder / "x.npy", _picture())
        resources = [tensor("x", [1, 8, 8, 2], src="x.npy"), tensor("y", [1, 8, 8, 4], dst="y.npy")]
        write_scenario(folder / "scenario.json", [dispatch_graph("x", "y")] * count, [model(), *resources])

    def check(self, folder: Path, program: Program, output: Path) -> None:
        weights = ((np.arange(72) * 7 % 11 - 5) / 8).reshape(4, 3, 3, 2)
        padded = np.pad(_picture().astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded[0], (3, 3), axis=(0, 1))  # [row, column, c, i, j]
        sums = np.einsum("hwcij,oijc->hwo", windows, weights) + np.array([0.5, -1.0, 2.0, 0.0])
        np.testing.assert_array_equal(np.load(output / "y.npy"), np.clip(sums, 0, 6)[None])


class GraphConstants(Graph):
    """Lookups of rows in four tables of 125 MB, which are the model's constants.

    Memory is compared with the file, not with the reference. The driver keeps a copy of the constants, which a software
    driver keeps in the process.
    """

    name = "graph-constants"
    title = "a VGF file with 500 MB of constants"
    timeout_s = 300.0
    file_bound = Bound(must=1.3)

    def __init__(self) -> None:
        self._shape = (31_250, 1_000)

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self._shape = (500, 100)
        _write_lookup(folder / "model.vgf", self._shape)
        np.save(folder / "rows.npy", self._rows())
        resources = [
            tensor("rows", [1, LOOKED_UP], "VK_FORMAT_R32_SINT", src="rows.npy"),
            tensor("sum", [1, LOOKED_UP, self._shape[1]], dst="sum.npy"),
        ]
        write_scenario(folder / "scenario.json", [dispatch_graph("rows", "sum")], [model(), *resources])

    def file_bytes(self, folder: Path) -> int:
        return (folder / "model.vgf").stat().st_size

    def check(self, folder: Path, program: Program, output: Path) -> None:
        expected = sum(_table(number, self._rows()[0], self._shape[1]) for number in range(TABLES))
        np.testing.assert_array_equal(np.load(output / "sum.npy"), np.asarray(expected)[None])

    def _rows(self) -> np.ndarray:
        """Return numbers of rows with the shape [1, 9]: the first, the last, and some between."""
        return np.linspace(0, self._shape[0] - 1, LOOKED_UP).astype(np.int32)[None]


def _picture() -> np.ndarray:
    return ((np.arange(128) * 5 % 17 - 8) / 8).astype(np.float32).reshape(1, 8, 8, 2)


def _table(number: int, rows: np.ndarray, width: int) -> np.ndarray:
    """Compute rows of a table: whole numbers that differ between tables, rows and columns."""
    return (rows[:, None] * 7 + np.arange(width) * 3 + number * 100_000).astype(np.float32)


def model() -> dict[str, Any]:
    return {"graph": {"uid": "model", "src": "model.vgf"}}


def tensor(uid: str, dims: list[int], form: str = "VK_FORMAT_R32_SFLOAT", **more: Any) -> dict[str, Any]:
    access = "readonly" if "src" in more else "writeonly"
    return {"tensor": {"uid": uid, "dims": dims, "format": form, "shader_access": access, **more}}


def dispatch_graph(*resources: str) -> dict[str, Any]:
    bindings = [{"set": 0, "id": index, "resource_ref": uid} for index, uid in enumerate(resources)]
    return {"dispatch_graph": {"graph_ref": "model", "bindings": bindings}}


def _write_lookup(path: Path, shape: tuple[int, int]) -> None:
    """Write the model of ``lookup.vgf`` with tables of ``shape``, by changing two numbers in the graph."""
    import vgfpy

    from scenario_runner.ml.vgf_file import read_vgf

    (module,) = read_vgf(LOOKUP).modules
    assert isinstance(module.code, bytes)
    code = _resized(module.code, dict(zip(LOOKUP_SHAPE, shape, strict=True)))
    tensor, floats, integers = 1000460000, 100, 99  # VkDescriptorType and VkFormat
    e = vgfpy.CreateEncoder(0)
    graph = e.AddModule(vgfpy.ModuleType.Graph, module.name, module.entry_point, code=code)
    rows = e.AddBindingSlot(0, e.AddInputResource(tensor, integers, [1, LOOKED_UP], []))
    total = e.AddBindingSlot(1, e.AddOutputResource(tensor, floats, [1, LOOKED_UP, shape[1]], []))
    # the tables stay alive until the file is written, even if the encoder does not copy them
    tables = [_table(number, np.arange(shape[0]), shape[1]) for number in range(TABLES)]
    constants = [e.AddConstant(e.AddConstantResource(floats, [1, *shape], []), table) for table in tables]
    e.AddSegmentInfo(graph, "lookup", [e.AddDescriptorSetInfo([rows, total])], [rows], [total], constants)
    e.AddModelSequenceInputsOutputs([rows], ["rows"], [total], ["sum"])
    e.Finish()
    with path.open("wb") as file:
        assert e.WriteTo(file)


def _resized(code: bytes, sizes: dict[int, int]) -> list[int]:
    """Replace integer constants in a SPIR-V module, which has each constant once. Return the words."""
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    found = []
    at = 5  # after the header
    while at < len(words):
        length, operation = words[at] >> 16, words[at] & 0xFFFF
        if operation == OP_CONSTANT and words[at + 3] in sizes:
            found.append(words[at + 3])
            words[at + 3] = sizes[words[at + 3]]
        at += length
    assert sorted(found) == sorted(sizes), f"the module has the constants {found}, not one each of {list(sizes)}"
    return words
