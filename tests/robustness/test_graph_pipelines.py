"""How often the driver is asked for graph pipelines, counted by a layer between the program and the driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu.ml_scenes import VGF, bindings, random, tensor
from tests.program import Program
from tests.scenes import Scene

CALL = "vkCreateDataGraphPipelinesARM"


@pytest.mark.parametrize("options", [(), ("--no-cache",)], ids=["cached", "no cache"])
def test_graph_pipelines_are_made_once(
    program: Program, fault_layer: dict[str, str], scene: Scene, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Four runs of a model in one call make one pipeline, also when their plans come from the cache."""
    tensor(tensor(scene, "x", random((5, 16))), "y", dims=[5, 16])
    scene.resource("graph", uid="graph", src=str(VGF / "dynamic.vgf"))
    scenario = scene.command("dispatch_graph", graph_ref="graph", bindings=bindings(["x", "y"])).write()
    log = tmp_path / "log"
    cache = str(tmp_path / "cache")
    environment = {**fault_layer, "FAULT_LOG": str(log), "FAULT_CALL": CALL, "SCENARIO_RUNNER_CACHE": cache}
    for _ in range(2):
        log.write_text("")
        ended = program(*[scenario] * 4, "--output", tmp_path / "out", *options, env=environment)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.count(": ok: ") == 4
        assert log.read_text().splitlines() == [CALL, "END"]
