"""Operators of graphs against the table of TOSA: what converters write passes, everything else is refused and named."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from scenario_runner.errors import SpirvError
from scenario_runner.tosa import COUNT
from tests.tosa.graph_words import COMPOSITE, CONSTANT, EXT_INST, FIXTURES, NULL, TENSOR, Graph, mutated

TESTS = Path(__file__).resolve().parents[1]
OPERATORS = (FIXTURES / "operators.spv").read_bytes()
SMALL = [path.read_bytes() for path in sorted((TESTS / "spirv" / "fixtures").glob("graph*.spv"))]


def test_every_operator_that_a_converter_writes_is_right() -> None:
    """One graph with all 66 operators in the types that the converter takes passes, with no shape left open."""
    graph = Graph(OPERATORS)
    assert {each[4] for each in graph.of(EXT_INST)} == set(range(COUNT))
    assert COUNT == 66
    assert graph.check() is False


def less(name: str) -> Callable[[Graph], None]:
    """Drops the operator's last operand."""
    return lambda graph: graph.operator(name).pop()  # type: ignore[return-value]


def more(name: str) -> Callable[[Graph], None]:
    """Repeats the operator's last operand."""
    return lambda graph: graph.operator(name).append(graph.operator(name)[-1])


def operand(name: str, number: int, opcode: int, *words: int) -> Callable[[Graph], None]:
    """Gives the operator a new constant, of the type of the operand that it replaces unless a word says it."""

    def change(graph: Graph) -> None:
        type = graph.defining(graph.operator(name)[5 + number])[1]
        graph.operator(name)[5 + number] = graph.add(opcode, type, *words)

    return change


def swapped(name: str, number: int, other: int) -> Callable[[Graph], None]:
    """Gives the operator one of its operands in place of another."""

    def change(graph: Graph) -> None:
        graph.operator(name)[5 + number] = graph.operator(name)[5 + other]

    return change


def result_like(name: str, other: int) -> Callable[[Graph], None]:
    """Gives the result the type of an operand."""

    def change(graph: Graph) -> None:
        graph.operator(name)[1] = graph.defining(graph.operator(name)[5 + other])[1]

    return change


def part(name: str, number: int, index: int, value: int) -> Callable[[Graph], None]:
    """Replaces one number of a constant that the operator has."""

    def change(graph: Graph) -> None:
        constant = graph.defining(graph.operator(name)[5 + number])
        u32 = graph.defining(constant[3])[1]
        new = graph.add(CONSTANT, u32, value)
        parts = list(constant[3:])
        parts[index] = new
        graph.operator(name)[5 + number] = graph.add(COMPOSITE, constant[1], *parts)

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (less("CONV2D"), "CONV2D {} has 9 operands, expected 10: pad, stride, dilation, acc_type, local_bound, input,"
                         " weight, bias, input_zp, weight_zp"),
        (more("ADD"), "ADD {} has 3 operands, expected 2: input1, input2"),
        (swapped("CONV2D", 0, 5), "CONV2D {} has pad from an input, expected a constant"),
        (swapped("CONV2D", 0, 1), "CONV2D {} has a tensor of i32 [2] as pad, expected a tensor of i32 [4]"),
        (swapped("CONV2D", 3, 4), "CONV2D {} has one bool as acc_type, expected one i32"),
        (operand("CONV2D", 1, NULL), "CONV2D {} has 0 in stride, expected 1 or more"),
        (operand("CONV2D", 3, CONSTANT, 7), "CONV2D {} has 7 in acc_type, expected 1 to 4"),
        (operand("CONV2D", 3, CONSTANT, 1), "CONV2D {} is used with the element types f32/f32/f32/INT32, expected one"
                                            " of: f32/f32/f32/FP32"),
        (operand("CONV2D", 4, NULL), "CONV2D {} has OpConstantNull as local_bound, expected OpConstantTrue or"
                                     " OpConstantFalse"),
        (swapped("CONV2D", 6, 5), "CONV2D {} has a kernel of 15 in width, more than the 8 elements with 1 and 1 of"
                                " padding"),
        (part("CONV2D", 0, 0, 3), "CONV2D {} gives a tensor of f32 [1, 5, 6, 4], but its inputs make [1, 6, 6, 4]"),
        (swapped("CONV2D", 7, 6), "CONV2D {} has a tensor of f32 [4, 3, 3, 3] as bias, expected 1 dimension"),
        (swapped("CONV2D", 8, 7), "CONV2D {} has a tensor of f32 [4] as input_zp, expected one element"),
        (result_like("CONV2D", 7), "CONV2D {} gives a tensor of f32 [4], expected 4 dimensions"),
        (result_like("CONV2D", 3), "gives the type"),
        (swapped("CLAMP", 2, 0), "CLAMP {} has one f32 as nan_mode, expected one i32"),
        (operand("ARGMAX", 0, CONSTANT, 5), "ARGMAX {} has the axis 5, but its input has 3 dimensions"),
        (swapped("GATHER", 1, 0), "GATHER {} has indices of"),
        (swapped("RESHAPE", 1, 0), "RESHAPE {} has shape from an input, expected a constant"),
        (part("RESHAPE", 1, 0, 5), "RESHAPE {} makes the shape [5, 4] of [2, 3, 4], which has another number of"
                                   " elements"),
        (part("PAD", 1, 1, 0xFFFFFFFF), "PAD {} has the padding [1, -1, 0, 2], expected 0 or more"),
        (part("SLICE", 1, 0, 3), "SLICE {} takes 2 from 3 on in dimension 0, which has 4"),
        (part("TRANSPOSE", 0, 0, 0), "TRANSPOSE {} has the perms [0, 0, 1], expected every dimension from 0 to 2"
                                     " once"),
        (part("TILE", 1, 0, 0), "TILE {} has the multiples [0, 3], expected 1 or more"),
        (part("RESIZE", 2, 0, 0), "RESIZE {} has the scale [0, 2, 4, 2], expected 1 or more"),
        (swapped("FFT2D", 0, 2), "FFT2D {} has inverse from an input, expected a constant"),
        (result_like("FFT2D", 2), "FFT2D {} gives a tensor of f32 [2, 4, 8], expected a structure of 2 tensors"),
        (swapped("MATMUL", 1, 0), "MATMUL {} has inputs whose columns and rows differ in number: 4 and 3, expected"
                                  " the same"),
        (swapped("RESCALE", 1, 2), "RESCALE {} has one bool as rounding_mode, expected one i32"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_operator(change: Callable[[Graph], None], message: str) -> None:
    """The message names the module, the operator and its result, what it has and what was expected."""
    graph = Graph(OPERATORS)
    change(graph)
    with pytest.raises(SpirvError) as caught:
        graph.check()
    text = str(caught.value)
    assert text.startswith("graph.spv: byte ")
    operator, _, rest = message.partition(" {} ")
    if rest:
        result = graph.operator(operator)[2]
        assert f": the operator {operator} with the result {result} {rest}" in text
    else:
        assert message in text


def test_a_type_that_the_operator_does_not_take() -> None:
    """Rounding integers up is refused with the types that there are."""
    graph = Graph(OPERATORS)
    integer = next(each[1] for each in graph.of(21) if each[2] == 32)
    for tensor in graph.of(TENSOR):
        if tensor[1] == graph.operator("CEIL")[1]:
            tensor[2] = integer
    with pytest.raises(SpirvError, match=r"CEIL .* is used with the element types i32, expected one of: bf16, f16"):
        graph.check()


def test_an_operator_that_tosa_has_not() -> None:
    """Numbers behind the last operator are refused."""
    graph = Graph(OPERATORS)
    graph.operator("ADD")[4] = 66
    with pytest.raises(SpirvError, match=r"is the operator 66 of TOSA\.001000\.1, which ends with 65$"):
        graph.check()


@pytest.mark.parametrize("depth", [1, 5000])
def test_a_constant_made_of_constants(depth: int) -> None:
    """Attributes are made of numbers; however deep others are nested, the check comes to an end."""
    graph = Graph(SMALL[0])
    convolution = graph.operator("CONV2D")
    pad = graph.defining(convolution[5])
    for _ in range(depth):
        convolution[5] = graph.add(COMPOSITE, pad[1], *[convolution[5]] * 4)
    with pytest.raises(SpirvError, match=r"CONV2D .* has a constant that is made of a tensor of i32 \[4\], expected"):
        graph.check()


def test_a_constant_needs_a_shape() -> None:
    """A constant whose type leaves its shape open has no size."""
    graph = Graph(SMALL[0])
    constant = graph.of(4181)[0]
    next(each for each in graph.of(TENSOR) if each[1] == constant[1]).pop()
    with pytest.raises(SpirvError, match=r"is a constant that is a tensor of f32 \[\?, \?, \?, \?\], expected one"):
        graph.check()


@pytest.mark.parametrize("code", SMALL, ids=range(len(SMALL)))
def test_mutants_are_right_or_refused(code: bytes) -> None:
    """Whatever is changed in a graph, the check ends with an error of ours or without one."""
    refused = []
    for seed in range(500):
        changed = Graph(mutated(code, random.Random(seed)))
        try:
            changed.check()
        except SpirvError as error:
            refused.append(str(error))
    assert 250 < len(refused) < 500  # some changes change nothing that counts
    assert [text for text in refused if not text.startswith("graph.spv: ")] == []
