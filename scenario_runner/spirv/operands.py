"""Which words of an instruction are ids: the generated table as forms that are quick to look up.

A pattern has a letter for each operand: ``t`` the type of the result, ``r`` the result, ``i`` another id, ``l`` a
literal word, ``s`` a literal text; ``?`` and ``*`` mean at most once and any number of times. The capital letters are
what only a walk over the words can tell: ``M``, ``I``, ``T`` and ``A`` masks whose bits bring operands, ``D`` and ``E``
an enumerant with operands, ``W`` a literal and an id (OpSwitch), ``P`` an id and a literal, ``O`` another opcode with
its operands (OpSpecConstantOp).
"""

from typing import Final, NamedTuple

from scenario_runner.spirv._generated.operands import EXTENSIONS, PARAMETERS, PATTERNS

_ANY_COUNT: Final = 1 << 16


class Form(NamedTuple):
    """Where the ids of an opcode are.

    The instruction has ``least`` to ``most`` words. Ids, results included, are the words from ``first`` to ``behind``
    (0: to the end), and from ``again`` to the end where that is not 0. Instructions that reach beyond ``behind`` and
    have a ``walk`` have more ids than that: it is their pattern. ``result`` is the word of the result (0 where there is
    none), the type of which is before it where ``result`` is 2.
    """

    least: int
    most: int
    result: int
    first: int
    behind: int
    again: int
    walk: str


def _form(pattern: str) -> Form:
    letters = "" if pattern == "-" else pattern
    least = most = 1
    for at, letter in enumerate(letters):
        if letter in "?*":
            continue
        after = letters[at + 1 : at + 2]
        least += after not in ("?", "*")
        most = _ANY_COUNT if after == "*" or letter not in "tril" else most + 1
    result = letters.find("r") + 1
    kinds = letters.replace("t", "i").replace("r", "i")
    lead = len(kinds) - len(kinds.lstrip("l"))
    rest = kinds[lead:].lstrip("i")
    first, behind = lead + 1, len(kinds) - len(rest) + 1
    again, walk = 0, letters
    if not rest.strip("ls?*") and not rest.startswith("?"):
        walk = ""
        if first == behind:
            first = behind = 1  # no ids
        elif rest in ("", "*"):
            behind = 0
    elif not rest.strip("i?"):  # ids that may be left out, up to the end
        behind, walk = 0, ""
    elif not rest.lstrip("l").strip("i*?") and rest.startswith("l"):
        again, walk = behind + len(rest) - len(rest.lstrip("l")), ""
    elif rest.startswith("?"):
        first = behind = 1  # the last of these ids may be missing, with something else in its place
    return Form(least, most, result, first, behind, again, walk)


def _numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _forms() -> dict[int, Form]:
    found: dict[int, Form] = {}
    for line in PATTERNS.strip().replace("\n ", " ").split("\n"):
        pattern, _, opcodes = line.partition(" ")
        found.update(dict.fromkeys(_numbers(opcodes), _form(pattern)))
    return found


FORMS: Final = _forms()
"""Opcode → its form."""

KNOWN_EXTENSIONS: Final = frozenset(EXTENSIONS.split())
"""The extensions that add to the instructions of `FORMS`; others may bring opcodes that are not there."""


def _parameters() -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {letter: {} for letter in "MITADE"}
    for line in PARAMETERS.strip().split("\n"):
        letter, value, operands = line.split()
        found[letter][int(value)] = operands
    return found


OPERANDS_OF: Final = _parameters()
"""Letter of a mask or enumerant → value → the letters of its operands."""
