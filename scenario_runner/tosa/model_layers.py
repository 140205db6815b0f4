"""The layers of a TOSA model: results of operators, which can become outputs of the model.

Source: the schema of TOSA FlatBuffers (tosa.fbs of the TOSA serialization library); ArmCompileSpec.DebugMode.TOSA of
ExecuTorch, which writes locations as JSON.
"""

import re
import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from scenario_runner.errors import UsageError
from scenario_runner.errors.text import first_of
from scenario_runner.ml.flatbuffers import DamagedError, Layout, Tables, Union, copy_reachable
from scenario_runner.ml.tosa_operators import OPERATORS
from scenario_runner.tosa import model_files as tosa
from scenario_runner.tosa.model import ValueType
from scenario_runner.tosa.model_converter import ConverterCall

_BLOCK_SHAPES = 5
_OPERATOR_LOCATION, _LOCATION_TEXT = 5, 0
_OPERATORS: Final = ("UNKNOWN", *OPERATORS, "CONST", "IDENTITY", "CUSTOM", "COND_IF", "WHILE_LOOP")
_LOCATION = re.compile(r'loc\("([^"]*)"(?::([0-9]+):[0-9]+)?\)')
_NODE = re.compile(r'"(?:node_)?name": "([^"\\]+)"')
_MODULE = re.compile(r'"nn_module_stack": \{[^}]*\["([^"\\]+)", "[^"]*"\]\}')

_BYTES, _INTEGERS = 1, 4  # strings are bytes
_WINDOW: Layout = dict.fromkeys(range(3), _INTEGERS)
_PAIR: Layout = {0: _BYTES, 1: _BYTES}
_ATTRIBUTES: Final[Mapping[str, Layout]] = {
    **dict.fromkeys(("AVG_POOL2D", "CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "MAX_POOL2D"), _WINDOW),
    "TRANSPOSE_CONV2D": {0: _INTEGERS, 1: _INTEGERS},
    "TRANSPOSE": {0: _INTEGERS},
    "CUSTOM": dict.fromkeys(range(3), _BYTES),
    **dict.fromkeys(("CLAMP", "COND_IF", "WHILE_LOOP"), _PAIR),
}
_OPERATOR: Layout = {
    2: Union({_OPERATORS.index(name): layout for name, layout in _ATTRIBUTES.items()}),
    tosa.OPERATOR_INPUTS: [_BYTES],
    tosa.OPERATOR_OUTPUTS: [_BYTES],
    _OPERATOR_LOCATION: {_LOCATION_TEXT: _BYTES},
}
_TENSOR: Layout = {tosa.TENSOR_NAME: _BYTES, 1: _INTEGERS, 3: _BYTES, 6: _BYTES, 10: _BYTES}
_BLOCK: Layout = {
    0: _BYTES,
    tosa.BLOCK_OPERATORS: [_OPERATOR],
    tosa.BLOCK_TENSORS: [_TENSOR],
    tosa.BLOCK_INPUTS: [_BYTES],
    tosa.BLOCK_OUTPUTS: [_BYTES],
    _BLOCK_SHAPES: [{0: _BYTES, 2: _BYTES}],
}
_WRITER: Layout = {3: _BYTES}
_GRAPH: Layout = {0: {}, 1: [{0: _BYTES, 1: [_BLOCK]}], 2: _WRITER, 3: {0: _WRITER}}


class Layer(NamedTuple):
    """A result of an operator: ``name`` is the model's output, ``tensor`` the name in the file.

    ``inputs`` are names of layers and model inputs that the operator reads; constants do not count. ``aliases`` name
    the framework's nodes and modules from which the operator was lowered.
    """

    name: str
    tensor: str
    operator: str
    type: ValueType
    inputs: tuple[str, ...]
    aliases: tuple[str, ...]


def expose(source: tosa.Source, pattern: str = "*") -> tuple[tosa.Source, tuple[Layer, ...]]:
    """Turn layers into further outputs of a model. ``pattern`` (* and ?) matches layers' names and operators.

    The converter first turns MLIR into a FlatBuffer. Return the model with named outputs, and all layers that are
    outputs, in the order of operators. Raises UsageError if no layer matches, and ScenarioRunnerError
    for an unreadable model.
    """
    if source.form != "flatbuffer":
        if len(tosa.parse_model(source).functions) > 1:
            raise UsageError(f"{source.name}: the model has several functions; layers need a model with one function")
        options = ("--tosa-flatbuffer", "--emit-debug-info")
        with tosa.converter_errors(source), ConverterCall(source.input(), options) as call:
            source = tosa.open_source(bytes(call.result()), source.name)
    data = bytearray().join(source.parts())
    try:
        file, block = _tables(data)
        field = file.field(block, tosa.BLOCK_OUTPUTS)
        if not field:
            raise DamagedError("has no outputs")
        outputs = list(file.texts(block, tosa.BLOCK_OUTPUTS))
        all_layers = list(_layers(file, block))
    except DamagedError as error:
        raise tosa.unreadable(source.name, str(error)) from None
    chosen = select(all_layers, pattern, source.name)
    layers = [layer for layer in all_layers if layer.tensor in outputs or layer in chosen]
    outputs += [layer.tensor for layer in layers if layer.tensor not in outputs]
    _append_names(data, field, outputs)
    exposed = tosa.open_source(bytes(data), source.name)
    names_by_tensor = {layer.tensor: layer.name for layer in layers}
    assert exposed.function is not None, "it is a FlatBuffer"
    function = exposed.function._replace(output_names=tuple(names_by_tensor.get(name, name) for name in outputs))
    return exposed._replace(function=function), tuple(layers)


def cut(model: bytes, tensor: str, known: Collection[str]) -> tuple[bytes, list[str]]:
    """Cut a tensor's operator out of a model, with the operators that compute the inputs, except ``known`` tensors.

    Return a FlatBuffer with this single output, and the input names.
    """
    file, block = _tables(model)
    inputs: dict[str, int] = {}
    outputs: list[int] = []
    operators: list[int] = []
    needed = {tensor}
    for table in reversed(list(file.elements(block, tosa.BLOCK_OPERATORS))):
        makes, reads = (
            {file.text(name): name for name in file.elements(table, index)}
            for index in (tosa.OPERATOR_OUTPUTS, tosa.OPERATOR_INPUTS)
        )
        if not needed.isdisjoint(makes):
            operators.insert(0, table)
            outputs += [at for name, at in makes.items() if name == tensor]
            inputs |= {name: at for name, at in reads.items() if name in known}
            needed.update(name for name in reads if name not in known)
            needed.update(makes)
    needed.update(inputs)
    kept = {tosa.BLOCK_OPERATORS: operators, tosa.BLOCK_INPUTS: list(inputs.values()), tosa.BLOCK_OUTPUTS: outputs}
    for index in (tosa.BLOCK_TENSORS, _BLOCK_SHAPES):
        tables = list(file.elements(block, index))
        kept[index] = [table for table in tables if file.text(file.child(table, tosa.TENSOR_NAME)) in needed]
    by_vector = {file.child(block, index): elements for index, elements in kept.items()}
    return copy_reachable(file, _GRAPH, by_vector), list(inputs)


def _tables(data: bytes | bytearray) -> tuple[Tables, int]:
    """Return a model's tables, and the block's position."""
    file = Tables(lambda at, size: memoryview(data)[at : at + size], len(data))
    return file, tosa.first_block(file)


def select(layers: Sequence[Layer], pattern: str, path: str) -> list[Layer]:
    """Select layers by a ``pattern`` for names and operators. Raises UsageError if no layer matches."""
    selected = []
    for layer in layers:
        names = (layer.name, layer.tensor, layer.operator)
        if any(fnmatchcase(name.lower(), pattern.lower()) for name in names):
            selected.append(layer)
    if not selected:
        help = f"the layers: {first_of([layer.name for layer in layers])}"
        raise UsageError(f"{path}: no layer matches {pattern!r}", help=help)
    return selected


def _layers(file: Tables, block: int) -> Iterator[Layer]:
    """Yield all layers in the order of their operators."""
    tensors = file.elements(block, tosa.BLOCK_TENSORS)
    types = {file.text(file.child(table, tosa.TENSOR_NAME)): tosa.tensor_type(file, table) for table in tensors}
    constants: set[str] = set()
    names: dict[str, str] = {}
    used = Counter(file.texts(block, tosa.BLOCK_INPUTS))
    for table in file.elements(block, tosa.BLOCK_OPERATORS):
        number = file.value(table, tosa.OPERATOR_OP)
        operator = _OPERATORS[number] if number < len(_OPERATORS) else f"OPERATOR_{number}"
        reads, makes = (file.texts(table, index) for index in (tosa.OPERATOR_INPUTS, tosa.OPERATOR_OUTPUTS))
        location = file.child(table, _OPERATOR_LOCATION)
        text = file.text(file.child(location, _LOCATION_TEXT)) if location else ""
        aliases = tuple(dict.fromkeys(_NODE.findall(text) + _MODULE.findall(text)))
        inputs = tuple(names.get(name, name) for name in reads if name not in constants)
        for tensor in makes:
            type = types.get(tensor)
            if operator == "CONST" or type is None or type.element == "shape":
                constants.add(tensor)
                continue
            base = name = _name(text) or tensor
            while used[name]:
                used[base] += 1
                name = f"{base}_{used[base]}"
            used[name] += 1
            names[tensor] = name
            yield Layer(names[tensor], tensor, operator, type, inputs, aliases)


def _name(location: str) -> str:
    """Return the name in an MLIR location, or the line; empty if it has neither."""
    match = _LOCATION.fullmatch(location)
    if match is None:
        return ""
    return f"line_{match[2]}" if match[2] else match[1]


def _append_names(data: bytearray, field: int, names: list[str]) -> None:
    """Append a vector of strings to the file and let the field refer to it. References only lead forward."""
    data += bytes(-len(data) % 4)
    struct.pack_into("<I", data, field, len(data) - field)
    data += struct.pack("<I", len(names))
    at = len(data)
    data += bytes(4 * len(names))
    for number, name in enumerate(map(str.encode, names)):
        struct.pack_into("<I", data, at + 4 * number, len(data) - at - 4 * number)
        data += struct.pack("<I", len(name)) + name + bytes(1 + -(len(name) + 1) % 4)
