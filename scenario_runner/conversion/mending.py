"""From the skeleton of a converted model to the model: shaders, views, and everything that the converter leaves out.

In the skeleton every value is a tensor (`placeholders`). Here each shader gets its own views: other descriptor types,
formats and samplers become further rows that share the memory of the value (alias groups). Of an input or output that
has several views, the caller binds the one that is used first; the others are intermediates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from scenario_runner.conversion.model import CustomOperation, Function, Value, format_value_of_element
from scenario_runner.conversion.placeholders import entry_point, equal_operands, shader_number
from scenario_runner.custom_shader.attributes import Attributes, View
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.graphs import ModelResource, Module, PushConstantRange, Sampler, find_problems, parse_vgf
from scenario_runner.graphs.model import TENSOR, Category, DescriptorSet, Segment, Slot, Vgf
from scenario_runner.graphs.vgf_file import vgf_parts

_COMPUTE_STAGE = 0x20  # VK_SHADER_STAGE_COMPUTE_BIT


class Shader(NamedTuple):
    """One shader of the function: the operation, its attributes, and how many workgroups its dispatch has."""

    operation: CustomOperation
    attributes: Attributes
    workgroups: tuple[int, int, int]


Equal = Sequence[tuple[int, ...]]
"""The `equal_operands` of the shaders."""


def mended(
    skeleton: Vgf, function: Function, shaders: Sequence[Shader], equal: Equal, path: str
) -> tuple[Sequence[bytes | memoryview], list[Diagnostic]]:
    """The file of the model with its shaders in parts, or what contradicts itself in it."""
    vgf = _named(_Mending(skeleton, function, shaders, equal).model(), function)
    problems = list(find_problems(vgf, path))
    return () if problems else vgf_parts(vgf), problems


def with_names(content: memoryview, function: Function, path: str) -> Sequence[bytes | memoryview]:
    """The file of a model without shaders, in parts; ``content`` is the one that the converter made."""
    return vgf_parts(_named(parse_vgf(content, name=path), function))


def skeleton_in(
    content: memoryview, function: Function, equal: Equal, simplified: Callable[[], Function], path: str
) -> tuple[Vgf, Equal]:
    """The skeleton that the converter made, and the equal operands of what it has simplified."""
    converted = parse_vgf(content, name=path)
    skeleton = joined_results(converted, function)
    is_one_shader = [segment.type for segment in converted.segments] == ["compute"]
    if is_one_shader or missing_operands(skeleton, equal):
        simple = simplified()
        equal = equal_operands(simple)
        if is_one_shader:  # the operands of which the converter mixes up
            skeleton = skeleton_of(simple)
    return skeleton, equal


def missing_operands(skeleton: Vgf, equal: Equal) -> bool:
    """Tell whether a placeholder lacks an operand that is not the same value as an earlier one: the converter has found
    out that it is, and `simplified` knows which."""
    for segment in skeleton.segments:
        if segment.type == "compute":
            bound = {slot.binding for slot in segment.slots}
            places = equal[shader_number(skeleton.modules[segment.module_index].entry_point)]
            if not bound.issuperset(places):
                return True
    return False


class _Mending:
    def __init__(self, skeleton: Vgf, function: Function, shaders: Sequence[Shader], equal: Equal) -> None:
        self._skeleton = skeleton
        self._function = function
        self._shaders = shaders
        self._equal = equal
        # Of each row of the skeleton: the number of its value. New values follow.
        self._number: dict[int, int] = {}
        ends = [*skeleton.inputs, *skeleton.outputs]
        for slot in ends + [slot for segment in skeleton.segments for slot in (*segment.inputs, *segment.outputs)]:
            self._number[slot.resource_index] = slot.binding
        self._next_number = max([*self._number.values(), len(function.arguments) - 1], default=-1) + 1
        self._rows = [replace(row, alias_group=None) for row in skeleton.resources]
        self._views = {(number, self._rows[row]): row for row, number in reversed(self._number.items())}
        self._origin: list[int] = list(range(len(self._rows)))
        self._first_use: dict[int, int] = {}

    def model(self) -> Vgf:
        skeleton = self._skeleton
        arguments = self._arguments()
        segments = [
            self._compute(segment) if segment.type == "compute" else self._graph(segment)
            for segment in skeleton.segments
        ]
        ends = {slot.resource_index for slot in (*arguments, *skeleton.outputs)}
        order, stands_for = self._order(ends)
        index = {row: position for position, row in enumerate(order)}

        def moved_ends(slots: Sequence[Slot]) -> tuple[Slot, ...]:
            rows = (stands_for.get(slot.resource_index, slot.resource_index) for slot in slots)
            return tuple(Slot(slot.binding, index[row]) for slot, row in zip(slots, rows, strict=True))

        def moved(slots: Iterable[Slot]) -> tuple[Slot, ...]:
            return tuple(Slot(slot.binding, index[slot.resource_index]) for slot in slots)

        return replace(
            skeleton,
            modules=self._modules(),
            resources=self._resources(order),
            segments=tuple(
                replace(
                    segment,
                    inputs=moved(segment.inputs),
                    outputs=moved(segment.outputs),
                    descriptor_sets=tuple(
                        DescriptorSet(descriptor_set.index, moved(descriptor_set.slots))
                        for descriptor_set in segment.descriptor_sets
                    ),
                )
                for segment in segments
            ),
            constants=tuple(
                replace(constant, resource_index=index[constant.resource_index]) for constant in skeleton.constants
            ),
            inputs=moved_ends(arguments),
            outputs=moved_ends(skeleton.outputs),
        )

    def _arguments(self) -> list[Slot]:
        """The inputs of the model: all arguments, those that nothing reads as well."""
        bound = {slot.binding: slot for slot in self._skeleton.inputs}
        slots: list[Slot] = []
        for number, argument in enumerate(self._function.arguments):
            slot = bound.get(number)
            if slot is None:
                format = format_value_of_element(argument.type.element)
                shape = tuple(-1 if size is None else size for size in argument.type.shape or ())
                resource = ModelResource("input", TENSOR, format, shape)
                # behind the inputs before it
                behind = self._origin[slots[-1].resource_index] if slots else -1
                slot = Slot(number, self._add(resource, behind, number))
            slots.append(slot)
        return slots

    def _add(self, resource: ModelResource, origin: int, number: int) -> int:
        self._rows.append(resource)
        self._origin.append(origin)
        row = len(self._rows) - 1
        self._number[row] = number
        self._views[number, resource] = row
        return row

    def _use(self, row: int) -> None:
        self._first_use.setdefault(row, len(self._first_use))

    def _graph(self, segment: Segment) -> Segment:
        for slot in segment.slots:
            self._use(slot.resource_index)
        return segment

    def _compute(self, segment: Segment) -> Segment:
        number = shader_number(self._skeleton.modules[segment.module_index].entry_point)
        operation, attributes, workgroups = self._shaders[number]
        bound = {slot.binding: slot.resource_index for slot in segment.slots}
        reads = [
            self._view(bound[place], view) for place, view in zip(self._equal[number], attributes.inputs, strict=True)
        ]
        writes = []
        for binding, (value, view) in enumerate(
            zip(operation.results, attributes.outputs, strict=True), start=len(reads)
        ):
            row = bound.get(binding)
            if row is None:  # nobody reads it, but the shader writes it
                shape = tuple(-1 if size is None else size for size in value.type.shape or ())
                resource = ModelResource("intermediate", TENSOR, view.format.value, shape)
                row = self._add(resource, len(self._skeleton.resources), self._next_number)
                self._next_number += 1
            writes.append(self._view(row, view))
        sets: dict[int, list[Slot]] = {}
        for view, row in zip(attributes.views, (*reads, *writes), strict=True):
            sets.setdefault(view.set, []).append(Slot(view.binding, row))
        size = attributes.push_constants_size_bytes
        return replace(
            segment,
            name=operation.name or segment.name,
            descriptor_sets=tuple(DescriptorSet(index, tuple(slots)) for index, slots in sorted(sets.items())),
            inputs=self._slots(reads),
            outputs=self._slots(writes),
            dispatch_shape=workgroups,
            push_constant_ranges=(PushConstantRange(_COMPUTE_STAGE, 0, size),) if size else (),
        )

    def _slots(self, rows: Iterable[int]) -> tuple[Slot, ...]:
        slots = [Slot(self._number[row], row) for row in dict.fromkeys(rows)]
        return tuple(sorted(slots, key=lambda slot: slot.binding))

    def _view(self, row: int, view: View) -> int:
        """The row through which a shader sees the value of a row of the skeleton."""
        of = self._rows[row]
        sampler = None if view.sampler is None else Sampler(*view.sampler)
        # without a shape a file does not say how large a buffer is
        shape = of.shape or ((1,) if view.kind == "buffer" else ())
        view_resource = replace(
            of, descriptor_type=view.descriptor_type, format=view.format.value, shape=shape, sampler=sampler
        )
        number = self._number[row]
        other = self._views.get((number, view_resource))
        if other is None:
            other = self._add(view_resource, self._origin[row], number)
        self._use(other)
        return other

    def _order(self, ends: set[int]) -> tuple[list[int], dict[int, int]]:
        """The rows of the new table in their order, and for inputs and outputs of the skeleton the row that the model
        lists in place of theirs: the view that is used first."""
        used = self._first_use
        last = len(used)
        views: dict[tuple[int, Category], list[int]] = {}
        for row in sorted(used, key=used.__getitem__):
            views.setdefault((self._number[row], self._rows[row].category), []).append(row)
        stands_for = {}
        kept = {row for row in range(len(self._rows)) if row in used or self._rows[row].category == "constant"}
        for row in ends:
            others = views.get((self._number[row], self._rows[row].category), [])
            if others:
                stands_for[row] = others[0]
                for other in others[1:]:
                    self._rows[other] = replace(self._rows[other], category="intermediate")
            else:
                kept.add(row)
        order = sorted(kept, key=lambda row: (self._origin[row], used.get(row, last), row))
        return order, {row: other for row, other in stands_for.items() if row != other}

    def _resources(self, order: Sequence[int]) -> tuple[ModelResource, ...]:
        """The rows with alias groups: one for each value that has several."""
        numbers = [self._number.get(row) for row in order]
        shared = [number for number, rows in Counter(numbers).items() if number is not None and rows > 1]
        groups: dict[int | None, int] = {number: group for group, number in enumerate(shared)}
        return tuple(
            replace(self._rows[row], alias_group=groups.get(number)) for row, number in zip(order, numbers, strict=True)
        )

    def _modules(self) -> tuple[Module, ...]:
        modules = list(self._skeleton.modules)
        for index, module in enumerate(modules):
            if module.type == "compute":
                given = self._shaders[shader_number(module.entry_point)].attributes
                entry, language = given.module_entry_point, given.language or None
                modules[index] = replace(module, entry_point=entry, language=language, code=given.code)
        return tuple(modules)


def _named(vgf: Vgf, function: Function) -> Vgf:
    """The model with the names of the function, where there is one for each input and output."""
    inputs, outputs = function.input_names or (), function.output_names or ()
    if len(inputs) != len(vgf.inputs) or len(outputs) != len(vgf.outputs):
        return vgf
    return replace(vgf, input_names=inputs, output_names=outputs)


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
                written = [slot for slot in segment.slots if slot.binding >= operands]
                slots = [*first.slots, *(Slot(operands + result, slot.resource_index) for slot in written)]
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


_VERSION = (0, 5, 0)


def skeleton_of(function: Function) -> Vgf:
    """The skeleton of a function of which every operation is a shader.

    Values are numbered as the converter numbers them: arguments, values that are read again, other results. What is
    returned and read has two rows. Every operand must be an argument or the result of an earlier operation.
    """
    builder = _Builder(function)
    return Vgf(
        version=_VERSION,
        modules=tuple(
            Module("compute", f"graph_partition_{i}", entry_point(i), None, None)
            for i in range(len(function.operations))
        ),
        resources=tuple(builder.rows),
        segments=tuple(builder.segment(i, operation) for i, operation in enumerate(function.operations)),
        constants=(),
        inputs=builder.inputs(),
        outputs=tuple(Slot(builder.number[v.name], builder.written[v.name]) for v in function.returned),
        input_names=tuple(f"input_{i}" for i in range(len(function.arguments))),
        output_names=tuple(f"output_{i}" for i in range(len(function.returned))),
    )


class _Builder:
    """Numbers and rows of the values. ``read`` and ``written`` are the rows by the name of the value."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self.rows: list[ModelResource] = []
        self.number: dict[str, int] = {argument.name: i for i, argument in enumerate(function.arguments)}
        self.read: dict[str, int] = {}
        self.written: dict[str, int] = {}
        used = {operand.name for operation in function.operations for operand in operation.operands}
        returned = {value.name for value in function.returned}
        results = [result for operation in function.operations for result in operation.results]
        for value in function.arguments:
            if value.name in used or value.name in returned:
                self.read[value.name] = self._row(value, "input")
        for value in results:
            if value.name in used:
                self._count(value)
                self.read[value.name] = self.written[value.name] = self._row(value, "intermediate")
        for value in dict.fromkeys(function.returned):
            self._count(value)
            self.written[value.name] = self._row(value, "output")

    def _count(self, value: Value) -> None:
        self.number.setdefault(value.name, max(self.number.values(), default=-1) + 1)

    def _row(self, value: Value, category: Category) -> int:
        format = format_value_of_element(value.type.element)
        shape = value.type.static_shape
        assert shape is not None, "that is checked before"
        self.rows.append(ModelResource(category, TENSOR, format, shape))
        return len(self.rows) - 1

    def inputs(self) -> tuple[Slot, ...]:
        return tuple(self._slots(self._function.arguments, self.read))

    def _slots(self, values: Iterable[Value], rows: dict[str, int]) -> list[Slot]:
        slots = (Slot(self.number[value.name], rows[value.name]) for value in values if value.name in rows)
        return sorted(set(slots), key=lambda slot: slot.binding)

    def segment(self, index: int, operation: CustomOperation) -> Segment:
        bound = dict.fromkeys(self.read[value.name] for value in operation.operands)
        slots = [Slot(binding, row) for binding, row in enumerate(bound)]
        for binding, value in enumerate(operation.results, start=len(operation.operands)):
            if value.name in self.written:
                slots.append(Slot(binding, self.written[value.name]))
        return Segment(
            index=index,
            type="compute",
            name=f"compute_segment_{index}",
            module_index=index,
            descriptor_sets=(DescriptorSet(0, tuple(slots)),),
            inputs=tuple(self._slots(operation.operands, self.read)),
            outputs=tuple(self._slots(operation.results, self.written)),
            dispatch_shape=(1, 1, 1),
        )
