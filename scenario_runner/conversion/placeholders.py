"""The skeleton of a converted model: what the converter makes of the model with placeholders for its shaders.

A placeholder binds operand *i* at the binding *i* (`equal_operands`), its result behind them, all as tensors, and its
entry point names the shader. So the segments, numbers and rows of the skeleton tell which values each shader reads and
writes, whatever its attributes are. `patching` puts these in. A model of nothing but shaders needs no converter:
`skeleton_of` makes its skeleton.

A shader of several results has one placeholder for each: the converter gives the results of one operation to the
bindings in the order in which they are used, without saying so. Their segments are merged again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import count

from scenario_runner.conversion.converter import Input, dump
from scenario_runner.conversion.model import CustomOperation, Function, Model, Value, converted_format
from scenario_runner.conversion.source import Source, placeholder_front
from scenario_runner.conversion.text_model import STRING, VALUE, escaped, parse_text
from scenario_runner.custom_shader.attributes import DOMAIN

_PART_CHARACTERS = 1 << 20
_SIMPLIFIED_BEFORE = "ModelPartitionMarkingPass"
_USE = re.compile(rf"({STRING})|//[^\n]*|({VALUE})(?:#([0-9]+))?", re.DOTALL)


def entry_point(number: int, result: int = 0) -> str:
    """The entry point of the placeholder for a result of the shader ``number`` of the function."""
    return f"shader_{number}_{result}"


def shader_and_result(entry_point: str) -> tuple[int, int]:
    """The numbers of the shader and of its result that a placeholder stands for."""
    _, shader, result = entry_point.split("_")
    return int(shader), int(result)


def with_placeholders(source: Source, model: Model, function: Function) -> Input:
    """The model with this function alone, and placeholders for its shaders. Lines of text stay where they are."""
    if model.text is not None:
        return Input(False, None, _text_parts(model.text, model, function))
    attributes = [
        [_attributes(number, result, shader).encode() for result in range(len(shader.results))]
        for number, shader in enumerate(function.shaders)
    ]
    with source.opened() as content:
        front = placeholder_front(content, function, attributes)
    return Input(True, source.name, [front]) if source.memory is None else Input(True, None, [front, source.memory])


def _text_parts(text: str, model: Model, function: Function) -> Iterator[bytes]:
    renamed = _names_of_results(text, function)
    changes = []
    for number, shader in enumerate(function.shaders):
        if len(shader.results) == 1:
            changes.append((shader.attributes_span, escaped(_attributes(number, 0, shader))))
        else:
            operations = [_operation(number, result, shader, renamed) for result in range(len(shader.results))]
            changes.append((shader.span, " ".join(operations)))
    for other in (*model.functions, *model.declarations):
        if other is not function:
            changes.append((other.span, "\n" * text.count("\n", *other.span)))
    at = 0
    for (start, end), new in [*sorted(changes), ((len(text), len(text)), "")]:
        if renamed:
            yield _with_names(text[at:start], renamed).encode()
        else:
            for first in range(at, start, _PART_CHARACTERS):
                yield text[first : min(start, first + _PART_CHARACTERS)].encode()
        yield new.encode()
        at = end


def _names_of_results(text: str, function: Function) -> dict[str, str]:
    """New names for the results of shaders that have several."""
    results = [value.name for shader in function.shaders if len(shader.results) > 1 for value in shader.results]
    if not results:
        return {}
    prefix = next(name for name in (f"%result{number}_" for number in count()) if name not in text)
    return {name: f"{prefix}{number}" for number, name in enumerate(results)}


def _with_names(text: str, renamed: dict[str, str]) -> str:
    def name(match: re.Match[str]) -> str:
        return renamed.get(f"{match[2]}#{match[3] or 0}", match[0]) if match[2] else match[0]

    return _USE.sub(name, text)


def _operation(number: int, result: int, shader: CustomOperation, renamed: dict[str, str]) -> str:
    """A placeholder for one result."""
    operands = ", ".join(renamed.get(operand.name, operand.name.removesuffix("#0")) for operand in shader.operands)
    types = ", ".join(operand.type.text for operand in shader.operands)
    value = shader.results[result]
    attributes = escaped(_attributes(number, result, shader))
    return (
        f'{renamed[value.name]} = "tosa.custom"({operands}) {{domain_name = "{DOMAIN}", '
        f"operator_name = {escaped(shader.name)}, implementation_attrs = {attributes}}} : "
        f"({types}) -> {value.type.text}"
    )


def _attributes(number: int, result: int, shader: CustomOperation) -> str:
    attributes: dict[str, object] = {"entry_point": entry_point(number, result), "workgroup_sizes": [1, 1, 1]}
    named: list[tuple[str, Value]] = [(f"input_{i}", value) for i, value in enumerate(shader.operands)]
    named.append(("output_0", shader.results[result]))
    for binding, (name, value) in enumerate(named):
        format = converted_format(value.type)
        attributes[f"{name}_vkdescriptortype"] = "VK_DESCRIPTOR_TYPE_TENSOR_ARM"
        attributes[f"{name}_vkformat"] = format and format.name
        attributes[f"{name}_binding"] = binding
        attributes[f"{name}_descriptorset"] = 0
    return json.dumps(attributes)


def equal_operands(function: Function) -> Sequence[tuple[int, ...]]:
    """List the bindings that operands have in the skeleton, by shader: (0, 0, 1) where the operands are (a, a, b).

    The converter binds a value once: operands are at the bindings of their places among those that differ.
    """
    places = []
    for shader in function.shaders:
        names = [operand.name for operand in shader.operands]
        different = list(dict.fromkeys(names))
        places.append(tuple(map(different.index, names)))
    return places


def simplified(model: Input, path: str) -> Function:
    """The function as the converter has simplified it, with one placeholder of each shader: an operation that changes
    nothing, such as a reshape to the same shape, is replaced by its operand, and what nobody reads is gone.

    Raises ScenarioRunnerError, and NotUnderstoodError where the converter writes what is not read here.
    """
    (function,) = parse_text(dump(model, _SIMPLIFIED_BEFORE), path).functions
    shaders_by_number = {
        shader_and_result(json.loads(shader.attributes)["entry_point"])[0]: shader for shader in function.shaders
    }
    return function._replace(operations=tuple(shaders_by_number[number] for number in range(len(shaders_by_number))))
