"""Which module-scope variables an entry point uses, and whether it reads or writes them.

Source: Vulkan specification, "Shaders", section "Static Use": an entry point statically uses a variable when a function
of its call tree names it. Pointers and handles are followed from the variable through access chains, loads of
handles, selections and calls to the instruction that reads or writes. Where the trail is lost (a pointer that is
stored or returned), both are assumed.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from scenario_runner.spirv import opcodes as op
from scenario_runner.spirv.index import Index

READ: Final = 1
WRITE: Final = 2
PLAIN: Final = 4
"""Set beside `READ` and `WRITE` unless the instruction is atomic."""
LOST: Final = 8
"""Set beside the others where a trail is lost, so that reads and writes are only assumed."""

MAX_ROOTS: Final = 32
"""Variables that one pointer may come from before it counts as lost."""

# Storage classes whose variables are resources or workgroup memory.
UNIFORM_CONSTANT: Final = 0
UNIFORM: Final = 2
WORKGROUP: Final = 4
PUSH_CONSTANT: Final = 9
STORAGE_BUFFER: Final = 12
_TRACKED: Final = frozenset({UNIFORM_CONSTANT, UNIFORM, WORKGROUP, PUSH_CONSTANT, STORAGE_BUFFER})

# The ids that a value comes from: variables, or parameters of the function at hand.
Roots: TypeAlias = tuple[int, ...]

# What an instruction does with its operands; the numbers are the words that it looks at.
(
    _NOTHING,
    _LOAD,
    _STORE,
    _PASS_3,
    _PASS_4,
    _MERGE_3_4,
    _MERGE_4_5,
    _USE_3,
    _USE_3_4,
    _READ_3,
    _WRITE_1,
    _CHANGE_3,
    _COPY,
    _PHI,
    _CALL,
    _EXT_INST,
    _ESCAPE_1,
    _ESCAPE_4,
    _PARAMETER,
    _END,
) = range(20)

# Words that an instruction of each of these kinds has at least.
_LEAST: Final = (1, 4, 3, 4, 5, 5, 6, 4, 5, 4, 2, 4, 3, 3, 4, 5, 2, 4, 3, 1)

_KINDS: Final = {
    op.LOAD: _LOAD,
    op.STORE: _STORE,
    **dict.fromkeys((op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN, op.PTR_ACCESS_CHAIN), _PASS_3),
    **dict.fromkeys((op.IN_BOUNDS_PTR_ACCESS_CHAIN, op.RAW_ACCESS_CHAIN, op.COPY_OBJECT, op.COPY_LOGICAL), _PASS_3),
    **dict.fromkeys((op.COMPOSITE_EXTRACT, op.BITCAST, op.CONVERT_PTR_TO_U), _PASS_3),
    **dict.fromkeys((op.IMAGE, op.IMAGE_TEXEL_POINTER), _PASS_3),
    **dict.fromkeys((op.UNTYPED_ACCESS_CHAIN, op.UNTYPED_IN_BOUNDS_ACCESS_CHAIN), _PASS_4),
    **dict.fromkeys((op.UNTYPED_PTR_ACCESS_CHAIN, op.UNTYPED_IN_BOUNDS_PTR_ACCESS_CHAIN), _PASS_4),
    op.SAMPLED_IMAGE: _MERGE_3_4,
    op.SELECT: _MERGE_4_5,
    op.PHI: _PHI,
    **dict.fromkeys((op.ARRAY_LENGTH, op.TENSOR_QUERY_SIZE), _USE_3),
    **dict.fromkeys((op.UNTYPED_ARRAY_LENGTH, op.PTR_EQUAL, op.PTR_NOT_EQUAL, op.PTR_DIFF), _USE_3_4),
    **dict.fromkeys(range(op.IMAGE_SAMPLE_IMPLICIT_LOD, op.IMAGE_READ + 1), _READ_3),
    **dict.fromkeys(range(op.IMAGE_SPARSE_SAMPLE_IMPLICIT_LOD, op.IMAGE_SPARSE_DREF_GATHER + 1), _READ_3),
    **dict.fromkeys((op.IMAGE_SPARSE_READ, op.TENSOR_READ, op.ATOMIC_LOAD), _READ_3),
    **dict.fromkeys((op.COOPERATIVE_MATRIX_LOAD, op.COOPERATIVE_MATRIX_LOAD_NV), _READ_3),
    **dict.fromkeys((op.COOPERATIVE_MATRIX_LOAD_TENSOR, op.COOPERATIVE_VECTOR_LOAD), _READ_3),
    **dict.fromkeys((op.IMAGE_WRITE, op.TENSOR_WRITE, op.ATOMIC_STORE, op.ATOMIC_FLAG_CLEAR), _WRITE_1),
    **dict.fromkeys((op.COOPERATIVE_MATRIX_STORE, op.COOPERATIVE_MATRIX_STORE_NV), _WRITE_1),
    **dict.fromkeys((op.COOPERATIVE_MATRIX_STORE_TENSOR, op.COOPERATIVE_VECTOR_STORE), _WRITE_1),
    **dict.fromkeys(range(op.ATOMIC_EXCHANGE, op.ATOMIC_XOR + 1), _CHANGE_3),
    **dict.fromkeys((op.ATOMIC_FLAG_TEST_AND_SET, op.ATOMIC_F_MIN, op.ATOMIC_F_MAX, op.ATOMIC_F_ADD), _CHANGE_3),
    **dict.fromkeys((op.COPY_MEMORY, op.COPY_MEMORY_SIZED), _COPY),
    # Their operands are values and a mask that could be taken for an id.
    **dict.fromkeys((op.COOPERATIVE_MATRIX_MUL_ADD, op.COOPERATIVE_MATRIX_LENGTH), _NOTHING),
    op.FUNCTION_CALL: _CALL,
    op.EXT_INST: _EXT_INST,
    op.RETURN_VALUE: _ESCAPE_1,
    op.VARIABLE: _ESCAPE_4,
    op.FUNCTION_PARAMETER: _PARAMETER,
    op.FUNCTION_END: _END,
}

_ATOMIC_STORES: Final = frozenset({op.ATOMIC_STORE, op.ATOMIC_FLAG_CLEAR})
_READ: Final = READ | PLAIN
_WRITE: Final = WRITE | PLAIN
_READ_WRITE: Final = READ | WRITE | PLAIN
_LOST: Final = _READ_WRITE | LOST

_FIRST_VENDOR_OPCODE: Final = 4096

# Instructions of GLSL.std.450 that write through a pointer (Modf, Frexp); any other only reads.
_GLSL_WRITERS: Final = frozenset({35, 51})


class Call(NamedTuple):
    """One OpFunctionCall: the function's id and, for every argument, where its value comes from."""

    function: int
    arguments: tuple[Roots, ...]


class Summary(NamedTuple):
    """What one function does by itself.

    ``effects`` maps a variable or parameter that it names to `READ`, `WRITE` and `PLAIN` flags, 0 for none.
    """

    parameters: tuple[int, ...]
    effects: dict[int, int]
    calls: tuple[Call, ...]


class Access:
    """Follows variables through the functions of a module; what was found out about a function is kept.

    Raises `SpirvError` for calls to functions that do not exist, functions that call themselves, and instructions that
    are too short.
    """

    __slots__ = ("_effects", "_handles", "_index", "_quiet_sets", "_roots", "_summaries", "storage_classes")

    def __init__(self, index: Index) -> None:
        self._index = index
        self.storage_classes: dict[int, int] = {}
        # Ids are unique in a module, so one table serves all functions.
        self._roots: dict[int, Roots] = {}
        # Variables and parameters whose load gives a handle (image, sampler, tensor), not data.
        self._handles: set[int] = set()
        self._summaries: dict[int, Summary] = {}
        self._effects: dict[int, tuple[int, ...]] = {}
        self._quiet_sets: set[int] = set()
        words = index.words
        for id in index.variables:
            storage_class = words[index.definitions[id] + 3]
            if storage_class in _TRACKED:
                self.storage_classes[id] = storage_class
                self._roots[id] = (id,)
                if storage_class == UNIFORM_CONSTANT:
                    self._handles.add(id)
        for id in index.imports:
            at = index.definitions[id]
            name = index.string(at + 2, at + index.count(at))
            if name.startswith(("NonSemantic.", "DebugInfo", "OpenCL.DebugInfo")):
                self._quiet_sets.add(id)

    def variables(self, function: int) -> dict[int, int]:
        """Every tracked variable that the call tree of a function names → `READ`, `WRITE` and `PLAIN` flags."""
        used: dict[int, int] = {}
        for id in self._call_tree(function):
            summary = self._summaries[id]
            for root, flags in summary.effects.items():
                if root in self.storage_classes:
                    used[root] = used.get(root, 0) | flags
            for root, flags in self._passed_on(summary):
                if root in self.storage_classes:
                    used[root] = used.get(root, 0) | flags
        return used

    def _call_tree(self, function: int) -> list[int]:
        """The functions that a function reaches, callees before callers, itself last."""
        order: list[int] = []
        finished: dict[int, bool] = {}
        stack = [function]
        while stack:
            id = stack[-1]
            if id not in finished:
                finished[id] = False
                if id not in self._summaries:
                    self._summaries[id] = self._summarise(id)
                for call in self._summaries[id].calls:
                    if finished.get(call.function) is False:
                        raise self._index.error(f"the function {call.function} calls itself, which SPIR-V forbids")
                    if call.function not in finished:
                        stack.append(call.function)
            else:
                stack.pop()
                if not finished[id]:
                    finished[id] = True
                    order.append(id)
                    if id not in self._effects:
                        self._effects[id] = self._parameter_effects(self._summaries[id])
        return order

    def _parameter_effects(self, summary: Summary) -> tuple[int, ...]:
        """What a function does to its arguments, by itself and through what it calls."""
        effects = {id: summary.effects.get(id, 0) for id in summary.parameters}
        for root, flags in self._passed_on(summary):
            if root in effects:
                effects[root] |= flags
        return tuple(effects.values())

    def _passed_on(self, summary: Summary) -> Iterable[tuple[int, int]]:
        """What the functions that a function calls do to the things it hands them."""
        for call in summary.calls:
            for roots, flags in zip(call.arguments, self._effects[call.function], strict=False):
                for root in roots:
                    yield root, flags

    def _summarise(self, function: int) -> Summary:
        index = self._index
        words = index.words
        start = index.functions.get(function)
        if start is None:
            raise index.error(f"the function {function} is called or named as an entry point, but it does not exist")
        roots, handles = self._roots, self._handles
        effects: dict[int, int] = {}
        parameters: list[int] = []
        calls: list[Call] = []
        kinds, least = _KINDS, _LEAST
        at, end = start + (words[start] >> 16), len(words)

        def touch(found: Roots | None, flags: int) -> None:
            for root in found or ():
                effects[root] = effects.get(root, 0) | flags

        while at < end:
            word = words[at]
            count = word >> 16
            opcode = word & 0xFFFF
            kind = kinds.get(opcode)
            if kind is None:
                if opcode >= _FIRST_VENDOR_OPCODE:
                    # An instruction this reader does not know: whatever it names, it may read and write.
                    for operand in words[at + 1 : at + count]:
                        touch(roots.get(operand), _LOST)
                at += count
                continue
            if count < least[kind]:
                raise index.too_short(at, least[kind])
            if kind == _LOAD:
                found = roots.get(words[at + 3])
                if found:
                    loaded = tuple([root for root in found if root in handles])
                    touch(found, 0 if loaded else _READ)
                    if loaded:
                        roots[words[at + 2]] = loaded
            elif kind == _PASS_3:
                found = roots.get(words[at + 3])
                if found:
                    touch(found, 0)
                    roots[words[at + 2]] = found
            elif kind == _STORE:
                touch(roots.get(words[at + 1]), _WRITE)
                touch(roots.get(words[at + 2]), _LOST)
            elif kind == _MERGE_4_5:
                self._merge(words[at + 4 : at + 6], words[at + 2], effects)
            elif kind == _MERGE_3_4:
                self._merge(words[at + 3 : at + 5], words[at + 2], effects)
            elif kind == _PHI:
                self._merge(words[at + 3 : at + count : 2], words[at + 2], effects)
            elif kind == _READ_3:
                touch(roots.get(words[at + 3]), READ if opcode == op.ATOMIC_LOAD else _READ)
            elif kind == _WRITE_1:
                touch(roots.get(words[at + 1]), WRITE if opcode in _ATOMIC_STORES else _WRITE)
            elif kind == _CHANGE_3:
                touch(roots.get(words[at + 3]), READ | WRITE)
            elif kind == _EXT_INST:
                if words[at + 3] not in self._quiet_sets:
                    flags = _READ_WRITE if words[at + 4] in _GLSL_WRITERS else _READ
                    for operand in words[at + 5 : at + count]:
                        if operand in roots:
                            touch(roots[operand], flags)
            elif kind == _CALL:
                arguments = tuple([roots.get(operand, ()) for operand in words[at + 4 : at + count]])
                calls.append(Call(words[at + 3], arguments))
                for found in arguments:
                    touch(found, 0)
            elif kind == _COPY:
                touch(roots.get(words[at + 1]), _WRITE)
                touch(roots.get(words[at + 2]), _READ)
            elif kind == _PARAMETER:
                id = words[at + 2]
                parameters.append(id)
                roots[id] = (id,)
                if self._is_handle(words[at + 1]):
                    handles.add(id)
            elif kind == _PASS_4:
                found = roots.get(words[at + 4])
                if found:
                    touch(found, 0)
                    roots[words[at + 2]] = found
            elif kind == _USE_3:
                touch(roots.get(words[at + 3]), 0)
            elif kind == _USE_3_4:
                touch(roots.get(words[at + 3]), 0)
                touch(roots.get(words[at + 4]), 0)
            elif kind == _ESCAPE_1:
                touch(roots.get(words[at + 1]), _LOST)
            elif kind == _ESCAPE_4:
                if count > 4:
                    touch(roots.get(words[at + 4]), _LOST)
            elif kind == _END:
                break
            at += count
        return Summary(tuple(parameters), effects, tuple(calls))

    def _merge(self, operands: Iterable[int], result: int, effects: dict[int, int]) -> None:
        """Let a result come from everything that several operands come from."""
        merged: dict[int, None] = {}
        for operand in operands:
            for root in self._roots.get(operand, ()):
                merged[root] = None
        if not merged:
            return
        lost = len(merged) > MAX_ROOTS
        for root in merged:
            effects[root] = effects.get(root, 0) | (_LOST if lost else 0)
        if not lost:
            self._roots[result] = tuple(merged)

    def _is_handle(self, type: int) -> bool:
        """Whether loading from a parameter of this type gives a handle: it points to UniformConstant."""
        index = self._index
        at = index.definitions.get(type)
        return at is not None and index.opcode(at) == op.TYPE_POINTER and index.words[at + 2] == UNIFORM_CONSTANT
