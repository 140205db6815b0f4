"""Cross references of a VGF file: rows that are one value, and everything that is wrong.

Indices come first: when one of them points nowhere, nothing else is looked at. Each check is linear in the size of
the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import prod

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.graphs.model import (
    IMAGE_TYPES,
    Category,
    ModelResource,
    Segment,
    Slot,
    Vgf,
    format_name,
    known_format,
    resource_size_bytes,
)


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


_Finding = tuple[str, str]
"""(JSON pointer into what `describe` makes of the file, what is wrong there)"""

_MOST_PROBLEMS = 20
_MOST_DIMENSIONS = 16
# More than any device holds, yet far from where 64-bit sizes overflow.
_MOST_ELEMENTS = 2**40
# Above any device's limits, yet small enough to make one layout for every number below.
_MOST_SETS = 1024
_MOST_BINDINGS = 2**16
_MOST_PUSH_CONSTANT_BYTES = 2**16


def find_problems(vgf: Vgf, path: str) -> list[Diagnostic]:
    """List the first 20 problems of a file, in its order; empty for a sound one."""
    checks: Sequence[Callable[[Vgf], Iterator[_Finding]]] = (_resources, _constants, _ends, _segments)
    findings = list(islice(_indices(vgf), _MOST_PROBLEMS)) or list(
        islice((finding for check in checks for finding in check(vgf)), _MOST_PROBLEMS)
    )
    return [Diagnostic("SR-FILE-013", "error", pointer, message, path=path) for pointer, message in findings]


def _all_slots(vgf: Vgf) -> Iterator[tuple[str, Slot]]:
    """Iterate over all slots of the file with their places."""
    lists: list[tuple[str, tuple[Slot, ...]]] = [("/inputs", vgf.inputs), ("/outputs", vgf.outputs)]
    for s in vgf.segments:
        lists += [(f"/segments/{s.index}/inputs", s.inputs), (f"/segments/{s.index}/outputs", s.outputs)]
        lists += [(f"/segments/{s.index}/descriptor_sets/{d}/slots", x.slots) for d, x in enumerate(s.descriptor_sets)]
    for place, slots in lists:
        for i, slot in enumerate(slots):
            yield f"{place}/{i}", slot


def _indices(vgf: Vgf) -> Iterator[_Finding]:
    def outside(place: str, what: str, index: int, count: int) -> Iterator[_Finding]:
        if not 0 <= index < count:
            yield place, f"the {what} index is {index}, but the file has {count} of them"

    for i, constant in enumerate(vgf.constants):
        yield from outside(f"/constants/{i}", "resource", constant.resource_index, len(vgf.resources))
    for place, slot in _all_slots(vgf):
        yield from outside(place, "resource", slot.resource_index, len(vgf.resources))
    for segment in vgf.segments:
        place = f"/segments/{segment.index}"
        yield from outside(f"{place}/module_index", "module", segment.module_index, len(vgf.modules))
        for i, link in enumerate(segment.constants):
            yield from outside(f"{place}/constants/{i}", "constant", link.constant_index, len(vgf.constants))


def _resources(vgf: Vgf) -> Iterator[_Finding]:
    first_of_group: dict[int, tuple[int, int]] = {}
    for i, resource in enumerate(vgf.resources):
        place = f"/resources/{i}"
        flaw = _shape_flaw(resource)
        if flaw:
            yield place, flaw
            continue
        if resource.alias_group is None:
            continue
        if resource.category == "constant":
            yield place, f"a constant cannot be in an alias group, but this one is in group {resource.alias_group}"
            continue
        size = resource_size_bytes(resource)
        if size is None or _counts_vectors(resource):
            continue
        first, first_size = first_of_group.setdefault(resource.alias_group, (i, size))
        if size != first_size:
            yield (
                place,
                (
                    f"has {size} bytes (shape {list(resource.shape)}, {format_name(resource.format)}), but shares the "
                    f"memory of resource {first}, which has {first_size} bytes (alias group {resource.alias_group})"
                ),
            )


def _counts_vectors(resource: ModelResource) -> bool:
    """Tell whether the shape may count vectors or components (a buffer of vectors): the file does not say which."""
    texel = known_format(resource.format)
    return resource.descriptor_type not in IMAGE_TYPES and texel is not None and texel.components > 1


def _shape_flaw(resource: ModelResource) -> str | None:
    shape = resource.shape
    if len(shape) > _MOST_DIMENSIONS:
        return f"has {len(shape)} dimensions, at most {_MOST_DIMENSIONS} are expected"
    if any(size == 0 or size < -1 for size in shape):
        return f"has the shape {list(shape)}; a dimension is 1 or more, or -1 when dynamic"
    if prod(abs(size) for size in shape) > _MOST_ELEMENTS:
        return f"has the shape {list(shape)}, which is more than 2**40 elements"
    if resource.strides and len(resource.strides) != len(shape):
        return f"has {len(resource.strides)} strides for {len(shape)} dimensions"
    if any(not 0 < stride <= _MOST_ELEMENTS for stride in resource.strides):
        return f"has the strides {list(resource.strides)}; a stride is between 1 and 2**40"
    if resource.descriptor_type in IMAGE_TYPES:
        if len(shape) not in (3, 4) or (len(shape) == 4 and shape[0] not in (1, -1)):
            return f"is an image of the shape {list(shape)}, expected [H, W, components] or [1, H, W, components]"
        texel = known_format(resource.format)
        if texel and shape[-1] not in (texel.components, -1):
            return f"is an image of the shape {list(shape)}, but {texel.name} has {texel.components} components"
    return None


def _constants(vgf: Vgf) -> Iterator[_Finding]:
    for i, constant in enumerate(vgf.constants):
        place = f"/constants/{i}"
        resource = vgf.resources[constant.resource_index]
        if resource.category != "constant":
            yield place, f"resource {constant.resource_index} is not a constant, but an {resource.category}"
            continue
        axis = constant.sparsity_dimension
        if axis is not None and not axis < len(resource.shape):
            yield f"{place}/sparsity_dimension", f"is {axis}, but the constant has {len(resource.shape)} dimensions"
        if min(resource.shape, default=1) < 0:
            yield place, f"has the dynamic shape {list(resource.shape)}, but the shape of a constant is fixed"
            continue
        expected = resource_size_bytes(resource)
        if expected is not None and expected != constant.size_bytes:
            yield (
                place,
                (
                    f"has {constant.size_bytes} bytes of data, but shape {list(resource.shape)} of "
                    f"{format_name(resource.format)} takes {expected}"
                ),
            )
        elif not constant.size_bytes:
            yield place, "has no data"


def _ends(vgf: Vgf) -> Iterator[_Finding]:
    """The inputs and outputs of the model, and that every input and output row can be reached from them."""
    yield from _slots(vgf, "/inputs", vgf.inputs, ("input",))
    yield from _slots(vgf, "/outputs", vgf.outputs, ("output",))
    reached = {vgf.value(slot.resource_index) for slot in (*vgf.inputs, *vgf.outputs)}
    for segment in vgf.segments:
        for d, descriptor_set in enumerate(segment.descriptor_sets):
            for i, slot in enumerate(descriptor_set.slots):
                category = vgf.resources[slot.resource_index].category
                if category in ("input", "output") and vgf.value(slot.resource_index) not in reached:
                    yield (
                        f"/segments/{segment.index}/descriptor_sets/{d}/slots/{i}",
                        (f"uses resource {slot.resource_index}, an {category} that the model does not list as one"),
                    )


def _slots(vgf: Vgf, place: str, slots: Iterable[Slot], categories: tuple[Category, ...]) -> Iterator[_Finding]:
    """Slots of the model: the right categories, and one number for one value. The converter repeats equal slots."""
    yield from _categories(vgf, place, slots, categories)
    value_of: dict[int, tuple[str, int]] = {}
    binding_of: dict[tuple[str, int], int] = {}
    for i, slot in enumerate(slots):
        value = vgf.value(slot.resource_index)
        if value_of.setdefault(slot.binding, value) != value:
            yield f"{place}/{i}", f"the binding {slot.binding} is used twice, for values that do not share memory"
        elif binding_of.setdefault(value, slot.binding) != slot.binding:
            yield f"{place}/{i}", f"the bindings {binding_of[value]} and {slot.binding} mean the same value"


def _categories(vgf: Vgf, place: str, slots: Iterable[Slot], categories: tuple[Category, ...]) -> Iterator[_Finding]:
    """The categories of slots. Segments may number theirs as they like: descriptor sets say what is bound where."""
    for i, slot in enumerate(slots):
        category = vgf.resources[slot.resource_index].category
        if category not in categories:
            expected = " or ".join(categories)
            yield f"{place}/{i}", f"resource {slot.resource_index} is of the category {category!r}, expected {expected}"


def _segments(vgf: Vgf) -> Iterator[_Finding]:
    for segment in vgf.segments:
        place = f"/segments/{segment.index}"
        module = vgf.modules[segment.module_index]
        if module.type != segment.type:
            yield place, f"is a {segment.type} segment, but its module {module.name!r} is a {module.type} module"
        elif segment.type == "graph" and module.language != "SPIR-V":
            yield (
                place,
                f"is a graph, but its module {module.name!r} has {module.language or 'no'} code, expected SPIR-V",
            )
        for name, slots in (("inputs", segment.inputs), ("outputs", segment.outputs)):
            yield from _categories(vgf, f"{place}/{name}", slots, ("input", "output", "intermediate"))
        yield from _descriptor_sets(vgf, segment, place)
        ids: set[int] = set()
        for i, link in enumerate(segment.constants):
            if link.id in ids:
                yield f"{place}/constants/{i}", f"the graph constant id {link.id} is used twice"
            ids.add(link.id)
        for i, part in enumerate(segment.push_constant_ranges):
            end = part.offset_bytes + part.size_bytes
            if not part.size_bytes or part.size_bytes % 4 or part.offset_bytes % 4 or end > _MOST_PUSH_CONSTANT_BYTES:
                yield (
                    f"{place}/push_constant_ranges/{i}",
                    (
                        f"has the offset {part.offset_bytes} and the size {part.size_bytes}; both are multiples of 4, "
                        f"the size is not 0, and the range ends at {_MOST_PUSH_CONSTANT_BYTES} bytes or before"
                    ),
                )


def _descriptor_sets(vgf: Vgf, segment: Segment, place: str) -> Iterator[_Finding]:
    seen: set[int] = set()
    for d, descriptor_set in enumerate(segment.descriptor_sets):
        here = f"{place}/descriptor_sets/{d}"
        if descriptor_set.index >= _MOST_SETS:
            yield here, f"the set index is {descriptor_set.index}, expected less than {_MOST_SETS}"
        if descriptor_set.index in seen:
            yield here, f"the set index {descriptor_set.index} is used twice"
        seen.add(descriptor_set.index)
        bound: dict[int, int] = {}
        for i, slot in enumerate(descriptor_set.slots):
            resource = vgf.resources[slot.resource_index]
            if slot.binding >= _MOST_BINDINGS:
                yield f"{here}/slots/{i}", f"the binding is {slot.binding}, expected less than {_MOST_BINDINGS}"
            if bound.setdefault(slot.binding, slot.resource_index) != slot.resource_index:
                yield (
                    f"{here}/slots/{i}",
                    (
                        f"the binding {slot.binding} is used twice, for the resources {bound[slot.binding]} "
                        f"and {slot.resource_index}"
                    ),
                )
            if resource.category == "constant":
                yield f"{here}/slots/{i}", f"binds resource {slot.resource_index}, which is a constant"
            elif resource.descriptor_type is None:
                yield f"{here}/slots/{i}", f"binds resource {slot.resource_index}, which has no descriptor type"


def unwritten_inputs(vgf: Vgf) -> Iterator[tuple[Segment, Slot]]:
    """Iterate over inputs of segments that are not bound from outside and that no earlier segment writes."""
    written = {vgf.value(i) for i, resource in enumerate(vgf.resources) if resource.category == "input"}
    written.update(vgf.value(slot.resource_index) for slot in vgf.outputs)
    for segment in vgf.segments:
        for slot in segment.inputs:
            if vgf.value(slot.resource_index) not in written:
                yield segment, slot
        written.update(vgf.value(slot.resource_index) for slot in segment.outputs)
