"""Plans of graphs that are kept for the next run: found again, and dropped when the model changes."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scenario_runner.files.input import file_identity
from scenario_runner.ml.vgf_file import read_vgf
from scenario_runner.ml.vgf_model import Port
from scenario_runner.plan.graph_records import GraphPipelinePlan
from scenario_runner.plan.plan_cache import PlanCache
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.plan.resolve import resolve_to_keep
from scenario_runner.plan.sources import in_memory
from scenario_runner.runner import Runner
from scenario_runner.scenario import load
from tests.gpu.ml_scenes import SPIRV, VGF, bindings, random
from tests.left_out import VGF_LIBRARY, needs
from tests.scenes import Scene


def settle(folder: Path) -> None:
    """Wait until the times of the files in a folder tell the next change."""
    for file in folder.iterdir():
        while not getattr(file_identity(str(file)), "settled", True):
            time.sleep(0.005)


def constants(plan: GraphPipelinePlan) -> list[bytes]:
    """The bytes of a pipeline's constants."""
    with in_memory(each.data for each in plan.constants) as views:
        return [bytes(view) for view in views]


def kept(path: Path) -> PlanCache:
    """The cache after one plan was kept, as the next process opens it."""
    compiler = CompilerOptions(cache_dir=str(path.parent / "cache"))
    cache = PlanCache(str(path), compiler=compiler)
    assert cache.load() is None
    settle(path.parent)
    plan, facts = resolve_to_keep(load(path))
    assert facts is not None
    cache.store(plan, facts)
    return PlanCache(str(path), compiler=compiler)


SQUARE = """#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    y[i] = a[i] * a[i];
}
"""


def placeholder(scene: Scene) -> Path:
    """Add a model with a substituted shader between two graphs."""
    scene.tensor("x", random((4, 16))).tensor("shaded", dims=[4, 16]).tensor("sum", dims=[4, 16])
    scene.shader("square", SQUARE)
    scene.file("model.vgf", (VGF / "placeholder.vgf").read_bytes())
    scene.resource("graph", uid="g", src="model.vgf")
    places = {port.binding: port.name or "" for port in model_ports(VGF / "placeholder.vgf")}
    substitutions = [{"shader_ref": "square", "target": "graph_partition_1"}]
    scene.command("dispatch_graph", graph_ref="g", bindings=bindings(places), shader_substitutions=substitutions)
    return scene.write()


def own_shader(scene: Scene) -> Path:
    """A model with a GLSL shader of its own."""
    for uid in ("x", "y"):
        scene.tensor(uid, random((4, 16)))
    scene.tensor("z", dims=[4, 16]).file("model.vgf", (VGF / "mixed.vgf").read_bytes())
    scene.resource("graph", uid="g", src="model.vgf")
    places = {port.binding: port.name or "" for port in model_ports(VGF / "mixed.vgf")}
    scene.command("dispatch_graph", graph_ref="g", bindings=bindings(places))
    return scene.write()


def module(scene: Scene) -> Path:
    """A graph from a SPIR-V module, with a constant from a file."""
    scene.tensor("x", random((1, 8, 8, 4))).tensor("y", dims=[1, 8, 8, 2])
    scene.module("graph", (SPIRV / "graph_constant.spv").read_bytes())
    weights = scene.npy("w.npy", random((2, 3, 3, 4)))
    scene.resource("graph_constant", uid="w", dims=[2, 3, 3, 4], format="VK_FORMAT_R32_SFLOAT", src=weights)
    scene.command("dispatch_spirv_graph", graph_ref="graph", bindings=bindings(["x", "y"]), graph_constants=["w"])
    return scene.write()


def model_ports(path: Path) -> list[Port]:
    """The inputs and outputs of a model."""
    vgf = read_vgf(path)
    return [*vgf.input_ports, *vgf.output_ports]


@needs(VGF_LIBRARY, ".vgf", "square.comp")
@pytest.mark.parametrize(
    "make, changed",
    [
        (placeholder, "model.vgf"),
        (placeholder, "square.comp"),
        (own_shader, "model.vgf"),
        (module, "graph.spv"),
        (module, "w.npy"),
    ],
)
def test_all_that_a_graph_is_made_of_is_compared(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, make: Callable[[Scene], Path], changed: str
) -> None:
    """Models with shaders and SPIR-V graphs with constants are kept as well, until one of their files changes."""
    path = make(scene)
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(path.parent / "cache"))
    cache = kept(path)
    again, fresh = cache.load(), Runner().plan(path)
    assert again is not None
    assert (again.frames, again.descriptor_lists) == (fresh.frames, fresh.descriptor_lists)
    assert again.pipelines == fresh.pipelines
    assert [each[:4] for each in again.graph_pipelines] == [each[:4] for each in fresh.graph_pipelines]
    for old, new in zip(fresh.graph_pipelines, again.graph_pipelines, strict=True):
        assert constants(new) == constants(old)
        assert new.content == old.content, "so that the pipeline of one is the pipeline of the other"
    file = path.parent / changed
    if file.suffix == ".comp":
        file.write_text(SQUARE.replace("a[i] * a[i]", "a[i] + a[i]"))
    else:
        os.utime(file, ns=(1, 1))
    assert cache.load() is None
