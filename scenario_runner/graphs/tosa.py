"""The operators of TOSA 1.0: their operands in the order of SPIR-V, and the shapes of their results.

A shape is a tuple of sizes, 1 or more each, with `UNKNOWN` where a size is not known. A rule takes the shapes of an
operator's inputs in their order, constant operands by name, and returns the shape of each result. Rules raise
`ShapeError` where shapes of inputs do not fit each other.

Source: TOSA 1.0 specification, the operators' argument tables, ERROR_IF and REQUIRE conditions; SPIR-V extended
instruction set "TOSA.001000.1".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

Shape: TypeAlias = tuple[int, ...]
Rule: TypeAlias = Callable[..., Shape]
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


class ShapeError(ValueError):
    """Operands that an operator cannot have; the message is the end of a sentence whose subject is the operator."""


class Operand(NamedTuple):
    """An operand of an operator. ``is_single`` is true for tensors of one element: zero points, shifts and the like."""

    name: str
    is_constant: bool
    is_single: bool


def operands_of(name: str, count: int) -> list[Operand]:
    """Describe the operands of an operator, of which there are ``count``."""
    words = _SIGNATURES.get(name, _DEFAULT)[0].split()
    if words[-1].endswith("..."):
        words += words[-1:] * (count - len(words))
    return [Operand(word.rstrip("!*."), word.endswith("!"), word.endswith("*")) for word in words]


def result_shapes(name: str, inputs: Sequence[Shape], constants: Mapping[str, tuple[int, ...]]) -> tuple[Shape, ...]:
    """Infer the shapes of the results of the operator ``name``, from inputs that are not of a single element.

    Raises ShapeError where the inputs do not fit.
    """
    shape = _SIGNATURES.get(name, _DEFAULT)[1](*inputs, **constants)
    return (shape, shape) if name in ("FFT2D", "RFFT2D") else (shape,)


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


def _equal(one: int, other: int, what: str) -> int:
    """Return the known one of two sizes that must be equal."""
    if one != other and UNKNOWN not in (one, other):
        raise ShapeError(f"has {what}: {one} and {other}, expected the same")
    return max(one, other)


def _equation(equation: str) -> Rule:
    """Make the rule of an equation as `numpy.einsum` has it: sizes of the same letter are equal."""
    letters, result = equation.split(" -> ")

    def rule(*shapes: Shape, **_: Any) -> Shape:
        sizes: dict[str, int] = {}
        what = f"inputs of the shapes {' and '.join(map(text, shapes))} with different sizes in one dimension"
        for names, shape in zip(letters.split(), shapes, strict=True):
            for name, size in zip(names, shape, strict=True):
                sizes[name] = _equal(sizes.get(name, UNKNOWN), size, what)
        return tuple(sizes[name] for name in result)

    return rule


def _elementwise(*shapes: Shape, **_: Any) -> Shape:
    """Broadcast inputs of the same rank."""
    result = shapes[0]
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise ShapeError(f"has inputs of {len(result)} and {len(shape)} dimensions, expected the same number")
        result = tuple(_broadcast(one, other, shapes) for one, other in zip(result, shape, strict=True))
    return result


def _broadcast(one: int, other: int, shapes: Sequence[Shape]) -> int:
    if one == other or other == 1:
        return one
    if one == 1:
        return other
    if UNKNOWN in (one, other):
        return max(one, other)
    raise ShapeError(f"has inputs of the shapes {' and '.join(map(text, shapes))}, whose sizes are neither equal nor 1")


def _first(first: Shape, *_others: Shape, **_: Any) -> Shape:
    return first


def _argmax(shape: Shape, *, axis: Shape, **_: Any) -> Shape:
    (i,) = axis
    return shape[:i] + shape[i + 1 :] or (1,)


def _reduce(shape: Shape, *, axis: Shape, **_: Any) -> Shape:
    (i,) = axis
    return (*shape[:i], 1, *shape[i + 1 :])


def _pool(shape: Shape, *, kernel: Shape, pad: Shape, stride: Shape, **_: Any) -> Shape:
    batch, *sizes, channels = shape
    return (batch, *_windows(sizes, kernel, pad, stride, (1, 1)), channels)


def _convolution(
    shape: Shape, weight: Shape, bias: Shape, *, pad: Shape, stride: Shape, dilation: Shape, **_: Any
) -> Shape:
    """Infer the shape of CONV2D and CONV3D: any number of dimensions between batch and channels."""
    batch, *sizes, channels = shape
    out, *kernel, in_channels = weight
    _equal(channels, in_channels, "different numbers of channels in input and weight")
    return (batch, *_windows(sizes, kernel, pad, stride, dilation), _with_bias(out, bias))


def _depthwise(
    shape: Shape, weight: Shape, bias: Shape, *, pad: Shape, stride: Shape, dilation: Shape, **_: Any
) -> Shape:
    batch, *sizes, channels = shape
    *kernel, in_channels, multiplier = weight
    channels = _equal(channels, in_channels, "different numbers of channels in input and weight")
    out = UNKNOWN if UNKNOWN in (channels, multiplier) else channels * multiplier
    return (batch, *_windows(sizes, kernel, pad, stride, dilation), _with_bias(out, bias))


def _transpose_convolution(
    shape: Shape, weight: Shape, bias: Shape, *, out_pad: Shape, stride: Shape, **_: Any
) -> Shape:
    batch, *sizes, channels = shape
    out, *kernel, in_channels = weight
    _equal(channels, in_channels, "different numbers of channels in input and weight")
    dimensions = zip(sizes, kernel, stride, out_pad[::2], out_pad[1::2], strict=True)
    sizes = [
        UNKNOWN if UNKNOWN in (size, extent) else (size - 1) * step + before + after + extent
        for size, extent, step, before, after in dimensions
    ]
    return (batch, *sizes, _with_bias(out, bias))


def _windows(sizes: Sequence[int], kernel: Sequence[int], pad: Shape, stride: Shape, dilation: Shape) -> Sequence[int]:
    """Count the windows of a convolution or a pool in each dimension."""
    names = ("depth", "height", "width")[-len(sizes) :]
    counts = []
    for name, size, extent, before, after, step, apart in zip(
        names, sizes, kernel, pad[::2], pad[1::2], stride, dilation, strict=True
    ):
        covered = (extent - 1) * apart + 1
        room = size + before + after - covered
        if UNKNOWN in (size, extent):
            counts.append(UNKNOWN)
        elif room < 0:
            padding = f"the {size} elements with {before} and {after} of padding"
            raise ShapeError(f"has a kernel of {covered} in {name}, more than {padding}")
        else:
            counts.append(room // step + 1)
    return counts


def _with_bias(channels: int, bias: Shape) -> int:
    """Return the channels of the result, which the bias has as well, unless it is one number for all."""
    (count,) = bias
    return channels if count == 1 else _equal(channels, count, "different numbers of channels in weight and bias")


def _rfft(shape: Shape, **_: Any) -> Shape:
    batch, height, width = shape
    return batch, height, UNKNOWN if width == UNKNOWN else width // 2 + 1


def _concat(*shapes: Shape, axis: Shape, **_: Any) -> Shape:
    result = list(shapes[0])
    for shape in shapes[1:]:
        for i, size in enumerate(shape):
            if i not in axis:
                result[i] = _equal(result[i], size, f"inputs of different sizes in dimension {i}")
            else:
                result[i] = UNKNOWN if UNKNOWN in (result[i], size) else result[i] + size
    return tuple(result)


def _pad(shape: Shape, *, padding: Shape, **_: Any) -> Shape:
    dimensions = zip(shape, padding[::2], padding[1::2], strict=True)
    return tuple(size if size == UNKNOWN else size + before + after for size, before, after in dimensions)


def _reshape(old: Shape, *, shape: Shape, **_: Any) -> Shape:
    if UNKNOWN in old:
        return shape
    count, known = prod(old), prod(size for size in shape if size != UNKNOWN)
    if UNKNOWN in shape and count % known == 0:
        return tuple(count // known if size == UNKNOWN else size for size in shape)
    if count != known:
        raise ShapeError(f"makes the shape {text(shape)} of {text(old)}, which has another number of elements")
    return shape


def _slice(shape: Shape, *, start: Shape, size: Shape, **_: Any) -> Shape:
    for i, (room, first, count) in enumerate(zip(shape, start, size, strict=True)):
        if room != UNKNOWN and first + max(count, 1) > room:
            raise ShapeError(f"takes {count} from {first} on in dimension {i}, which has {room}")
    return size


def _tile(shape: Shape, *, multiples: Shape, **_: Any) -> Shape:
    return tuple(UNKNOWN if one == UNKNOWN else one * times for one, times in zip(shape, multiples, strict=True))


def _transpose(shape: Shape, *, perms: Shape, **_: Any) -> Shape:
    return tuple(shape[i] for i in perms)


def _resize(shape: Shape, *, scale: Shape, offset: Shape, border: Shape, **_: Any) -> Shape:
    batch, *sizes, channels = shape
    dimensions = zip(sizes, scale[::2], scale[1::2], offset, border, strict=True)
    sizes = [
        UNKNOWN if size == UNKNOWN else ((size - 1) * numerator - first + last) // denominator + 1
        for size, numerator, denominator, first, last in dimensions
    ]
    return (batch, *sizes, channels)


_CONVOLVED: Final = "acc_type! local_bound! input weight bias input_zp* weight_zp*"
_RESCALED: Final = "scale32! rounding_mode! per_channel! input_unsigned! output_unsigned! input multiplier shift"
_DEFAULT: Final[tuple[str, Rule]] = "input...", _elementwise
# Operands in their order, and the rule: "!" marks constants, "*" tensors of one element, "..." one or more.
_SIGNATURES: Final[dict[str, tuple[str, Rule]]] = {
    "ARGMAX": ("axis! nan_mode! input", _argmax),
    "AVG_POOL2D": ("kernel! stride! pad! acc_type! input input_zp* output_zp*", _pool),
    **dict.fromkeys(("CONV2D", "CONV3D"), (f"pad! stride! dilation! {_CONVOLVED}", _convolution)),
    "DEPTHWISE_CONV2D": (f"pad! stride! dilation! {_CONVOLVED}", _depthwise),
    "FFT2D": ("inverse! local_bound! input_real input_imag", _equation("nhw nhw -> nhw")),
    "MATMUL": ("a b a_zp* b_zp*", _equation("nhk nkw -> nhw")),
    "MAX_POOL2D": ("kernel! stride! pad! nan_mode! input", _pool),
    "RFFT2D": ("local_bound! input_real", _rfft),
    "TRANSPOSE_CONV2D": (f"out_pad! stride! {_CONVOLVED}", _transpose_convolution),
    "CLAMP": ("min_val! max_val! nan_mode! input", _first),
    "ARITHMETIC_RIGHT_SHIFT": ("round! input...", _elementwise),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), ("nan_mode! input...", _elementwise)),
    "MUL": ("input1 input2 shift*", _elementwise),
    "TABLE": ("input1 table", _first),
    "NEGATE": ("input1 input1_zp* output_zp*", _first),
    **dict.fromkeys(("REDUCE_ALL", "REDUCE_ANY", "REDUCE_PRODUCT", "REDUCE_SUM"), ("axis! input", _reduce)),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), ("axis! nan_mode! input", _reduce)),
    "CONCAT": ("axis! input...", _concat),
    "PAD": ("input1 padding! pad_const*", _pad),
    "RESHAPE": ("input1 shape!", _reshape),
    "REVERSE": ("axis! input1", _first),
    "SLICE": ("input1 start! size!", _slice),
    "TILE": ("input1 multiples!", _tile),
    "TRANSPOSE": ("perms! input1", _transpose),
    "GATHER": ("values indices", _equation("nkc nw -> nwc")),
    "SCATTER": ("values_in indices input", _equation("nkc nw nwc -> nkc")),
    "RESIZE": ("mode! input scale! offset! border!", _resize),
    "RESCALE": (f"{_RESCALED} input_zp* output_zp*", _first),
}
