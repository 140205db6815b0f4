"""Judge outputs by TOSA's compliance modes, with the verifier library in the package tosa-tools.

The verdict comes from the library. The library names at most one wrong float and no wrong integer, so this module
computes each element's limits for messages. Source: "Output verification" in the TOSA specification, with the
library's defaults.

Let r be the exact expected value, m the magnitude of r (at least the smallest normal value), b the bounds' element,
and f the mantissa bit count. Parameters have their names. An element may differ from r by::

    EXACT             0
    ULP               ulp * 2^(floor(log2(m)) - f), 0 for r = 0; towards zero, ulp_lower replaces ulp
    ABS_ERROR         max(max(m * (base_bound + b), lower_bound) * 2^(-f / normal_divisor), max_compare);
                      with bound_as_magnitude, base_bound * |b| replaces the product
    REDUCE_PRODUCT    m * ((1 + 2^(-f - 1))^n - 1)
    MAX_RELATIVE      max * max(scale, ulp_bound * 2^-f)
    PRECOMPUTED       b
    DOT_PRODUCT       abs_bound * max(b * 2^(-f - 1), smallest normal value), 0 for b = 0; the verifier also
                      limits the variance over all errors, and the mean error in the test sets 3 to 5

RESCALE_INEXACT accepts r to b. FP_SPECIAL accepts all finite values of the same sign. Limits beyond the values of the
type are infinite (NaN for FP8E4M3). An expected NaN accepts NaN, an infinite b accepts everything, and a denormal value
accepts zero (except FP8).
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from glob import glob
from importlib.util import find_spec
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy

from scenario_runner.compare.wrong_elements import worst_first
from scenario_runner.errors import MetricPackageError
from scenario_runner.errors.diagnostic import Diagnostic, escape
from scenario_runner.errors.text import close_match, listed, share_of
from scenario_runner.files.elements import ELEMENTS, Array, Element

PACKAGE: Final = "tosa-tools"
INSTALL: Final = f"pip install {PACKAGE}"
_standard_error: Final = threading.Lock()  # belongs to the whole process
_FP64: Final = 99  # the reference model's tosa_datatype_t for precise results (the package's types.h)

_FLAGS: Final = ("bound_as_magnitude", "unsigned_data")  # parameters that are true or false; the others are numbers

Parameters: TypeAlias = Mapping[str, float]

DATA_TYPES: Final = {
    "BOOL": (1, "bool"), "INT8": (8, "int8"), "INT4": (7, "int8"), "INT16": (4, "int16"), "INT32": (5, "int32"),
    "INT48": (6, "int64"), "FP16": (2, "float16"), "BF16": (0, "bfloat16"), "FP32": (3, "float32"),
    "FP8E4M3": (12, "float8_e4m3"), "FP8E5M2": (13, "float8_e5m2"),
}  # fmt: skip
"""TOSA's types: their tosa_datatype_t, and elements for their values."""
DataType: TypeAlias = Literal[tuple(DATA_TYPES)]  # type: ignore[valid-type]


def _magnitude(r: Array, type: Any) -> Array:
    return numpy.maximum(numpy.abs(r), float(type.smallest_normal))


def _ulp(p: Parameters, r: Array, b: Array | float, type: Any) -> Array | float:
    return numpy.where(r == 0, 0.0, p["ulp"] * 2.0 ** (numpy.frexp(_magnitude(r, type))[1] - 1.0 - type.nmant))


def _abs_error(p: Parameters, r: Array, b: Array | float, type: Any) -> Any:
    base = p.get("base_bound", 0.0)
    error = base * numpy.abs(b) if p.get("bound_as_magnitude") else _magnitude(r, type) * (base + b)
    error = numpy.maximum(error, p.get("lower_bound", 0.0)) * 2.0 ** (-type.nmant / p.get("normal_divisor", 1.0))
    return numpy.maximum(error, p.get("max_compare", 0.0))


def _dot_product(p: Parameters, r: Array, b: Array | float, type: Any) -> Array | float:
    unit = numpy.maximum(b * 2.0 ** (-type.nmant - 1), float(type.smallest_normal))
    return p.get("abs_bound", 2 * p["ksb"]) * numpy.where(b == 0, 0.0, unit)


class Mode(NamedTuple):
    """A compliance mode: required and optional parameters, and whether the mode needs a bounds file.

    ``error`` computes the formula from the parameters, r, b and a float type's limits.
    """

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    has_bounds: bool = False
    error: Callable[[Parameters, Array, Array | float, Any], Array | float] = lambda p, r, b, t: 0.0


_ABS_ERROR = ("lower_bound", "normal_divisor", "bound_as_magnitude", "max_compare", "base_bound")
_DOT_PRODUCT = ("abs_bound", "variance_error_bound")
_MAX_RELATIVE = ("max", "scale", "ulp_bound")
MODES: Final = {
    "EXACT": Mode(),
    "ULP": Mode(("ulp",), ("ulp_lower",), error=_ulp),
    "ABS_ERROR": Mode((), _ABS_ERROR, True, _abs_error),
    "REDUCE_PRODUCT": Mode(
        ("n",), (), False, lambda p, r, b, t: _magnitude(r, t) * ((1 + 0.5 ** (t.nmant + 1)) ** p["n"] - 1)
    ),
    "MAX_RELATIVE": Mode(
        _MAX_RELATIVE, (), False, lambda p, r, b, t: p["max"] * max(p["scale"], p["ulp_bound"] * 0.5**t.nmant)
    ),
    "PRECOMPUTED": Mode((), (), True, lambda p, r, b, t: b),
    "RESCALE_INEXACT": Mode(("unsigned_data",), (), True),
    "DOT_PRODUCT": Mode(("s", "ksb"), _DOT_PRODUCT, True, _dot_product),
    "FP_SPECIAL": Mode((), (), True),
}
ModeName: TypeAlias = Literal[tuple(MODES)]  # type: ignore[valid-type]


def judges(mode: str, data_type: str) -> bool:
    """Return whether the library supports a mode for a type."""
    if mode == "RESCALE_INEXACT":
        return data_type in ("INT8", "INT16", "INT32")
    return mode == "EXACT" or ELEMENTS[DATA_TYPES[data_type][1]].is_float


class TosaRule(NamedTuple):
    """A mode for an output with the type ``data_type``, with the ``parameters`` from a test's ``meta.compliance``.

    ``expected`` is the reference model's result in precise mode: float64 for floats, otherwise the integers of the
    output. ``bounds`` are the reference model's bounds, with the same shape.
    """

    mode: str
    data_type: str
    expected: Array
    bounds: Array | None = None
    parameters: Parameters = MappingProxyType({})


def rule_problems(mode_name: str, parameters: Parameters, *, has_bounds: bool) -> Iterator[Diagnostic]:
    """Yield errors about a mode's unknown parameters, wrong values, and missing parameters or bounds.

    With a parameter of the wrong type, the library would end the process.
    """
    mode = MODES[mode_name]
    known = mode.required + mode.optional
    for name, value in parameters.items():
        pointer, is_number = f"/tosa/parameters/{escape(name)}", isinstance(value, int | float)
        if name not in known:
            help = f"its parameters: {listed(known)}" if known else "it has none"
            message = f"{name!r:.60} is not a parameter of {mode_name}{close_match(name, known)}"
            yield Diagnostic("SR-EXPECT-002", "error", pointer, message, help)
        elif isinstance(value, bool) != (name in _FLAGS) or not is_number or not abs(value) <= sys.float_info.max:
            message = f"expected {'true or false' if name in _FLAGS else 'a finite number'}, got {value!r:.60}"
            yield Diagnostic("SR-EXPECT-003", "error", pointer, message)
    lacks = [f"the parameter {name!r}" for name in mode.required if name not in parameters]
    lacks += ["'bounds'"] if mode.has_bounds and not has_bounds else []
    if lacks:
        help = "'meta.compliance' in the test's desc.json has parameters; the reference model writes bounds_….npy"
        yield Diagnostic("SR-EXPECT-003", "error", "/tosa", f"{mode_name} needs {' and '.join(lacks)}", help)


class Judgement(NamedTuple):
    """A verdict. A failed verdict has a reason and the worst elements: index, expected and actual value.

    ``beyond`` is the flat array with amounts beyond the limits. It is infinite if the library names no wrong element.
    """

    passed: bool
    message: str = ""
    worst: tuple[tuple[str, str, str], ...] = ()
    beyond: Array | float = 0.0


def judge(actual: Array, rule: TosaRule) -> Judgement:
    """Judge an output by a rule. ``actual`` has the expected number of elements, in any type with the right size.

    Raises ValueError for an invalid rule, and MetricPackageError if tosa-tools is missing.
    """
    for problem in rule_problems(rule.mode, rule.parameters, has_bounds=rule.bounds is not None):
        raise ValueError(problem.message)
    if not judges(rule.mode, rule.data_type):
        raise ValueError(f"{rule.mode} does not judge {rule.data_type}")
    name = DATA_TYPES[rule.data_type][1]
    element = ELEMENTS.get(f"u{name}" if rule.parameters.get("unsigned_data") else name, ELEMENTS[name])
    expected, bounds = _native(rule.expected, element), rule.bounds
    rule = rule._replace(expected=expected, bounds=None if bounds is None else _native(bounds, element))
    raw = numpy.ascontiguousarray(actual).reshape(-1).view(element.dtype)
    passed, log = _verify(raw, rule)
    if passed:
        return Judgement(True)
    r, low, high, over = limits(raw, element, rule)
    wrong = numpy.flatnonzero(over)
    if not wrong.size:
        reason = re.search(r"\[Verifier\](?:\[\w+\])? *(.+)", log)
        text = reason[1] if reason else "the verifier says no more"
        return Judgement(False, f"wrong by TOSA's mode {rule.mode}: {text}", beyond=numpy.inf)
    order = wrong[worst_first(over[wrong])].tolist()
    texts = [f"{r[at]:.17g}" if element.is_float else str(int(r[at])) for at in order]
    places = [str([int(place) for place in numpy.unravel_index(at, actual.shape)]) for at in order]
    worst = tuple((places[n], texts[n], element.text(raw[at : at + 1])) for n, at in enumerate(order))
    share = share_of(wrong.size, raw.size, "element")
    got = f"the worst at {places[0]}: {worst[0][2]}, expected {texts[0]}"
    allowed = f"{low[order[0]]:.17g} to {high[order[0]]:.17g}, exceeded by {over[order[0]]:.6g}"
    return Judgement(False, f"{share} wrong by TOSA's mode {rule.mode}, {got}; allowed: {allowed}", worst, over)


def limits(raw: Array, element: Element, rule: TosaRule) -> tuple[Array, Array, Array, Array]:
    """Return expected values, the least and greatest right values, and the amounts of ``raw`` beyond these limits.

    All arrays are flat and in double precision. Amounts are 0 for right elements, infinite for wrong NaN and infinity.
    """
    bounds = rule.bounds if MODES[rule.mode].has_bounds else None
    arrays = [array.reshape(-1) for array in (rule.expected, rule.expected if bounds is None else bounds)]
    r, b = (array if element.is_float else array.view(element.dtype).astype("f8") for array in arrays)
    with numpy.errstate(invalid="ignore"):  # about signaling NaN
        values = element.numbers(raw).astype("f8")
    if not element.is_float:
        return r, r, b, numpy.maximum(numpy.maximum(r - values, values - b), 0.0)
    type, error = element.limits, MODES[rule.mode].error
    greatest, is_nan = float(type.max), numpy.isnan(values)
    p = {name: numpy.float64(value) for name, value in rule.parameters.items()}
    with numpy.errstate(all="ignore"):  # infinite values
        lower = error(p | {"ulp": p.get("ulp_lower", p.get("ulp", numpy.float64(0)))}, r, b, type)
        upper = error(p, r, b, type)
        low, high = r - numpy.where(r < 0, upper, lower), r + numpy.where(r < 0, lower, upper)
        if rule.mode == "FP_SPECIAL":
            end = numpy.copysign(greatest, r)
            low, high = numpy.where(numpy.isfinite(r), (numpy.minimum(end, 0), numpy.maximum(end, 0)), r)
        low, high = (numpy.where(numpy.abs(end) > greatest, numpy.copysign(numpy.inf, end), end) for end in (low, high))
        right = (values >= low) & (values <= high) | is_nan & numpy.isnan(r) | numpy.isinf(upper)
        if element.name == "float8_e4m3":  # has NaN where other types have infinity
            right |= is_nan & (numpy.isinf(low) | numpy.isinf(high))
        elif element.size_bytes > 1:
            right |= (values == 0) & (numpy.minimum(numpy.abs(low), numpy.abs(high)) < float(type.smallest_normal))
        over = numpy.nan_to_num(numpy.maximum(low - values, values - high), nan=numpy.inf, posinf=numpy.inf)
    return r, low, high, numpy.where(right, 0.0, over)


class _Tensor(ctypes.Structure):
    """``tosa_tensor_t`` of the package's types.h."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_int32)), ("num_dims", ctypes.c_int32),
        ("data_type", ctypes.c_int), ("data", ctypes.c_void_p), ("size", ctypes.c_size_t),
    )  # fmt: skip


def verifier_path() -> str | None:
    """Return the verifier library's path, or None if the package is not installed."""
    spec = find_spec("tosa_reference_model")  # which is not imported: it has 17 MB
    folder = os.path.dirname((spec and spec.origin) or "")
    return next((os.path.join(folder, name) for name in glob("*tosa_reference_verify_lib.*", root_dir=folder)), None)


@cache
def _library() -> Any:
    """Load the function ``tvf_verify_data`` (the package's verify.h).

    The package's own binding, `checker.verifier`, spends 25 ms for each configuration on a JSON schema.
    """
    path = verifier_path()
    if path is None:
        raise MetricPackageError(f"the package {PACKAGE!r} is not installed", help=INSTALL)
    verify = ctypes.CDLL(path).tvf_verify_data
    verify.argtypes = [ctypes.POINTER(_Tensor)] * 3 + [ctypes.c_char_p]
    verify.restype = ctypes.c_bool
    return verify


def _native(array: Array, element: Element) -> Array:
    """Convert a rule's array to native byte order. Raises ValueError for a wrong type."""
    native = array.dtype.newbyteorder("=")
    fits = native == "f8" if element.is_float else issubclass(native.type, numpy.integer | numpy.bool_)
    if not fits:
        raise ValueError(f"{array.dtype} is not {'float64 (precise mode)' if element.is_float else element.name}")
    return numpy.asarray(array, native, order="C")


def _tensor(array: Array, rule: TosaRule) -> _Tensor:
    """Describe an array for the library, which must outlive the call. Raises ValueError if it does not fit the rule."""
    shape, (code, name) = rule.expected.shape, DATA_TYPES[rule.data_type]
    code, size = (_FP64, 8) if array.dtype == "f8" else (code, ELEMENTS[name].size_bytes)
    if array.size != rule.expected.size or array.itemsize != size:
        raise ValueError(f"{array.dtype} of shape {array.shape} is not {rule.data_type} of shape {shape}")
    return _Tensor(b"output", (ctypes.c_int32 * len(shape))(*shape), len(shape), code, array.ctypes.data, array.nbytes)


def _verify(raw: Array, rule: TosaRule) -> tuple[bool, str]:
    """Call the library. Return the verdict, and the library's messages on standard error."""
    verify = _library()
    config = {"mode": rule.mode, "data_type": rule.data_type, "shape": rule.expected.shape}
    if rule.parameters:
        config[f"{rule.mode.lower()}_info"] = dict(rule.parameters)
    text = json.dumps({"version": "1.0", "tensors": {"output": config}}).encode()
    tensors = [None if array is None else _tensor(array, rule) for array in (rule.expected, rule.bounds, raw)]
    with TemporaryFile() as log, _standard_error:
        standard_error = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            passed = verify(*tensors, text)
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)
        log.seek(0)
        return passed, log.read().decode(errors="replace")
