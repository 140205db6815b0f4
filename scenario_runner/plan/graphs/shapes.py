"""The shapes that a VGF file leaves open, as far as they follow from those of the tensors that are bound to it."""

from __future__ import annotations

from collections.abc import Mapping

from scenario_runner.graphs.tosa import Shape
from scenario_runner.plan.graphs.interface import graph_entry
from scenario_runner.plan.graphs.model import VgfGraph


def row_shapes(graph: VgfGraph, bound: Mapping[int, Shape]) -> dict[int, Shape]:
    """Shapes of open rows of the file by row; ``bound`` are those of inputs and outputs by binding number.

    Segments are followed in their order; what a shader writes is known only where it is bound. Raises ScenarioError
    where inputs do not fit each other, ShaderError for damaged modules.
    """
    rows = graph.vgf.resources
    if not graph.is_open:
        return {}
    known: dict[int, Shape] = {}
    for port in graph.inputs:
        if port.binding in bound:
            _note(graph, known, port.view_indices, bound[port.binding])
    for segment in graph.vgf.segments:
        if segment.type != "graph":
            continue
        module = graph.module(segment.module_index)
        plan = graph.vgf.modules[segment.module_index]
        entry = graph_entry(module.module, plan.entry_point, f"module {plan.name!r}")
        slots = {
            (each.index, slot.binding): slot.resource_index for each in segment.descriptor_sets for slot in each.slots
        }
        shapes = {
            place: known.get(row, rows[row].shape)
            for place, row in slots.items()
            if row in known or min(rows[row].shape, default=1) > 0
        }
        for place, shape in module.fixed(entry, shapes).outputs.items():
            if place in slots and min(shape) > 0:
                _note(graph, known, _views(graph, slots[place]), shape)
    for port in graph.outputs:
        if port.binding in bound:
            _note(graph, known, port.view_indices, bound[port.binding])
    return known


def _note(graph: VgfGraph, known: dict[int, Shape], views: tuple[int, ...], shape: Shape) -> None:
    """Note the shape of a value for those of its rows that leave it open, where it can be theirs."""
    for index in views:
        declared = graph.vgf.resources[index].shape
        if (
            index not in known
            and min(declared, default=1) < 0
            and len(declared) == len(shape)
            and all(one in (-1, other) for one, other in zip(declared, shape, strict=True))
        ):
            known[index] = shape


def _views(graph: VgfGraph, row: int) -> tuple[int, ...]:
    group = graph.vgf.resources[row].alias_group
    if group is None:
        return (row,)
    return tuple(index for index, each in enumerate(graph.vgf.resources) if each.alias_group == group)
