"""``scenario-runner compare-layers MODEL --expected …``: the first wrong layer of a model, and the layer's inputs."""

import argparse
import base64
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

import imageio.v3
import numpy

from scenario_runner.cli.console import show_table
from scenario_runner.compare.wrong_elements import Rule
from scenario_runner.errors import UsageError
from scenario_runner.errors.text import Json, counted, first_of, one_line
from scenario_runner.files.output import OutputFile
from scenario_runner.runner import Runner
from scenario_runner.tosa.conformance_tests import find_reference
from scenario_runner.tosa.layer_comparison import LayeredModel, LayerResult, judge, match, read_activations, sources_of
from scenario_runner.tosa.model_layers import select
from scenario_runner.view.contents import Content
from scenario_runner.view.picture import heat_map, shrink

_DEVICE = "device:"
_WORST_HEADINGS = ("index", "actual", "expected", "error")
_VERDICTS = {"-": "not compared", "input": "an input of the model", "within": "within the tolerance"}
_MOST_PICTURES, _MOST_TEXELS = 20, (512, 512)
_STYLE = """body{font:14px sans-serif;margin:2em}td,th{padding:2px 10px;text-align:left}img{width:512px}
td{border-top:1px solid #ccc}.beyond{background:#fdd}.within{background:#efe}img{image-rendering:pixelated}"""


def main(options: argparse.Namespace) -> int:
    """Compare the layers. Return 0 if all are within the tolerance, else 1. Raises ScenarioRunnerError."""
    is_device, is_reference = options.expected.startswith(_DEVICE), options.expected == "reference"
    is_tosa = options.expected == "tosa"
    given = (options.atol, options.rtol, options.ulp) != (None, None, None)
    limits = (options.atol or 0, options.rtol or 0, options.ulp or 0)
    if is_tosa and given:
        help = "leave out --atol, --rtol and --ulp, or use --expected reference"
        raise UsageError("--expected tosa: TOSA's rules set the tolerance", help=help)
    if options.html and os.path.exists(options.html) and os.path.samefile(options.html, options.model):
        raise UsageError(f"{options.html}: the page would overwrite the model", help="choose another file")
    arrays = {} if is_device or is_reference or is_tosa else read_activations(options.expected)
    model = LayeredModel(options.model, "*" if is_tosa else options.layers)
    random = model.take_inputs(options.input, options.seed, options.range)
    layers = select(model.layers, options.layers, options.model) if is_tosa else model.layers
    others: list[str] = []
    expected: Mapping[str, Sequence[Content]] = {}
    if is_reference:
        expected = model.run_reference()
    elif is_device:
        expected = {name: [content] for name, content in _run(model, options.expected[len(_DEVICE) :], options).items()}
    elif not is_tosa:
        expected, others = match(model.layers, arrays, options.expected)
        if not expected:
            help = f"arrays: {first_of(others)}; layers: {first_of([layer.name for layer in model.layers])}"
            raise UsageError(f"{options.expected}: no array has the name, type and shape of a layer", help=help)
    rule = Rule(*limits, nan="equal") if given else None
    actual = _run(model, options.device, options)
    if is_tosa:
        find_reference()
        from scenario_runner.tosa.layer_rules import judge_by_tosa

        results = list(judge_by_tosa(model, actual, layers))
    else:
        results = [judge(layer, actual[layer.name], expected.get(layer.name, ()), rule) for layer in layers]
    compared = sum(result.wrong is not None for result in results)
    reasons = [f"{result.layer.name}: {result.message}" for result in results if result.wrong is None and is_tosa]
    if reasons and not compared:
        message = f"{options.model}: TOSA's rules can judge none of the layers: {one_line(first_of(reasons))}"
        raise UsageError(message, help="choose other layers (--layers) or other inputs (--input, --range)")
    facts = [f"{one_line(options.model)}: {counted(len(results), 'layer')}, {compared} compared"]
    facts += [f"random inputs of the seed {options.seed}: {first_of(random)}"] if random else []
    facts += [f"arrays without a layer: {first_of(others)}"] if others else []
    facts += [f"not compared: {one_line(first_of(reasons))}"] if reasons else []
    if options.html:
        with OutputFile(options.html) as file:
            file.write("\n".join(_page(facts, results)).encode())
    if options.json:
        rows = [_row(row) | {"inputs": row.layer.inputs, "worst": row.worst, "message": row.message} for row in results]
        print(json.dumps({"schema": 1, "layers": rows, "unmatched": others}, indent=1))
    else:
        _show(facts, results)
    return int(any(result.verdict == "beyond" for result in results))


def _run(model: LayeredModel, device: str | None, options: argparse.Namespace) -> Mapping[str, Content]:
    with Runner(device, timeout_s=options.timeout, ml_emulation=options.ml_emulation) as runner:
        return model.run(runner)


def _row(result: LayerResult) -> dict[str, Json]:
    """Return the row of a layer for tables and JSON. JSON has no infinity, so "inf" is a string."""
    layer, errors = result.layer, [result.error, result.relative] if result.expected else [None, None]
    error, relative = ("inf" if value == math.inf else value for value in errors)
    type = layer.type.text.removeprefix("tensor<").removesuffix(">")
    row = {"layer": layer.name, "operator": layer.operator, "type": type, "error": error, "relative": relative}
    return row | {"wrong": result.wrong, "verdict": result.verdict, "expected": result.expected}


def _cells(result: LayerResult) -> list[str]:
    values = _row(result).values()
    return ["-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value) for value in values]


def _conclusion(results: Sequence[LayerResult]) -> Iterator[str]:
    """Describe the first wrong layer."""
    first = next((result for result in results if result.verdict == "beyond"), None)
    if first is None:
        yield "all compared layers are within the tolerance"
        return
    yield f"{one_line(first.layer.name)} ({first.layer.operator}) is the first layer beyond the tolerance"
    if first.message:
        yield f"  {first.message}"
    for source, verdict in sources_of(first, results).items():
        yield f"  input {one_line(source)}: {_VERDICTS.get(verdict, verdict)}"


def _show(facts: Sequence[str], results: Sequence[LayerResult]) -> None:
    print(*facts, sep="\n")
    show_table([list(_row(results[0])), *map(_cells, results)], right=(3, 4, 5))
    print(*_conclusion(results), sep="\n")
    for result in results:
        if result.verdict == "beyond":
            show_table([_WORST_HEADINGS, *result.worst], right=(3,), indent=4)
            break


def _page(facts: Sequence[str], results: Sequence[LayerResult]) -> Iterator[str]:
    """Return the lines of a self-contained HTML page."""
    yield f"<!DOCTYPE html><meta charset=utf-8><title>Layers</title><style>{_STYLE}</style>"
    yield from (f"<p>{escape(fact)}" for fact in (*facts, *_conclusion(results)))
    yield from _table(list(_row(results[0])), map(_cells, results))
    wrong = [result for result in results if result.verdict == "beyond"]
    for result in wrong[:_MOST_PICTURES]:
        yield f"<h2>{escape(one_line(result.layer.name))}</h2>"
        yield _picture(result)
        yield from _table(_WORST_HEADINGS, result.worst)


def _table(headings: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{heading}" for heading in headings)
    for row in rows:
        yield "<tr>" + "".join(f'<td class="{escape(cell)}">{escape(cell)}' for cell in row)
    yield "</table>"


def _picture(result: LayerResult) -> str:
    """Return a picture of the errors as a data URI. Beyond two dimensions, take the maximum along the last."""
    errors = numpy.atleast_2d(numpy.asarray(result.errors))
    if errors.ndim > 2:
        errors = errors.max(-1)
    colors = heat_map(errors.reshape(-1, errors.shape[-1]), result.error if result.error < math.inf else 1.0)
    picture = shrink(colors, *_MOST_TEXELS, brightest=True)
    data = base64.b64encode(imageio.v3.imwrite("<bytes>", picture, extension=".png")).decode()
    return f'<img src="data:image/png;base64,{data}">'
