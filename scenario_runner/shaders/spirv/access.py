"""Module-scope variables that an entry point reads and writes.

Source: Vulkan specification, "Shaders", section "Static Use": an entry point statically uses a variable that a function
in the call tree names. Pointers and handles are followed from the variable through access chains, loads of handles,
selections and calls to the instruction that reads or writes. If a pointer is stored or returned, it is lost, and both
reads and writes are assumed.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.index import FIRST_VENDOR_OPCODE, Index

READ: Final = 1
WRITE: Final = 2
PLAIN: Final = 4
"""Set with `READ` and `WRITE` unless the instruction is atomic."""
LOST: Final = 8
"""Set with the others if a pointer is not followed, so that reads and writes are only assumed."""
TEXEL_POINTER: Final = 16
"""Set if the code makes a pointer to a texel of an image, for atomic operations."""
COMPARED: Final = 32
"""Set if the code samples with a comparison of depths."""

MAX_ROOTS: Final = 32
"""Most origins of a pointer; with more, it counts as lost."""

# Storage classes of resources and workgroup memory.
UNIFORM_CONSTANT: Final = 0
UNIFORM: Final = 2
WORKGROUP: Final = 4
PUSH_CONSTANT: Final = 9
STORAGE_BUFFER: Final = 12
_TRACKED: Final = frozenset({UNIFORM_CONSTANT, UNIFORM, WORKGROUP, PUSH_CONSTANT, STORAGE_BUFFER})

# A value's origins: ids of variables, or of the current function's parameters.
Roots: TypeAlias = tuple[int, ...]

_READ: Final = READ | PLAIN
_WRITE: Final = WRITE | PLAIN
_READ_WRITE: Final = READ | WRITE | PLAIN
_LOST: Final = _READ_WRITE | LOST

# OpImageSampleDref…, OpImageSampleProjDref…, OpImageDrefGather, and those for sparse images.
_COMPARING: Final = (89, 90, 93, 94, 97, 307, 308, 311, 312, op.IMAGE_SPARSE_DREF_GATHER)
# Opcodes that access operands' targets → pairs (word of the operand, access flags).
_USES: Final[dict[int, tuple[tuple[int, int], ...]]] = {
    op.STORE: ((1, _WRITE), (2, _LOST)),
    **dict.fromkeys((op.ARRAY_LENGTH, op.TENSOR_QUERY_SIZE), ((3, 0),)),
    **dict.fromkeys((op.UNTYPED_ARRAY_LENGTH, op.PTR_EQUAL, op.PTR_NOT_EQUAL, op.PTR_DIFF), ((3, 0), (4, 0))),
    **dict.fromkeys(range(op.IMAGE_SAMPLE_IMPLICIT_LOD, op.IMAGE_READ + 1), ((3, _READ),)),
    **dict.fromkeys(range(op.IMAGE_SPARSE_SAMPLE_IMPLICIT_LOD, op.IMAGE_SPARSE_DREF_GATHER + 1), ((3, _READ),)),
    **dict.fromkeys(_COMPARING, ((3, _READ | COMPARED),)),
    **dict.fromkeys((op.IMAGE_SPARSE_READ, op.TENSOR_READ), ((3, _READ),)),
    **dict.fromkeys((op.COOPERATIVE_MATRIX_LOAD, op.COOPERATIVE_MATRIX_LOAD_NV), ((3, _READ),)),
    **dict.fromkeys((op.COOPERATIVE_MATRIX_LOAD_TENSOR, op.COOPERATIVE_VECTOR_LOAD), ((3, _READ),)),
    **dict.fromkeys((op.IMAGE_WRITE, op.TENSOR_WRITE), ((1, _WRITE),)),
    **dict.fromkeys((op.COOPERATIVE_MATRIX_STORE, op.COOPERATIVE_MATRIX_STORE_NV), ((1, _WRITE),)),
    **dict.fromkeys((op.COOPERATIVE_MATRIX_STORE_TENSOR, op.COOPERATIVE_VECTOR_STORE), ((1, _WRITE),)),
    op.ATOMIC_LOAD: ((3, READ),),
    **dict.fromkeys((op.ATOMIC_STORE, op.ATOMIC_FLAG_CLEAR), ((1, WRITE),)),
    **dict.fromkeys(range(op.ATOMIC_EXCHANGE, op.ATOMIC_XOR + 1), ((3, READ | WRITE),)),
    op.ATOMIC_FLAG_TEST_AND_SET: ((3, READ | WRITE),),
    **dict.fromkeys((op.ATOMIC_F_MIN, op.ATOMIC_F_MAX, op.ATOMIC_F_ADD), ((3, READ | WRITE),)),
    **dict.fromkeys((op.COPY_MEMORY, op.COPY_MEMORY_SIZED), ((1, _WRITE), (2, _READ))),
    # Their operands are values, and a mask that looks like an id.
    **dict.fromkeys((op.COOPERATIVE_MATRIX_MUL_ADD, op.COOPERATIVE_MATRIX_LENGTH), ()),
    op.RETURN_VALUE: ((1, _LOST),),
}
# Opcodes that pass on a pointer or handle → the word of the operand.
_PASSES: Final = {
    **dict.fromkeys((op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN, op.PTR_ACCESS_CHAIN), 3),
    **dict.fromkeys((op.IN_BOUNDS_PTR_ACCESS_CHAIN, op.RAW_ACCESS_CHAIN, op.COPY_OBJECT, op.COPY_LOGICAL), 3),
    **dict.fromkeys((op.COMPOSITE_EXTRACT, op.BITCAST, op.CONVERT_PTR_TO_U), 3),
    **dict.fromkeys((op.IMAGE, op.IMAGE_TEXEL_POINTER), 3),
    **dict.fromkeys((op.UNTYPED_ACCESS_CHAIN, op.UNTYPED_IN_BOUNDS_ACCESS_CHAIN), 4),
    **dict.fromkeys((op.UNTYPED_PTR_ACCESS_CHAIN, op.UNTYPED_IN_BOUNDS_PTR_ACCESS_CHAIN), 4),
}
# Opcodes with several origins → the words of the operands: first, end (None: all) and step.
_MERGES: Final = {op.SAMPLED_IMAGE: (3, 5, 1), op.SELECT: (4, 6, 1), op.PHI: (3, None, 2)}
_FOLLOWED: Final = frozenset(
    {*_USES, *_PASSES, *_MERGES, op.LOAD, op.FUNCTION_CALL, op.EXT_INST, op.VARIABLE}
    | {op.FUNCTION_PARAMETER, op.FUNCTION_END}
)

# Instructions of GLSL.std.450 that write through a pointer (Modf, Frexp); all others only read.
_GLSL_WRITERS: Final = frozenset({35, 51})


class Call(NamedTuple):
    """One OpFunctionCall: the function's id, and the roots of every argument."""

    function: int
    arguments: tuple[Roots, ...]


class Summary(NamedTuple):
    """Effects of a function, without the called functions.

    ``effects`` maps a named variable or parameter to the flags `READ`, `WRITE`, `PLAIN`, `LOST`, `TEXEL_POINTER` and
    `COMPARED`, 0 for none.
    """

    parameters: list[int]
    effects: dict[int, int]
    calls: list[Call]


class Access:
    """Follows variables through a module's functions, and caches each function's summary.

    Raises `SpirvError` for calls to missing functions, functions that call themselves, and instructions that are too
    short.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self.storage_classes: dict[int, int] = {}
        self.roots: dict[int, Roots] = {}
        """Origins (variables and parameters) of pointers and handles in the summarised functions."""
        # Loads from these variables and parameters return a handle (image, sampler, tensor), no data.
        self._handles: set[int] = set()
        self._summaries: dict[int, Summary] = {}
        self._quiet_sets: set[int] = set()
        words = index.words
        for id in index.variables:
            storage_class = words[index.definitions[id] + 3]
            if storage_class in _TRACKED:
                self.storage_classes[id] = storage_class
                self.roots[id] = (id,)
                if storage_class == UNIFORM_CONSTANT:
                    self._handles.add(id)
        for id in index.imports:
            if index.text(index.definitions[id], 2).startswith(("NonSemantic.", "DebugInfo", "OpenCL.DebugInfo")):
                self._quiet_sets.add(id)

    def variables(self, function: int) -> dict[int, int]:
        """Return the flags of every tracked variable that a function's call tree names."""
        effects: dict[int, int] = {}
        for summary in self._call_tree(function):
            for id, flags in summary.effects.items():
                effects[id] = effects.get(id, 0) | flags
            for call in summary.calls:
                for parameter, roots in zip(self.summary(call.function).parameters, call.arguments, strict=False):
                    for root in roots:
                        effects[root] = effects.get(root, 0) | effects.get(parameter, 0)
        return {id: flags for id, flags in effects.items() if id in self.storage_classes}

    def summary(self, function: int) -> Summary:
        """Return a function's effects."""
        if function not in self._summaries:
            self._summaries[function] = self._summarise(function)
        return self._summaries[function]

    def _call_tree(self, function: int) -> list[Summary]:
        """List the functions that a function reaches, callees before callers, itself last."""
        order: list[Summary] = []
        finished: dict[int, bool] = {}
        stack = [function]
        while stack:
            id = stack[-1]
            summary = self.summary(id)
            if id not in finished:
                finished[id] = False
                for call in summary.calls:
                    if finished.get(call.function) is False:
                        raise self._index.error(f"the function {call.function} calls itself, which SPIR-V forbids")
                    if call.function not in finished:
                        stack.append(call.function)
            else:
                stack.pop()
                if not finished[id]:
                    finished[id] = True
                    order.append(summary)
        return order

    def _summarise(self, function: int) -> Summary:
        index = self._index
        words, roots = index.words, self.roots
        start = index.functions.get(function)
        if start is None:
            raise index.error(f"the function {function} is called or named as an entry point, but it does not exist")
        summary = Summary([], {}, [])
        effects = summary.effects

        def touch(id: int, flags: int) -> None:
            if id in roots:
                for root in roots[id]:
                    effects[root] = effects.get(root, 0) | flags

        for at in index.instructions(start):
            opcode, count = words[at] & 0xFFFF, words[at] >> 16
            if opcode not in _FOLLOWED:
                if opcode >= FIRST_VENDOR_OPCODE:
                    # An unknown instruction may read and write every operand.
                    for operand in words[at + 1 : at + count]:
                        touch(operand, _LOST)
                continue
            if count < op.LEAST_WORDS[opcode]:
                raise index.too_short(at, op.LEAST_WORDS[opcode])
            if opcode in _USES:
                for word, flags in _USES[opcode]:
                    if words[at + word] in roots:
                        touch(words[at + word], flags)
            elif opcode in _PASSES:
                source = words[at + _PASSES[opcode]]
                if source in roots:
                    touch(source, TEXEL_POINTER if opcode == op.IMAGE_TEXEL_POINTER else 0)
                    roots[words[at + 2]] = roots[source]
            elif opcode in _MERGES:
                first, end, step = _MERGES[opcode]
                self._merge(words[at + first : at + (end or count) : step], words[at + 2], effects)
            elif opcode == op.LOAD:
                source = words[at + 3]
                if source in roots:
                    handles = tuple([root for root in roots[source] if root in self._handles])
                    touch(source, 0 if handles else _READ)
                    if handles:
                        roots[words[at + 2]] = handles
            elif opcode == op.EXT_INST:
                if words[at + 3] not in self._quiet_sets:
                    flags = _READ_WRITE if words[at + 4] in _GLSL_WRITERS else _READ
                    for operand in words[at + 5 : at + count]:
                        touch(operand, flags)
            elif opcode == op.FUNCTION_CALL:
                self._add_call(summary, words[at + 3], words[at + 4 : at + count])
            elif opcode == op.FUNCTION_PARAMETER:
                self._add_parameter(summary, words[at + 2], words[at + 1])
            elif opcode == op.VARIABLE:
                if count > 4:  # an initializer
                    touch(words[at + 4], _LOST)
            else:
                break
        return summary

    def _add_call(self, summary: Summary, function: int, arguments: Iterable[int]) -> None:
        call = Call(function, tuple([self.roots.get(argument, ()) for argument in arguments]))
        summary.calls.append(call)
        for roots in call.arguments:
            for root in roots:
                summary.effects.setdefault(root, 0)

    def _add_parameter(self, summary: Summary, id: int, type: int) -> None:
        summary.parameters.append(id)
        self.roots[id] = (id,)
        words, at = self._index.words, self._index.definitions.get(type)
        if at is not None and words[at] & 0xFFFF == op.TYPE_POINTER and words[at + 2] == UNIFORM_CONSTANT:
            self._handles.add(id)

    def _merge(self, operands: Iterable[int], result: int, effects: dict[int, int]) -> None:
        """Let a result come from the roots of several operands."""
        merged = tuple(dict.fromkeys(root for operand in operands for root in self.roots.get(operand, ())))
        lost = len(merged) > MAX_ROOTS
        for root in merged:
            effects[root] = effects.get(root, 0) | (_LOST if lost else 0)
        if merged and not lost:
            self.roots[result] = merged
