"""Comparison of a TOSA model layer by layer with expected results.

Expected results come from a framework's files, from TOSA's reference model (the package tosa-tools) or from another
device. Every layer has a single channel, since the last dimension may have thousands of entries.
"""

from __future__ import annotations

import math
import os
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from math import prod
from tempfile import TemporaryFile
from typing import Final, NamedTuple

import numpy

from scenario_runner.compare.wrong_elements import Rule, element_errors, worst_first, wrong_elements
from scenario_runner.errors import ScenarioRunnerError, UnsupportedError, UsageError, error_of, file_error
from scenario_runner.errors.text import first_of, one_line, reason_of
from scenario_runner.files.elements import Array, Element, element_of, element_of_format, is_numeric, read_array
from scenario_runner.ml.model_scenario import BareModel
from scenario_runner.ml.vgf_file import read_vgf
from scenario_runner.processes.temporary import make_folder
from scenario_runner.runner import Runner
from scenario_runner.tosa.conformance_tests import find_reference
from scenario_runner.tosa.conversion import convert
from scenario_runner.tosa.model import ValueType
from scenario_runner.tosa.model_layers import Layer
from scenario_runner.view.contents import Channel, Content, content_of

# Tolerated errors of floats, relative to the greatest magnitude of a layer: earlier layers leave such errors.
_DEFAULT_ERRORS: Final = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2, "float8_e4m3": 0.25, "float8_e5m2": 0.5}
_RANDOM: Final = {"bool": (0, 1), "int8": (-128, 127), "int16": (-32768, 32767), "int32": (0, 9), "int64": (0, 9)}
_WORST: Final = 8
_REASON: Final = re.compile(r"ERROR_IF\(\) fails AT .*\n(.+)")  # the reference model prints stack traces after it


class LayerResult(NamedTuple):
    """The comparison of a layer with the array called ``expected``, if any.

    ``wrong`` counts elements. ``error`` is the greatest error, infinite if only one side is a number, and ``relative``
    the error divided by the greatest expected magnitude. ``worst`` lists elements as (index, actual, expected, error).
    ``message`` explains the verdict, or why there is none.
    """

    layer: Layer
    expected: str | None = None
    wrong: int | None = None
    error: float = 0.0
    relative: float = 0.0
    worst: tuple[tuple[str, str, str, str], ...] = ()
    errors: Array | None = None
    message: str = ""

    @property
    def verdict(self) -> str:
        """ "within" or "beyond" the tolerances, or "-" without an expected array."""
        return "-" if self.wrong is None else "beyond" if self.wrong else "within"


class LayeredModel:
    """A model with layers as outputs; ``inputs`` has arrays by name."""

    def __init__(self, path: str, pattern: str = "*") -> None:
        """Raises the errors of `convert`."""
        self.path = path
        self._vgf_path = os.path.join(make_folder(), "model.vgf")
        converted = convert(path, self._vgf_path, expose_intermediates=pattern)
        self.layers, self._source = converted.layers, converted.source
        function = self._source.function
        assert function is not None, "`expose` makes a FlatBuffer"
        self._types = {argument.name: argument.type for argument in function.arguments}
        self._outputs = function.output_names or ()
        self.inputs: dict[str, Array] = {}
        for name, type in self._types.items():
            if type.static_shape is None:
                help = "give it fixed dimensions before it is lowered"
                raise UnsupportedError(f"{path}: the input {name!r} is {type.text} with an open shape", help=help)

    def take_inputs(
        self, files: Iterable[tuple[str, str]], seed: int = 0, limits: tuple[float, float] | None = None
    ) -> list[str]:
        """Read inputs by name or number, and fill the others with random numbers. Return the names of the others.

        ``limits`` are the least and greatest random number. The defaults are -1 and 1 for floats, the whole range for
        integers of 8 and 16 bits, and 0 and 9 for larger integers. Raises UsageError for an unknown input, and
        FileError for a file that does not fit.
        """
        names = list(self._types)
        arrays: dict[str, Array] = {}
        for name, path in files:
            if name not in names and name.isdecimal() and int(name) < len(names):
                name = names[int(name)]
            if name not in names:
                help = f"its inputs: {first_of(names)}"
                raise UsageError(f"--input {name}: {self.path} has no such input", help=help)
            array, type = read_array(path), self._types[name]
            element = _element(type)
            if array.dtype.itemsize != element.size_bytes or array.shape != type.static_shape:
                message = f"holds {array.dtype} of the shape {list(array.shape)}, but the input {name!r} is {type.text}"
                raise file_error(path, message)
            arrays[name] = array.view(element.dtype)
        random = numpy.random.default_rng(seed)
        self.inputs = {name: arrays.get(name, _random(type, random, limits)) for name, type in self._types.items()}
        return [name for name in names if name not in arrays]

    def run(self, runner: Runner) -> dict[str, Content]:
        """Run the model and return the layers' results by name. Raises the errors of `Runner.run`."""
        vgf, model = read_vgf(self._vgf_path), BareModel(self._vgf_path)
        arrays = list(self.inputs.values())
        try:
            result = runner.run(
                self._vgf_path, {port.binding: arrays[port.binding].tobytes() for port in vgf.input_ports}
            )
        except ScenarioRunnerError as error:
            raise error_of(problem._replace(path=self.path) for problem in error.problems) from None
        ports = {name: port for port in vgf.output_ports for name in port.names}
        contents = {}
        for layer in self.layers:
            port, element = ports[layer.name], _element(layer.type)
            shape = vgf.resources[port.resource_index].shape
            array = result.array(model.uid_of[port.binding], element.dtype, shape)
            contents[layer.name] = content_of(layer.name, array, element)
        return contents

    @property
    def content(self) -> bytes:
        """The model with layers as outputs, a FlatBuffer."""
        assert self._source.content is not None, "`expose` makes the model in memory"
        return self._source.content

    def input_contents(self) -> dict[str, Content]:
        """Return the inputs by name."""
        return {name: content_of(name, array, _element(self._types[name])) for name, array in self.inputs.items()}

    def run_reference(self) -> dict[str, list[Content]]:
        """Run TOSA's reference model and return the results of the layers by name.

        Raises MissingPackageError if the ``tosa`` extra is missing, and UnsupportedError if the reference model fails.
        """
        find_reference()
        try:
            with ProcessPoolExecutor(1) as pool:  # the reference model prints errors, and may crash
                outputs = pool.submit(_reference, self.content, list(self.inputs.values())).result()
        except (ValueError, RuntimeError) as error:
            raise UnsupportedError(f"{self.path}: TOSA's reference model cannot run the model: {error}") from error
        arrays = dict(zip(self._outputs, outputs, strict=True))
        return match(self.layers, {layer.name: arrays[layer.name] for layer in self.layers}, self.path)[0]


def _reference(content: bytes, inputs: list[Array]) -> list[Array]:
    """Compute the outputs with the reference model. Raises ValueError with the printed error."""
    from tosa_reference_model import GraphStatus, run

    with TemporaryFile() as printed:
        for stream in (1, 2):
            os.dup2(printed.fileno(), stream)
        try:
            outputs, status = run(content, inputs)
            problem = "" if status == GraphStatus.TOSA_VALID else status.name
        except ValueError as error:
            problem = str(error)
        printed.seek(0)
        reason = _REASON.search(printed.read().decode(errors="replace"))
    if problem:
        raise ValueError(f"{problem}: {one_line(reason[1])}" if reason else problem)
    return list(outputs)


def _element(type: ValueType) -> Element:
    assert type.format is not None, "the converter refuses other types"
    return element_of_format(type.format)


def _random(type: ValueType, random: numpy.random.Generator, limits: tuple[float, float] | None) -> Array:
    """Return random numbers of a type, between ``limits`` as far as the type holds them."""
    element = _element(type)
    chosen = limits or _RANDOM.get(element.name, (-1, 1))
    if element.is_float:
        most = float(element.limits.max)
        smallest, largest = numpy.clip(chosen, -most, most)
        numbers = numpy.asarray(random.uniform(smallest, largest, type.static_shape))
        return numbers.astype(element.type).view(element.dtype)
    kind = numpy.iinfo("i1" if element.name == "bool" else element.dtype)
    least, greatest = (min(max(math.floor(limit), int(kind.min)), int(kind.max)) for limit in chosen)
    return random.integers(least, greatest, type.static_shape, endpoint=True).astype(element.dtype)


def read_activations(path: str) -> dict[str, Array]:
    """Read arrays by name from a .npz file, or from the .npy files in a folder. Raises FileError."""
    if os.path.isdir(path):
        files = {name[:-4]: os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".npy")}
        arrays = {name: read_array(file) for name, file in files.items()}
    else:
        try:
            with numpy.load(path) as file:
                arrays = dict(file)
        except OSError as error:
            raise file_error(path, f"cannot be opened: {reason_of(error)}") from error
        except (ValueError, TypeError, EOFError, AttributeError, zipfile.BadZipFile) as error:
            help = "numpy.savez(FILE, **arrays) writes one"
            raise file_error(path, "is not a .npz file with arrays of numbers", help=help) from error
    if not arrays:
        raise file_error(path, "holds no arrays, expected results of layers by name")
    return arrays


def match(
    layers: Sequence[Layer], arrays: Mapping[str, Array], place: str
) -> tuple[dict[str, list[Content]], list[str]]:
    """Find the layer of each array.

    The layer has the name of the array. Otherwise it is the last layer of the same type and shape that was lowered from
    a node or module with the array's name. Case and punctuation count only if they decide between names.

    Return contents by layer name (two if the order of dimensions is ambiguous), and the names of arrays without
    a layer. Raises FileError for an array that does not fit the layer of the same name.
    """
    by_name = {_plain(name): layer for layer in layers for name in (layer.tensor, layer.name)}
    by_name |= {layer.tensor: layer for layer in layers} | {layer.name: layer for layer in layers}
    contents: dict[str, list[Content]] = {}
    others = []
    for name, array in arrays.items():
        plain = _plain(name)
        own = by_name.get(name) or by_name.get(plain)
        candidates = [layer for layer in layers if plain in map(_plain, layer.aliases)] if own is None else [own]
        fitting = [(layer, same) for layer in candidates if (same := _fitting(name, array, layer, layer is own))]
        if own is not None and not fitting:
            message = f"{name!r} holds {array.dtype} of the shape {list(array.shape)}, but the layer is {own.type.text}"
            raise file_error(place, message)
        if fitting:
            contents[fitting[-1][0].name] = fitting[-1][1]
        else:
            others.append(name)
    return contents, others


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_").removeprefix("tosa_")


def _fitting(name: str, array: Array, layer: Layer, any_type: bool) -> list[Content]:
    """Return an array in the shape of the layer: unchanged, and with the channels moved from second to last place.

    The list lacks forms that do not fit. Raw bytes count as numbers of the layer's type.
    """
    own = _element(layer.type)
    is_raw = not is_numeric(array) and array.dtype.itemsize == own.size_bytes
    element = own if is_raw else element_of(array.dtype.str)
    shape = layer.type.static_shape or array.shape
    if element is None or not (any_type or element is own) or array.size != prod(shape):
        return []
    arrays = [array, numpy.moveaxis(array, 1, -1)] if array.ndim > 2 else [array]
    same = [other for other in arrays if other.shape == shape]
    if not same and [n for n in array.shape if n != 1] == [n for n in shape if n != 1]:
        same = [array.reshape(shape)]
    return [content_of(name, other, element) for other in same]


def judge(
    layer: Layer,
    actual: Content,
    expected: Sequence[Content],
    rule: Rule | None = None,
    beyond: Array | float | None = None,
) -> LayerResult:
    """Compare a layer with the nearest of the ``expected`` contents.

    Without a ``rule``, integers must be equal, and errors of floats are limited in proportion to the greatest expected
    magnitude (1 if all are 0). ``beyond`` says by how much elements exceed their limits, if a rule of TOSA decides.
    """
    if not expected:
        return LayerResult(layer)
    (channel,) = actual.channels
    name, other, errors = min(((content.path, *_against(channel, content)) for content in expected), key=_distance)
    magnitude = float(numpy.abs(other.numbers[numpy.isfinite(other.numbers)].astype("f8")).max(initial=0.0)) or 1.0
    rule = rule or Rule(_DEFAULT_ERRORS.get(channel.element.name, 0.0) * magnitude, nan="equal")
    error, worst, order = float(errors.max(initial=0.0)), [], errors.reshape(-1)
    if beyond is None:
        wrong = wrong_elements(
            channel.raw.reshape(-1), other.raw.reshape(-1), channel.element, rule, other.element
        ).size
    else:
        excess = numpy.broadcast_to(beyond, errors.size)
        wrong = int(numpy.count_nonzero(excess))
        order = excess if wrong else order
    for at in worst_first(order, _WORST):
        worst.append((str(list(actual.index(at, 0))), channel.text(at), other.text(at), f"{errors.flat[at]:.9g}"))
    return LayerResult(layer, name.removesuffix(".npy"), wrong, error, error / magnitude, tuple(worst), errors)


def _against(actual: Channel, content: Content) -> tuple[Channel, Array]:
    """Return the expected channel, and the errors of the actual channel."""
    (expected,) = content.channels
    return expected, element_errors(actual.raw, expected.raw, actual.element, expected.element)


def _distance(compared: tuple[str, Channel, Array]) -> tuple[int, float]:
    """Measure a layer's distance from the expected values: count infinite errors, and add up the others."""
    errors = compared[2]
    is_finite = numpy.isfinite(errors)
    with numpy.errstate(over="ignore"):
        return int(errors.size - numpy.count_nonzero(is_finite)), float(errors[is_finite].sum())


def sources_of(result: LayerResult, results: Sequence[LayerResult]) -> dict[str, str]:
    """Return the verdicts of a layer's input layers, nearest first. An input of the model has "input".

    A layer without an expected array is followed by that layer's inputs.
    """
    by_name = {other.layer.name: other for other in results}
    sources: dict[str, str] = {}
    names = list(result.layer.inputs)
    for name in names:
        other = by_name.get(name)
        if other is not None and other.wrong is None and name not in sources:
            names += other.layer.inputs
        sources.setdefault(name, other.verdict if other else "input")
    return sources
