"""The SPIR-V module of a graph, which is read once and then fixed to the shapes of each dispatch.

Validation is left to the converter and the driver; reading only reports damage that it meets.

Drivers accept tensor types without a shape, but values between operators need memory of a known size: the emulation
layers end the process over open shapes. So every open type is replaced by a type with the shape that the inputs decide.

Source: SPV_ARM_graph and SPV_ARM_tensors; SPIR-V specification, "Types and Variables"; SPIR-V extended instruction set
"TOSA.001000.1".
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from scenario_runner.errors import ScenarioError, SpirvError
from scenario_runner.ml import tosa_operators
from scenario_runner.ml.tosa_operators import UNKNOWN, Shape, ShapeError, merged, result_shapes, shown
from scenario_runner.shaders.spirv import GraphEntryPoint, Module, Struct, Tensor, Type, read_module
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.declarations import Declarations, declarations_of
from scenario_runner.shaders.spirv.index import Rewriting

# A model sees a handful of shapes in a process. Of more shapes, the last ones are kept.
_MOST_KEPT = 16
_CONSTANTS = frozenset({*range(op.CONSTANT_TRUE, op.CONSTANT_NULL + 1), op.CONSTANT_COMPOSITE_REPLICATE})
# The converter's --emit-debug-info writes these instructions. Operands are graph, operator name and results.
_DEBUG_INFO, _DEBUG_OPERATION = "NonSemantic.Graph.DebugInfo.1", 2
_ORIGINS = {op.EXT_INST: "an operator", op.GRAPH_INPUT: "an input", op.GRAPH_CONSTANT: "a graph constant"}


class FixedGraph(NamedTuple):
    """A graph for tensors of given shapes.

    ``outputs`` has shapes by set and binding; a size that does not follow from the inputs is -1. ``code`` is the
    module, or None if the shape of a value does not follow; then ``unknown`` names the value. ``largest`` has the name
    and shape of the largest operator result.
    """

    outputs: dict[tuple[int, int], Shape]
    code: bytes | None
    unknown: str = ""
    largest: tuple[str, Shape] = ("", ())


class GraphOperator(NamedTuple):
    """A TOSA operator in a module; ``label`` is the operator's name in the model, or empty.

    ``shapes`` has the results' shapes; a shape of open rank is None.
    """

    name: str
    label: str
    shapes: tuple[Shape | None, ...]


def operators_of(code: bytes, name: str) -> list[GraphOperator]:
    """List the operators of a module's graphs in order. Raises SpirvError."""
    return GraphBody(read_module(code, name=name)).operators()


class GraphModule:
    """A module with graphs; ``is_open`` if it was compiled for tensors of any size.

    ``unbuildable`` is the reason why the emulation layers cannot build it, with {device} for the device's name, and
    advice; both are empty if they can.
    """

    def __init__(self, code: bytes, name: str) -> None:
        """Raises SpirvError for bytes that are not a module, and for a damaged module."""
        self.code = code
        self.module = read_module(code, name=name)
        body = GraphBody(self.module)
        self.is_open = bool(body.open_values)
        self.unbuildable = body.unbuildable()
        self._largest = body.largest()
        self._with_shapes = lru_cache(_MOST_KEPT)(self._inferred)

    def fixed(self, entry: GraphEntryPoint, inputs: Mapping[tuple[int, int], Shape]) -> FixedGraph:
        """Infer the graph's shapes from the known input shapes, by set and binding.

        Raises ScenarioError if shapes do not fit each other.
        """
        if not self.is_open:
            return FixedGraph({}, self.code, "", self._largest)
        try:
            return self._with_shapes(entry, tuple(inputs.get((input_.set, input_.binding)) for input_ in entry.inputs))
        except SpirvError as error:
            problems = [problem._replace(code="SR-GRAPH-012") for problem in error.problems]
            raise ScenarioError(problems) from error

    def _inferred(self, entry: GraphEntryPoint, inputs: Sequence[Shape | None]) -> FixedGraph:
        index = self.module.source
        at = index.offsets[op.GRAPH_ENTRY_POINT][self.module.graph_entry_points.index(entry)]
        body = GraphBody(self.module, index.words[at + 1], inputs)
        return body.fixed(at, [(output.set, output.binding) for output in entry.outputs])


class GraphBody:
    """The instructions of a module's graphs; ``inputs`` has shapes for the inputs of ``graph``."""

    def __init__(self, module: Module, graph: int = 0, inputs: Sequence[Shape | None] = ()) -> None:
        """Raises SpirvError with the place of an unreadable instruction."""
        self._index = module.source
        self._words = module.source.words
        self._declarations = declarations_of(module.source)
        names = {id: self._index.text(self._index.definitions[id], 2) for id in self._index.imports}
        self._tosa = {id for id, name in names.items() if name == tosa_operators.INSTRUCTION_SET}
        self._non_semantic = {id for id, name in names.items() if name.startswith("NonSemantic.")}
        self._debug_info = {id for id, name in names.items() if name == _DEBUG_INFO}
        self._graph, self._inputs = graph, inputs
        self._places = dict(self._index.definitions)
        # By value: a single shape, or several for a structure of tensors.
        self._shapes: dict[int, tuple[Shape | None, ...]] = {}
        self._outputs: dict[int, Shape] = {}
        self._operators: list[int] = []  # with extractions of their results, in the order of the module
        self._remarks: list[int] = []  # non-semantic instructions, which give no tensors
        self._computed: tuple[int, str, str] | None = None
        self.open_values: list[int] = []
        """Results with an open size in their types."""
        self._read()

    def _read(self) -> None:
        """Read all instructions and infer shapes."""
        words, graph = self._words, 0
        handlers: dict[int, Callable[[int], None]] = {
            op.EXT_INST: self._operator,
            op.COMPOSITE_EXTRACT: self._extract,
            op.GRAPH_INPUT: self._input,
            op.GRAPH_SET_OUTPUT: self._output,
        }
        for at in self._index.instructions(min(self._index.graphs.values(), default=len(words))):
            opcode = words[at] & 0xFFFF
            if opcode == op.GRAPH:
                graph = words[at + 2]
            if opcode not in handlers:
                continue
            if opcode == op.EXT_INST and self._index.count(at) > 4 and words[at + 3] in self._non_semantic:
                self._remarks.append(at)
                continue
            if opcode != op.GRAPH_SET_OUTPUT:
                self._places[words[at + 2]] = at
                self._declare(words[at + 2], _type(self._declarations, words[at + 1]))
            if graph == self._graph or opcode not in (op.GRAPH_INPUT, op.GRAPH_SET_OUTPUT):
                try:
                    handlers[opcode](at)
                except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                    what = str(error) if isinstance(error, ShapeError) else "has operands that it cannot have"
                    raise self._index.error(f"byte {at * 4}: {self._subject(at)} {what}", "SR-GRAPH-014") from None

    def _subject(self, at: int) -> str:
        """Name the instruction at a word for a message."""
        opcode = self._words[at] & 0xFFFF
        if opcode != op.EXT_INST:
            return f"the instruction {opcode} of the graph"
        id = self._words[at + 2]
        label = self._index.name_of(id)
        return f"the operator {self._name(at)} with the result {id}" + (f" ({label!r:.100})" if label else "")

    def _declare(self, id: int, type: Type) -> None:
        """Note the shape that a value's type declares."""
        types = [member.type for member in type.members] if isinstance(type, Struct) else [type]
        shapes = self._shapes[id] = tuple(map(declared_shape, types))
        if any(shape is None or UNKNOWN in shape for shape in shapes):
            self.open_values.append(id)

    def _operator(self, at: int) -> None:
        words, name = self._words, self._name(at)
        self._operators.append(at)
        if not name:
            return
        inputs: list[Shape | None] = []
        constants = {}
        ids = words[at + 5 : at + self._index.count(at)]
        for (operand, role), id in zip(tosa_operators.operands_of(name, len(ids)), ids, strict=True):
            opcode = words[self._places[id]] & 0xFFFF
            if role == "single":
                if not self._computed and opcode not in _CONSTANTS:
                    self._computed = words[at + 2], operand, _ORIGINS.get(opcode, f"the instruction {opcode}")
            elif self._graph and role == "constant":
                numbers = self._numbers(id, at)
                constants[operand] = tuple(
                    number - (1 << 32) if 1 << 31 <= number < 1 << 32 else number for number in numbers
                )
            elif self._graph:
                inputs.append(self._shape(id))
        known = [shape for shape in inputs if shape is not None]
        if not self._graph or len(known) < len(inputs):
            return  # only the device learns the rank of such inputs
        shapes = []
        for declared, inferred in zip(self._shapes[words[at + 2]], result_shapes(name, known, constants), strict=True):
            shape = inferred if declared is None else merged(declared, inferred)
            if shape is None:
                raise ShapeError(f"gives a tensor of {shown(declared or ())}, but its inputs make {shown(inferred)}")
            shapes.append(shape)
        self._shapes[words[at + 2]] = tuple(shapes)

    def _extract(self, at: int) -> None:
        self._operators.append(at)
        shape = self._shapes[self._words[at + 3]][self._words[at + 4]]
        if shape is not None:
            self._shapes[self._words[at + 2]] = (shape,)

    def _input(self, at: int) -> None:
        shape = self._inputs[self._numbers(self._words[at + 3], at)[0]]
        if shape is not None:
            self._shapes[self._words[at + 2]] = (shape,)

    def _output(self, at: int) -> None:
        shape = self._shape(self._words[at + 1])
        if shape is not None:
            self._outputs[self._numbers(self._words[at + 2], at)[0]] = shape

    def fixed(self, entry: int, places: Sequence[tuple[int, int]]) -> FixedGraph:
        """Give all types the inferred shapes. ``entry`` is the word of the entry point, ``places`` are its outputs."""
        outputs = {place: self._outputs[i] for i, place in enumerate(places) if i in self._outputs}
        shapes: dict[int, Sequence[Shape]] = {}
        for id in self.open_values:
            shapes[id] = [shape for shape in self._shapes[id] if shape is not None and UNKNOWN not in shape]
            if len(shapes[id]) < len(self._shapes[id]):
                return FixedGraph(outputs, None, self._called(id))
        interface = [*self._inputs, *(self._outputs.get(i) for i in range(len(places)))]
        bound = [shape for shape in interface if shape is not None]
        index = self._index
        if len(index.graphs) > 1 or len(bound) < len(interface):
            return FixedGraph(outputs, None, "one of several graphs" if len(index.graphs) > 1 else "an output")
        try:
            words = with_shapes(self._declarations, self._places, shapes, entry, bound)
        except ShapeError as error:
            raise index.error(f"byte {entry * 4}: the graph module {error}", "SR-GRAPH-014") from None
        return FixedGraph(outputs, struct.pack(f"<{len(words)}I", *words), "", self.largest())

    def largest(self) -> tuple[str, Shape]:
        """Name the largest operator result, with the shape."""
        count, name = 0, ""
        largest: Shape = ()
        for at in self._operators:
            id = self._words[at + 2]
            for shape in self._shapes.get(id, ()):
                elements = prod(size for size in shape or () if size != UNKNOWN)
                if shape is not None and elements > count:
                    count, name, largest = elements, self._called(id), shape
        return name, largest

    def operators(self) -> list[GraphOperator]:
        """List the operators in the order of the module."""
        words, index = self._words, self._index
        strings = {words[at + 1]: at for at in index.instructions() if words[at] & 0xFFFF == op.STRING}
        labels: dict[int, str] = {}
        for at in self._remarks:
            if words[at + 3] in self._debug_info and words[at + 4] == _DEBUG_OPERATION:
                operands = words[at + 5 : at + index.count(at)]
                for id in operands[2:]:
                    labels[id] = index.text(strings[operands[1]], 2) if operands[1] in strings else ""
        operators = [(words[at + 2], self._name(at)) for at in self._operators if words[at] & 0xFFFF == op.EXT_INST]
        return [
            GraphOperator(name, index.name_of(id) or labels.get(id, ""), self._shapes[id]) for id, name in operators
        ]

    def unbuildable(self) -> tuple[str, str]:
        """Explain why the emulation layers would end the process, and advise; both texts are empty if they would not.

        The layers expect zero points, shifts and the like among a module's constants, although TOSA's extension
        EXT-DYNAMIC allows other operands. The layers also drop results without an effect on outputs, and then follow a
        null pointer.
        """
        layers = "the ML emulation layers, through which {device} runs graphs, end the process over such"
        if self._computed:
            id, operand, origin = self._computed
            reason = f"the operator {self._name(self._places[id])} with the id {id} takes {operand} from {origin}"
            return f"{reason}, not from a constant; {layers} an operand", f"make {operand} a constant of the model"
        lost = self._lost_part()
        if lost:
            return f"no output depends on {lost}; {layers} a result", "return it from the model as well"
        return "", ""

    def _lost_part(self) -> str:
        """Name the first unused result of an operator with several results (FFT2D, RFFT2D); empty if there is none."""
        words, index, lost = self._words, self._index, ""
        outputs = (at for at in index.instructions() if index.opcode(at) == op.GRAPH_SET_OUTPUT and index.count(at) > 1)
        needed = {words[at + 1] for at in outputs}
        extracted: dict[int, set[int]] = {}
        for at in reversed(self._operators):  # uses follow definitions
            result = words[at + 2]
            if words[at] & 0xFFFF == op.COMPOSITE_EXTRACT:
                if result in needed:
                    needed.add(words[at + 3])
                    extracted.setdefault(words[at + 3], set()).add(words[at + 4])
                continue
            parts = range(len(self._shapes.get(result, ())))
            unused = set(parts) - extracted.get(result, set())
            if unused and len(parts) > 1:
                name = self._name(at)
                lost = f"result {min(unused)} of the operator{name and f' {name}'} with the id {result}"
            if result in needed:
                needed.update(words[at + 5 : at + index.count(at)])
        return lost

    def _shape(self, id: int) -> Shape | None:
        """Return the shape of a value, None for an unknown rank."""
        if id in self._shapes:
            (shape,) = self._shapes[id]
            return shape
        return declared_shape(_type(self._declarations, self._words[self._places[id] + 1]))

    def _numbers(self, id: int, user: int) -> tuple[int, ...]:
        value = self._declarations.value(id, user)
        return value if isinstance(value, tuple) else (value,)  # type: ignore[return-value]

    def _name(self, at: int) -> str:
        """Return the name of the operator at a word; empty for other instruction sets."""
        words = self._words
        is_known = words[at + 3] in self._tosa and words[at + 4] < len(tosa_operators.OPERATORS)
        return tosa_operators.OPERATORS[words[at + 4]] if is_known else ""

    def _called(self, id: int) -> str:
        at = self._places[id]
        name = self._name(at) if self._words[at] & 0xFFFF == op.EXT_INST else ""
        return f"the result {id} of the operator {name}" if name else f"the id {id}"


def _type(declarations: Declarations, id: int) -> Type:
    return declarations.type(id, len(declarations.index.words))


def declared_shape(type: Type) -> Shape | None:
    """Return the shape of a type with `UNKNOWN` for open sizes; None without a rank."""
    if not isinstance(type, Tensor) or type.rank is None:
        return None
    return (UNKNOWN,) * type.rank if type.shape is None else type.shape


def with_shapes(
    declarations: Declarations,
    places: Mapping[int, int],
    shapes: Mapping[int, Sequence[Shape]],
    entry: int,
    bound: Sequence[Shape],
) -> array[int]:
    """Return the words of the module with types of these shapes.

    ``places`` has the words of definitions by id, in module order. ``shapes`` has every value with an open
    type; a structure has several shapes. ``bound`` has the input and output shapes of the entry point at the word
    ``entry``. Raises ShapeError if a rank is not a 32-bit constant.
    """
    index = declarations.index
    types = _Types(declarations, places)
    old, words = index.words, types.changes.words
    for id, parts in shapes.items():
        at = places[id] + 1
        words[at] = types.with_shapes(old[at], parts)
    end = entry + index.count(entry)
    for variable, shape in zip(old[index.string_and_end(entry + 2, end)[1] : end], bound, strict=True):
        at = places[variable] + 1
        words[at] = types.pointer(old[at], shape)
    graph = places[old[index.graphs[old[entry + 1]] + 1]]
    for at, shape in zip(range(graph + 3, graph + index.count(graph)), bound, strict=True):
        words[at] = types.with_shapes(old[at], [shape])
    return types.changes.result()


class _Types:
    """The types of a module, and new types. A new type is defined behind the replaced type.

    SPIR-V demands unique types: a new type that the module defines further down moves up.
    """

    def __init__(self, declarations: Declarations, places: Mapping[int, int]) -> None:
        self._declarations = declarations
        self._words = declarations.index.words
        self.changes = Rewriting(declarations.index)
        self._at = dict(places)
        self._known: dict[tuple[int, ...], int] = {}  # by opcode and operands, for tensors by element and shape
        words = self._words
        for id, at in places.items():
            if words[at] & 0xFFFF == op.TYPE_TENSOR:
                shape = declared_shape(_type(self._declarations, id))
                if shape is not None and UNKNOWN not in shape:
                    self._known.setdefault((op.TYPE_TENSOR, words[at + 2], *shape), id)
            elif words[at] & 0xFFFF == op.TYPE_POINTER:
                self._known.setdefault((op.TYPE_POINTER, *words[at + 2 : at + 4]), id)

    def with_shapes(self, type: int, shapes: Sequence[Shape]) -> int:
        """Return the id of a type like ``type`` with shapes, or ``type`` itself if no shape is open."""
        open_type = _type(self._declarations, type)
        if isinstance(open_type, Struct):
            at = self._at[type]
            members = self._words[at + 2 : at + (self._words[at] >> 16)]
            parts = [self.with_shapes(member, [shape]) for member, shape in zip(members, shapes, strict=True)]
            return self._composed(op.TYPE_STRUCT, parts, at)
        (shape,) = shapes
        declared = declared_shape(open_type)
        if not isinstance(open_type, Tensor) or (declared is not None and UNKNOWN not in declared):
            return type
        at = self._at[type]
        id, is_new = self._place((op.TYPE_TENSOR, self._words[at + 2], *shape), at)
        if is_new:
            self._define_tensor(at, id, shape)
        return id

    def pointer(self, type: int, shape: Shape) -> int:
        """Return the id of a pointer like ``type`` to a tensor with a shape."""
        at = self._at[type]
        storage, tensor = self._words[at + 2 : at + 4]
        pointee = self.with_shapes(tensor, [shape])
        return type if pointee == tensor else self._composed(op.TYPE_POINTER, (storage, pointee), at)

    def _composed(self, opcode: int, operands: Sequence[int], at: int) -> int:
        """Return the id of a composite type that replaces the type at ``at``."""
        id, is_new = self._place((opcode, *operands), at)
        return self.changes.define(at, opcode, operands, id) if is_new else id

    def _place(self, key: tuple[int, ...], at: int) -> tuple[int, bool]:
        """Return the id of a type that replaces the type at ``at``, and whether the caller must define it there."""
        id = self._known.get(key)
        if id is None:
            id = self._known[key] = self.changes.new_id()
        elif self._at[id] <= at:
            return id, False
        else:
            self.changes.withdraw(self._at[id], id)
        self._at[id] = at
        return id, True

    def _define_tensor(self, at: int, id: int, shape: Shape) -> None:
        """Define a tensor type with a shape behind the open type at ``at``."""
        words = self._words
        if words[at] >> 16 < 4:
            raise ShapeError("has tensors without a rank, which cannot get a shape")
        rank = words[at + 3]
        number = words[self._at[rank] + 1]
        if words[self._at[number] + 2] != 32:
            raise ShapeError("has a rank that is not a 32-bit constant")
        sizes = [self.changes.new_id() for _ in shape]
        for constant, size in zip(sizes, shape, strict=True):
            self.changes.put(at, (4 << 16 | op.CONSTANT, number, constant, size))
        array, composite = self.changes.define(at, op.TYPE_ARRAY, (number, rank)), self.changes.new_id()
        self.changes.put(at, (3 + len(sizes) << 16 | op.CONSTANT_COMPOSITE, array, composite, *sizes))
        self.changes.define(at, op.TYPE_TENSOR, (words[at + 2], rank, composite), id)
