"""Graph modules that lie: refused before a driver, which would follow every id."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from scenario_runner.errors import SpirvError
from scenario_runner.spirv import read_module
from scenario_runner.tosa.graph_body import check_graph_body

TESTS = Path(__file__).resolve().parents[1]
GRAPH = (TESTS / "spirv" / "fixtures" / "graph_constant.spv").read_bytes()
EXT_INST, ARRAY, INPUT = 12, 28, 4184
FLOAT = 28  # the id of the constant 1.0


def words_of(code: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(code) // 4}I", code))


def first(words: list[int], opcode: int) -> int:
    """Where the first instruction of a kind begins."""
    at = 5
    while words[at] & 0xFFFF != opcode:
        at += words[at] >> 16
    return at


def refused(opcode: int, word: int, value: int) -> str:
    """What is said of the graph with one word of the first such instruction replaced."""
    words = words_of(GRAPH)
    words[first(words, opcode) + word] = value
    code = struct.pack(f"<{len(words)}I", *words)
    with pytest.raises(SpirvError) as caught:
        check_graph_body(read_module(code, name="graph.spv"), code)
    return str(caught.value)


@pytest.mark.parametrize("path", sorted((TESTS / "spirv" / "fixtures").glob("graph*.spv")), ids=lambda path: path.name)
def test_a_converters_module_is_right(path: Path) -> None:
    """What the converter writes passes."""
    code = path.read_bytes()
    check_graph_body(read_module(code), code)


@pytest.mark.parametrize(
    "opcode, word, value, message",
    [
        (EXT_INST, 3, 1, "is of the instruction set 1, which is not imported"),
        (EXT_INST, 4, 999, "is the operator 999, which no instruction set has"),
        (EXT_INST, 5, 242886303, "uses the id 242886303, which is not a value defined before it"),
        (EXT_INST, 1, 4044670547, "has the id 4044670547 as its type, which is not a type"),
        (ARRAY, 3, 141, "uses the id 141, which is not a constant defined before it"),
        (INPUT, 3, 8, "has the index 1, but there are 1"),
        (INPUT, 3, 1, "uses the id 1, which is not a constant defined before it"),
        (INPUT, 3, FLOAT, f"has the id {FLOAT} as its index, which is not an integer"),
    ],
)
def test_an_id_that_leads_nowhere(opcode: int, word: int, value: int, message: str) -> None:
    """Types, constants, operands and indices must be what they are used as."""
    text = refused(opcode, word, value)
    assert text.startswith("graph.spv: ")
    assert text.endswith(message)


@pytest.mark.heavy
def test_no_mutant_ends_the_process(tmp_path: Path) -> None:
    """Two hundred modules with one wrong word each end in an error or in a run, never in a crash."""
    words = words_of(GRAPH)
    scenario = """{"resources": [
      {"tensor": {"uid": "x", "dims": [1, 8, 8, 4], "format": "VK_FORMAT_R32_SFLOAT", "shader_access": "readonly"}},
      {"tensor": {"uid": "y", "dims": [1, 8, 8, 2], "format": "VK_FORMAT_R32_SFLOAT", "shader_access": "writeonly"}},
      {"graph_constant": {"uid": "w", "dims": [2, 3, 3, 4], "format": "VK_FORMAT_R32_SFLOAT", "src": "w.npy"}},
      {"shader": {"uid": "g", "src": "graph.spv", "type": "SPIR-V"}}],
     "commands": [{"dispatch_spirv_graph": {"graph_ref": "g", "graph_constants": ["w"], "bindings": [
      {"set": 0, "id": 0, "resource_ref": "x"}, {"set": 0, "id": 1, "resource_ref": "y"}]}}]}"""
    (tmp_path / "scenario.json").write_text(scenario)
    import numpy

    numpy.save(tmp_path / "w.npy", numpy.zeros((2, 3, 3, 4), "f4"))
    command = [sys.executable, "-m", "scenario_runner", str(tmp_path / "scenario.json"), "--dry-run"]
    died = []
    for seed in range(200):
        generator = random.Random(seed)
        mutant = list(words)
        at = generator.randrange(5, len(words))
        mutant[at] = generator.choice(
            [generator.randrange(1 << 32), generator.randrange(256), words[at] ^ 1 << seed % 12]
        )
        (tmp_path / "graph.spv").write_bytes(struct.pack(f"<{len(mutant)}I", *mutant))
        ended = subprocess.run(command, capture_output=True, timeout=120, check=False)
        if ended.returncode < 0 or b"Traceback" in ended.stderr:
            died.append((seed, at, ended.returncode))
    assert died == []
