"""The skeleton of a converted model: the converter is called once, on the model with placeholders for its shaders.

A placeholder binds operand *i* at the binding *i*, the results behind them, all as tensors, and its entry point tells
which shader it stands for. So the segments, numbers and rows that the converter makes of it say which values each
shader reads and writes, whatever the attributes of the shader are. They are put in afterwards (`mending`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from scenario_runner.conversion.converter import later_text
from scenario_runner.conversion.element_types import format_of_element
from scenario_runner.conversion.model import CustomOperation, Function, Model
from scenario_runner.conversion.syntax import escaped
from scenario_runner.conversion.text_model import parse_text

_ENTRY_POINT = "shader_"
_FOLDED_BEFORE = "ModelPartitionMarkingPass"


def entry_point(number: int) -> str:
    """The entry point of the placeholder for the shader ``number`` of the function."""
    return f"{_ENTRY_POINT}{number}"


def shader_number(entry_point: str) -> int:
    """The inverse of `entry_point`."""
    return int(entry_point.removeprefix(_ENTRY_POINT))


def placeholder_text(model: Model, function: Function) -> str:
    """The text of the model with this function alone, and placeholders for its shaders. Lines stay where they are."""
    text = model.text
    changes = [(shader.attributes_span, _attributes(number, shader)) for number, shader in enumerate(function.shaders)]
    for other in model.functions:
        if other is not function:
            changes.append((other.span, "\n" * text.count("\n", *other.span)))
    parts, at = [], 0
    for (start, end), new in sorted(changes):
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def _attributes(number: int, shader: CustomOperation) -> str:
    attributes: dict[str, object] = {"entry_point": entry_point(number), "workgroup_sizes": [1, 1, 1]}
    names = [f"input_{i}" for i in range(len(shader.operands))] + [f"output_{i}" for i in range(len(shader.results))]
    for binding, (name, value) in enumerate(zip(names, (*shader.operands, *shader.results), strict=True)):
        attributes[f"{name}_vkdescriptortype"] = "VK_DESCRIPTOR_TYPE_TENSOR_ARM"
        attributes[f"{name}_vkformat"] = format_of_element(value.type.element).name
        attributes[f"{name}_binding"] = binding
        attributes[f"{name}_descriptorset"] = 0
    return escaped(json.dumps(attributes))


def equal_operands(function: Function) -> list[tuple[int, ...]]:
    """For each shader the first operand that is the same value, for each operand: of (a, b, a) it is (0, 1, 0)."""
    return [_first_equal([operand.name for operand in shader.operands]) for shader in function.shaders]


def folded_operands(text: str, path: str) -> list[tuple[int, ...]]:
    """The same after the converter has simplified the model with these placeholders: an operation that changes nothing,
    such as a reshape to the same shape, is replaced by its operand then.

    Raises ConverterRefusedError, and NotUnderstoodError where the converter writes what is not read here.
    """
    (function,) = parse_text(later_text(text, _FOLDED_BEFORE), path).functions
    found: dict[int, tuple[int, ...]] = {}
    for shader in function.shaders:
        number = shader_number(json.loads(shader.attributes)["entry_point"])
        found[number] = _first_equal([operand.name for operand in shader.operands])
    return [found[number] for number in range(len(found))]


def _first_equal(names: Sequence[str]) -> tuple[int, ...]:
    return tuple(names.index(name) for name in names)
