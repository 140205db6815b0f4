"""The operators of the instruction set "TOSA.001000.1": numbers, operands in their order, types.

Every operator is one row of text below, read when a graph first uses it:

- **attributes** come first: constants of 32-bit integers or Booleans. ``pad*4`` is a tensor of 4 numbers,
  ``perms*rank`` one of as many as the first input has dimensions, anything else a scalar. `ATTRIBUTES` says what each
  may be.
- **inputs** are ``name:type:rank``; the rank may be left out. ``[1]`` is a tensor of one element, ``shape`` instead of
  a type a constant of 32-bit integers, ``...`` behind the last one means that it may be repeated.
- **results** are ``type:rank``.
- **types** say which element types the capital letters may stand for together, row by row; groups of letters that are
  independent of each other are separated by semicolons. ``A`` is what ``acc_type`` names.

Sources: TOSA 1.0 specification, the operators' argument tables and supported data types of all profiles and extensions;
SPIR-V extended instruction set "TOSA.001000.1" (order of operands, ranks up to 6; i48 is a 64-bit integer, i4 an 8-bit
one), compared with what converters write and what the emulation layers run.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

_INT = "i8, i16, i32"
_FLOAT = "f16, f32, bf16"
_FLOAT8 = "e4m3, e5m2"
_NUMBER = f"i32, {_FLOAT}"
_POOLED = f"i8, i16, {_FLOAT}"
_MOVED = f"bool, {_INT}, {_FLOAT}, {_FLOAT8}"

# name → type, least and largest value of every number; what has no type is of the element type of the first input
ATTRIBUTES: dict[str, tuple[str, int | None, int | None]] = {
    "acc_type": ("i32", 1, 4),
    "axis": ("i32", 0, 5),
    "dilation": ("i32", 1, None),
    "input_unsigned": ("bool", None, None),
    "inverse": ("bool", None, None),
    "kernel": ("i32", 1, None),
    "local_bound": ("bool", None, None),
    "max_val": ("", None, None),
    "min_val": ("", None, None),
    "mode": ("i32", 1, 2),
    "nan_mode": ("i32", 1, 2),
    "out_pad": ("i32", None, None),
    "output_unsigned": ("bool", None, None),
    "pad": ("i32", 0, None),
    "per_channel": ("bool", None, None),
    "perms": ("i32", 0, 5),
    "round": ("bool", None, None),
    "rounding_mode": ("i32", 1, 3),
    "scale32": ("bool", None, None),
    "stride": ("i32", 1, None),
}

_CONVOLUTION = (
    "I W O A = i8 i8 i32 INT32, i16 i8 i64 INT48, f16 f16 f16 FP16, f16 f16 f16 FP32, f32 f32 f32 FP32,"
    " bf16 bf16 bf16 FP32, e4m3 e4m3 f16 FP16, e5m2 e5m2 f16 FP16"
)
_ZERO_POINTS = "input_zp:I:[1] weight_zp:W:[1]"
_ONE = "| | input1:T | T | T ="
_TWO = "| | input1:T input2:T | T | T ="
_SHIFTED = f"| round | input1:T input2:T | T | T = {_INT}"
_COMPARED = f"| | input1:T input2:T | bool | T = {_NUMBER}"
_REDUCED = "| axis | input:T | T | T ="
_NAN_REDUCED = f"| axis nan_mode | input:T | T | T = {_INT}, {_FLOAT}"
_CASTS = {
    "bool": f"bool, {_INT}",
    **dict.fromkeys(_INT.split(", "), f"bool, {_INT}, {_FLOAT}"),
    "f16": f"{_INT}, f16, f32, {_FLOAT8}",
    "f32": f"{_INT}, {_FLOAT}, {_FLOAT8}",
    "bf16": f"{_INT}, f32, bf16, {_FLOAT8}",
    "e4m3": f"{_FLOAT}, e4m3",
    "e5m2": f"{_FLOAT}, e5m2",
    "i64": "i64",
}
_SCALED = ", ".join(f"{one} {other}" for one in _INT.split(", ") for other in ("i32", "i16"))
_CAST = ", ".join(f"{one} {other}" for one, others in _CASTS.items() for other in others.split(", "))

_ROWS = (
    f"ARGMAX | axis nan_mode | input:T | i32 | T = {_POOLED}, {_FLOAT8}",
    "AVG_POOL2D | kernel*2 stride*2 pad*4 acc_type | input:T:4 input_zp:T:[1] output_zp:T:[1] | T:4"
    " | T A = i8 INT32, i16 INT32, f16 FP16, f16 FP32, f32 FP32, bf16 FP32, e4m3 FP16, e5m2 FP16",
    "CONV2D | pad*4 stride*2 dilation*2 acc_type local_bound"
    f" | input:I:4 weight:W:4 bias:O:1 {_ZERO_POINTS} | O:4 | {_CONVOLUTION}",
    "CONV3D | pad*6 stride*3 dilation*3 acc_type local_bound"
    f" | input:I:5 weight:W:5 bias:O:1 {_ZERO_POINTS} | O:5 | {_CONVOLUTION}",
    "DEPTHWISE_CONV2D | pad*4 stride*2 dilation*2 acc_type local_bound"
    f" | input:I:4 weight:W:4 bias:O:1 {_ZERO_POINTS} | O:4 | {_CONVOLUTION}",
    "FFT2D | inverse local_bound | input_real:f32:3 input_imag:f32:3 | f32:3 f32:3 |",
    "MATMUL | | a:L:3 b:R:3 a_zp:L:[1] b_zp:R:[1] | O:3 | L R O = i8 i8 i32, i16 i16 i64, f16 f16 f16, f16 f16 f32,"
    " bf16 bf16 f32, f32 f32 f32, e4m3 e4m3 f16, e5m2 e5m2 f16, e4m3 e5m2 f16, e5m2 e4m3 f16",
    f"MAX_POOL2D | kernel*2 stride*2 pad*4 nan_mode | input:T:4 | T:4 | T = {_POOLED}, {_FLOAT8}",
    "RFFT2D | local_bound | input_real:f32:3 | f32:3 f32:3 |",
    "TRANSPOSE_CONV2D | out_pad*4 stride*2 acc_type local_bound"
    f" | input:I:4 weight:W:4 bias:O:1 {_ZERO_POINTS} | O:4 | {_CONVOLUTION}",
    f"CLAMP | min_val max_val nan_mode | input:T | T | T = {_POOLED}",
    f"ERF {_ONE} {_FLOAT}",
    f"SIGMOID {_ONE} {_FLOAT}",
    f"TANH {_ONE} {_FLOAT}",
    f"ADD {_TWO} {_NUMBER}",
    f"ARITHMETIC_RIGHT_SHIFT {_SHIFTED}",
    f"BITWISE_AND {_TWO} {_INT}",
    f"BITWISE_OR {_TWO} {_INT}",
    f"BITWISE_XOR {_TWO} {_INT}",
    f"INTDIV {_TWO} i32",
    f"LOGICAL_AND {_TWO} bool",
    f"LOGICAL_LEFT_SHIFT {_TWO} {_INT}",
    f"LOGICAL_RIGHT_SHIFT {_TWO} {_INT}",
    f"LOGICAL_OR {_TWO} bool",
    f"LOGICAL_XOR {_TWO} bool",
    f"MAXIMUM | nan_mode | input1:T input2:T | T | T = {_NUMBER}",
    f"MINIMUM | nan_mode | input1:T input2:T | T | T = {_NUMBER}",
    "MUL | | input1:T input2:T shift:i8:[1] | O"
    " | T O = i8 i32, i16 i32, i32 i32, f16 f16, f32 f32, bf16 bf16",
    f"POW {_TWO} {_FLOAT}",
    f"SUB {_TWO} {_NUMBER}",
    "TABLE | | input1:I table:W:1 | O | I W O = i8 i8 i8, i16 i16 i32",
    f"ABS {_ONE} {_NUMBER}",
    f"BITWISE_NOT {_ONE} {_INT}",
    f"CEIL {_ONE} {_FLOAT}",
    f"CLZ {_ONE} i32",
    f"COS {_ONE} {_FLOAT}",
    f"EXP {_ONE} {_FLOAT}",
    f"FLOOR {_ONE} {_FLOAT}",
    f"LOG {_ONE} {_FLOAT}",
    f"LOGICAL_NOT {_ONE} bool",
    f"NEGATE | | input1:T input1_zp:T:[1] output_zp:T:[1] | T | T = {_INT}, {_FLOAT}",
    f"RECIPROCAL {_ONE} {_FLOAT}",
    f"RSQRT {_ONE} {_FLOAT}",
    f"SIN {_ONE} {_FLOAT}",
    f"SELECT | | condition:bool on_true:T on_false:T | T | T = bool, {_INT}, {_FLOAT}",
    f"EQUAL {_COMPARED}",
    f"GREATER {_COMPARED}",
    f"GREATER_EQUAL {_COMPARED}",
    f"REDUCE_ALL {_REDUCED} bool",
    f"REDUCE_ANY {_REDUCED} bool",
    f"REDUCE_MAX {_NAN_REDUCED}",
    f"REDUCE_MIN {_NAN_REDUCED}",
    f"REDUCE_PRODUCT {_REDUCED} {_FLOAT}",
    f"REDUCE_SUM {_REDUCED} {_NUMBER}",
    f"CONCAT | axis | input1:T... | T | T = {_MOVED}",
    f"PAD | | input1:T padding:shape pad_const:T:[1] | T | T = {_MOVED}",
    f"RESHAPE | | input1:T shape:shape | T | T = {_MOVED}",
    f"REVERSE | axis | input1:T | T | T = {_MOVED}",
    f"SLICE | | input1:T start:shape size:shape | T | T = {_MOVED}",
    f"TILE | | input1:T multiples:shape | T | T = {_MOVED}",
    f"TRANSPOSE | perms*rank | input1:T | T | T = {_MOVED}",
    f"GATHER | | values:T:3 indices:i32:2 | T:3 | T = {_INT}, {_FLOAT}, {_FLOAT8}",
    f"SCATTER | | values_in:T:3 indices:i32:2 input:T:3 | T:3 | T = {_INT}, {_FLOAT}, {_FLOAT8}",
    "RESIZE | mode | input:I:4 scale:shape offset:shape border:shape | O:4"
    " | I O = i8 i8, i8 i32, i16 i16, i16 i64, f16 f16, f32 f32, bf16 bf16",
    f"CAST | | input:I | O | I O = {_CAST}",
    "RESCALE | scale32 rounding_mode per_channel input_unsigned output_unsigned"
    " | input:I multiplier:M:1 shift:i8:1 input_zp:I:[1] output_zp:O:[1] | O"
    f" | I M = i64 i16, {_SCALED}; O = {_INT}",
)  # fmt: skip


class Attribute(NamedTuple):
    """An operand before the inputs: ``length`` numbers of ``type``, None for a scalar, 0 for one for each dimension."""

    name: str
    type: str
    length: int | None
    least: int | None
    most: int | None


class Operand(NamedTuple):
    """An input or a result: ``type`` is an element type, a letter of the operator's `types`, or "shape".

    ``rank`` is None where any will do; ``single`` is true for a tensor of one element.
    """

    name: str
    type: str
    rank: int | None
    single: bool


class Operator(NamedTuple):
    """One operator. ``types`` are (letters, the element types that they may stand for together)."""

    name: str
    attributes: tuple[Attribute, ...]
    inputs: tuple[Operand, ...]
    repeated: bool
    results: tuple[Operand, ...]
    types: tuple[tuple[str, frozenset[tuple[str, ...]]], ...]


COUNT = len(_ROWS)


@cache
def operator(number: int) -> Operator:
    """The operator of a number from 0 to `COUNT` - 1."""
    name, attributes, inputs, results, types = (part.strip() for part in _ROWS[number].split("|"))
    return Operator(
        name,
        tuple(map(_attribute, attributes.split())),
        tuple(_operand(text.removesuffix("...")) for text in inputs.split()),
        inputs.endswith("..."),
        tuple(_operand(f"result:{text}") for text in results.split()),
        tuple(map(_types, types.split("; "))) if types else (),
    )


def _attribute(text: str) -> Attribute:
    name, _, length = text.partition("*")
    type, least, most = ATTRIBUTES[name]
    return Attribute(name, type, None if not length else 0 if length == "rank" else int(length), least, most)


def _operand(text: str) -> Operand:
    name, type, *rank = text.split(":")
    single = rank == ["[1]"]
    return Operand(name, type, 1 if single else int(rank[0]) if rank else None, single)


def _types(text: str) -> tuple[str, frozenset[tuple[str, ...]]]:
    letters, _, rows = text.partition(" = ")
    return letters.replace(" ", ""), frozenset(tuple(row.split()) for row in rows.split(", "))
