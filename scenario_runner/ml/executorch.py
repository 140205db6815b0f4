"""ExecuTorch programs (.pte): the VGF models in a program, and the order of the calls.

Source: ExecuTorch's schema (program.fbs). An extended header has the end of the FlatBuffer and the start of the
segments.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scenario_runner.errors import file_error
from scenario_runner.files.input import SourceFile
from scenario_runner.ml.flatbuffers import DamagedError, Tables
from scenario_runner.ml.vgf_model import ModelResource, Segment, Slot, Vgf

_BACKEND = "VgfBackend"
_MOST_PROGRAM_BYTES = 64 << 20
_EXTENDED = b"eh00"
# Numbers of fields in tables.
_PLANS, _INLINE, _SEGMENTS = 1, 3, 4
_INPUTS, _OUTPUTS, _CHAINS, _OPERATORS, _DELEGATES = 3, 4, 5, 6, 7
_INSTRUCTIONS = 2
_KERNEL_CALL, _DELEGATE_CALL, _FREE_CALL = 1, 2, 5
# Kernels that turn the first argument into another form, the last argument.
_CHANGES_OF_FORM = ("quantized_decomposed::quantize_", "quantized_decomposed::dequantize_")


class Part(NamedTuple):
    """The place of a VGF model in the file."""

    offset_bytes: int
    size_bytes: int


class Call(NamedTuple):
    """A call of a model: the numbers of the program's values for inputs and outputs, in the model's order."""

    part: Part
    values: tuple[int, ...]


class Program(NamedTuple):
    """A program: the ``calls`` of models in order, and ``others``, the operators outside VGF models.

    A value and its quantized or dequantized form have the same number.
    """

    calls: tuple[Call, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    others: tuple[str, ...]

    @property
    def parts(self) -> list[Part]:
        """The models, each once."""
        return list(dict.fromkeys(call.part for call in self.calls))


def is_program(file: SourceFile) -> bool:
    """Return whether a file is an ExecuTorch program, by the identifier ("ET12" in the present version)."""
    return file.read(2, 4) == b"ET"


def read_program(file: SourceFile) -> Program:
    """Read the first method of a program. Raises FileError if it is damaged or calls no VGF model."""
    try:
        program = _read(file)
    except (DamagedError, struct.error, IndexError, StopIteration) as error:
        raise file_error(file.path, "is a damaged ExecuTorch program, or was cut short", code="SR-FILE-013") from error
    if not program.calls:
        runs = ", ".join(dict.fromkeys(program.others)) or "none"
        message = f"is an ExecuTorch program without a VGF model; its operators: {runs:.300}"
        raise file_error(file.path, message, help="export it with the VGF backend of ExecuTorch", code="SR-FILE-014")
    for part in program.parts:
        if part.offset_bytes + part.size_bytes > file.size_bytes:
            raise file_error(file.path, "is an ExecuTorch program that was cut short", code="SR-FILE-013")
    return program


def _read(file: SourceFile) -> Program:
    magic, _, size_bytes, segments_at, _ = struct.unpack("<4sIQQQ", file.read(32, 8))
    is_extended = magic == _EXTENDED
    content = file.read(min(size_bytes if is_extended else file.size_bytes, _MOST_PROGRAM_BYTES))
    tables = Tables(lambda at, size: content[at : at + size], len(content))
    root = tables.number(0)
    plan = next(tables.elements(root, _PLANS))
    segments = [
        Part(segments_at + tables.value(element, 0, "Q"), tables.value(element, 1, "Q"))
        for element in tables.elements(root, _SEGMENTS)
    ]
    inline = [Part(*tables.vector(element, 0)) for element in tables.elements(root, _INLINE)]
    parts = []
    for delegate in tables.elements(plan, _DELEGATES):
        data = tables.child(delegate, 1)
        places = segments if tables.value(data, 0, "b") else inline
        parts.append((tables.text(tables.child(delegate, 0)), places[tables.value(data, 1)]))
    operators = [tables.text(tables.child(element, 0)) for element in tables.elements(plan, _OPERATORS)]
    calls, others = [], []
    forms: dict[int, int] = {}

    def values(numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple(forms.get(number, number) for number in numbers)

    for chain in tables.elements(plan, _CHAINS):
        for instruction in tables.elements(chain, _INSTRUCTIONS):
            kind, what = tables.value(instruction, 0, "B"), tables.child(instruction, 1)
            index = tables.value(what, 0, "i")
            if kind == _DELEGATE_CALL and parts[index][0] == _BACKEND:
                calls.append(Call(parts[index][1], values(tables.numbers(what, 1))))
            elif kind == _DELEGATE_CALL:
                others.append(parts[index][0])
            elif kind != _FREE_CALL:
                others.append(operators[index] if kind == _KERNEL_CALL else "control flow")
            if kind == _KERNEL_CALL and operators[index].startswith(_CHANGES_OF_FORM):
                source, *_, result = tables.numbers(what, 1)
                forms[result] = forms.get(source, source)
    inputs, outputs = (values(tables.numbers(plan, field)) for field in (_INPUTS, _OUTPUTS))
    return Program(tuple(calls), inputs, outputs, tuple(others))


def in_program_order(program: Program, vgf: Vgf) -> Vgf:
    """Return the only model of a program, with inputs and outputs in the program's order and named by it.

    A VGF file has them in operator order. A model with values that are not the program's own, such as results
    of other operators, keeps that order.
    """
    (call,) = program.calls
    count = len(vgf.inputs)
    inputs = dict(zip(call.values[:count], vgf.inputs, strict=False))
    outputs = dict(zip(call.values[count:], vgf.outputs, strict=False))
    if len(inputs) < count or len(outputs) < len(vgf.outputs):
        return vgf
    if not (inputs.keys() <= set(program.inputs) and outputs.keys() <= set(program.outputs)):
        return vgf
    return _with_ends(vgf, program, inputs, outputs)


def _with_ends(vgf: Vgf, program: Program, inputs: Mapping[int, Slot], outputs: Mapping[int, Slot]) -> Vgf:
    """Set a model's inputs and outputs, in the program's order. The keys are the numbers of the program's values."""
    ins = [value for value in dict.fromkeys(program.inputs) if value in inputs]
    outs = [value for value in dict.fromkeys(program.outputs) if value in outputs]
    return vgf._replace(
        inputs=tuple(inputs[value] for value in ins),
        outputs=tuple(outputs[value] for value in outs),
        input_names=tuple(f"input_{program.inputs.index(value)}" for value in ins),
        output_names=tuple(f"output_{program.outputs.index(value)}" for value in outs),
    )


def join_models(program: Program, models: Sequence[Vgf]) -> Vgf:
    """Join the segments of ``models``, a model for each call of the program, to a single model.

    The bindings of inputs and outputs are the numbers of the program's values. Rows of the same value share an alias
    group. Raises ValueError if a call and a model have different numbers of values.
    """
    joined = models[0]._replace(modules=(), resources=(), segments=(), constants=())
    written: set[int] = set()
    row_of: dict[int, int] = {}
    for call, vgf in zip(program.calls, models, strict=True):
        ends = [slot.resource_index for slot in (*vgf.inputs, *vgf.outputs)]
        value_of = {vgf.value(row): value for row, value in zip(ends, call.values, strict=True)}
        first = len(joined.resources)
        for end, value in zip(ends, call.values, strict=True):
            row_of.setdefault(value, first + end)
        leaders: dict[int | None, int] = {}
        for index, row in enumerate(vgf.resources):
            leaders.setdefault(row.alias_group, first + index)
        resources = [
            _resource(row, value_of.get(vgf.value(index)), leaders[row.alias_group], written, program)
            for index, row in enumerate(vgf.resources)
        ]
        written.update(call.values[len(vgf.inputs) :])
        names = {module.name for module in joined.modules}
        modules = [
            module._replace(name=f"{module.name}_{len(joined.modules)}") if module.name in names else module
            for module in vgf.modules
        ]
        joined = joined._replace(
            modules=(*joined.modules, *modules),
            resources=(*joined.resources, *resources),
            constants=(
                *joined.constants,
                *(constant._replace(resource_index=first + constant.resource_index) for constant in vgf.constants),
            ),
            segments=(*joined.segments, *(_segment(segment, joined) for segment in vgf.segments)),
        )
    outside = {value: Slot(value, row) for value, row in row_of.items() if value not in written}
    return _with_ends(joined, program, outside, {value: Slot(value, row_of[value]) for value in written})


def _resource(row: ModelResource, value: int | None, leader: int, written: set[int], program: Program) -> ModelResource:
    """Return a row for the joined model. ``value`` is the row's value in the program, None for an inner value.

    ``leader`` is the first row of the alias group.
    """
    if value is None:
        return row if row.alias_group is None else row._replace(alias_group=2 * leader)
    category = row.category
    if value in written or (category == "output" and value not in program.outputs):
        category = "intermediate"
    return row._replace(category=category, alias_group=2 * value + 1)


def _segment(segment: Segment, joined: Vgf) -> Segment:
    """Renumber a segment that follows the segments of ``joined``."""
    return segment.with_rows(lambda row: len(joined.resources) + row)._replace(
        index=len(joined.segments) + segment.index,
        module_index=len(joined.modules) + segment.module_index,
        constants=tuple(
            constant._replace(constant_index=len(joined.constants) + constant.constant_index)
            for constant in segment.constants
        ),
    )
