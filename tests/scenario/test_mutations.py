"""Mutated scenarios: the reader and a run raise only errors of this program, and leave whole files."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from scenario_runner import Runner, ScenarioRunnerError
from scenario_runner.errors import ScenarioError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.scenario import loads
from scenario_runner.scenario.kinds import json_schema
from tests.scenes import Scene, glsl

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "format_examples.json"
EVERYTHING: dict[str, Any] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
"""A scenario with every key of every kind."""

TEXT = json.dumps(EVERYTHING, indent=1).encode()
SCHEMA = Draft202012Validator(json_schema())

# Sizes and counts are small, or larger than any device takes: a mutant that runs must not keep the tests busy.
NUMBERS = [-1, 0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 64, 2**33, 2**63, 2**64, 10**30, 0.5, -0.0, 1e300, float("nan")]
TEXTS = ["", ".", "x", "y", "a", "p", "all", "missing", "x.npy", "add.comp", "add.spv", "out/x.npy", "x" * 10_000, "\0"]
TEXTS += ["-DX=1", "-I", "'", "GLSL", "SPIR-V", "HLSL", "GRAPH", "main", "readonly", "compute"]
TEXTS += ["\ud800", "\ud83d\ude00"]
OTHERS = [None, True, False, [], {}, [1], [[]], [1, 2, 3, 4], {"id": "g"}, {"id": "g", "offset": 3}, ["x"]]
VALUES = st.sampled_from(NUMBERS) | st.sampled_from(TEXTS) | st.sampled_from(OTHERS) | st.text(max_size=8)
KEYS = st.sampled_from(["uid", "id", "src", "data", "source", "buffer", "mips", "lod", "type", "x", "~/", "", "\ud800"])


def containers(tree: Any) -> list[Any]:
    """Every array and object of a tree that has entries."""
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    found = [part for value in inner for part in containers(value)]
    return [tree, *found] if inner else found


@st.composite
def mutated(draw: st.DrawFn, whole: Any) -> Any:
    """A scenario with one to three values replaced, removed, doubled, renamed or added."""
    tree = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        places = containers(tree)
        if not places:
            break
        place = draw(st.sampled_from(places))
        at = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        how = draw(st.sampled_from(["replace", "remove", "double", "add"]))
        if how == "replace":
            place[at] = copy.deepcopy(draw(VALUES))
        elif how == "remove":
            del place[at]
        elif isinstance(place, list):
            place.insert(0, copy.deepcopy(place[at]) if how == "double" else copy.deepcopy(draw(VALUES)))
        elif how == "double":
            place[draw(KEYS)] = copy.deepcopy(place[at])
        else:
            place[draw(KEYS)] = copy.deepcopy(draw(VALUES))
    return tree


def problems_of(text: str | bytes) -> list[Diagnostic]:
    """Return the problems of a text and its ignored keys; a text that does not load must have a problem."""
    try:
        loaded = loads(text)
    except ScenarioError as error:
        found = list(error.problems)
    else:
        return [warning for warning in loaded.warnings if warning.code == "SR-JSON-010"]
    assert found
    return found


def test_everything():
    """The scenario that the mutations start from uses every kind, and is right."""
    scenario = loads(TEXT)
    assert len({resource.kind for resource in scenario.resources}) == 11
    assert len({command.kind for command in scenario.commands}) == 9
    assert SCHEMA.is_valid(EVERYTHING)


# What the models refuse and the schema, which sees neither spelling nor other values, cannot.
BEYOND_SCHEMA = (
    "no resource has the uid",
    "is already",
    "already has the uid",
    "already has a value",
    "expected the uid",
    "expected a shader of the",
    "NUL character",
    "surrogate",
    "both name the group",
    "that fits 64 bits",
    "needs ",
    "takes no push",
    "take no push",
    "the last mip level",
    "less than the larger",
    "is given twice",
    "bytes",
    "mip level",
    "array layer",
    "overlaps",
    "unknown key",
    "is not valid JSON",
    "expected one key",
    "null is not used",  # in a key that only its neighbours make an error
)


@settings(max_examples=100)
@given(mutated(EVERYTHING))
def test_a_mutated_scenario(tree):
    """A mutated scenario loads, or raises errors of this program with places, and no null loads. The schema agrees
    about the shape."""
    text = json.dumps(tree)
    found = problems_of(text)
    for problem in found:
        assert problem.line == 1
        assert 1 <= problem.column <= len(text) + 1
        assert "cannot describe" not in problem.message
    assert found or "null" not in text
    errors = [problem.message for problem in found if problem.severity == "error"]
    if not errors:
        assert SCHEMA.is_valid(tree)
    elif SCHEMA.is_valid(tree):
        assert [message for message in errors if not any(known in message for known in BEYOND_SCHEMA)] == []


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
