"""Mutated scenarios, end to end: only errors of ours come out, and files are whole or absent."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scenario_runner import Runner, ScenarioRunnerError
from tests.scenario.test_mutations import mutated
from tests.scenes import Scene, glsl

TWO = "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { uint b[]; };\n"
ADD = glsl(
    "uint i = gl_WorkGroupID.x; b[i] = a[i] + factor + p.shift;",
    TWO + "layout(constant_id = 3) const uint factor = 1;\nlayout(push_constant) uniform P { uint shift; } p;\n",
)
ACCESS = {"src_access": "memory_write", "dst_access": "memory_read"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the scenario names."""
    scene = Scene(tmp_path_factory.mktemp("mutants"))
    scene.file("add.comp", ADD)
    scene.file("add.spv", b"\x03\x02\x23\x07" + bytes(40))
    scene.npy("x.npy", numpy.arange(4, dtype=numpy.uint32))
    scene.npy("p.npy", numpy.array([9], numpy.uint32))
    return scene.folder


@pytest.fixture(scope="module")
def runner(shader_cache: Path) -> Iterator[Runner]:
    with Runner(robustness=True, timeout_s=20) as runner:
        yield runner
    assert not any(runner.live_objects.values())


def whole() -> dict[str, Any]:
    """A scenario that runs."""
    scene = Scene(Path("."))
    keys = {"type": "GLSL", "entry": "main", "stage": "compute", "build_options": "-DX", "include_dirs": ["."]}
    constants = {"push_constants_size": 4, "specialization_constants": [{"id": 3, "value": 5}]}
    scene.resource("shader", uid="add", src="add.comp", **keys, **constants)
    scene.resource("raw_data", uid="p", src="p.npy")
    scene.resource("buffer", uid="x", size=16, src="x.npy", shader_access="readonly")
    group = {"id": "g", "offset": 0}
    scene.resource("buffer", uid="y", size=16, dst="out/y.npy", shader_access="readwrite", memory_group=group)
    scene.resource("buffer", uid="z", size=64, dst="out/z.npy", shader_access="readwrite", memory_group={"id": "g"})
    scene.resource("memory_barrier", uid="all", src_stage=["compute"], **ACCESS)
    scene.resource("buffer_barrier", uid="part", buffer_resource="y", size=8, offset=4, **ACCESS)
    scene.dispatch("add", ["x", "y"], [4], push_data_ref="p", implicit_barrier=False)
    scene.command("dispatch_barrier", memory_barrier_refs=["all"], buffer_barrier_refs=["part"])
    scene.command("mark_boundary", resources=["y"], frame_id=1)
    scene.dispatch("add", ["y", "x"], [2, 1, 1], push_data_ref="p")
    return {"resources": scene.resources, "commands": scene.commands}


def check_outcome(folder: Path) -> None:
    """Files are whole or absent."""
    assert not list(folder.rglob("*.tmp"))
    for file in (folder / "out").rglob("*.npy") if (folder / "out").is_dir() else ():
        assert numpy.load(file).dtype == numpy.int8
        file.unlink()


def test_unmutated(folder: Path, runner: Runner) -> None:
    """The scenario that is mutated runs."""
    path = folder / "scenario.json"
    path.write_text(json.dumps(whole()))
    result = runner.run(path)
    first = numpy.arange(4) + 5 + 9
    assert result.frames[0].array("y", "u4").tolist() == first.tolist()
    assert result.array("z", "u4").tolist() == [*first.tolist(), *[0] * 12]
    assert numpy.load(folder / "out" / "y.npy").view("u4").tolist() == first.tolist()
    check_outcome(folder)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=mutated(whole()), repeat=st.integers(1, 2))
def test_run(folder: Path, runner: Runner, tree: Any, repeat: int) -> None:
    """Running a mutant gives results or an error of ours; its files are whole or absent."""
    path = folder / "mutant.json"
    path.write_text(json.dumps(tree))
    frames = folder / "out" / "frames"
    error: ScenarioRunnerError | None = None
    try:
        runner.run_to_files(path, repeat=repeat, output_dir=folder, capture_dir=frames)
    except ScenarioRunnerError as caught:
        error = caught
    assert error is None or (error.problems and 2 <= error.exit_code <= 9), error
    check_outcome(folder)
