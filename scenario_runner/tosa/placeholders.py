"""The skeleton of a converted model: what the converter makes of the model with placeholders for its shaders.

A placeholder binds operand *i* at the binding *i* (`equal_operands`), its result behind them, all as tensors, and its
entry point names the shader. So the segments, numbers and rows of the skeleton tell which values each shader reads and
writes, whatever its attributes are. `patching` puts these in. A model of nothing but shaders needs no converter:
`skeleton_of` makes its skeleton.

A shader of several results has one placeholder for each: the converter gives the results of one operation to the
bindings in the order in which they are used, without saying so. Their segments are merged again.
"""

import json
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from scenario_runner.tosa.attributes import DOMAIN
from scenario_runner.tosa.model import CustomOperation, Function, Model, Value
from scenario_runner.tosa.model_converter import Input, dump
from scenario_runner.tosa.model_files import Source, parts_of
from scenario_runner.tosa.text_model import escaped, parse_text

_SIMPLIFIED_BEFORE = "ModelPartitionMarkingPass"


def entry_point(number: int, result: int = 0) -> str:
    """The entry point of the placeholder for a result of the shader ``number`` of the function."""
    return f"shader_{number}_{result}"


def shader_and_result(entry_point: str) -> tuple[int, int]:
    """The numbers of the shader and of its result that a placeholder stands for."""
    _, shader, result = entry_point.split("_")
    return int(shader), int(result)


def with_placeholders(source: Source, model: Model, function: Function) -> Input:
    """The model with this function alone, and placeholders for its shaders. Lines of text stay where they are.

    A FlatBuffer has no room for operators of one result in place of one with several: it becomes text.
    """
    if model.text is None:
        spans = {shader.attributes_span for shader in function.shaders if len(shader.results) == 1}
        if len(spans) == len(function.shaders) and (0, 0) not in spans:
            return Input(True, _flatbuffer_parts(source, function))
        model = parse_text(dump(source.input()), model.path)
        (function,) = model.functions
    assert model.text is not None, "the converter writes text"
    return Input(False, _text_parts(model.text, model, function))


def _flatbuffer_parts(source: Source, function: Function) -> Iterator[bytes | memoryview]:
    """The file with the attributes of placeholders behind it, to which the references to those of shaders lead."""
    with source.opened() as file:
        behind = bytearray(-file.size_bytes % 4)
        at = 0
        shaders = sorted(enumerate(function.shaders), key=lambda numbered: numbered[1].attributes_span)
        for number, shader in shaders:
            start, end = shader.attributes_span
            attributes = _attributes(number, 0, shader).encode()
            yield from parts_of(file, at, start)
            yield struct.pack("<I", file.size_bytes + len(behind) - start)
            at = end
            behind += struct.pack("<I", len(attributes)) + attributes + bytes(-len(attributes) % 4)
        yield from parts_of(file, at)
        yield bytes(behind)


def _text_parts(text: str, model: Model, function: Function) -> Iterator[bytes]:
    changes = []
    prefix = next(name for name in (f"%result{number}_" for number in count()) if name not in text)
    for number, shader in enumerate(function.shaders):
        if len(shader.results) == 1:
            changes.append((shader.attributes_span, escaped(_attributes(number, 0, shader))))
        else:
            changes.append((shader.span, " ".join(_operations(number, shader, f"{prefix}{number}_"))))
    for other in model.declarations:
        if other is not function:
            changes.append((other.span, "\n" * text.count("\n", *other.span)))
    at = 0
    for (start, end), new in sorted(changes):
        yield text[at:start].encode()
        yield new.encode()
        at = end
    yield text[at:].encode()


def _operations(number: int, shader: CustomOperation, prefix: str) -> Iterator[str]:
    """A placeholder for each result, and a cast, which the converter folds, that names their values as the shader."""
    operands = ", ".join(operand.shown_name for operand in shader.operands)
    operand_types = ", ".join(operand.type.text for operand in shader.operands)
    for result, value in enumerate(shader.results):
        attributes = escaped(_attributes(number, result, shader))
        yield (
            f'{prefix}{result} = "tosa.custom"({operands}) {{domain_name = "{DOMAIN}", '
            f"operator_name = {escaped(shader.name)}, implementation_attrs = {attributes}}} : "
            f"({operand_types}) -> {value.type.text}"
        )
    counts = Counter(value.name.partition("#")[0] for value in shader.results)
    names = ", ".join(f"{name}:{values}" for name, values in counts.items())
    placeholders = ", ".join(f"{prefix}{result}" for result in range(len(shader.results)))
    types = ", ".join(value.type.text for value in shader.results)
    yield f"{names} = builtin.unrealized_conversion_cast {placeholders} : {types} to {types}"


def _attributes(number: int, result: int, shader: CustomOperation) -> str:
    attributes: dict[str, object] = {"entry_point": entry_point(number, result), "workgroup_sizes": [1, 1, 1]}
    named: list[tuple[str, Value]] = [(f"input_{i}", value) for i, value in enumerate(shader.operands)]
    named.append(("output_0", shader.results[result]))
    for binding, (name, value) in enumerate(named):
        format = value.converted_format
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


def simplified(source: Source, model: Model, function: Function) -> Function:
    """The function as the converter has simplified it, with one placeholder of each shader: an operation that changes
    nothing, such as a reshape to the same shape, is replaced by its operand, and what nobody reads is gone.

    Raises ScenarioRunnerError, and NotUnderstoodError where the converter writes what is not read here.
    """
    text = dump(with_placeholders(source, model, function), _SIMPLIFIED_BEFORE)
    (function,) = parse_text(text, model.path).functions
    shaders_by_number = {
        shader_and_result(json.loads(shader.attributes)["entry_point"])[0]: shader for shader in function.shaders
    }
    return function._replace(operations=tuple(shaders_by_number[number] for number in range(len(shaders_by_number))))
