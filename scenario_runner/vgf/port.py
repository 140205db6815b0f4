"""The inputs and outputs of a model as a caller sees them: one port for every number that a scenario can bind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scenario_runner.errors import FileError
from scenario_runner.vgf.model import Slot, Vgf


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output of the model.

    ``names`` is empty when the file does not say which name belongs to which slot, and has several entries for a result
    that the model returns more than once. ``resource_index`` is the row that the model names; ``view_indices`` are all
    rows of the same value, that row first: one allocation serves them all, with one Vulkan object for each (an input
    that a graph reads as tensor and a shader as buffer has two).
    """

    binding: int
    names: tuple[str, ...]
    resource_index: int
    view_indices: tuple[int, ...]

    @property
    def name(self) -> str | None:
        """The first of the names, if there is one."""
        return self.names[0] if self.names else None

    @property
    def label(self) -> str:
        """How messages call the port: its name and number, or its number alone."""
        return f"binding {self.binding}" if self.name is None else f"{self.name!r} (binding {self.binding})"


def input_ports(vgf: Vgf) -> tuple[Port, ...]:
    """The inputs of the model in the order of the file; a number that the file lists twice is one port."""
    return _ports(vgf, vgf.inputs, vgf.input_names)


def output_ports(vgf: Vgf) -> tuple[Port, ...]:
    """The outputs of the model in the order of the file; a result that the model returns twice is one port."""
    return _ports(vgf, vgf.outputs, vgf.output_names)


def find_port(ports: Sequence[Port], key: str | int) -> Port:
    """The port with the binding number or the name ``key``; a name wins over a number written as text.

    Raises FileError that lists what there is when none matches, or when several have that name.
    """
    named = [port for port in ports if key in port.names]
    number = int(key) if isinstance(key, int) or (key.isascii() and key.isdigit() and len(key) < 11) else None
    matches = named or [port for port in ports if port.binding == number]
    if len(matches) == 1:
        return matches[0]
    known = ", ".join(port.label for port in (matches or ports)) or "none"
    if matches:
        raise FileError(f"several are called {key!r}: {known}", help="say which one by its binding number")
    raise FileError(f"the model has no {key!r} here; it has: {known}")


def _ports(vgf: Vgf, slots: tuple[Slot, ...], names: tuple[str, ...]) -> tuple[Port, ...]:
    # Names belong to positions. The converter drops the slots of unused arguments but keeps their names, so with
    # unequal lengths no position can be trusted.
    trusted = len(names) == len(slots)
    groups: dict[int, list[int]] = {}
    for index, resource in enumerate(vgf.resources):
        if resource.alias_group is not None:
            groups.setdefault(resource.alias_group, []).append(index)
    names_of: dict[int, list[str]] = {}
    row_of: dict[int, int] = {}
    for position, slot in enumerate(slots):
        row_of.setdefault(slot.binding, slot.resource_index)
        known = names_of.setdefault(slot.binding, [])
        if trusted and names[position]:
            known.append(names[position])
    ports = []
    for binding, row in row_of.items():
        group = vgf.resources[row].alias_group
        others = () if group is None else tuple(i for i in groups[group] if i != row)
        ports.append(Port(binding, tuple(names_of[binding]), row, (row, *others)))
    return tuple(ports)
