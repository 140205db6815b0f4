"""What a plan was made of beyond the scenario's text, for the plan cache."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from scenario_runner.plan.cache import Facts
from scenario_runner.plan.shaders import compile_request, used_shaders
from scenario_runner.plan.sources import NpySource
from scenario_runner.scenario import RawData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenario_runner.plan.graph_model import VgfGraph
    from scenario_runner.scenario import Scenario, Shader

# Kinds whose plans follow from the text, the headers in their sources, and `Facts`. Others are planned anew each time.
_KNOWN_KINDS = frozenset(
    {
        "buffer",
        "image",
        "raw_data",
        "shader",
        "memory_barrier",
        "buffer_barrier",
        "image_barrier",
        "dispatch_compute",
        "dispatch_barrier",
        "mark_boundary",
        "tensor",
        "tensor_barrier",
        "graph",
        "dispatch_graph",
        "graph_constant",
        "dispatch_spirv_graph",
    }
)


def facts_of(scenario: Scenario) -> Facts | None:
    """The facts of a scenario that was just planned; None when it has kinds whose plans cannot be kept."""
    if any(entry.kind not in _KNOWN_KINDS for entry in (*scenario.resources, *scenario.commands)):
        return None
    models = _models(scenario)
    if models is None:
        return None
    sources = []
    binaries = []
    for shader in (*used_shaders(scenario), *_shaders_of_models(scenario)):
        if shader.type != "SPIR-V":
            sources.append((shader.uid, tuple(compile_request(scenario, shader))))
        elif shader.src is not None:  # what a model brings itself is as old as its file
            binaries.append((shader.uid, os.path.join(scenario.base_dir, shader.src)))
    contents = []
    for resource in scenario.resources:
        if isinstance(resource, RawData):
            source = NpySource(os.path.join(scenario.base_dir, resource.src or ""))
            data = bytearray(source.size_bytes)
            source.read_into(memoryview(data))
            contents.append((source.path, bytes(data)))
    return Facts(tuple(sources), tuple(binaries), tuple(contents), models)


def _models(scenario: Scenario) -> tuple[tuple[str, tuple[int, ...]], ...] | None:
    """The VGF files and graph modules that commands run; None where one is no file."""
    found = []
    uids = {getattr(command, "graph_ref", ""): None for command in scenario.commands}
    for uid in uids.keys() - {""}:
        from scenario_runner.plan.kept_constants import file_identity

        graph: Any = scenario.resource(uid)
        if graph.src is None:
            return None
        path = os.path.join(scenario.base_dir, graph.src)
        found.append((path, file_identity(path)))
    return tuple(found)


def _shaders_of_models(scenario: Scenario) -> Iterator[Shader]:
    """The shaders that run as segments of VGF files: substitutes, and the files' own."""
    graphs: dict[str, VgfGraph] = {}
    for command in scenario.commands:
        if command.kind != "dispatch_graph":
            continue
        from scenario_runner.plan.graph_model import VgfGraph
        from scenario_runner.plan.vgf_graphs import shader_of

        uid: str = command.graph_ref  # type: ignore[union-attr]
        if uid not in graphs:
            graphs[uid] = VgfGraph(scenario, scenario.resource(uid))  # type: ignore[arg-type]
        for name in graphs[uid].compute_names():
            shader = shader_of(graphs[uid], command, name, scenario)  # type: ignore[arg-type]
            if shader is not None:
                yield shader
