"""Shapes that a scenario leaves to its graphs: dimensions of 0 or less."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.npy import read_header

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from scenario_runner.plan.problems import Problems
    from scenario_runner.plan.spirv_graphs import SpirvGraph
    from scenario_runner.plan.vgf_graphs import VgfGraph
    from scenario_runner.scenario import Scenario

Shape = tuple[int, ...]


def infer_shapes(
    scenario: Scenario,
    graphs: Mapping[str, VgfGraph],
    modules: Mapping[str, SpirvGraph],
    uids: Collection[str],
    inputs: Mapping[str, Any],
    problems: Problems,
) -> dict[str, Shape]:
    """The shapes of the tensors in ``uids``, as far as a graph or their own content says them."""
    found: dict[str, Shape] = {}
    for uid, shape in _bound(scenario, graphs, modules):
        if uid in uids and all(size > 0 for size in shape):
            found.setdefault(uid, shape)
    for uid in uids - found.keys():
        shape_of_content = _content_shape(scenario, uid, inputs)
        if shape_of_content is not None:
            found[uid] = shape_of_content
    return found


def _bound(
    scenario: Scenario, graphs: Mapping[str, VgfGraph], modules: Mapping[str, SpirvGraph]
) -> Iterator[tuple[str, Shape]]:
    """Every tensor that is bound to a graph, with the shape that the graph declares."""
    for command in scenario.commands:
        each: Any = command
        if command.kind == "dispatch_graph" and each.graph_ref in graphs:
            graph = graphs[each.graph_ref]
            rows = {
                port.binding: graph.vgf.resources[port.resource_index].shape for port in (*graph.inputs, *graph.outputs)
            }
            for binding in each.bindings:
                if binding.id in rows:
                    yield binding.resource_ref, rows[binding.id]
        elif command.kind == "dispatch_spirv_graph" and each.graph_ref in modules:
            entry = modules[each.graph_ref].entry
            declared = {(one.set, one.binding): one.tensor.shape for one in (*entry.inputs, *entry.outputs)}
            for binding in each.bindings:
                shape = declared.get((binding.set, binding.id))
                if shape is not None:
                    yield binding.resource_ref, shape


def _content_shape(scenario: Scenario, uid: str, inputs: Mapping[str, Any]) -> Shape | None:
    """The shape of the array or file that a tensor starts with."""
    tensor: Any = scenario.resource(uid)
    data = inputs.get(uid, tensor.data)
    if data is not None:
        shape = getattr(data, "shape", None)
        return None if shape is None else tuple(shape)
    if tensor.src is None:
        return None
    try:
        return read_header(os.path.join(scenario.base_dir, tensor.src)).shape
    except ScenarioRunnerError:
        return None  # reported where the file is opened
