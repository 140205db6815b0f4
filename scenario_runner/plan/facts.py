"""What a plan was made of beyond the scenario's text, for the plan cache."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from scenario_runner.plan.cache import Facts
from scenario_runner.plan.shaders import compile_request, used_shaders
from scenario_runner.plan.sources import NpySource
from scenario_runner.scenario import RawData

if TYPE_CHECKING:
    from scenario_runner.scenario import Scenario

# Kinds whose plans follow from the text, the headers in their sources, and `Facts`. Others (graphs read whole files)
# are planned anew each time.
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
    for shader in used_shaders(scenario):
        if shader.type == "SPIR-V":
            binaries.append((shader.uid, os.path.join(scenario.base_dir, shader.src or "")))
        else:
            sources.append((shader.uid, tuple(compile_request(scenario, shader))))
    contents = []
    for resource in scenario.resources:
        if isinstance(resource, RawData):
            source = NpySource(os.path.join(scenario.base_dir, resource.src or ""))
            data = bytearray(source.size_bytes)
            source.read_into(memoryview(data))
            contents.append((source.path, bytes(data)))
    return Facts(tuple(sources), tuple(binaries), tuple(contents), models)


def _models(scenario: Scenario) -> tuple[tuple[str, tuple[int, ...]], ...] | None:
    """The VGF files that commands run; None where one has shaders of its own, which depend on more than the file."""
    found = []
    for uid in {command.graph_ref: None for command in scenario.commands if command.kind == "dispatch_graph"}:  # type: ignore[union-attr]
        from scenario_runner.plan.kept_constants import file_identity
        from scenario_runner.plan.model_files import read_model

        graph: Any = scenario.resource(uid)
        if graph.data is not None:
            return None
        path = os.path.join(scenario.base_dir, graph.src)
        if any(segment.type == "compute" for segment in read_model(path).segments):
            return None
        found.append((path, file_identity(path)))
    return tuple(found)
