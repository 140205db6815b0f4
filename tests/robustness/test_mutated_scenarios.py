"""Mutated scenarios, end to end: only errors of ours come out, and files are whole or absent."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scenario_runner import Runner, ScenarioRunnerError
from tests.scenes import Scene, glsl

TWO = "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { uint b[]; };\n"
ADD = glsl(
    "uint i = gl_WorkGroupID.x; b[i] = a[i] + factor + p.shift;",
    TWO + "layout(constant_id = 3) const uint factor = 1;\nlayout(push_constant) uniform P { uint shift; } p;\n",
)
ACCESS = {"src_access": "memory_write", "dst_access": "memory_read"}

# Sizes and counts are small, or larger than any device takes: mutants must not keep the tests busy.
NUMBERS = [-1, 0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 64, 2**33, 2**63 - 1, 2**64 - 1, 2**64, 10**30, 0.5, -0.0, 1e300]
TEXTS = ["", ".", "x", "y", "add", "p", "all", "missing", "x.npy", "p.npy", "add.comp", "add.spv", "out/x.npy"]
TEXTS += ["n" * 300, "-DX=1", "-I", "'", "GLSL", "SPIR-V", "HLSL", "main", "readonly", "compute", "\ud83d\ude00"]
VALUES = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(TEXTS),
    st.sampled_from([None, True, False, [], {}, [1], [[]], [1, 2, 3, 4], {"id": "g"}, {"id": "g", "offset": 3}, ["x"]]),
)


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


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON tree."""
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    return [place for key, value in items for place in [(tree, key), *places(value)]]


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    """The text of the scenario after one to three changes of its values, or of its bytes."""
    tree = copy.deepcopy(whole())
    for _ in range(draw(st.integers(1, 3))):
        all_places = places(tree)
        container, key = all_places[draw(st.integers(0, len(all_places) - 1))]
        change = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add", "copy", "swap"]))
        if change == "replace":
            container[key] = copy.deepcopy(draw(VALUES))
        elif change == "remove":
            del container[key]
        elif change == "copy" and isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
        elif change == "swap":
            other, place = all_places[draw(st.integers(0, len(all_places) - 1))]
            value = copy.deepcopy(other[place])
            container[key] = value
        elif isinstance(container, dict):
            container[draw(st.sampled_from(TEXTS))] = copy.deepcopy(draw(VALUES))
        if not places(tree):
            break
    text = json.dumps(tree, indent=draw(st.sampled_from([None, 1]))).encode()
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.binary(max_size=4)) + text[at + draw(st.integers(0, 20)) :]
    return text


def failure(action: Callable[[], object]) -> ScenarioRunnerError | None:
    """The error of ours that an action ends with; any other exception passes through and fails the test."""
    try:
        action()
    except ScenarioRunnerError as error:
        return error
    return None


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


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=mutants(), repeat=st.integers(1, 2))
def test_run(folder: Path, runner: Runner, text: bytes, repeat: int) -> None:
    """Running a mutant gives results or an error of ours; its files are whole or absent."""
    path = folder / "mutant.json"
    path.write_bytes(text)
    frames = folder / "out" / "frames"
    error = failure(lambda: runner.run_to_files(path, repeat=repeat, output_dir=folder, capture_dir=frames))
    assert error is None or 2 <= error.exit_code <= 9, error
    check_outcome(folder)
