"""FlatBuffers: reading, copies of their parts, and ExecuTorch programs (.pte).

A table begins with the distance to the vtable. An ExecuTorch program is a FlatBuffer with VGF models and the order of
the calls. An extended header has the end of the FlatBuffer and the start of the segments.

Source: ExecuTorch's schema (program.fbs).
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from scenario_runner.errors import file_error
from scenario_runner.files.input import SourceFile
from scenario_runner.ml.vgf_model import ModelResource, Segment, Slot, Vgf


class DamagedError(Exception):
    """An offset leads out of the file. The message ends a sentence that begins with the file's path."""

    def __init__(self, message: str = "is damaged or was cut short") -> None:
        super().__init__(message)


class Tables:
    """A FlatBuffer with checks of every offset. The position of an absent field, table, vector or string is 0."""

    def __init__(self, part: Callable[[int, int], bytes | memoryview], size_bytes: int) -> None:
        """``part`` returns bytes by offset and size; the range lies within ``size_bytes``."""
        self._part = part
        self._size_bytes = size_bytes
        self._elements_left = size_bytes  # damaged vectors may overlap

    def part(self, at: int, size: int) -> bytes:
        """Return ``size`` bytes at a position."""
        if not 0 <= at <= self._size_bytes - size:
            raise DamagedError
        return bytes(self._part(at, size))

    def number(self, at: int, format: str = "I") -> int:
        """Return the number at a position; ``format`` is a letter of `struct`."""
        return int(struct.unpack(f"<{format}", self.part(at, struct.calcsize(format)))[0])

    def field(self, table: int, index: int) -> int:
        """Return the position of a table's field."""
        vtable = table - self.number(table, "i")
        entry = 4 + 2 * index
        offset = self.number(vtable + entry, "H") if entry < self.number(vtable, "H") else 0
        return table + offset if offset else 0

    def value(self, table: int, index: int, format: str = "I") -> int:
        """Return the number in a field, 0 if it is absent."""
        field = self.field(table, index)
        return self.number(field, format) if field else 0

    def at(self, field: int) -> int:
        """Return the position that a field refers to."""
        return field + self.number(field) if field else 0

    def child(self, table: int, index: int) -> int:
        """Return the table, vector or string in a field."""
        return self.at(self.field(table, index))

    def vector(self, table: int, index: int) -> tuple[int, int]:
        """Return the position of a vector's first element, and the number of elements."""
        vector = self.child(table, index)
        return vector + 4, self.number(vector) if vector else 0

    def elements(self, table: int, index: int) -> Iterator[int]:
        """Yield the tables or strings in a vector."""
        start, count = self.vector(table, index)
        for i in range(count):
            self._elements_left -= 1
            if self._elements_left < 0:
                raise DamagedError
            yield self.at(start + 4 * i)

    def numbers(self, table: int, index: int) -> tuple[int, ...]:
        """Return the elements of a 32-bit integer vector."""
        start, count = self.vector(table, index)
        return struct.unpack(f"<{count}i", self.part(start, 4 * count)) if count else ()

    def content(self, vector: int) -> bytes:
        """Return the bytes of a vector or string."""
        return self.part(vector + 4, self.number(vector)) if vector else b""

    def text(self, string: int) -> str:
        """Return a string."""
        return self.content(string).decode(errors="replace")

    def texts(self, table: int, index: int) -> tuple[str, ...]:
        """Return the strings in a vector."""
        return tuple(self.text(string) for string in self.elements(table, index))


class Union(NamedTuple):
    """A field that may refer to several kinds of tables.

    ``layouts`` maps the number in the preceding field to the table's layout. A number without an entry stands for a
    table without references.
    """

    layouts: "Mapping[int, Layout]"


Layout: TypeAlias = "int | list[Layout] | Mapping[int, Layout] | Union"
"""The references in a part of a file: for a table the fields that are references, for a vector of references the layout
of an element in a list, for a string or other vector the size of an element."""


def copy_reachable(file: Tables, layout: Layout, kept: Mapping[int, Sequence[int]]) -> bytes:
    """Copy the parts that are reachable from the root.

    ``kept`` replaces the elements of some vectors: it maps vector positions to element positions.
    """
    copy = bytearray(file.part(0, 8))  # the reference to the root, and the identifier

    def refer(field: int, at: int, layout: Layout) -> None:
        """Copy the part at a file position, and let a field of the copy refer to it."""
        offsets = at - file.number(at, "i") if isinstance(layout, Mapping) else 0
        copy.extend(bytes(len(copy) % 2))
        offsets_copy = len(copy)
        if offsets:
            copy.extend(file.part(offsets, file.number(offsets, "H")))
        copy.extend(bytes((at - len(copy)) % 8))  # keeps the alignment
        start = len(copy)
        struct.pack_into("<I", copy, field, start - field)
        if isinstance(layout, int):
            copy.extend(file.part(at, 4 + file.number(at) * layout) + b"\0")
        elif isinstance(layout, list):
            elements = kept.get(at)
            if elements is None:
                elements = [file.at(at + 4 * number) for number in range(1, file.number(at) + 1)]
            copy.extend(struct.pack("<I", len(elements)) + bytes(4 * len(elements)))
            for number, element in enumerate(elements, 1):
                refer(start + 4 * number, element, layout[0])
        elif isinstance(layout, Mapping):
            copy.extend(file.part(at, file.number(offsets + 2, "H")))
            struct.pack_into("<i", copy, start, start - offsets_copy)
            for index, child in layout.items():
                if position := file.field(at, index):
                    union = child.layouts if isinstance(child, Union) else None
                    of_child = child if union is None else union.get(file.value(at, index - 1, "B"), {})
                    refer(start + position - at, file.at(position), of_child)

    refer(0, file.number(0), layout)
    return bytes(copy)


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
