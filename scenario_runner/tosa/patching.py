"""Patching of a skeleton with shaders, views, and the parts that the converter leaves out.

In the skeleton every value is a tensor (`placeholders`). Patching gives each shader its own views. A view with another
descriptor type, format or sampler is a further row that shares the memory of the value (alias groups). If an input or
output has several views, the caller binds the view that is used first; the others are intermediates.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import NamedTuple

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.ml.vgf_file import find_problems, parse_vgf
from scenario_runner.ml.vgf_model import DescriptorSet, ModelResource, Module, PushConstantRange, Segment, Slot, Vgf
from scenario_runner.ml.vgf_tables import vgf_parts
from scenario_runner.tosa.model import CustomOperation, Function, Shader, Value, View
from scenario_runner.tosa.placeholders import entry_point, equal_operands, shader_and_result

_COMPUTE_STAGE = 0x20  # VK_SHADER_STAGE_COMPUTE_BIT


class Skeleton(NamedTuple):
    """A skeleton, and for each shader the bindings of the operands in the skeleton."""

    vgf: Vgf
    bindings: Sequence[tuple[int, ...]]


def patched(
    skeleton: Skeleton, function: Function, shaders: Sequence[Shader], path: str
) -> tuple[Sequence[bytes | memoryview], list[Diagnostic]]:
    """Return the parts of the model's file, shaders included, or the contradictions between the shaders."""
    vgf = _named(_Patch(skeleton, function, shaders).model(), function)
    problems = find_problems(vgf, path)
    return () if problems else vgf_parts(vgf), problems


def with_names(content: memoryview, function: Function, path: str) -> Sequence[bytes | memoryview]:
    """Add the names of a function's inputs and outputs to the converted ``content``. Return the file in parts."""
    return vgf_parts(_named(parse_vgf(content, name=path), function))


def _named(vgf: Vgf, function: Function) -> Vgf:
    """Name the inputs, or the outputs, if the function has a name for each."""
    inputs, outputs = function.input_names or (), function.output_names or ()
    if len(inputs) > len(vgf.inputs):  # the converter leaves out unused inputs, but their bindings count
        inputs = tuple(inputs[slot.binding] for slot in vgf.inputs if slot.binding < len(inputs))
    return vgf._replace(
        input_names=inputs if len(inputs) == len(vgf.inputs) else vgf.input_names,
        output_names=outputs if len(outputs) == len(vgf.outputs) else vgf.output_names,
    )


class _Patch:
    """The model's rows: the skeleton's rows and added views."""

    def __init__(self, skeleton: Skeleton, function: Function, shaders: Sequence[Shader]) -> None:
        vgf = self._skeleton = skeleton.vgf
        self._bindings = skeleton.bindings
        self._function = function
        self._shaders = shaders
        # The number of the value behind each row. New values get further numbers.
        self._number: dict[int, int] = {}
        ends = [*vgf.inputs, *vgf.outputs]
        for slot in ends + [slot for segment in vgf.segments for slot in (*segment.inputs, *segment.outputs)]:
            self._number[slot.resource_index] = slot.binding
        self._new_numbers = count(max([*self._number.values(), len(function.arguments) - 1], default=-1) + 1)
        self._rows = [row._replace(alias_group=None) for row in vgf.resources]
        self._views = {(number, self._rows[row]): row for row, number in reversed(self._number.items())}
        self._origin: list[int] = list(range(len(self._rows)))
        """For each row, the row of the skeleton that it follows."""
        self._first_use: dict[int, int] = {}
        """The order of rows by their first use."""

    def model(self) -> Vgf:
        skeleton = self._skeleton
        arguments = self._arguments()
        segments = list(map(self._segment, skeleton.segments))
        listed = self._listed(slot.resource_index for slot in (*arguments, *skeleton.outputs))
        kept = {row for row, resource in enumerate(self._rows) if resource.category == "constant"}
        kept.update(self._first_use, listed.values())
        unused = len(self._first_use)
        order = sorted(kept, key=lambda row: (self._origin[row], self._first_use.get(row, unused), row))
        index = {row: position for position, row in enumerate(order)}

        def ends(slots: Sequence[Slot]) -> tuple[Slot, ...]:
            return tuple(Slot(slot.binding, index[listed[slot.resource_index]]) for slot in slots)

        return skeleton._replace(
            modules=tuple(map(self._module, skeleton.modules)),
            resources=self._resources(order),
            segments=tuple(segment.with_rows(index.__getitem__) for segment in segments),
            constants=tuple(
                constant._replace(resource_index=index[constant.resource_index]) for constant in skeleton.constants
            ),
            inputs=ends(arguments),
            outputs=ends(skeleton.outputs),
        )

    def _arguments(self) -> list[Slot]:
        """List the inputs of the model: all arguments, also unused ones."""
        bound = {slot.binding: slot for slot in self._skeleton.inputs}
        slots: list[Slot] = []
        for number, argument in enumerate(self._function.arguments):
            behind = self._origin[slots[-1].resource_index] if slots else -1
            slots.append(bound.get(number) or Slot(number, self._add(argument.row("input"), behind, number)))
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

    def _segment(self, segment: Segment) -> Segment:
        if segment.type == "compute":
            return self._compute(segment)
        for slot in segment.slots:
            self._use(slot.resource_index)
        return segment

    def _compute(self, segment: Segment) -> Segment:
        number, _ = shader_and_result(self._skeleton.modules[segment.module_index].entry_point)
        operation, attributes, workgroups = self._shaders[number]
        bound = dict(segment.slots)
        for binding, value in enumerate(operation.results, len(operation.operands)):
            if binding not in bound:  # only the shader itself uses this result
                unread, behind = value.row("intermediate"), len(self._skeleton.resources)
                bound[binding] = self._add(unread, behind, next(self._new_numbers))
        results = range(len(operation.operands), len(operation.operands) + len(operation.results))
        places = (*self._bindings[number], *results)
        rows = [self._view(bound[place], view) for place, view in zip(places, attributes.views, strict=True)]
        sets: dict[int, list[Slot]] = {}
        for view, row in zip(attributes.views, rows, strict=True):
            sets.setdefault(view.set, []).append(Slot(view.binding, row))
        size = attributes.push_constants_size_bytes
        return segment._replace(
            name=operation.name or segment.name,
            descriptor_sets=tuple(DescriptorSet(index, tuple(slots)) for index, slots in sorted(sets.items())),
            inputs=self._slots(rows[: len(operation.operands)]),
            outputs=self._slots(rows[len(operation.operands) :]),
            dispatch_shape=workgroups,
            push_constant_ranges=(PushConstantRange(_COMPUTE_STAGE, 0, size),) if size else (),
        )

    def _slots(self, rows: Iterable[int]) -> tuple[Slot, ...]:
        slots = [Slot(self._number[row], row) for row in dict.fromkeys(rows)]
        return tuple(sorted(slots, key=lambda slot: slot.binding))

    def _view(self, row: int, view: View) -> int:
        """Find or add the row for a shader's view of a value in the skeleton."""
        skeleton_row = self._rows[row]
        # the shape tells the size of a buffer
        shape = skeleton_row.shape or ((1,) if view.is_buffer else ())
        view_resource = skeleton_row._replace(
            descriptor_type=view.descriptor_type, format=view.format.value, shape=shape, sampler=view.sampler
        )
        number = self._number[row]
        other = self._views.get((number, view_resource))
        if other is None:
            other = self._add(view_resource, self._origin[row], number)
        self._use(other)
        return other

    def _listed(self, ends: Iterable[int]) -> dict[int, int]:
        """Choose the row to list for each input and output of the skeleton. The first view in use wins."""
        views: dict[tuple[int, str], list[int]] = {}
        for row in self._first_use:
            views.setdefault((self._number[row], self._rows[row].category), []).append(row)
        listed = {}
        for end in ends:
            first, *others = views.get((self._number[end], self._rows[end].category), [end])
            listed[end] = first
            for other in others:
                self._rows[other] = self._rows[other]._replace(category="intermediate")
        return listed

    def _resources(self, order: Sequence[int]) -> tuple[ModelResource, ...]:
        """Return the rows. Several rows of one value share an alias group."""
        numbers = [self._number.get(row) for row in order]
        shared = [number for number, rows in Counter(numbers).items() if number is not None and rows > 1]
        groups: dict[int | None, int] = {number: group for group, number in enumerate(shared)}
        numbered = zip(order, numbers, strict=True)
        return tuple(self._rows[row]._replace(alias_group=groups.get(number)) for row, number in numbered)

    def _module(self, module: Module) -> Module:
        if module.type == "graph":
            return module
        number, _ = shader_and_result(module.entry_point)
        attributes = self._shaders[number].attributes
        language = attributes.language or None
        return module._replace(entry_point=attributes.module_entry_point, language=language, code=attributes.code)


def skeleton_in(converted: Vgf, function: Function, simplified: Callable[[], Function]) -> Skeleton:
    """Return the converter's skeleton. ``simplified`` returns the function after simplification."""
    if [segment.type for segment in converted.segments] == ["compute"]:  # the converter mixes up such operands
        return skeleton_of(simplified())
    skeleton = Skeleton(_with_merged_results(converted, function), equal_operands(function))
    return skeleton._replace(bindings=equal_operands(simplified())) if _lacks_operands(skeleton) else skeleton


def _lacks_operands(skeleton: Skeleton) -> bool:
    """Return whether a placeholder lacks an operand.

    The converter has then found two operands to be the same value; the simplified function shows the merged operands.
    """
    for segment in skeleton.vgf.segments:
        if segment.type == "compute":
            number, _ = shader_and_result(skeleton.vgf.modules[segment.module_index].entry_point)
            if not {slot.binding for slot in segment.slots}.issuperset(skeleton.bindings[number]):
                return True
    return False


def _with_merged_results(converted: Vgf, function: Function) -> Vgf:
    """Merge the placeholders' segments to a segment for each shader, and number modules and segments anew."""
    segments: list[Segment] = []
    of_shader: dict[int, int] = {}
    for segment in converted.segments:
        if segment.type == "compute":
            number, result = shader_and_result(converted.modules[segment.module_index].entry_point)
            operands = len(function.shaders[number].operands)
            if number in of_shader:
                first = segments[of_shader[number]]
                written = [slot for slot in segment.slots if slot.binding >= operands]
                slots = [*first.slots, *(Slot(operands + result, slot.resource_index) for slot in written)]
                sets, outputs = (DescriptorSet(0, tuple(slots)),), first.outputs + segment.outputs
                segments[of_shader[number]] = first._replace(descriptor_sets=sets, outputs=outputs)
                continue
            of_shader[number] = len(segments)
        segments.append(segment)
    if len(segments) == len(converted.segments):
        return converted
    modules, counted = [], {"compute": count(), "graph": count()}
    for index, segment in enumerate(segments):
        module = converted.modules[segment.module_index]
        modules.append(module._replace(name=f"graph_partition_{index}"))
        name = f"{segment.type}_segment_{next(counted[segment.type])}"
        segments[index] = segment._replace(index=index, name=name, module_index=index)
    return converted._replace(modules=tuple(modules), segments=tuple(segments))


_VERSION = (0, 5, 0)


def skeleton_of(function: Function) -> Skeleton:
    """Make the skeleton of a function that holds only shaders.

    Values have the same numbers as from the converter: first arguments, then values with a reader, then other results.
    A value that is both returned and read has two rows. Every operand must be an argument or an earlier result.
    """
    rows: list[ModelResource] = []
    numbers = {argument.name: number for number, argument in enumerate(function.arguments)}
    new_numbers = count(len(function.arguments))
    read: dict[str, int] = {}  # rows by names of values
    written: dict[str, int] = {}

    def add(value: Value, row: ModelResource, *tables: dict[str, int]) -> None:
        if value.name not in numbers:
            numbers[value.name] = next(new_numbers)
        for table in tables:
            table[value.name] = len(rows)
        rows.append(row)

    def slots(values: Iterable[Value], rows: dict[str, int]) -> tuple[Slot, ...]:
        slots = {Slot(numbers[value.name], rows[value.name]) for value in values if value.name in rows}
        return tuple(sorted(slots, key=lambda slot: slot.binding))

    def segment(index: int, operation: CustomOperation) -> Segment:
        bound = enumerate(dict.fromkeys(read[value.name] for value in operation.operands))
        results = enumerate(operation.results, len(operation.operands))
        bindings = [*bound, *((place, written[value.name]) for place, value in results if value.name in written)]
        return Segment(
            index=index,
            type="compute",
            name=f"compute_segment_{index}",
            module_index=index,
            descriptor_sets=(DescriptorSet(0, tuple(Slot(*binding) for binding in bindings)),),
            inputs=slots(operation.operands, read),
            outputs=slots(operation.results, written),
            dispatch_shape=(1, 1, 1),
        )

    used = {operand.name for operation in function.operations for operand in operation.operands}
    returned = {value.name for value in function.returned}
    for value in function.arguments:
        if value.name in used or value.name in returned:
            add(value, value.row("input"), read)
    for operation in function.operations:
        for value in operation.results:
            if value.name in used:
                add(value, value.row("intermediate"), read, written)
    for value in dict.fromkeys(function.returned):
        add(value, value.row("output"), written)
    numbers_of_shaders = range(len(function.operations))
    modules = (Module("compute", f"graph_partition_{i}", entry_point(i), None, None) for i in numbers_of_shaders)
    vgf = Vgf(
        version=_VERSION,
        modules=tuple(modules),
        resources=tuple(rows),
        segments=tuple(segment(*numbered) for numbered in enumerate(function.operations)),
        constants=(),
        inputs=slots(function.arguments, read),
        outputs=tuple(Slot(numbers[value.name], written[value.name]) for value in function.returned),
        input_names=tuple(f"input_{i}" for i in range(len(function.arguments))),
        output_names=tuple(f"output_{i}" for i in range(len(function.returned))),
    )
    return Skeleton(vgf, equal_operands(function))
