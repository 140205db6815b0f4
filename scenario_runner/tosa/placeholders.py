"""Placeholders for the shaders of a model. The converter turns the model with placeholders into a skeleton.

A placeholder sees all values as tensors. Operand *i* is at the binding *i* (`equal_operands`), the result is at the
next binding, and the entry point names the shader. So the skeleton shows which values each shader reads and writes,
whatever the shader's attributes are. `patching` then inserts the attributes. For a model of shaders alone,
`patching.skeleton_of` makes the skeleton without the converter.

A shader with several results has a placeholder for each result, because the converter orders an operation's
results by their use without recording the order. `patching` merges the segments again.
"""

import json
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from scenario_runner.tosa.model import DOMAIN, CustomOperation, Function, Model, Value
from scenario_runner.tosa.model_converter import Input, dump
from scenario_runner.tosa.model_files import Source, parts_of
from scenario_runner.tosa.text_model import escaped, parse_text

_SIMPLIFIED_BEFORE = "ModelPartitionMarkingPass"


def entry_point(number: int, result: int = 0) -> str:
    """Name the entry point of the placeholder for a result of the shader ``number``."""
    return f"shader_{number}_{result}"


def shader_and_result(entry_point: str) -> tuple[int, int]:
    """Return the numbers of the shader and the result from the name of a placeholder's entry point."""
    _, shader, result = entry_point.split("_")
    return int(shader), int(result)


def with_placeholders(source: Source, model: Model, function: Function) -> Input:
    """Return the model with only this function, and with placeholders for its shaders. Lines of text keep their place.

    A FlatBuffer has no room for several placeholders of a shader: such a model becomes text.
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
    """Append the attributes of placeholders to the file, and redirect the references to the shaders' attributes."""
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
    """Yield a placeholder for each result, and a cast that gives the values the shader's names.

    The converter folds the cast.
    """
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
    """List the bindings of operands in the skeleton by shader: (0, 0, 1) for the operands (a, a, b).

    The converter binds each value once, at the value's position among the different operands.
    """
    places = []
    for shader in function.shaders:
        names = [operand.name for operand in shader.operands]
        different = list(dict.fromkeys(names))
        places.append(tuple(map(different.index, names)))
    return places


def simplified(source: Source, model: Model, function: Function) -> Function:
    """Let the converter simplify a function, and return it with a placeholder for each shader.

    The converter replaces an operation without effect, such as a reshape to the same shape, by the operand, and drops
    values without a reader. Raises ScenarioRunnerError, and NotUnderstoodError for text that `parse_text` cannot read.
    """
    text = dump(with_placeholders(source, model, function), _SIMPLIFIED_BEFORE)
    (function,) = parse_text(text, model.path).functions
    shaders_by_number = {
        shader_and_result(json.loads(shader.attributes)["entry_point"])[0]: shader for shader in function.shaders
    }
    return function._replace(operations=tuple(shaders_by_number[number] for number in range(len(shaders_by_number))))
