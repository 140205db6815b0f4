"""The skeleton of a model that has nothing but shaders, as the converter would make it: see `placeholders`."""

from __future__ import annotations

from collections.abc import Iterable

from scenario_runner.conversion.element_types import format_value_of_element
from scenario_runner.conversion.model import CustomOperation, Function, Value
from scenario_runner.conversion.placeholders import entry_point
from scenario_runner.graphs import DescriptorSet, ModelResource, Module, Segment, Slot, Vgf
from scenario_runner.graphs.model import TENSOR, Category

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
        input_names=_names("input", function.input_names, len(function.arguments), function),
        output_names=_names("output", function.output_names, len(function.returned), function),
    )


def _names(direction: str, names: tuple[str, ...] | None, count: int, function: Function) -> tuple[str, ...]:
    """The names of the function, where there is one for each input and each output."""
    inputs, outputs = function.input_names or (), function.output_names or ()
    if names is None or len(inputs) != len(function.arguments) or len(outputs) != len(function.returned):
        return tuple(f"{direction}_{i}" for i in range(count))
    return names


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
        self.rows.append(ModelResource(category, TENSOR, format, shape, (), None, None))
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
            constants=(),
            dispatch_shape=(1, 1, 1),
            push_constant_ranges=(),
        )
