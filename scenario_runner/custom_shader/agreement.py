"""A shader's module against its attributes: entry point, workgroups, bindings, push constants."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from scenario_runner.checks.bindings import Slot, described, slots_of
from scenario_runner.checks.shaders import check_blocks, check_workgroup, find_entry_point
from scenario_runner.custom_shader.operands import check_types, views_and_types
from scenario_runner.custom_shader.push_constants import check_push_constants
from scenario_runner.custom_shader.variables import check_variables
from scenario_runner.diagnostics import Diagnostic, error, note, warning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.custom_shader.attributes import Attributes, ValueType, View
    from scenario_runner.spirv import Interface, Module

_CODE = "/shader_code"
_ELEMENTS = 4  # that one invocation often makes: those of a vec4


def check_agreement(
    attributes: Attributes,
    module: Module,
    types: tuple[Sequence[ValueType], Sequence[ValueType]] | None = None,
) -> tuple[Interface | None, list[Diagnostic]]:
    """The interface of the entry point, and what the module and the attributes say differently.

    Pointers start from the attributes. ``types`` are those of the operands and results, where they are known. Raises
    `SpirvError` for a module that cannot be read.
    """
    name = attributes.operation
    entry, found = find_entry_point(module, name, attributes.module_entry_point, "compute", "")
    if entry is None:
        return None, [finding._replace(pointer="/entry_point") for finding in found]
    interface = entry.interface
    found += check_workgroup(interface, "compute", name, _CODE)
    found += check_blocks(interface, name, _CODE)[0]
    if not any(finding.severity == "error" for finding in found):
        found += check_workgroup_sizes(attributes, interface, types)
    slots, problems = slots_of([(name, interface)], _CODE)
    found += problems
    found += _check_places(attributes, slots)
    for view, type in views_and_types(attributes, types):
        slot = slots.get((view.set, view.binding))
        if slot is not None:
            found += check_variables(view, slot, type)
    found += check_types(attributes, types)
    found += check_push_constants(attributes, interface)
    return interface, found


def check_workgroup_sizes(
    attributes: Attributes, interface: Interface, types: tuple[Sequence[ValueType], Sequence[ValueType]] | None
) -> list[Diagnostic]:
    """A workgroup_sizes that may be meant as the local size.

    Models run this number of workgroups, whatever the description of the attributes says.
    """
    counts, size = attributes.workgroup_sizes, interface.local_size()
    if size is None:
        return []
    invocations = prod(counts) * prod(size)
    wanted, images = 0, True
    for view, type in views_and_types(attributes, types):
        if view.name.startswith("output") and type is not None and type.shape is not None and None not in type.shape:
            elements = prod(each for each in type.shape if each is not None)
            wanted = max(wanted, elements // view.format.components)
            images = images and view.kind == "image"
    runs = f"{_times(counts)} workgroups of {_times(size)} invocations"
    help = "write the number of workgroups, or convert with --dispatch cover-output"
    if counts == size and counts != (1, 1, 1) and invocations != wanted:
        severity = warning
        message = f"{list(counts)} is the local size of the shader; it is used as the number of workgroups: {runs}"
    elif invocations * (1 if images else _ELEMENTS) < wanted:
        severity = note  # a shader may make many more elements in one invocation
        message = f"{runs} are {invocations} invocations, but the largest output has {wanted} elements or texels"
    else:
        return []
    return [severity("SR-CUSTOM-014", "/workgroup_sizes", message, help)]


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _check_places(attributes: Attributes, slots: Mapping[tuple[int, int], Slot]) -> list[Diagnostic]:
    """Bindings that only the shader, or only the attributes have."""
    views = {(view.set, view.binding): view for view in attributes.views}
    missing = [slot for place, slot in slots.items() if slot.used and place not in views]
    unused = [view for place, view in views.items() if place not in slots or not slots[place].used]
    found = []
    for slot in missing:
        meant = next((view for view in unused if (view.set, view.binding) not in slots and _is_near(view, slot)), None)
        message = f"the shader uses {described(slot.variable)}, which no input or output of the attributes has"
        if meant is None:
            found.append(error("SR-CUSTOM-009", _CODE, message, _there_are(attributes.views)))
            continue
        unused.remove(meant)
        key, right = ("binding", slot.binding) if meant.set == slot.set else ("descriptorset", slot.set)
        help = f"if {meant.name} is meant, write {right}"
        found.append(error("SR-CUSTOM-009", f"/{meant.name}_{key}", message, help))
    for view in unused:
        message = f"the shader does not use set {view.set}, binding {view.binding}, which {view.name} has"
        found.append(warning("SR-CUSTOM-010", f"/{view.name}_binding", message))
    return found


def _is_near(view: View, slot: Slot) -> bool:
    return view.set == slot.set or view.binding == slot.binding


def _there_are(views: Sequence[View]) -> str | None:
    listed = ", ".join(f"{view.name} at set {view.set}, binding {view.binding}" for view in views[:20])
    return f"the attributes have {listed}" if listed else None
