"""Checks for a VGF file's cross references, and the joining of rows with the same value.

If an index is invalid, nothing else is checked. Each check takes time linear in the size of the file.
"""

from collections.abc import Iterator
from itertools import chain, count, islice

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.ml.vgf_model import IMAGE_TYPES, Segment, Slot, Vgf


def join_by_number(vgf: Vgf) -> Vgf:
    """Join segment rows and model rows with the same number as alias groups, unless the sizes differ.

    A model with invalid indices stays unchanged, since `find_problems` reports it.
    """
    if next(_indices(vgf), None) is not None:
        return vgf
    rows = vgf.resources
    old_groups = [row.alias_group for row in rows]
    groups = old_groups.copy()
    new = count(max((group for group in groups if group is not None), default=-1) + 1)
    for row, listed in _joins(vgf):
        is_constant = "constant" in (rows[row].category, rows[listed].category)
        if is_constant or rows[row].size_bytes != rows[listed].size_bytes:
            continue
        group = next(new) if groups[listed] is None else groups[listed]
        joined = groups[row]
        groups[row] = groups[listed] = group
        if joined not in (None, group):
            groups = [group if known == joined else known for known in groups]
    if groups == old_groups:
        return vgf
    joined_rows = (row._replace(alias_group=group) for row, group in zip(rows, groups, strict=True))
    return vgf._replace(resources=tuple(joined_rows))


def _joins(vgf: Vgf) -> Iterator[tuple[int, int]]:
    """Yield pairs of rows: a row of a segment, and the row that the model lists under the same number."""
    inputs, outputs = dict(vgf.inputs[::-1]), dict(vgf.outputs[::-1])
    outside = {vgf.value(slot.resource_index) for slot in (*vgf.inputs, *vgf.outputs)}
    written = {vgf.value(slot.resource_index) for segment in vgf.segments for slot in segment.outputs}
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


_Finding = tuple[str, str]
"""A JSON pointer into the result of `describe`, and the problem there."""

_MOST_PROBLEMS = 20


def find_problems(vgf: Vgf, path: str) -> list[Diagnostic]:
    """List the first 20 problems of a file, in file order; the list is empty for a sound file."""
    findings = list(islice(_indices(vgf), _MOST_PROBLEMS))
    if not findings:
        checks = (_resources, _alias_groups, _constants, _segments)
        findings = list(islice(chain.from_iterable(check(vgf) for check in checks), _MOST_PROBLEMS))
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
    def outside(place: str, kind: str, index: int, count: int) -> Iterator[_Finding]:
        if not 0 <= index < count:
            yield place, f"the {kind} index is {index}, but the file has {count} of them"

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
    for i, resource in enumerate(vgf.resources):
        shape, texel = resource.shape, resource.known_format
        image = f"is an image of the shape {list(shape)}"
        if any(size == 0 or size < -1 for size in shape):
            yield f"/resources/{i}", f"has the shape {list(shape)}; a dimension is 1 or more, or -1 when dynamic"
        elif resource.descriptor_type not in IMAGE_TYPES:
            continue
        elif len(shape) not in (3, 4) or (len(shape) == 4 and shape[0] not in (1, -1)):
            yield f"/resources/{i}", f"{image}, expected [H, W, components] or [1, H, W, components]"
        elif texel and shape[-1] not in (texel.components, -1):
            yield f"/resources/{i}", f"{image}, but {texel.name} has {texel.components} components"


def _alias_groups(vgf: Vgf) -> Iterator[_Finding]:
    """Find views of the same value with different sizes. The converter changes the formats of some views for graphs."""
    first_of_group: dict[int, tuple[int, int]] = {}
    for i, resource in enumerate(vgf.resources):
        size, group, texel = resource.size_bytes, resource.alias_group, resource.known_format
        if not size or group is None or texel is None:
            continue
        if resource.descriptor_type not in IMAGE_TYPES and texel.components > 1:
            continue  # the file does not say whether the shape of a buffer counts vectors or components
        first, first_size = first_of_group.setdefault(group, (i, size))
        if size != first_size:
            own = f"{size} bytes (shape {list(resource.shape)}, {resource.format_name})"
            shared = f"resource {first}, which has {first_size} bytes (alias group {group})"
            yield f"/resources/{i}", f"has {own}, but shares the memory of {shared}"


def _constants(vgf: Vgf) -> Iterator[_Finding]:
    for i, constant in enumerate(vgf.constants):
        resource = vgf.resources[constant.resource_index]
        expected = resource.size_bytes
        if min(resource.shape, default=1) < 0:
            dynamic = f"has the dynamic shape {list(resource.shape)}, but the shape of a constant is fixed"
            yield f"/constants/{i}", dynamic
        elif expected is not None and expected != constant.size_bytes:
            needs = f"shape {list(resource.shape)} of {resource.format_name} takes {expected}"
            yield f"/constants/{i}", f"has {constant.size_bytes} bytes of data, but {needs}"


def _segments(vgf: Vgf) -> Iterator[_Finding]:
    reached = {vgf.value(slot.resource_index) for slot in (*vgf.inputs, *vgf.outputs)}
    for segment in vgf.segments:
        place = f"/segments/{segment.index}"
        module = vgf.modules[segment.module_index]
        if module.type != segment.type:
            yield place, f"is a {segment.type} segment, but its module {module.name!r} is a {module.type} module"
        elif segment.type == "graph" and module.language != "SPIR-V":
            code = f"its module {module.name!r} has {module.language or 'no'} code, expected SPIR-V"
            yield place, f"is a graph, but {code}"
        for d, descriptor_set in enumerate(segment.descriptor_sets):
            bound: dict[int, int] = {}
            for i, slot in enumerate(descriptor_set.slots):
                index, here = slot.resource_index, f"{place}/descriptor_sets/{d}/slots/{i}"
                category, first = vgf.resources[index].category, bound.setdefault(slot.binding, index)
                if first != index:
                    yield here, f"the binding {slot.binding} is used twice, for the resources {first} and {index}"
                if vgf.resources[index].descriptor_type is None:
                    yield here, f"binds resource {index}, which has no descriptor type"
                elif category in ("input", "output") and vgf.value(index) not in reached:
                    yield here, f"uses resource {index}, an {category} that the model does not list as one"


def unwritten_inputs(vgf: Vgf) -> Iterator[tuple[Segment, Slot]]:
    """Yield inputs of segments that the caller does not bind and no earlier segment writes."""
    written = {vgf.value(i) for i, resource in enumerate(vgf.resources) if resource.category == "input"}
    written.update(vgf.value(slot.resource_index) for slot in vgf.outputs)
    for segment in vgf.segments:
        for slot in segment.inputs:
            if vgf.value(slot.resource_index) not in written:
                yield segment, slot
        written.update(vgf.value(slot.resource_index) for slot in segment.outputs)
