"""The operators of TOSA 1.0: their operands in the order of SPIR-V, and the shapes of their results.

A shape is a tuple of sizes, 1 or more each, with `UNKNOWN` where a size is not known. Rules raise `ShapeError` with the
end of a sentence whose subject is the operator, where shapes of inputs do not fit each other.

Source: TOSA 1.0 specification, the operators' argument tables, ERROR_IF and REQUIRE conditions; SPIR-V extended
instruction set "TOSA.001000.1".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple, TypeAlias

Shape: TypeAlias = tuple[int, ...]
UNKNOWN: Final = -1
INSTRUCTION_SET: Final = "TOSA.001000.1"

_NAMES: Final = (
    "ARGMAX AVG_POOL2D CONV2D CONV3D DEPTHWISE_CONV2D FFT2D MATMUL MAX_POOL2D RFFT2D TRANSPOSE_CONV2D CLAMP ERF SIGMOID"
    " TANH ADD ARITHMETIC_RIGHT_SHIFT BITWISE_AND BITWISE_OR BITWISE_XOR INTDIV LOGICAL_AND LOGICAL_LEFT_SHIFT"
    " LOGICAL_RIGHT_SHIFT LOGICAL_OR LOGICAL_XOR MAXIMUM MINIMUM MUL POW SUB TABLE ABS BITWISE_NOT CEIL CLZ COS EXP"
    " FLOOR LOG LOGICAL_NOT NEGATE RECIPROCAL RSQRT SIN SELECT EQUAL GREATER GREATER_EQUAL REDUCE_ALL REDUCE_ANY"
    " REDUCE_MAX REDUCE_MIN REDUCE_PRODUCT REDUCE_SUM CONCAT PAD RESHAPE REVERSE SLICE TILE TRANSPOSE GATHER SCATTER"
    " RESIZE CAST RESCALE"
)
OPERATORS: Final = tuple(_NAMES.split())
"""The operators by their number."""

_CONVOLVED: Final = "acc_type! local_bound! input weight bias input_zp* weight_zp*"
# Operands in their order: "!" marks constants, "*" tensors of one element, "..." one or more. Operators that are not
# listed have only inputs, which are broadcast.
_OPERANDS: Final = {
    "ARGMAX": "axis! nan_mode! input",
    "AVG_POOL2D": "kernel! stride! pad! acc_type! input input_zp* output_zp*",
    **dict.fromkeys(("CONV2D", "CONV3D", "DEPTHWISE_CONV2D"), f"pad! stride! dilation! {_CONVOLVED}"),
    "FFT2D": "inverse! local_bound! input_real input_imag",
    "MATMUL": "a b a_zp* b_zp*",
    "MAX_POOL2D": "kernel! stride! pad! nan_mode! input",
    "RFFT2D": "local_bound! input_real",
    "TRANSPOSE_CONV2D": f"out_pad! stride! {_CONVOLVED}",
    "CLAMP": "min_val! max_val! nan_mode! input...",
    "ARITHMETIC_RIGHT_SHIFT": "round! input...",
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), "nan_mode! input..."),
    "MUL": "input1 input2 shift*",
    "TABLE": "input1 table",
    "NEGATE": "input1 input1_zp* output_zp*",
    **dict.fromkeys(("REDUCE_ALL", "REDUCE_ANY", "REDUCE_PRODUCT", "REDUCE_SUM"), "axis! input"),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), "axis! nan_mode! input"),
    "CONCAT": "axis! input...",
    "PAD": "input1 padding! pad_const*",
    "RESHAPE": "input1 shape!",
    "REVERSE": "axis! input1",
    "SLICE": "input1 start! size!",
    "TILE": "input1 multiples!",
    "TRANSPOSE": "perms! input1",
    "GATHER": "values indices",
    "SCATTER": "values_in indices input",
    "RESIZE": "mode! input scale! offset! border!",
    "RESCALE": (
        "scale32! rounding_mode! per_channel! input_unsigned! output_unsigned!"
        " input multiplier shift input_zp* output_zp*"
    ),
}


class ShapeError(ValueError):
    """Operands that an operator cannot have; the message is the end of a sentence whose subject is the operator."""


class Operand(NamedTuple):
    """An operand of an operator. ``is_single`` is true for tensors of one element: zero points, shifts and the like."""

    name: str
    is_constant: bool
    is_single: bool


def operands_of(name: str, count: int) -> list[Operand]:
    """Describe the operands of an operator, of which there are ``count``."""
    words = _OPERANDS.get(name, "input...").split()
    if words[-1].endswith("..."):
        repeated = words.pop().removesuffix("...")
        words += [f"{repeated}{number}" for number in range(1, max(1, count - len(words)) + 1)]
    return [Operand(word.rstrip("!*"), word.endswith("!"), word.endswith("*")) for word in words]


class Call(NamedTuple):
    """One operator: its constant operands and the shapes of its inputs by name."""

    constants: Mapping[str, tuple[int, ...]]
    inputs: Mapping[str, Shape]


def text(shape: Shape) -> str:
    """Format a shape for messages."""
    return f"[{', '.join('?' if size == UNKNOWN else str(size) for size in shape)}]"


def merged(one: Shape, other: Shape) -> Shape | None:
    """Combine what is known of one shape twice; None where it is contradictory."""
    if len(one) != len(other):
        return None
    for first, second in zip(one, other, strict=True):
        if first != second and UNKNOWN not in (first, second):
            return None
    return tuple(map(max, one, other))  # UNKNOWN is less than any size


def result_shapes(name: str, call: Call) -> tuple[Shape, ...]:
    """Infer the shapes of the results of the operator ``name``. Raises ShapeError where the inputs do not fit."""
    return _RULES.get(name, _elementwise)(call)


def _elementwise(call: Call) -> tuple[Shape, ...]:
    """Broadcast inputs of the same rank; zero points and shifts do not take part."""
    shapes = list(call.inputs.values())
    result = shapes[0]
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise ShapeError(f"has inputs of {len(result)} and {len(shape)} dimensions, expected the same number")
        result = tuple(_broadcast(one, other, shapes) for one, other in zip(result, shape, strict=True))
    return (result,)


def _broadcast(one: int, other: int, shapes: Sequence[Shape]) -> int:
    if one == other or other == 1:
        return one
    if one == 1:
        return other
    if UNKNOWN in (one, other):
        return max(one, other)
    raise ShapeError(f"has inputs of the shapes {' and '.join(map(text, shapes))}, whose sizes are neither equal nor 1")


def _equal(one: int, other: int, what: str) -> int:
    """Return the known one of two sizes that must be equal."""
    if one != other and UNKNOWN not in (one, other):
        raise ShapeError(f"has {what}: {one} and {other}, expected the same")
    return max(one, other)


def _window(size: int, before: int, after: int, kernel: int, stride: int, what: str) -> int:
    """Count the windows of a convolution or a pool in one dimension."""
    if UNKNOWN in (size, kernel):
        return UNKNOWN
    room = size + before + after - kernel
    if room < 0:
        raise ShapeError(
            f"has a kernel of {kernel} in {what}, more than the {size} elements with {before} and {after} of padding"
        )
    return room // stride + 1


def _argmax(call: Call) -> tuple[Shape, ...]:
    shape = call.inputs["input"]
    (axis,) = call.constants["axis"]
    return ((shape[:axis] + shape[axis + 1 :]) or (1,),)


def _reduce(call: Call) -> tuple[Shape, ...]:
    shape = call.inputs["input"]
    (axis,) = call.constants["axis"]
    return ((*shape[:axis], 1, *shape[axis + 1 :]),)


def _pool(call: Call) -> tuple[Shape, ...]:
    batch, height, width, channels = call.inputs["input"]
    kernel, stride, pad = call.constants["kernel"], call.constants["stride"], call.constants["pad"]
    return (
        (
            batch,
            _window(height, pad[0], pad[1], kernel[0], stride[0], "height"),
            _window(width, pad[2], pad[3], kernel[1], stride[1], "width"),
            channels,
        ),
    )


def _convolution(call: Call) -> tuple[Shape, ...]:
    """Infer the shape of CONV2D and CONV3D: any number of dimensions between batch and channels."""
    batch, *sizes, channels = call.inputs["input"]
    out, *kernel, in_channels = call.inputs["weight"]
    _equal(channels, in_channels, "different numbers of channels in input and weight")
    return ((batch, *_windows(call, sizes, kernel), _with_bias(call, out)),)


def _depthwise(call: Call) -> tuple[Shape, ...]:
    batch, *sizes, channels = call.inputs["input"]
    *kernel, in_channels, multiplier = call.inputs["weight"]
    channels = _equal(channels, in_channels, "different numbers of channels in input and weight")
    out = UNKNOWN if UNKNOWN in (channels, multiplier) else channels * multiplier
    return ((batch, *_windows(call, sizes, kernel), _with_bias(call, out)),)


def _windows(call: Call, sizes: Sequence[int], kernel: Sequence[int]) -> list[int]:
    pad, stride, dilation = call.constants["pad"], call.constants["stride"], call.constants["dilation"]
    names = ("depth", "height", "width")[-len(sizes) :]
    return [
        _window(
            size,
            pad[2 * i],
            pad[2 * i + 1],
            UNKNOWN if kernel[i] == UNKNOWN else (kernel[i] - 1) * dilation[i] + 1,
            stride[i],
            names[i],
        )
        for i, size in enumerate(sizes)
    ]


def _with_bias(call: Call, channels: int) -> int:
    """Return the channels of the result, which the bias has as well, unless it is one number for all."""
    (bias,) = call.inputs["bias"]
    return channels if bias == 1 else _equal(channels, bias, "different numbers of channels in weight and bias")


def _transpose_convolution(call: Call) -> tuple[Shape, ...]:
    batch, height, width, channels = call.inputs["input"]
    out, kernel_height, kernel_width, in_channels = call.inputs["weight"]
    _equal(channels, in_channels, "different numbers of channels in input and weight")
    pad, stride = call.constants["out_pad"], call.constants["stride"]
    sizes = []
    for size, kernel, step, added in (
        (height, kernel_height, stride[0], pad[0] + pad[1]),
        (width, kernel_width, stride[1], pad[2] + pad[3]),
    ):
        sizes.append(UNKNOWN if UNKNOWN in (size, kernel) else (size - 1) * step + added + kernel)
    return ((batch, *sizes, _with_bias(call, out)),)


def _matmul(call: Call) -> tuple[Shape, ...]:
    batch, height, inner = call.inputs["a"]
    other_batch, other_inner, width = call.inputs["b"]
    _equal(inner, other_inner, "inputs whose columns and rows differ in number")
    return ((_equal(batch, other_batch, "inputs of different batches"), height, width),)


def _fft(call: Call) -> tuple[Shape, ...]:
    real, imaginary = call.inputs["input_real"], call.inputs["input_imag"]
    shape = tuple(_equal(*pair, "parts of different sizes") for pair in zip(real, imaginary, strict=True))
    return shape, shape


def _rfft(call: Call) -> tuple[Shape, ...]:
    batch, height, width = call.inputs["input_real"]
    shape = (batch, height, UNKNOWN if width == UNKNOWN else width // 2 + 1)
    return shape, shape


def _concat(call: Call) -> tuple[Shape, ...]:
    first, *others = call.inputs.values()
    (axis,) = call.constants["axis"]
    result = list(first)
    for shape in others:
        for i, size in enumerate(shape):
            if i == axis:
                result[i] = UNKNOWN if UNKNOWN in (result[i], size) else result[i] + size
            else:
                result[i] = _equal(result[i], size, f"inputs of different sizes in dimension {i}")
    return (tuple(result),)


def _pad(call: Call) -> tuple[Shape, ...]:
    shape, padding = call.inputs["input1"], call.constants["padding"]
    return (
        tuple(size if size == UNKNOWN else size + padding[2 * i] + padding[2 * i + 1] for i, size in enumerate(shape)),
    )


def _reshape(call: Call) -> tuple[Shape, ...]:
    shape, new_shape = call.inputs["input1"], call.constants["shape"]
    known = prod(size for size in new_shape if size != UNKNOWN)
    if UNKNOWN in shape:
        return (new_shape,)
    count = prod(shape)
    if UNKNOWN in new_shape and count % known == 0:
        return (tuple(count // known if size == UNKNOWN else size for size in new_shape),)
    if count != known:
        raise ShapeError(f"makes the shape {text(new_shape)} of {text(shape)}, which has another number of elements")
    return (new_shape,)


def _slice(call: Call) -> tuple[Shape, ...]:
    shape, start, sizes = call.inputs["input1"], call.constants["start"], call.constants["size"]
    for i, (size, first, count) in enumerate(zip(shape, start, sizes, strict=True)):
        if size != UNKNOWN and first + max(count, 1) > size:
            raise ShapeError(f"takes {count} from {first} on in dimension {i}, which has {size}")
    return (sizes,)


def _tile(call: Call) -> tuple[Shape, ...]:
    shape, multiples = call.inputs["input1"], call.constants["multiples"]
    return (tuple(UNKNOWN if one == UNKNOWN else one * times for one, times in zip(shape, multiples, strict=True)),)


def _transpose(call: Call) -> tuple[Shape, ...]:
    shape, order = call.inputs["input1"], call.constants["perms"]
    return (tuple(shape[i] for i in order),)


def _gather(call: Call) -> tuple[Shape, ...]:
    batch, _, channels = call.inputs["values"]
    other_batch, count = call.inputs["indices"]
    return ((_equal(batch, other_batch, "values and indices of different batches"), count, channels),)


def _scatter(call: Call) -> tuple[Shape, ...]:
    batch, rows, channels = call.inputs["values_in"]
    index_batch, count = call.inputs["indices"]
    input_batch, input_count, input_channels = call.inputs["input"]
    batch = _equal(_equal(batch, index_batch, "values and indices of different batches"), input_batch, "batches")
    _equal(count, input_count, "different numbers of indices and inputs")
    return ((batch, rows, _equal(channels, input_channels, "values and inputs of different channels")),)


def _resize(call: Call) -> tuple[Shape, ...]:
    batch, height, width, channels = call.inputs["input"]
    scale, offset, border = (call.constants[name] for name in ("scale", "offset", "border"))
    sizes = []
    for i, size in enumerate((height, width)):
        steps = (size - 1) * scale[2 * i] - offset[i] + border[i]
        sizes.append(UNKNOWN if size == UNKNOWN else steps // scale[2 * i + 1] + 1)
    return ((batch, *sizes, channels),)


def _like_the_first(call: Call) -> tuple[Shape, ...]:
    return (next(iter(call.inputs.values())),)


def _multiply(call: Call) -> tuple[Shape, ...]:
    return _elementwise(Call({}, {name: call.inputs[name] for name in ("input1", "input2")}))


_RULES: Final[dict[str, Callable[[Call], tuple[Shape, ...]]]] = {
    "ARGMAX": _argmax,
    "AVG_POOL2D": _pool,
    "CONV2D": _convolution,
    "CONV3D": _convolution,
    "DEPTHWISE_CONV2D": _depthwise,
    "FFT2D": _fft,
    "MATMUL": _matmul,
    "MAX_POOL2D": _pool,
    "RFFT2D": _rfft,
    "TRANSPOSE_CONV2D": _transpose_convolution,
    **dict.fromkeys(("TABLE", "NEGATE", "REVERSE", "RESCALE"), _like_the_first),
    "MUL": _multiply,
    **dict.fromkeys(("REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PRODUCT", "REDUCE_SUM"), _reduce),
    "CONCAT": _concat,
    "PAD": _pad,
    "RESHAPE": _reshape,
    "SLICE": _slice,
    "TILE": _tile,
    "TRANSPOSE": _transpose,
    "GATHER": _gather,
    "SCATTER": _scatter,
    "RESIZE": _resize,
}
