"""VGF files with one field of their tables changed: what `vgfpy` writes from a model that was read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from scenario_runner.graphs.model import Slot, Vgf
from scenario_runner.graphs.vgf_file import vgf_parts

# Formats of one component: integers, floating point and Booleans of every size; and one of four components.
FORMATS = (9, 13, 14, 16, 70, 74, 76, 83, 98, 99, 100, 109, 110, 111, 112, 1000460000)
DESCRIPTOR_TYPES = (1, 2, 3, 6, 7, 1000460000)
CATEGORIES = ("input", "output", "intermediate")
_DECORATE, _BINDING, _DESCRIPTOR_SET = 71, 33, 34


def encoded(vgf: Vgf) -> bytes:
    """The file that holds a model."""
    return b"".join(vgf_parts(vgf))


def changes(vgf: Vgf) -> Iterator[tuple[str, Vgf]]:
    """Every model that differs from ``vgf`` in one field, with what was changed."""
    yield from _rows(vgf)
    yield from _constants(vgf)
    yield from _segments(vgf)
    yield from _ends(vgf)
    yield from _modules(vgf)


def _put(items: tuple[Any, ...], at: int, /, **fields: Any) -> tuple[Any, ...]:
    return (*items[:at], replace(items[at], **fields), *items[at + 1 :])


def _rows(vgf: Vgf) -> Iterator[tuple[str, Vgf]]:
    for i, row in enumerate(vgf.resources):
        fields: list[dict[str, Any]] = [{"format": value} for value in FORMATS if value != row.format]
        shape = row.shape
        for axis, size in enumerate(shape):
            fields += [
                {"shape": (*shape[:axis], other, *shape[axis + 1 :])} for other in (size + 1, size * 2, -1) if other
            ]
        fields += [{"shape": (*shape, 1)}, {"shape": (1, *shape)}, {"shape": shape[1:]}, {"shape": shape[::-1]}]
        if row.category != "constant":
            fields += [{"descriptor_type": kind} for kind in DESCRIPTOR_TYPES if kind != row.descriptor_type]
            fields += [{"category": kind} for kind in CATEGORIES if kind != row.category]
            groups = {other.alias_group for other in vgf.resources} | {None, 77}
            fields += [{"alias_group": group} for group in groups - {row.alias_group}]
        fields += [{"strides": tuple([4] * len(shape))}, {"strides": tuple([64] * len(shape))}] if shape else []
        for field in fields:
            changed = replace(row, **field)
            if changed != row:
                yield f"resource {i}: {field}", replace(vgf, resources=_put(vgf.resources, i, **field))


def _constants(vgf: Vgf) -> Iterator[tuple[str, Vgf]]:
    for i, constant in enumerate(vgf.constants):
        for axis in (None, 0, 1, 2, 3):
            if axis != constant.sparsity_dimension:
                yield (
                    f"constant {i}: sparsity {axis}",
                    replace(vgf, constants=_put(vgf.constants, i, sparsity_dimension=axis)),
                )
        for row in range(len(vgf.resources)):
            if row != constant.resource_index:
                yield (
                    f"constant {i}: row {row}",
                    replace(vgf, constants=_put(vgf.constants, i, resource_index=row)),
                )


def _slot_changes(vgf: Vgf, slots: tuple[Slot, ...]) -> Iterator[tuple[str, tuple[Slot, ...]]]:
    for i, slot in enumerate(slots):
        for binding in {0, 1, 2, 3, slot.binding + 1, 9, 77} - {slot.binding}:
            yield f"slot {i} binding {binding}", _put(slots, i, binding=binding)
        for row in range(len(vgf.resources)):
            if row != slot.resource_index:
                yield f"slot {i} row {row}", _put(slots, i, resource_index=row)
        yield f"without slot {i}", (*slots[:i], *slots[i + 1 :])
    if slots:
        yield "one more slot", (*slots, replace(slots[0], binding=78))


def _segments(vgf: Vgf) -> Iterator[tuple[str, Vgf]]:
    for s, segment in enumerate(vgf.segments):

        def changed(what: str, s: int = s, **fields: Any) -> tuple[str, Vgf]:
            return f"segment {s}: {what}", replace(vgf, segments=_put(vgf.segments, s, **fields))

        sets = segment.descriptor_sets
        for d, each in enumerate(sets):
            for index in {0, 1, 2} - {each.index}:
                yield changed(f"set {d} index {index}", descriptor_sets=_put(sets, d, index=index))
            for what, slots in _slot_changes(vgf, each.slots):
                yield changed(f"set {d} {what}", descriptor_sets=_put(sets, d, slots=slots))
            yield changed(f"without set {d}", descriptor_sets=(*sets[:d], *sets[d + 1 :]))
        for side in ("inputs", "outputs"):
            for what, slots in _slot_changes(vgf, getattr(segment, side)):
                yield changed(f"{side} {what}", **{side: slots})
        for i, link in enumerate(segment.constants):
            for number in {0, 1, link.id + 1, 99} - {link.id}:
                yield changed(f"constant {i} id {number}", constants=_put(segment.constants, i, id=number))
            for number in range(len(vgf.constants)):
                if number != link.constant_index:
                    yield changed(
                        f"constant {i} is {number}", constants=_put(segment.constants, i, constant_index=number)
                    )
            yield changed(f"without constant {i}", constants=(*segment.constants[:i], *segment.constants[i + 1 :]))
        for shape in ((0, 0, 0), (1, 1, 1), (3, 2, 1)):
            yield changed(f"dispatch shape {shape}", dispatch_shape=shape)
        for index in range(len(vgf.modules)):
            if index != segment.module_index:
                yield changed(f"module {index}", module_index=index)


def _ends(vgf: Vgf) -> Iterator[tuple[str, Vgf]]:
    for side in ("inputs", "outputs"):
        for what, slots in _slot_changes(vgf, getattr(vgf, side)):
            yield f"{side} {what}", replace(vgf, **{side: slots})


def _modules(vgf: Vgf) -> Iterator[tuple[str, Vgf]]:
    for m, module in enumerate(vgf.modules):
        yield f"module {m}: entry point", replace(vgf, modules=_put(vgf.modules, m, entry_point="other"))
        if not isinstance(module.code, bytes):
            continue
        words = struct.unpack(f"<{len(module.code) // 4}I", module.code)
        at = 5
        while at < len(words):
            count, opcode = words[at] >> 16, words[at] & 0xFFFF
            if opcode == _DECORATE and words[at + 2] in (_BINDING, _DESCRIPTOR_SET):
                for number in {0, 1, 2, words[at + 3] + 1, 78} - {words[at + 3]}:
                    code = struct.pack(f"<{len(words)}I", *words[: at + 3], number, *words[at + 4 :])
                    name = "Binding" if words[at + 2] == _BINDING else "DescriptorSet"
                    yield (
                        f"module {m}: {name} of {words[at + 1]} is {number}",
                        replace(vgf, modules=_put(vgf.modules, m, code=code)),
                    )
            at += count
