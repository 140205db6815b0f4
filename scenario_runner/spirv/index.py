"""The words of one SPIR-V module and where its instructions lie.

One pass over the words checks every word count and notes where names, decorations, types, constants, variables,
functions and graphs are; their contents are decoded by whoever asks (`types`, `constants`, `access`, `graph`).
Nothing is sized by a number that the module states, so time and memory grow with the number of its bytes only.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from typing import Any, Final, TypeVar

from scenario_runner.errors import SpirvError
from scenario_runner.spirv import decorations
from scenario_runner.spirv import opcodes as op

_Result = TypeVar("_Result")

MAGIC: Final = 0x07230203
HEADER_WORDS: Final = 5
MAX_BOUND: Final = 0x3FFFFF
"""Largest id bound: SPIR-V specification, section "Universal Limits"."""

# Opcodes outside functions that define an id → (the word that holds it, the words the instruction has at least).
DEFINITIONS: Final = {
    op.STRING: (1, 3),
    op.EXT_INST_IMPORT: (1, 3),
    op.DECORATION_GROUP: (1, 2),
    op.TYPE_VOID: (1, 2),
    op.TYPE_BOOL: (1, 2),
    op.TYPE_INT: (1, 4),
    op.TYPE_FLOAT: (1, 3),
    op.TYPE_VECTOR: (1, 4),
    op.TYPE_MATRIX: (1, 4),
    op.TYPE_IMAGE: (1, 9),
    op.TYPE_SAMPLER: (1, 2),
    op.TYPE_SAMPLED_IMAGE: (1, 3),
    op.TYPE_ARRAY: (1, 4),
    op.TYPE_RUNTIME_ARRAY: (1, 3),
    op.TYPE_STRUCT: (1, 2),
    op.TYPE_POINTER: (1, 4),
    op.TYPE_FUNCTION: (1, 3),
    **dict.fromkeys((op.TYPE_OPAQUE, *range(34, op.TYPE_PIPE + 1)), (1, 2)),
    op.TYPE_PIPE_STORAGE: (1, 2),
    op.TYPE_NAMED_BARRIER: (1, 2),
    op.TYPE_TENSOR: (1, 3),
    op.TYPE_GRAPH: (1, 3),
    op.TYPE_UNTYPED_POINTER: (1, 3),
    op.TYPE_COOPERATIVE_MATRIX: (1, 2),
    op.TYPE_RAY_QUERY: (1, 2),
    op.TYPE_HIT_OBJECT: (1, 2),
    op.TYPE_COOPERATIVE_VECTOR: (1, 2),
    op.TYPE_ACCELERATION_STRUCTURE: (1, 2),
    op.TYPE_COOPERATIVE_MATRIX_NV: (1, 2),
    op.TYPE_TENSOR_LAYOUT: (1, 2),
    op.TYPE_TENSOR_VIEW: (1, 2),
    op.UNDEF: (2, 3),
    op.EXT_INST: (2, 5),
    op.CONSTANT_TRUE: (2, 3),
    op.CONSTANT_FALSE: (2, 3),
    op.CONSTANT: (2, 4),
    op.CONSTANT_COMPOSITE: (2, 3),
    op.CONSTANT_SAMPLER: (2, 3),
    op.CONSTANT_NULL: (2, 3),
    op.SPEC_CONSTANT_TRUE: (2, 3),
    op.SPEC_CONSTANT_FALSE: (2, 3),
    op.SPEC_CONSTANT: (2, 4),
    op.SPEC_CONSTANT_COMPOSITE: (2, 3),
    op.SPEC_CONSTANT_OP: (2, 4),
    op.VARIABLE: (2, 4),
    op.UNTYPED_VARIABLE: (2, 4),
    op.CONSTANT_COMPOSITE_REPLICATE: (2, 4),
    op.SPEC_CONSTANT_COMPOSITE_REPLICATE: (2, 4),
    op.GRAPH_CONSTANT: (2, 4),
}

# The other opcodes outside functions that are read → the words they have at least.
_OTHERS: Final = {
    op.NAME: 3,
    op.MEMBER_NAME: 4,
    op.EXTENSION: 2,
    op.MEMORY_MODEL: 3,
    op.ENTRY_POINT: 4,
    op.EXECUTION_MODE: 3,
    op.EXECUTION_MODE_ID: 3,
    op.CAPABILITY: 2,
    op.DECORATE: 3,
    op.MEMBER_DECORATE: 4,
    op.GROUP_DECORATE: 2,
    op.GROUP_MEMBER_DECORATE: 2,
    op.GRAPH_ENTRY_POINT: 3,
}

_FIRST_VENDOR_OPCODE: Final = 4096

# What ends a block, OpBranch to OpUnreachable (SPIR-V specification, section "Control-Flow Instructions"); what a
# function without blocks has; and OpLine and OpNoLine, which may stand anywhere.
_BEFORE_THE_END: Final = frozenset((*range(249, 256), op.FUNCTION, op.FUNCTION_PARAMETER, 8, 317))


class Index:
    """Where everything lies in a module's words. Offsets count words from the start of the module.

    Raises `SpirvError` from the constructor when the bytes are not a module, and from `string` and `definition`
    when what is looked up is not there.
    """

    __slots__ = (
        "_kept",
        "big_endian",
        "bound",
        "capabilities",
        "decorations",
        "definitions",
        "entry_points",
        "execution_modes",
        "extensions",
        "functions",
        "graph_constants",
        "graph_entry_points",
        "graphs",
        "groups",
        "imports",
        "member_decorations",
        "member_groups",
        "member_names",
        "memory_model",
        "name",
        "names",
        "spec_constants",
        "unknown",
        "variables",
        "version",
        "words",
    )

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "") -> None:
        self.name = name
        self.words, self.big_endian = self._words_of(data)
        self.version = self._version()
        self.bound = self._bound()
        self.capabilities: list[int] = []
        self.extensions: list[int] = []
        self.imports: list[int] = []
        self.memory_model: int | None = None
        self.entry_points: list[int] = []
        self.execution_modes: dict[int, list[int]] = {}
        self.names: dict[int, int] = {}
        self.member_names: dict[int, dict[int, int]] = {}
        self.decorations: dict[int, dict[int, int]] = {}
        self.member_decorations: dict[int, dict[int, dict[int, int]]] = {}
        self.groups: dict[int, list[int]] = {}
        self.member_groups: dict[int, dict[int, list[int]]] = {}
        self.definitions: dict[int, int] = {}
        self.unknown: dict[int, int] = {}
        self.spec_constants: list[int] = []
        self.variables: list[int] = []
        self.functions: dict[int, int] = {}
        self.graph_entry_points: list[int] = []
        self.graph_constants: list[int] = []
        self.graphs: dict[int, int] = {}
        self._kept: dict[object, Any] = {}
        self._scan_functions(self._scan_head())

    # The header ------------------------------------------------------------------------------------------------

    def _words_of(self, data: bytes | bytearray | memoryview) -> tuple[array[int], bool]:
        size = data.nbytes if isinstance(data, memoryview) else len(data)
        if size < HEADER_WORDS * 4:
            raise self.error(f"a SPIR-V module has at least 20 bytes, this one has {size}")
        if size % 4:
            raise self.error(f"the size of a SPIR-V module is a multiple of 4 bytes, this one has {size} bytes")
        words = array("I")
        if words.itemsize != 4:  # pragma: no cover - no CPython platform has another size
            words = array("L")
        words.frombytes(memoryview(data).cast("B"))
        order = sys.byteorder
        if words[0] != MAGIC:
            words.byteswap()
            order = "big" if order == "little" else "little"
            if words[0] != MAGIC:
                first = bytes(memoryview(data).cast("B")[:4])
                raise self.error(
                    f"a SPIR-V module begins with the word 0x07230203, this one with the bytes {first.hex(' ')}"
                )
        return words, order == "big"

    def _version(self) -> tuple[int, int]:
        word = self.words[1]
        major, minor = word >> 16 & 0xFF, word >> 8 & 0xFF
        if word & 0xFF0000FF or major != 1 or minor > 6:
            raise self.error(
                f"SPIR-V 1.0 to 1.6 can be read, the version word of this module is {word:#010x}", "SR-SHADER-015"
            )
        return major, minor

    def _bound(self) -> int:
        bound = self.words[3]
        if not 0 < bound <= MAX_BOUND:
            raise self.error(f"the id bound is {bound}, SPIR-V allows 1 to {MAX_BOUND}")
        return bound

    # Everything before the functions ---------------------------------------------------------------------------

    def _scan_head(self) -> int:
        """Read everything before the first function or graph; returns where that begins."""
        words = self.words
        end = len(words)
        definitions, variables, bound = self.definitions, self.variables, self.bound
        at = HEADER_WORDS
        while at < end:
            word = words[at]
            count = word >> 16
            opcode = word & 0xFFFF
            if not count or at + count > end:
                raise self._bad_count(at)
            form = DEFINITIONS.get(opcode)
            if form is not None:
                slot, least = form
                if count < least:
                    raise self.too_short(at, least)
                id = words[at + slot]
                if not 0 < id < bound:
                    raise self.error(f"the instruction at word {at} defines the id {id}, the id bound is {bound}")
                if id in definitions:
                    raise self.error(f"the id {id} is defined at word {definitions[id]} and again at word {at}")
                definitions[id] = at
                if slot == 2:
                    if opcode == op.VARIABLE or opcode == op.UNTYPED_VARIABLE:
                        variables.append(id)
                    elif op.SPEC_CONSTANT_TRUE <= opcode <= op.SPEC_CONSTANT:
                        self.spec_constants.append(id)
                    elif opcode == op.GRAPH_CONSTANT:
                        self.graph_constants.append(id)
                elif opcode == op.EXT_INST_IMPORT:
                    self.imports.append(id)
            elif opcode == op.FUNCTION or opcode == op.GRAPH:
                break
            elif opcode in _OTHERS:
                if count < _OTHERS[opcode]:
                    raise self.too_short(at, _OTHERS[opcode])
                self._note(opcode, at, count)
            elif opcode >= _FIRST_VENDOR_OPCODE and count > 1:
                # Perhaps a type of an extension that is newer than this reader: remembered, in case somebody uses it.
                self.unknown.setdefault(words[at + 1], at)
            at += count
        return at

    def _note(self, opcode: int, at: int, count: int) -> None:
        words = self.words
        target = words[at + 1]
        if opcode == op.DECORATE:
            least = decorations.LEAST_WORDS.get(words[at + 2])
            if least is not None:
                if count < least:
                    raise self.too_short(at, least)
                self.decorations.setdefault(target, {})[words[at + 2]] = words[at + 3] if least > 3 else 1
        elif opcode == op.MEMBER_DECORATE:
            least = decorations.LEAST_WORDS.get(words[at + 3])
            if least is not None:
                if count <= least:
                    raise self.too_short(at, least + 1)
                members = self.member_decorations.setdefault(target, {})
                members.setdefault(words[at + 2], {})[words[at + 3]] = words[at + 4] if least > 3 else 1
        elif opcode == op.NAME:
            self.names.setdefault(target, at + 2)
        elif opcode == op.MEMBER_NAME:
            self.member_names.setdefault(target, {}).setdefault(words[at + 2], at + 3)
        elif opcode == op.GROUP_DECORATE:
            for decorated in words[at + 2 : at + count]:
                self.groups.setdefault(decorated, []).append(target)
        elif opcode == op.GROUP_MEMBER_DECORATE:
            for position in range(at + 2, at + count - 1, 2):
                member_groups = self.member_groups.setdefault(words[position], {})
                member_groups.setdefault(words[position + 1], []).append(target)
        elif opcode == op.CAPABILITY:
            self.capabilities.append(target)
        elif opcode == op.EXTENSION:
            self.extensions.append(at)
        elif opcode == op.MEMORY_MODEL:
            self.memory_model = at
        elif opcode == op.ENTRY_POINT:
            self.entry_points.append(at)
        elif opcode == op.GRAPH_ENTRY_POINT:
            self.graph_entry_points.append(at)
        else:
            self.execution_modes.setdefault(target, []).append(at)

    # Functions and graphs --------------------------------------------------------------------------------------

    def _scan_functions(self, at: int) -> None:
        """Check the word counts and the blocks of the rest, and note where functions and graphs begin."""
        words = self.words
        end = len(words)
        function = previous = opcode = 0
        while at < end:
            word = words[at]
            count = word >> 16
            if not count:
                raise self._bad_count(at)
            previous, opcode = opcode, word & 0xFFFF
            if opcode == op.FUNCTION:
                if function:
                    raise self.error(f"the function at word {function} has no end before the next one at word {at}")
                self._add(self.functions, at, count, 5)
                function = at
            elif opcode == op.FUNCTION_END:
                # drivers trust that blocks end: a module cut off inside of one crashes them
                if not function or (previous not in _BEFORE_THE_END and previous < _FIRST_VENDOR_OPCODE):
                    raise self.error(f"the end of a function at word {at} does not follow the end of a block")
                function = 0
            elif opcode == op.GRAPH:
                self._add(self.graphs, at, count, 3)
            elif opcode == op.GRAPH_ENTRY_POINT:
                if count < 3:
                    raise self.too_short(at, 3)
                self.graph_entry_points.append(at)
            at += count
        if at != end:
            # Only the last instruction can reach past the end, so nothing above read further than `end` unchecked.
            raise self.error(f"the last instruction reaches {at - end} words past the end of the module")
        if function:
            raise self.error(f"the function at word {function} has no end: the module is cut off")

    def _add(self, table: dict[int, int], at: int, count: int, least: int) -> None:
        if count < least or at + count > len(self.words):
            raise self.too_short(at, least)
        id = self.words[at + 2]
        if not 0 < id < self.bound:
            raise self.error(f"the instruction at word {at} defines the id {id}, the id bound is {self.bound}")
        if id in table or id in self.definitions:
            raise self.error(f"the id {id} is defined twice, the second time at word {at}")
        table[id] = at

    def once(self, make: Callable[[Index], _Result]) -> _Result:
        """What ``make`` gives for this module: worked out at the first call, and kept with the module."""
        if make not in self._kept:
            self._kept[make] = make(self)
        result: _Result = self._kept[make]
        return result

    # Looking things up -----------------------------------------------------------------------------------------

    def definition(self, id: int, what: str) -> int:
        """The offset of the instruction that defines ``id``; ``what`` says in the error who wants it."""
        at = self.definitions.get(id)
        if at is None:
            raise self.error(f"{what} is the id {id}, which nothing in the module defines")
        return at

    def opcode(self, at: int) -> int:
        """The opcode of the instruction at an offset."""
        return self.words[at] & 0xFFFF

    def count(self, at: int) -> int:
        """The number of words of the instruction at an offset, its first one included."""
        return self.words[at] >> 16

    def string(self, at: int, end: int) -> str:
        """The text of a literal that begins at word ``at`` of an instruction that ends before word ``end``."""
        return self.string_and_end(at, end)[0]

    def string_and_end(self, at: int, end: int) -> tuple[str, int]:
        """The text of a literal and the offset of the first word behind it; bytes that are not UTF-8 become U+FFFD."""
        part = self.words[at:end]
        if sys.byteorder == "big":  # pragma: no cover - the first character is in the low-order byte of a word
            part.byteswap()
        text = part.tobytes()
        length = text.find(b"\0")
        if length < 0:
            raise self.error(f"the text at word {at} does not end with a zero byte")
        return text[:length].decode("utf-8", "replace"), at + length // 4 + 1

    def name_of(self, id: int) -> str:
        """The OpName of an id; empty when it has none."""
        at = self.names.get(id)
        return self.string(at, at - 2 + self.count(at - 2)) if at is not None else ""

    def member_name_of(self, struct: int, member: int) -> str:
        """The OpMemberName of a structure's member; empty when it has none."""
        at = self.member_names.get(struct, {}).get(member)
        return self.string(at, at - 3 + self.count(at - 3)) if at is not None else ""

    def decorations_of(self, id: int) -> dict[int, int]:
        """Decoration → its literal (1 for one without), OpGroupDecorate included."""
        own = self.decorations.get(id, {})
        groups = self.groups.get(id)
        if not groups:
            return own
        merged: dict[int, int] = {}
        for group in groups:
            merged.update(self.decorations.get(group, {}))
        return {**merged, **own}

    def member_decorations_of(self, struct: int, member: int) -> dict[int, int]:
        """Decoration → its literal (1 for one without) of a structure's member, OpGroupMemberDecorate included."""
        own = self.member_decorations.get(struct, {}).get(member, {})
        groups = self.member_groups.get(struct, {}).get(member)
        if not groups:
            return own
        merged: dict[int, int] = {}
        for group in groups:
            merged.update(self.decorations.get(group, {}))
        return {**merged, **own}

    # Errors ----------------------------------------------------------------------------------------------------

    def error(self, message: str, code: str = SpirvError.code) -> SpirvError:
        """An error of ours that begins with the module's name, where it has one."""
        return SpirvError(f"{self.name}: {message}" if self.name else message, code=code)

    def too_short(self, at: int, least: int) -> SpirvError:
        """The error for an instruction that lacks operands."""
        return self.error(
            f"the instruction at word {at} (opcode {self.opcode(at)}) has {self.count(at)} words, "
            f"it needs {least}{' within the module' if at + least > len(self.words) else ''}"
        )

    def _bad_count(self, at: int) -> SpirvError:
        count = self.count(at)
        if not count:
            return self.error(f"the instruction at word {at} has a word count of 0")
        return self.error(
            f"the instruction at word {at} has {count} words, but the module ends after {len(self.words) - at}"
        )
