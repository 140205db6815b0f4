"""Layers of a model judged by TOSA's rules.

TOSA has rules for single operators. So each operator is cut out of the model, and the reference model computes it in
precise mode from the inputs computed by the device. Errors of earlier operators do not count. The generator of
tosa-tools gives the compliance mode and the mode's parameters. Importing this module needs the package tosa-tools.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy
from generator.tosa_build_gen import TosaBuildGen
from generator.tosa_test_gen import TosaTestGen
from generator.tosa_utils import DataGenType
from tosa.Attribute import Attribute
from tosa.TosaGraph import TosaGraph
from tosa_serializer import DType, RoundingMode

from scenario_runner.compare import tosa_rules
from scenario_runner.errors import FileError
from scenario_runner.files.elements import ELEMENTS
from scenario_runner.files.npy import write_npy
from scenario_runner.processes.system_limits import processors
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.tosa.conformance_tests import DESCRIPTION, Compliance, find_reference, run_reference
from scenario_runner.tosa.layer_comparison import LayeredModel, LayerResult, judge
from scenario_runner.tosa.model_layers import Layer, cut
from scenario_runner.view.contents import Channel, Content

_MODEL: Final = "layer.tosa"
_EXPECTED: Final = "expected.npy"


def judge_by_tosa(model: LayeredModel, actual: Mapping[str, Content], layers: Iterable[Layer]) -> Iterator[LayerResult]:
    """Judge ``layers`` of a model; ``actual`` has all layers' results.

    A custom operator has no verdict, nor has an operator that the reference model refuses; the message tells the
    reason. Raises MissingPackageError if tosa-tools is missing.
    """
    reference = find_reference()
    known = {name: content.channels[0] for name, content in model.input_contents().items()}
    known |= {layer.tensor: actual[layer.name].channels[0] for layer in model.layers}

    def judged(layer: Layer) -> LayerResult:
        if layer.operator == "CUSTOM":
            return LayerResult(layer, message="TOSA has no rule for custom operators")
        channel = known[layer.tensor]
        content, names = cut(model.content, layer.tensor, known)
        inputs = {name: known[name] for name in names}
        try:
            rule = _rule(layer, content, inputs, channel)
            with temporary_folder() as folder:
                has_bounds = tosa_rules.MODES[rule.mode].has_bounds
                _write_test(folder, content, layer.tensor, inputs, has_bounds)
                run_reference(folder, folder, reference)
                exact, bounds = (os.path.join(folder, f"{prefix}{_EXPECTED}") for prefix in ("", "bounds_"))
                rule = rule._replace(expected=numpy.load(exact), bounds=numpy.load(bounds) if has_bounds else None)
        except FileError as error:
            return LayerResult(layer, message=error.problems[0].message)
        judgement = tosa_rules.judge(channel.raw, rule)
        element = ELEMENTS["float64"] if channel.element.is_float else channel.element
        expected = Content(rule.mode, "", (Channel("", rule.expected.reshape(channel.raw.shape), element),), False)
        return judge(layer, actual[layer.name], [expected], beyond=judgement.beyond)._replace(message=judgement.message)

    with ThreadPoolExecutor(processors()) as pool:  # the reference model is a program
        yield from pool.map(judged, layers)


def _write_test(folder: str, model: bytes, output: str, inputs: Mapping[str, Channel], has_bounds: bool) -> None:
    """Write a test for the reference model in the form of TOSA's generator."""
    files = [f"input-{number}.npy" for number in range(len(inputs))]
    for name, channel in zip(files, inputs.values(), strict=True):
        type = channel.element.raw_dtype.replace("|", "<") or channel.element.dtype  # the model reads float8 as "<V1"
        write_npy(os.path.join(folder, name), type, channel.raw.shape, [channel.raw.tobytes()])
    Path(folder, _MODEL).write_bytes(model)
    names = {"ifm_name": list(inputs), "ifm_file": files, "ofm_name": [output], "ofm_file": [_EXPECTED]}
    description = {"tosa_file": _MODEL, "test_requirements": {"bounds_file_required": has_bounds}} | names
    Path(folder, DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")


# The number of summands of an element ("ks" in the generator) from the shapes of the inputs and the attribute.
_SUMMANDS: Final[dict[str, Callable[[Sequence[Sequence[int]], Any], int]]] = {
    **dict.fromkeys(("CONV2D", "CONV3D", "TRANSPOSE_CONV2D"), lambda shapes, _: prod(shapes[1][1:])),
    "DEPTHWISE_CONV2D": lambda shapes, _: prod(shapes[1][:2]),
    "MATMUL": lambda shapes, _: shapes[0][2],
    "AVG_POOL2D": lambda _, attribute: attribute.Kernel(0) * attribute.Kernel(1),
    "REDUCE_SUM": lambda shapes, attribute: shapes[0][attribute.Axis()],
    "FFT2D": lambda shapes, _: 2 * prod(shapes[0][1:]),
    "RFFT2D": lambda shapes, _: prod(shapes[0][1:]),
}


def _rule(layer: Layer, model: bytes, inputs: Mapping[str, Channel], result: Channel) -> tosa_rules.TosaRule:
    """Make the rule for a layer, without expected values. The layer's operator is the model's last operator."""
    block = TosaGraph.GetRootAs(model).Regions(0).Blocks(0)
    operator = block.Operators(block.OperatorsLength() - 1)
    row = next(row for row in TosaTestGen.TOSA_OP_LIST.values() if row["op"] == operator.Op())
    kind = next(kind for kind, number in vars(Attribute).items() if number == operator.AttributeType())
    attribute, table = getattr(import_module(f"tosa.{kind}"), kind)(), operator.Attribute()
    attribute.Init(table.Bytes, table.Pos)
    tensors = {tensor.Name(): tensor for tensor in map(block.Tensors, range(block.TensorsLength()))}
    reads = [tensors[name] for name in map(operator.Inputs, range(operator.InputsLength())) if name in tensors]
    shapes = [list(map(tensor.Shape, range(tensor.ShapeLength()))) for tensor in reads]
    types = [DType(tensor.Type()) for tensor in reads[:2]]
    type = DType(tensors[layer.tensor.encode()].Type())
    arguments: dict[str, Any] = {"dg_type": DataGenType.PSEUDO_RANDOM}
    if layer.operator == "RESCALE":
        arguments["rounding_mode"] = RoundingMode(attribute.RoundingMode())
        arguments["output_unsigned"] = attribute.OutputUnsigned()
    elif layer.operator == "REDUCE_PRODUCT":
        arguments["n"] = shapes[0][attribute.Axis()]
    elif layer.operator == "RESIZE":
        values = next(iter(inputs.values()), result).numbers.astype("f8")
        arguments["max_abs_value"] = float(numpy.abs(values[numpy.isfinite(values)]).max(initial=0.0))
    elif layer.operator in _SUMMANDS:
        arguments |= {"dg_type": DataGenType.DOT_PRODUCT, "s": 0, "ks": _SUMMANDS[layer.operator](shapes, attribute)}
        sums = DType.FP32 if type == DType.BF16 else type
        arguments["acc_type"] = DType(attribute.AccType()) if hasattr(attribute, "AccType") else sums
        if at := row.get("bias_position"):
            bias = inputs.get(reads[at].Name().decode())
            arguments["ksb_increment"] = int(numpy.any(reads[at].DataAsNumpy() if bias is None else bias.raw))
    output = SimpleNamespace(name="", dtype=type, shape=list(result.raw.shape))
    described = TosaBuildGen.tensorComplianceMetaData(None, row, types, arguments, output, None)
    compliance = Compliance.model_validate(described)
    if compliance.mode == "DOT_PRODUCT":  # the variance limit only fits the data of TOSA's tests
        compliance.parameters["variance_error_bound"] = sys.float_info.max
    return tosa_rules.TosaRule(compliance.mode, compliance.data_type, result.raw, None, compliance.parameters)
