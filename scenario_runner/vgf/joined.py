"""Rows that are one value because they have one number, although the file has no alias group of them.

Inputs and outputs of segments are numbered like those of the model. Where a segment reads a row that no segment before
it writes, or a row is an input or output that the model does not list, the row is the value that is bound from outside
by that number. Numbers of rows that segments write and read themselves may be those of the shader, and join nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scenario_runner.vgf.model import Slot, Vgf
from scenario_runner.vgf.resource_size import resource_size_bytes


def join_by_number(vgf: Vgf) -> Vgf:
    """The model with alias groups for rows that are one value; the same one where there are none to add.

    Rows of other sizes are left alone, and a model whose indices lead nowhere: `find_problems` says what is wrong.
    """
    if not _indices_are_good(vgf):
        return vgf
    values = _Values(vgf)
    for one, other in _joins(vgf):
        values.join(one, other)
    if not values.changed:
        return vgf
    rows = tuple(
        replace(row, alias_group=values.group_of(index)) if row.category != "constant" else row
        for index, row in enumerate(vgf.resources)
    )
    return replace(vgf, resources=rows)


def _indices_are_good(vgf: Vgf) -> bool:
    slots = [*vgf.inputs, *vgf.outputs, *(slot for one in vgf.segments for slot in (*one.inputs, *one.outputs))]
    return all(0 <= slot.resource_index < len(vgf.resources) for slot in slots)


def _joins(vgf: Vgf) -> Iterator[tuple[int, int]]:
    """Pairs of rows: one of a segment, and the one that the model lists under its number."""
    inputs, outputs = _by_number(vgf.inputs), _by_number(vgf.outputs)
    outside = {vgf.value(slot.resource_index) for slot in (*vgf.inputs, *vgf.outputs)}
    written = {vgf.value(slot.resource_index) for one in vgf.segments for slot in one.outputs}
    done: set[tuple[str, int]] = set()
    for segment in vgf.segments:
        for slot in segment.inputs:
            value = vgf.value(slot.resource_index)
            known = inputs.get(slot.binding, outputs.get(slot.binding))
            if known is not None and value not in outside and value not in done:
                yield slot.resource_index, known
        for slot in segment.outputs:
            value = vgf.value(slot.resource_index)
            known = outputs.get(slot.binding)
            is_listed = vgf.resources[slot.resource_index].category in ("input", "output")
            if known is not None and value not in outside and (is_listed or vgf.value(known) not in written):
                yield slot.resource_index, known
            done.add(value)


def _by_number(slots: tuple[Slot, ...]) -> dict[int, int]:
    found: dict[int, int] = {}
    for slot in slots:
        found.setdefault(slot.binding, slot.resource_index)
    return found


class _Values:
    """Alias groups that grow."""

    def __init__(self, vgf: Vgf) -> None:
        self._vgf = vgf
        self._groups = [row.alias_group for row in vgf.resources]
        self._new = max((group for group in self._groups if group is not None), default=-1) + 1
        self.changed = False

    def group_of(self, row: int) -> int | None:
        return self._groups[row]

    def join(self, one: int, other: int) -> None:
        """Put two rows, and what shares memory with them, into one group."""
        groups = self._groups
        sizes = [resource_size_bytes(self._vgf.resources[row]) for row in (one, other)]
        if sizes[0] != sizes[1] or "constant" in (self._vgf.resources[row].category for row in (one, other)):
            return
        wanted = groups[other]
        if wanted is None:
            wanted = groups[other] = self._new
            self._new += 1
        old = groups[one]
        if old == wanted:
            return
        groups[one] = wanted
        if old is not None:
            self._groups = [wanted if group == old else group for group in groups]
        self.changed = True
