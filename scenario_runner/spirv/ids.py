"""Every id of a module, function bodies included: defined once, used only where defined; and members that there are.

Drivers follow ids without looking, so that a module with a wrong one ends the process. This looks at all instructions
of the grammar, and costs some 0.5 µs for each of them.

Source: SPIR-V specification, sections "Instructions", "Universal Validation Rules" and "Composite Instructions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.spirv import opcodes as op
from scenario_runner.spirv.index import HEADER_WORDS
from scenario_runner.spirv.members import MEMBERS, MemberCheck
from scenario_runner.spirv.operands import FORMS, KNOWN_EXTENSIONS, OPERANDS_OF
from scenario_runner.spirv.type_uses import check_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenario_runner.spirv.index import Index

_FIRST_VENDOR_OPCODE = 4096
_EXT_INST = (op.EXT_INST, 4433)  # and OpExtInstWithForwardRefsKHR
# Sets whose instructions have literals among their operands; those of all others are ids.
_LITERAL_SETS = ("OpenCL.DebugInfo.", "DebugInfo")


def check_ids(index: Index) -> None:
    """Look at every instruction of a module. Raises SpirvError for the first thing that is wrong."""
    _Ids(index).check()


class _Ids:
    def __init__(self, index: Index) -> None:
        self._index = index
        self._words = index.words
        # The operands of these calls are not looked at.
        self._literal_sets = {id for id in index.imports if self._set_name(id).startswith(_LITERAL_SETS)}
        names = [index.string(at + 1, at + index.count(at)) for at in index.extensions]
        self._is_newer = not KNOWN_EXTENSIONS.issuperset(names)
        self._types: dict[int, int] = {}  # id → the id of its type, 0 for what has none
        self._results = 0

    def _set_name(self, id: int) -> str:
        at = self._index.definitions[id]
        return self._index.string(at + 2, at + self._index.count(at))

    def check(self) -> None:
        index, words, forms, types, literal_sets = self._index, self._words, FORMS, self._types, self._literal_sets
        used: set[int] = set()
        members: list[int] = []
        unknown: set[int] = set()
        at, end, results = HEADER_WORDS, len(words), 0
        while at < end:
            word = words[at]
            opcode, count = word & 0xFFFF, word >> 16
            form = forms.get(opcode)
            if form is None:
                self._check_unknown(at, opcode)
                unknown.update(words[at + 1 : at + count])
                at += count
                continue
            least, most, result, first, behind, again, walk = form
            if not least <= count <= most:
                raise self._bad_count(at, least, most)
            if not behind:
                used.update(words[at + first : at + count])
            elif walk and count > behind:
                used.update(self._walk(at, walk))
            else:
                used.update(words[at + first : at + behind])
                if again and not (literal_sets and opcode in _EXT_INST and words[at + 3] in literal_sets):
                    used.update(words[at + again : at + count])
            if result == 2:
                types[words[at + 2]] = words[at + 1]
                results += 1
            elif result:
                types[words[at + 1]] = 0
                results += 1
            if opcode in MEMBERS:
                members.append(at)
            at += count
        if len(types) != results:
            raise self._defined_twice()
        undefined = used - types.keys() - unknown
        if undefined:
            raise self._undefined(undefined)
        if max(types, default=0) >= index.bound:
            raise index.error(f"the id {max(types)} is defined, the id bound is {index.bound}")
        check_types(index, set(types.values()) - {0})
        MemberCheck(index, types).check(members)

    def _check_unknown(self, at: int, opcode: int) -> None:
        if opcode < _FIRST_VENDOR_OPCODE or not self._is_newer:
            raise self._index.error(f"the instruction at word {at} has the opcode {opcode}, which SPIR-V does not have")

    def _walk(self, at: int, pattern: str) -> Iterator[int]:
        """The ids of one instruction, results included, by a walk over its words."""
        words = self._words
        place, end = at + 1, at + (words[at] >> 16)
        for position, letter in enumerate(pattern):
            if letter in "?*" or place >= end:
                continue
            repeated = pattern[position + 1 : position + 2] == "*"
            if letter == "i" and repeated:
                yield from words[place:end]
                place = end
            elif letter in "tri":
                yield words[place]
                place += 1
            elif letter == "l":
                place = end if repeated else place + 1
            elif letter == "s":
                place = self._index.string_and_end(place, end)[1]
            elif letter == "P":
                yield from words[place:end:2]
                place = end
            elif letter == "W":
                yield from self._switch_targets(at, place, end)
                place = end
            elif letter == "O":
                form = FORMS.get(words[place])
                if form is not None and form.result == 2:
                    # its operands are those of the opcode, without type and result
                    stop = end if not form.behind else min(end, place + form.behind - 2)
                    yield from words[place + 1 : stop]
                place = end
            elif letter in "DE":
                ids = OPERANDS_OF[letter].get(words[place], "")
                yield from words[place + 1 : min(end, place + 1 + len(ids))]
                place = end
            else:
                mask, place = words[place], place + 1
                for bit, operands in OPERANDS_OF[letter].items():
                    if mask & bit:
                        if place + len(operands) > end:
                            raise self._index.error(
                                f"the instruction at word {at} (opcode {words[at] & 0xFFFF}) lacks an operand of its"
                                f" mask {mask:#x}"
                            )
                        if operands != "l":
                            yield from words[place : place + len(operands)]
                        place += len(operands)

    def _switch_targets(self, at: int, place: int, end: int) -> Iterator[int]:
        """The labels of OpSwitch: each stands behind a literal, which takes as many words as the selector."""
        width = self._width(self._types.get(self._words[at + 1], 0))
        step = 1 + max(1, -(-width // 32))
        if (end - place) % step:
            raise self._index.error(f"the switch at word {at} ends in the middle of a case")
        yield from self._words[place + step - 1 : end : step]

    def _width(self, type: int) -> int:
        at = self._index.definitions.get(type)
        if at is None or self._index.opcode(at) != op.TYPE_INT:
            return 32
        return self._words[at + 2]

    # What is wrong, said once it is known that something is ---------------------------------------------------------

    def _bad_count(self, at: int, least: int, most: int) -> Exception:
        index = self._index
        if index.count(at) < least:
            return index.too_short(at, least)
        return index.error(
            f"the instruction at word {at} (opcode {index.opcode(at)}) has {index.count(at)} words, it has {most} at"
            " most"
        )

    def _instructions(self) -> Iterator[tuple[int, int, int]]:
        at = HEADER_WORDS
        while at < len(self._words):
            opcode, count = self._words[at] & 0xFFFF, self._words[at] >> 16
            yield at, opcode, count
            at += count

    def _defined_twice(self) -> Exception:
        seen: dict[int, int] = {}
        for at, opcode, _ in self._instructions():
            form = FORMS.get(opcode)
            if form is not None and form.result:
                id = self._words[at + form.result]
                if id in seen:
                    return self._index.error(f"the id {id} is defined at word {seen[id]} and again at word {at}")
                seen[id] = at
        raise AssertionError("some id is defined twice")

    def _undefined(self, undefined: set[int]) -> Exception:
        for at, opcode, count in self._instructions():
            form = FORMS.get(opcode)
            if form is None:
                continue
            if form.walk and count > form.behind:
                ids = list(self._walk(at, form.walk))
            else:
                ids = list(self._words[at + form.first : at + (form.behind or count)])
                if form.again:
                    ids += self._words[at + form.again : at + count]
            wrong = next((id for id in ids if id in undefined), None)
            if wrong is not None:
                return self._index.error(
                    f"the instruction at word {at} (opcode {opcode}) uses the id {wrong}, which nothing in the module"
                    " defines"
                )
        raise AssertionError("some id is not defined")
