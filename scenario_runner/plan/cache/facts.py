"""What a plan was made of beyond the scenario's text, for the plan cache."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from scenario_runner.plan.cache.plan_cache import Facts
from scenario_runner.plan.shaders import compile_request
from scenario_runner.plan.sources import NpySource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scenario_runner.plan.graphs.commands import Graphs
    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.plan.model.records import Source
    from scenario_runner.plan.shaders import LoadedShader
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
        "dispatch_fragment",
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


def facts_of(
    scenario: Scenario,
    plan: Plan,
    shaders: Iterable[Shader],
    loaded: Mapping[str, LoadedShader],
    raw_data: Mapping[str, Source],
    pushed: Mapping[str, bytes],
    graphs: Graphs | None,
) -> Facts | None:
    """The facts of a plan that was just made, from what was read while it was made: nothing is read again.

    ``shaders`` are all that the plan uses and ``loaded`` their code by uid; ``raw_data`` the sources of raw_data by uid
    and ``pushed`` the bytes of those that were read. None when the plan cannot be kept.
    """
    if any(entry.kind not in _KNOWN_KINDS for entry in (*scenario.resources, *scenario.commands)):
        return None
    models = []
    for path, identity in () if graphs is None else graphs.files():
        if identity is None or not identity.settled:
            return None
        models.append((path, tuple(identity)))
    # shaders of equal code may share a pipeline, so that not each has one of its own
    by_code = {code: index for index, code in enumerate(plan.shader_codes)}
    sources = []
    binaries = []
    for shader in shaders:
        index = by_code.get(loaded[shader.uid].code)
        if index is None:
            return None
        if shader.type != "SPIR-V":
            sources.append((index, tuple(compile_request(scenario, shader))))
        elif shader.src is not None:  # what a model brings itself is as old as its file
            binaries.append((index, os.path.join(scenario.base_dir, shader.src)))
    contents = []
    for uid, source in raw_data.items():
        if not isinstance(source, NpySource):
            return None
        contents.append((source.path, tuple(source.header), pushed.get(uid)))
    return Facts(tuple(sources), tuple(binaries), tuple(contents), tuple(models))
