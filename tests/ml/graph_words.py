"""Graph modules as lists of instructions, to be changed and written again."""

import random
import struct
from pathlib import Path

from scenario_runner.ml.tosa_operators import OPERATORS

FIXTURES = Path(__file__).parent / "fixtures"
EXT_INST, CONSTANT, COMPOSITE, NULL, DECORATE, TENSOR, INPUT = 12, 43, 44, 46, 71, 4163, 4184
CONSTANTS = (41, 42, CONSTANT, COMPOSITE, NULL, 4461)
NUMBERS = {name: number for number, name in enumerate(OPERATORS)}


class Graph:
    """The instructions of a module: lists of words, the opcode first and the word count left out."""

    def __init__(self, code: bytes) -> None:
        words = struct.unpack(f"<{len(code) // 4}I", code)
        self.head = list(words[:5])
        self.instructions: list[list[int]] = []
        at = 5
        while at < len(words):
            count = words[at] >> 16
            self.instructions.append([words[at] & 0xFFFF, *words[at + 1 : at + count]])
            at += count

    def bytes(self) -> bytes:
        """The module."""
        words = list(self.head)
        for each in self.instructions:
            words += [len(each) << 16 | each[0], *(word & 0xFFFFFFFF for word in each[1:])]
        return struct.pack(f"<{len(words)}I", *words)

    def of(self, *opcodes: int) -> list[list[int]]:
        """All instructions of these opcodes."""
        return [each for each in self.instructions if each[0] in opcodes]

    def operator(self, name: str) -> list[int]:
        """The first instruction of an operator; its operands begin at 5."""
        return next(each for each in self.of(EXT_INST) if each[4] == NUMBERS[name])

    def defining(self, id: int) -> list[int]:
        """The constant or value with this id."""
        return next(each for each in self.of(*CONSTANTS, EXT_INST, INPUT, 4181) if each[2] == id)

    def add(self, opcode: int, type: int, *operands: int) -> int:
        """A new constant before the entry points; returns its id."""
        id = self.head[3]
        self.head[3] += 1
        place = next(i for i, each in enumerate(self.instructions) if each[0] in (4182, 4183))
        self.instructions.insert(place, [opcode, type, id, *operands])
        return id


def mutated(code: bytes, generator: random.Random) -> bytes:
    """The module with one thing changed: an operand, how many there are, a constant, a type, or any word."""
    graph = Graph(code)
    constants = graph.of(*CONSTANTS)
    tensors = [each[1] for each in graph.of(TENSOR)]
    scalars = [each[1] for each in graph.of(20, 21, 22)]
    changed = generator.choice(graph.of(EXT_INST))
    place = generator.randrange(5, len(changed))
    match generator.randrange(9):
        case 0:
            del changed[place]
        case 1:
            changed.insert(place, generator.choice(changed[5:]))
        case 2:
            changed[place] = generator.choice([each[2] for each in graph.of(*CONSTANTS, EXT_INST, 4181, INPUT)])
        case 3:
            changed[place] = graph.add(NULL, generator.choice([*tensors, *scalars]))
        case 4:
            changed[4] = generator.randrange(len(OPERATORS))
        case 5:
            number = generator.choice([each for each in constants if each[0] == CONSTANT])
            number[3] = generator.choice([0, 1, 2, 5, 255, 1 << 20, 1 << 31, 0xFFFFFFFF, number[3] + 1])
        case 6:
            constant = generator.choice(constants)
            constant[:] = [NULL, *constant[1:3]] if generator.randrange(2) else [*constant[:-1], constant[2]]
        case 7:
            changed[1] = generator.choice([*tensors, *scalars])
        case _:
            any_one = generator.choice([each for each in graph.instructions if len(each) > 1])
            any_one[generator.randrange(1, len(any_one))] ^= 1 << generator.randrange(32)
    return graph.bytes()
