"""The words of a SPIR-V module, and the positions of instructions.

One pass over the words checks every word count, and notes names, decorations, types, constants, variables, functions
and graphs. Other modules of this package decode them on request (`declarations`, `access`). No number in the module
decides an allocation, so time and memory only grow with the module's bytes. spirv-val checks further validity
(`scenario_runner.shaders.spirv_val`).
"""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv._generated.enumerants import DECORATION_WORDS

_Result = TypeVar("_Result")

MAGIC: Final = 0x07230203
HEADER_WORDS: Final = 5
_BOUND_WORD: Final = 3
MAX_BOUND: Final = 0x3FFFFF
"""Largest id bound: SPIR-V specification, section "Universal Limits"."""

# Instructions to read up to the first function or graph.
_IN_HEAD: Final = frozenset(
    {*op.DEFINITIONS, op.CAPABILITY, op.EXTENSION, op.SOURCE, op.MEMORY_MODEL, op.NAME, op.MEMBER_NAME}
    | {op.DECORATE, op.MEMBER_DECORATE, op.GROUP_DECORATE, op.GROUP_MEMBER_DECORATE}
    | {op.ENTRY_POINT, op.EXECUTION_MODE, op.EXECUTION_MODE_ID, op.GRAPH_ENTRY_POINT}
    | {op.FUNCTION, op.FUNCTION_END, op.GRAPH}
)
# Instructions to read from the first function or graph on.
_IN_BODIES: Final = frozenset({op.FUNCTION, op.FUNCTION_END, op.GRAPH, op.GRAPH_ENTRY_POINT})

FIRST_VENDOR_OPCODE: Final = 4096


def enumerant_name(table: Mapping[int, str], value: int, kind: str) -> str:
    """Return the name of an enumerant; ``kind`` and the number, such as ``Capability4711``, if it is unknown."""
    return table.get(value) or f"{kind}{value}"


class Index:
    """Positions of a module's instructions, as offsets in words from the module's start.

    The constructor raises `SpirvError` if the bytes are not a module. `text` and `definition` raise it for a missing
    text or id.
    """

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "") -> None:
        self.name = name
        self.words, self.big_endian = self._words_of(data)
        self.version = self._version()
        self.bound = self._bound()
        self.offsets: defaultdict[int, list[int]] = defaultdict(list)
        """Offsets of the instructions outside functions, by opcode."""
        self.definitions: dict[int, int] = {}
        self.unknown: dict[int, int] = {}
        self.functions: dict[int, int] = {}
        self.graphs: dict[int, int] = {}
        self._results: dict[object, Any] = {}
        self._scan()
        words, offsets = self.words, self.offsets
        self.capabilities = [words[at + 1] for at in offsets[op.CAPABILITY]]
        self.imports = [words[at + 1] for at in offsets[op.EXT_INST_IMPORT]]
        self.variables = [words[at + 2] for at in (*offsets[op.VARIABLE], *offsets[op.UNTYPED_VARIABLE])]
        self._names = {words[at + 1]: at for at in reversed(offsets[op.NAME])}
        self._member_names = {(words[at + 1], words[at + 2]): at for at in reversed(offsets[op.MEMBER_NAME])}
        self.decorations: dict[int, dict[int, int]] = {}
        self._member_decorations: dict[tuple[int, int], dict[int, int]] = {}
        self._read_decorations()

    def _words_of(self, data: bytes | bytearray | memoryview) -> tuple[array[int], bool]:
        size = data.nbytes if isinstance(data, memoryview) else len(data)
        if size < HEADER_WORDS * 4:
            raise self.error(f"a SPIR-V module has at least 20 bytes, this one has {size}")
        if size % 4:
            raise self.error(f"the size of a SPIR-V module is a multiple of 4 bytes, this one has {size} bytes")
        words = array("I")
        words.frombytes(memoryview(data).cast("B"))
        swapped = words[0] != MAGIC
        if swapped:
            words.byteswap()
            if words[0] != MAGIC:
                first = bytes(memoryview(data).cast("B")[:4])
                raise self.error(
                    f"a SPIR-V module begins with the word 0x07230203, this one with the bytes {first.hex(' ')}"
                )
        return words, swapped == (sys.byteorder == "little")

    def _version(self) -> tuple[int, int]:
        word = self.words[1]
        major, minor = word >> 16 & 0xFF, word >> 8 & 0xFF
        version = f"of the version {word:#010x}" if word & 0xFF0000FF else f"SPIR-V {major}.{minor}"
        if word & 0xFF0000FF or major != 1 or minor > 6:
            raise self.error(f"the module is {version}; this program reads SPIR-V 1.0 to 1.6", "SR-SHADER-015")
        return major, minor

    def _bound(self) -> int:
        bound = self.words[_BOUND_WORD]
        if not 0 < bound <= MAX_BOUND:
            raise self.error(f"the id bound is {bound}, SPIR-V allows 1 to {MAX_BOUND}")
        return bound

    def _scan(self) -> None:
        """Note the instructions outside functions. Check word counts and the ends of functions."""
        words = self.words
        end = len(words)
        noted = _IN_HEAD
        function = 0
        at = HEADER_WORDS
        while at < end:
            word = words[at]
            count = word >> 16
            opcode = word & 0xFFFF
            if not count:
                raise self.error(f"the instruction at word {at} has a word count of 0")
            if opcode in noted:
                self._note(at, opcode, count)
                if opcode == op.FUNCTION or opcode == op.GRAPH:
                    noted = _IN_BODIES
                if opcode == op.FUNCTION and function:
                    raise self.error(f"the function at word {function} has no end before the next one at word {at}")
                if opcode == op.FUNCTION or opcode == op.FUNCTION_END:
                    function = at if opcode == op.FUNCTION else 0
            elif opcode >= FIRST_VENDOR_OPCODE and noted is _IN_HEAD and count > 1 and at + 1 < end:
                # perhaps a type of a newer extension
                self.unknown.setdefault(words[at + 1], at)
            at += count
        if at != end:
            # Only the last instruction can reach past the end. All earlier reads were inside.
            raise self.error(f"the last instruction reaches {at - end} words past the end of the module")
        if function:
            raise self.error(f"the function at word {function} has no end: the module is cut off")

    def _note(self, at: int, opcode: int, count: int) -> None:
        """Note the offset of an instruction, under the opcode and the defined id."""
        left = len(self.words) - at
        if count > left:
            raise self.error(f"the instruction at word {at} has {count} words, but the module ends after {left}")
        if count < op.LEAST_WORDS[opcode]:
            raise self.too_short(at, op.LEAST_WORDS[opcode])
        self.offsets[opcode].append(at)
        bodies = {op.FUNCTION: self.functions, op.GRAPH: self.graphs}
        if opcode in op.DEFINITIONS or opcode in bodies:
            id = self.words[at + (2 if opcode in bodies else op.DEFINITIONS[opcode])]
            table = bodies.get(opcode, self.definitions)
            if not 0 < id < self.bound:
                raise self.error(f"the instruction at word {at} defines the id {id}, the id bound is {self.bound}")
            if id in table or id in self.definitions:
                first = table.get(id) or self.definitions[id]
                raise self.error(f"the id {id} is defined at word {first} and again at word {at}")
            table[id] = at

    def _read_decorations(self) -> None:
        words, offsets = self.words, self.offsets
        for at in offsets[op.DECORATE]:
            self._decorate(self.decorations.setdefault(words[at + 1], {}), at, 2)
        for at in offsets[op.MEMBER_DECORATE]:
            self._decorate(self._member_decorations.setdefault((words[at + 1], words[at + 2]), {}), at, 3)
        # A group's decorations precede the group; the members may be anywhere.
        for at in offsets[op.GROUP_DECORATE]:
            group = self.decorations.get(words[at + 1], {})
            for id in self.instruction(at)[2:]:
                self.decorations[id] = group | self.decorations.get(id, {})
        for at in offsets[op.GROUP_MEMBER_DECORATE]:
            group = self.decorations.get(words[at + 1], {})
            operands = self.instruction(at)[2:]
            for member in zip(operands[::2], operands[1::2], strict=False):
                self._member_decorations[member] = group | self._member_decorations.get(member, {})

    def _decorate(self, decorations: dict[int, int], at: int, place: int) -> None:
        """Add the decoration in the word ``place`` of an instruction if this package reads it."""
        words = self.words
        least = DECORATION_WORDS.get(words[at + place])
        if least is not None:
            if self.count(at) < least + place - 2:
                raise self.too_short(at, least + place - 2)
            decorations[words[at + place]] = words[at + place + 1] if least > 3 else 1

    def cached(self, make: Callable[[Index], _Result]) -> _Result:
        """Return ``make(self)``, computed once and kept with the module."""
        if make not in self._results:
            self._results[make] = make(self)
        result: _Result = self._results[make]
        return result

    def definition(self, id: int, what: str) -> int:
        """Return the offset of the instruction that defines ``id``. ``what`` names the id's role in the error."""
        at = self.definitions.get(id)
        if at is None:
            raise self.error(f"{what} is the id {id}, which nothing in the module defines")
        return at

    def instructions(self, at: int = HEADER_WORDS) -> Iterator[int]:
        """Iterate over the offsets of all instructions from an offset on."""
        words, end = self.words, len(self.words)
        while at < end:
            yield at
            at += words[at] >> 16

    def opcode(self, at: int) -> int:
        """Return the opcode of the instruction at an offset."""
        return self.words[at] & 0xFFFF

    def count(self, at: int) -> int:
        """Return the word count of the instruction at an offset."""
        return self.words[at] >> 16

    def instruction(self, at: int) -> array[int]:
        """Return the words of the instruction at an offset."""
        return self.words[at : at + self.count(at)]

    def text(self, at: int, word: int) -> str:
        """Return the text literal at a word of the instruction at an offset."""
        return self.string_and_end(at + word, at + self.count(at))[0]

    def string_and_end(self, at: int, end: int) -> tuple[str, int]:
        """Return the text of a literal, and the offset after it. Bytes that are not UTF-8 become U+FFFD."""
        text = self.words[at:end].tobytes()
        length = text.find(b"\0")
        if length < 0:
            raise self.error(f"the text at word {at} does not end with a zero byte")
        return text[:length].decode("utf-8", "replace"), at + length // 4 + 1

    def name_of(self, id: int) -> str:
        """Return the OpName of an id; empty if missing."""
        at = self._names.get(id)
        return "" if at is None else self.text(at, 2)

    def member_name_of(self, struct: int, member: int) -> str:
        """Return the OpMemberName of a structure's member; empty if missing."""
        at = self._member_names.get((struct, member))
        return "" if at is None else self.text(at, 3)

    def decorations_of(self, id: int) -> dict[int, int]:
        """Return the literal of each decoration (1 without a literal), including OpGroupDecorate."""
        return self.decorations.get(id, {})

    def member_decorations_of(self, struct: int, member: int) -> dict[int, int]:
        """Return the literal of each decoration of a member (1 without a literal), including OpGroupMemberDecorate."""
        return self._member_decorations.get((struct, member), {})

    def execution_modes(self, function: int) -> list[int]:
        """Return the offsets of an entry point's execution modes, by the function's id."""
        offsets = (*self.offsets[op.EXECUTION_MODE], *self.offsets[op.EXECUTION_MODE_ID])
        return [at for at in offsets if self.words[at + 1] == function]

    def error(self, message: str, code: str = SpirvError.code) -> SpirvError:
        """Make an error with the module's name before the message."""
        return SpirvError(f"{self.name}: {message}" if self.name else message, code=code)

    def too_short(self, at: int, least: int) -> SpirvError:
        """Make the error for an instruction that lacks operands."""
        return self.error(
            f"the instruction at word {at} (opcode {self.opcode(at)}) has {self.count(at)} words, "
            f"it needs {least}{' within the module' if at + least > len(self.words) else ''}"
        )


_PARTITIONED: Final = 5297  # GroupNonUniformPartitionedNV, or …EXT
_PARTITIONED_DECLARATION: Final = array("I", (2 << 16 | op.CAPABILITY, _PARTITIONED)).tobytes()
_PARTITIONED_EXTENSION: Final = "_shader_subgroup_partitioned"
_PARTITION: Final = 5296  # OpGroupNonUniformPartitionNV
_GROUP_OPERATIONS: Final = range(349, 365)  # OpGroupNonUniformIAdd to OpGroupNonUniformLogicalXor
_PARTITIONED_OPERATIONS: Final = (6, 7, 8)  # PartitionedReduceNV and both scans


def idle_partitions(index: Index) -> set[int]:
    """Return the offsets that declare partitioned subgroup operations, if no instruction uses the declaration.

    dxc declares them for each reduction in a subgroup (WaveActiveSum).
    """
    if _PARTITIONED not in index.capabilities:
        return set()
    words = index.words
    for at in index.instructions():
        opcode = index.opcode(at)
        if opcode == _PARTITION:
            return set()
        if opcode in _GROUP_OPERATIONS and index.count(at) > 4 and words[at + 4] in _PARTITIONED_OPERATIONS:
            return set()
    offsets = index.offsets
    capabilities = {at for at in offsets[op.CAPABILITY] if words[at + 1] == _PARTITIONED}
    return capabilities | {at for at in offsets[op.EXTENSION] if index.text(at, 1).endswith(_PARTITIONED_EXTENSION)}


def without_idle_partitions(code: bytes) -> bytes:
    """Remove the declarations found by `idle_partitions` from a module. Return a damaged module unchanged."""
    if _PARTITIONED_DECLARATION not in code:
        return code
    with suppress(SpirvError):
        rewriting = Rewriting(index := Index(code))
        rewriting.left_out |= idle_partitions(index)
        return rewriting.result().tobytes()
    return code


class Rewriting:
    """Changes of a module.

    ``words`` are the module's words, free to change. Offsets of instructions stay the same until `result`.
    """

    def __init__(self, index: Index) -> None:
        self.words = array(index.words.typecode, index.words)
        self.left_out: set[int] = set()
        """Offsets of instructions."""
        self._bound = index.bound
        self._behind: dict[int, list[Sequence[int]]] = {}

    def new_id(self) -> int:
        """Return an unused id."""
        self._bound += 1
        return self._bound - 1

    def put(self, at: int, instruction: Sequence[int]) -> None:
        """Add an instruction after the instruction at ``at``, and after earlier additions there."""
        self._behind.setdefault(at, []).append(instruction)

    def define(self, at: int, opcode: int, operands: Sequence[int], id: int = 0) -> int:
        """Add an instruction with the first operand ``id``, a new id by default. Return the id."""
        id = id or self.new_id()
        self.put(at, (len(operands) + 2 << 16 | opcode, id, *operands))
        return id

    def withdraw(self, at: int, id: int) -> None:
        """Remove the definition of ``id`` at ``at``: the module's, or an added definition."""
        added = self._behind.get(at, [])
        kept = [instruction for instruction in added if instruction[1] != id]
        if len(kept) < len(added):
            self._behind[at] = kept
        else:
            self.left_out.add(at)

    def result(self) -> array[int]:
        """Return the words of the changed module."""
        words, done = self.words, HEADER_WORDS
        changed = words[:HEADER_WORDS]
        changed[_BOUND_WORD] = self._bound
        for at in sorted(self._behind.keys() | self.left_out):
            end = at + (words[at] >> 16)
            changed += words[done : at if at in self.left_out else end]
            for instruction in self._behind.get(at, ()):
                changed.extend(instruction)
            done = end
        return changed + words[done:]
