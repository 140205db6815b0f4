"""Graphs, and commands that cannot be planned, as the rules about barriers see them."""

import json
import shutil
from pathlib import Path

import pytest

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.validation import Options, validate_file
from tests.gpu.ml_scenes import SPIRV, bindings, random
from tests.left_out import VGF_LIBRARY, needs
from tests.scenes import Scene, glsl


def hazards(path: Path) -> list[Diagnostic]:
    """The findings about missing barriers."""
    findings = validate_file(path, Options(hazards=True)).findings
    return [finding for finding in findings if finding.code.startswith("SR-HAZARD")]


def model(checkout: Path, folder: Path, name: str) -> Path:
    """The scenario of a model, copied into ``folder``."""
    shutil.copytree(checkout / "scenarios" / "ml" / name, folder, dirs_exist_ok=True)
    return folder / "scenario.json"


def run_twice(path: Path, *, src_stage: list[str]) -> Path:
    """The scenario with its graph run twice, without an implicit barrier and with an explicit one between."""
    scenario = json.loads(path.read_text(encoding="utf-8"))
    (command,) = scenario["commands"]
    (dispatch,) = command.values()
    dispatch["implicit_barrier"] = False
    words = {"src_access": "memory_write", "dst_access": "memory_read", "src_stage": src_stage, "dst_stage": ["all"]}
    scenario["resources"].append({"memory_barrier": {"uid": "between", **words}})
    scenario["commands"] = [command, {"dispatch_barrier": {"memory_barrier_refs": ["between"]}}, command]
    path.write_text(json.dumps(scenario), encoding="utf-8")
    return path


@needs(VGF_LIBRARY)
@pytest.mark.parametrize(
    "name, src_stage, expected",
    [
        ("classifier", ["graph"], []),
        ("classifier", ["all"], []),
        ("classifier", ["compute"], ["SR-HAZARD-004"]),
        # the barriers between the segments of the second run come before it writes again
        ("mixed", ["compute"], []),
    ],
)
def test_a_graph_is_of_the_stage_of_graphs(
    checkout: Path, tmp_path: Path, name: str, src_stage: list[str], expected: list[str]
) -> None:
    """A graph without an implicit barrier needs one from the stage of graphs; its segments are in order anyway."""
    path = run_twice(model(checkout, tmp_path, name), src_stage=src_stage)
    assert [finding.code for finding in hazards(path)] == expected


def test_a_graph_module_reads_its_inputs_and_writes_its_outputs(scene: Scene) -> None:
    """A SPIR-V graph reads the tensors at its inputs and writes those at its outputs."""
    scene.tensor("x", random((1, 8, 8, 4)))
    scene.tensor("y", dims=[1, 8, 8, 2])
    scene.module("graph", (SPIRV / "graph_constant.spv").read_bytes())
    weights = scene.npy("w.npy", random((2, 3, 3, 4), seed=2))
    scene.resource("graph_constant", uid="w", dims=[2, 3, 3, 4], format="VK_FORMAT_R32_SFLOAT", src=weights)
    keys = {"graph_ref": "graph", "bindings": bindings(["x", "y"]), "graph_constants": ["w"]}
    scene.command("dispatch_spirv_graph", **keys, implicit_barrier=False)
    scene.command("dispatch_spirv_graph", **keys)
    (hazard,) = hazards(scene.write())  # the input, which both read, has none
    assert (hazard.code, hazard.message.split(",")[0]) == ("SR-HAZARD-003", "graph 'graph' writes tensor 'y'")


def test_a_command_that_cannot_be_planned_still_orders(scene: Scene, shader_cache: Path) -> None:
    """What comes behind the implicit barrier of a wrong command is ordered with what comes before it."""
    scene.shader("fill", glsl("a[0] = 1;", "layout(set = 0, binding = 0) buffer A { uint a[]; };")).buffer("x", size=64)
    scene.shader("bad", "#version 450\nvoid main() { nonsense; }")
    scene.dispatch("fill", ["x"], implicit_barrier=False).dispatch("bad", []).dispatch("fill", ["x"])
    assert hazards(scene.write()) == []
