"""The segments of one shader, joined: the converter has a placeholder for each of its results (`placeholders`)."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from scenario_runner.conversion.model import Function
from scenario_runner.graphs.model import DescriptorSet, Segment, Slot, Vgf


def joined_results(converted: Vgf, function: Function) -> Vgf:
    """The skeleton: what the converter made of the placeholders, with one segment for each shader.

    Modules and segments are numbered anew where that leaves out some.
    """
    segments: list[Segment] = []
    of_shader: dict[int, int] = {}
    for segment in converted.segments:
        if segment.type == "compute":
            number, result = map(int, converted.modules[segment.module_index].entry_point.split("_")[1:])
            operands = len(function.shaders[number].operands)
            if number in of_shader:
                first = segments[of_shader[number]]
                written = [slot for slot in _slots(segment) if slot.binding >= operands]
                slots = [*_slots(first), *(Slot(operands + result, slot.resource_index) for slot in written)]
                segments[of_shader[number]] = replace(
                    first, descriptor_sets=(DescriptorSet(0, tuple(slots)),), outputs=first.outputs + segment.outputs
                )
                continue
            of_shader[number] = len(segments)
        segments.append(segment)
    if len(segments) == len(converted.segments):
        return converted
    modules, counted = [], {"compute": count(), "graph": count()}
    for index, segment in enumerate(segments):
        module = converted.modules[segment.module_index]
        modules.append(replace(module, name=f"graph_partition_{index}"))
        name = f"{segment.type}_segment_{next(counted[segment.type])}"
        segments[index] = replace(segment, index=index, name=name, module_index=index)
    return replace(converted, modules=tuple(modules), segments=tuple(segments))


def _slots(segment: Segment) -> list[Slot]:
    return [slot for each in segment.descriptor_sets for slot in each.slots]
