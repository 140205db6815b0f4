"""Models with one thing changed in a graph that still looks right: the program outlives what layers make of it."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scenario_runner.errors import SpirvError
from scenario_runner.vgf import read_vgf
from tests.gpu.ml_scenes import MODELS
from tests.tosa.graph_words import Graph, mutated

NAMES = sorted(path.parent.name for path in MODELS.glob("*/model.vgf"))
LAST_CODE = 11  # of errors.py; 1 would be a defect of ours


def mutants(model: Path, count: int) -> list[tuple[int, bytes]]:
    """``count`` changed files with their seeds: one graph of each is as long as before, and looks right."""
    content = model.read_bytes()
    codes = [module.code for module in read_vgf(model).modules if module.type == "graph"]
    found: list[tuple[int, bytes]] = []
    seed = 0
    while len(found) < count:
        seed += 1
        generator = random.Random(seed)
        code = generator.choice(codes)
        assert isinstance(code, bytes)
        changed = mutated(code, generator)
        if changed == code or len(changed) != len(code):
            continue
        try:
            Graph(changed).check()
        except SpirvError:
            continue
        assert content.count(code) == 1
        found.append((seed, content.replace(code, changed)))
    return found


def died(name: str, folder: Path, count: int) -> list[tuple[int, int, str]]:
    """Seed, exit code and last words of every mutant that ended otherwise than with a result or an error of ours."""
    for path in (MODELS / name).iterdir():
        shutil.copy(path, folder)
    command = [sys.executable, "-m", "scenario_runner", str(folder / "scenario.json")]
    bad = []
    for seed, content in mutants(MODELS / name / "model.vgf", count):
        (folder / "model.vgf").write_bytes(content)
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if not (ended.returncode == 0 or 2 <= ended.returncode <= LAST_CODE) or "Traceback" in ended.stderr:
            bad.append((seed, ended.returncode, ended.stderr[-300:]))
    return bad


@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_that_looks_right(name: str, tmp_path: Path) -> None:
    """One of each model, always the same one."""
    assert died(name, tmp_path, 1) == []


@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
def test_many_mutants_that_look_right(name: str, tmp_path: Path) -> None:
    """Fifty of each model."""
    assert died(name, tmp_path, 50) == []
