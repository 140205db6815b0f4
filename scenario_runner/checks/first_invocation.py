"""Memory that a compute shader uses for certain: the accesses of the first invocation in the first workgroup.

The reader follows the code of the entry point with the ids 0 and the constants. Data may decide a branch, and later
accesses may then not happen. So the reader stops there.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv import Interface
from scenario_runner.shaders.spirv._generated import enumerants as spv
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.constants import VALUES, Value, compute
from scenario_runner.shaders.spirv.interface import variable_type
from scenario_runner.shaders.spirv.types import Array, RuntimeArray, Scalar, Struct, Type, Vector

_IDS: Final = frozenset({26, 27, 28, 29})
"""The built-ins WorkgroupId, LocalInvocationId, GlobalInvocationId and LocalInvocationIndex."""
_MOST_INSTRUCTIONS: Final = 10_000
_MOST_TOUCHES: Final = 16
"""Most reads, and most writes, of a variable."""
_LOOP_MERGE: Final = 246
_SELECTION_MERGE: Final = 247
_LAST_OF_BLOCKS: Final = range(251, 256)
"""OpSwitch, OpKill, OpReturn, OpReturnValue and OpUnreachable."""
_MAY_CHANGE_LOCALS: Final = frozenset({op.FUNCTION_CALL, op.EXT_INST, op.COPY_MEMORY, op.COPY_MEMORY_SIZED})

_Path = tuple[int | None, ...]


class Touch(NamedTuple):
    """A read or write through a variable, of ``size_bytes`` from a byte offset on, or of a texel at x and y."""

    variable: int
    place: tuple[int, ...]
    size_bytes: int
    writes: bool


def certain_touches(interface: Interface) -> frozenset[Touch]:
    """Return the first accesses of the first invocation that every run of the entry point makes."""
    invocation = _Invocation(interface)
    with suppress(SpirvError, LookupError, TypeError):  # spirv-val reports damaged code
        invocation.follow()
    return frozenset().union(*invocation.touches.values())


class _Invocation:
    """The state of an invocation: known values by id, and the content of the function's own variables."""

    def __init__(self, interface: Interface) -> None:
        self.touches: dict[tuple[int, bool], set[Touch]] = {}
        self._declarations = interface.declarations
        self._index = index = interface.declarations.index
        self._function = interface.function
        self._resources = {
            binding.variable: binding
            for binding in interface.bindings
            if not isinstance(variable_type(self._declarations, binding.variable), Array | RuntimeArray)
        }
        self._ids = {id for id in index.variables if index.decorations_of(id).get(spv.BUILT_IN) in _IDS}
        self._values: dict[int, Value | None] = {}
        self._types: dict[int, Type] = {}
        self._locals: dict[int, Value | None] = {}
        self._pointers: dict[int, tuple[int, _Path]] = {}
        self._handles: dict[int, int] = {}

    def follow(self) -> None:
        """Follow the instructions of the entry point in the order of execution."""
        index, words = self._index, self._index.words
        at = index.functions[self._function]
        labels: dict[int, int] = {}
        for place in index.instructions(at):
            if index.opcode(place) == op.LABEL:
                labels[words[place + 1]] = place
            elif index.opcode(place) == op.FUNCTION_END:
                break
        for _ in range(_MOST_INSTRUCTIONS):
            opcode = index.opcode(at)
            if opcode == op.BRANCH:
                at = labels[words[at + 1]]
            elif opcode == op.BRANCH_CONDITIONAL:
                condition = self._value(words[at + 1], at)
                if condition is None:
                    return
                at = labels[words[at + 2 if condition else at + 3]]
            elif opcode in _LAST_OF_BLOCKS:
                return
            else:
                self._execute(opcode, at)
                at += index.count(at)

    def _execute(self, opcode: int, at: int) -> None:
        words, end = self._index.words, at + self._index.count(at)
        if opcode == op.VARIABLE:
            self._locals[words[at + 2]] = self._value(words[at + 4], at) if end > at + 4 else None
        elif opcode in (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN):
            root, path = self._pointer(words[at + 3])
            numbers = [self._value(id, at) for id in words[at + 4 : end]]
            further = tuple([number if isinstance(number, int) else None for number in numbers])
            self._pointers[words[at + 2]] = root, path + further
        elif opcode == op.STORE:
            self._store(words[at + 1], self._value(words[at + 2], at))
        elif opcode == op.IMAGE_WRITE:
            self._touch_texel(words[at + 1], self._value(words[at + 2], at), writes=True)
        elif opcode in _MAY_CHANGE_LOCALS:
            self._locals = dict.fromkeys(self._locals)
        elif opcode not in (op.LABEL, _LOOP_MERGE, _SELECTION_MERGE) and end > at + 3:
            self._values[words[at + 2]] = self._result(opcode, at, words[at + 3 : end])

    def _result(self, opcode: int, at: int, operands: Sequence[int]) -> Value | None:
        """Return the value that an instruction computes; None for an unknown value."""
        words = self._index.words
        if opcode == op.IMAGE_READ:
            self._touch_texel(operands[0], self._value(operands[1], at), writes=False)
            return None
        with suppress(SpirvError):  # instructions without a result have no type
            self._types[words[at + 2]] = type = self._declarations.type(words[at + 1], at)
            if opcode == op.LOAD:
                return self._load(words[at + 2], operands[0], type)
            count = VALUES.get(opcode, len(operands))
            values = [self._value(id, at) for id in operands[:count]]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                return self._computed(opcode, operands, type, known)
        return None

    def _computed(self, opcode: int, operands: Sequence[int], type: Type, values: list[Value]) -> Value | None:
        if opcode == op.COMPOSITE_CONSTRUCT and isinstance(type, Vector):
            return tuple(part for value in values for part in (value if isinstance(value, tuple) else (value,)))
        definitions, words = self._index.definitions, self._index.words
        first = self._types.get(operands[0])
        if first is None:
            at = definitions[operands[0]]
            first = self._declarations.type(words[at + 1], at)
        # a conversion between integers of one width keeps the bits
        operation = op.U_CONVERT if opcode == op.BITCAST else opcode
        with suppress(LookupError, TypeError, ValueError, OverflowError):  # not an instruction for constants
            return compute(operation, first, type, values, operands[len(values) :])
        return None

    def _value(self, id: int, at: int) -> Value | None:
        if id in self._values:
            return self._values[id]
        with suppress(SpirvError):
            return self._declarations.value(id, at)
        return None

    def _pointer(self, id: int) -> tuple[int, _Path]:
        """Return a pointer's variable, and the indices from there."""
        return self._pointers.get(id, (id, ()))

    def _load(self, result: int, pointer: int, type: Type) -> Value | None:
        root, path = self._pointer(pointer)
        if root in self._ids:
            return (0,) * type.components if isinstance(type, Vector) else 0
        if root in self._resources:
            self._handles[result] = root
            self._touch_bytes(root, path, writes=False)
        value = self._locals.get(root)
        for number in path:
            value = value[number] if isinstance(value, tuple) and number is not None else None
        return value

    def _store(self, pointer: int, value: Value | None) -> None:
        root, path = self._pointer(pointer)
        if root in self._resources:
            self._touch_bytes(root, path, writes=True)
        elif root in self._locals:
            self._locals[root] = None if path else value
        else:
            self._locals = dict.fromkeys(self._locals)

    def _touch_bytes(self, variable: int, path: _Path, *, writes: bool) -> None:
        """Note an access to a number or vector in a block."""
        type: Type | None = self._resources[variable].block
        start = 0
        for number in path:
            if number is None or number < 0:
                return
            if isinstance(type, Struct) and type.members[number].offset_bytes is not None:
                start += type.members[number].offset_bytes or 0
                type = type.members[number].type
            elif isinstance(type, Array | RuntimeArray) and type.stride_bytes is not None:
                start += type.stride_bytes * number
                type = type.element
            elif isinstance(type, Vector):
                start += type.component.size_bytes * number
                type = type.component
            else:
                return
        if isinstance(type, Scalar | Vector):
            self._note(Touch(variable, (start,), type.size_bytes, writes))

    def _touch_texel(self, image: int, place: Value | None, *, writes: bool) -> None:
        numbers = place if isinstance(place, tuple) else (place,)
        texel = tuple([number for number in numbers if isinstance(number, int) and number >= 0])
        if image in self._handles and len(texel) == len(numbers):
            self._note(Touch(self._handles[image], texel, 0, writes))

    def _note(self, touch: Touch) -> None:
        alike = self.touches.setdefault((touch.variable, touch.writes), set())
        if len(alike) < _MOST_TOUCHES:
            alike.add(touch)
