"""What shape each operator gives to its results, as far as the shapes of its inputs are known.

A shape is a tuple of sizes, 1 or more each, with `UNKNOWN` where a size is not known. Rules raise `ValueError` with the
end of a sentence whose subject is the operator.

Source: TOSA 1.0 specification, the ERROR_IF and REQUIRE conditions of the operators.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Shape: TypeAlias = tuple[int, ...]
UNKNOWN: Final = -1


class Call(NamedTuple):
    """One operator with its operands: attributes and constant inputs by name, and the shapes of all inputs."""

    attributes: Mapping[str, tuple[int, ...]]
    inputs: Mapping[str, Shape]
    constants: Mapping[str, tuple[int, ...]]
    repeated: Sequence[Shape] = ()


Rule: TypeAlias = "Callable[[Call], tuple[Shape, ...]]"


def text(shape: Shape) -> str:
    """A shape as messages show it."""
    return f"[{', '.join('?' if size == UNKNOWN else str(size) for size in shape)}]"


def merged(one: Shape, other: Shape) -> Shape | None:
    """What two statements about one shape say together; None where they contradict each other."""
    if len(one) != len(other):
        return None
    for first, second in zip(one, other, strict=True):
        if first != second and UNKNOWN not in (first, second):
            return None
    return tuple(map(max, one, other))  # what is known is larger than what is not


def result_shapes(name: str, call: Call) -> tuple[Shape, ...]:
    """The shapes of the results of the operator called ``name``. Raises ValueError where the inputs do not fit."""
    return _RULES.get(name, _elementwise)(call)


def _elementwise(call: Call) -> tuple[Shape, ...]:
    """Inputs of the same rank; a size of 1 is repeated. Zero points and shifts are not part of it."""
    shapes = [shape for name, shape in call.inputs.items() if name in _BROADCAST]
    result = shapes[0]
    for shape in shapes[1:]:
        if len(shape) != len(result):
            raise ValueError(f"has inputs of {len(result)} and {len(shape)} dimensions, expected the same number")
        result = tuple(_broadcast(one, other, shapes) for one, other in zip(result, shape, strict=True))
    return (result,)


_BROADCAST: Final = frozenset({"input", "input1", "input2", "condition", "on_true", "on_false"})


def _broadcast(one: int, other: int, shapes: Sequence[Shape]) -> int:
    if one == other or other == 1:
        return one
    if one == 1:
        return other
    if UNKNOWN in (one, other):
        return max(one, other)
    raise ValueError(f"has inputs of the shapes {' and '.join(map(text, shapes))}, whose sizes are neither equal nor 1")


def _equal(one: int, other: int, what: str) -> int:
    """The known one of two sizes that must be equal."""
    if one != other and UNKNOWN not in (one, other):
        raise ValueError(f"has {what}: {one} and {other}, expected the same")
    return max(one, other)


def _axis(call: Call, shape: Shape) -> int:
    (axis,) = call.attributes["axis"]
    if axis >= len(shape):
        raise ValueError(f"has the axis {axis}, but its input has {len(shape)} dimensions")
    return axis


def _count(numbers: Sequence[int], expected: int, what: str) -> None:
    if len(numbers) != expected:
        raise ValueError(f"has {len(numbers)} numbers as its {what}, expected {expected}")


def _window(size: int, before: int, after: int, kernel: int, stride: int, what: str) -> int:
    """How many windows of a convolution or a pool fit into one dimension."""
    if UNKNOWN in (size, kernel):
        return UNKNOWN
    room = size + before + after - kernel
    if room < 0:
        raise ValueError(
            f"has a kernel of {kernel} in {what}, more than the {size} elements with {before} and {after} of padding"
        )
    return room // stride + 1


def _argmax(call: Call) -> tuple[Shape, ...]:
    shape = call.inputs["input"]
    axis = _axis(call, shape)
    return ((shape[:axis] + shape[axis + 1 :]) or (1,),)


def _reduce(call: Call) -> tuple[Shape, ...]:
    shape = call.inputs["input"]
    axis = _axis(call, shape)
    return ((*shape[:axis], 1, *shape[axis + 1 :]),)


def _pool(call: Call) -> tuple[Shape, ...]:
    batch, height, width, channels = call.inputs["input"]
    kernel, stride, pad = call.attributes["kernel"], call.attributes["stride"], call.attributes["pad"]
    return (
        (
            batch,
            _window(height, pad[0], pad[1], kernel[0], stride[0], "height"),
            _window(width, pad[2], pad[3], kernel[1], stride[1], "width"),
            channels,
        ),
    )


def _convolution(call: Call) -> tuple[Shape, ...]:
    """CONV2D and CONV3D: any number of dimensions between batch and channels."""
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
    pad, stride, dilation = call.attributes["pad"], call.attributes["stride"], call.attributes["dilation"]
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
    """The channels of the result, which the bias has as well, unless it is one number for all."""
    (bias,) = call.inputs["bias"]
    return channels if bias == 1 else _equal(channels, bias, "different numbers of channels in weight and bias")


def _transpose_convolution(call: Call) -> tuple[Shape, ...]:
    batch, height, width, channels = call.inputs["input"]
    out, kernel_height, kernel_width, in_channels = call.inputs["weight"]
    _equal(channels, in_channels, "different numbers of channels in input and weight")
    pad, stride = call.attributes["out_pad"], call.attributes["stride"]
    sizes = []
    for size, kernel, step, added in (
        (height, kernel_height, stride[0], pad[0] + pad[1]),
        (width, kernel_width, stride[1], pad[2] + pad[3]),
    ):
        known = UNKNOWN not in (size, kernel)
        sizes.append((size - 1) * step + added + kernel if known else UNKNOWN)
        if known and sizes[-1] < 1:
            raise ValueError(f"has out_pad {list(pad)}, which leaves nothing of the result")
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


def _table(call: Call) -> tuple[Shape, ...]:
    (size,) = call.inputs["table"]
    if size not in (UNKNOWN, 256, 513):
        raise ValueError(f"has a table of {size} entries, expected 256 for 8 bits or 513 for 16 bits")
    return (call.inputs["input1"],)


def _concat(call: Call) -> tuple[Shape, ...]:
    first, *others = call.repeated
    axis = _axis(call, first)
    result = list(first)
    for shape in others:
        if len(shape) != len(first):
            raise ValueError(f"joins tensors of {len(first)} and {len(shape)} dimensions, expected the same number")
        for i, size in enumerate(shape):
            if i == axis:
                result[i] = UNKNOWN if UNKNOWN in (result[i], size) else result[i] + size
            else:
                result[i] = _equal(result[i], size, f"inputs of different sizes in dimension {i}")
    return (tuple(result),)


def _pad(call: Call) -> tuple[Shape, ...]:
    shape, padding = call.inputs["input1"], call.constants["padding"]
    _count(padding, 2 * len(shape), "padding")
    if min(padding) < 0:
        raise ValueError(f"has the padding {list(padding)}, expected 0 or more")
    return (
        tuple(size if size == UNKNOWN else size + padding[2 * i] + padding[2 * i + 1] for i, size in enumerate(shape)),
    )


def _reshape(call: Call) -> tuple[Shape, ...]:
    shape, wanted = call.inputs["input1"], call.constants["shape"]
    if any(size < 1 and size != UNKNOWN for size in wanted) or wanted.count(UNKNOWN) > 1:
        raise ValueError(f"has the shape {list(wanted)}, expected sizes of 1 or more, or one of -1")
    known = prod(size for size in wanted if size != UNKNOWN)
    if UNKNOWN in shape:
        return (wanted,)
    count = prod(shape)
    if UNKNOWN in wanted and count % known == 0:
        return (tuple(count // known if size == UNKNOWN else size for size in wanted),)
    if count != known:
        raise ValueError(f"makes the shape {text(wanted)} of {text(shape)}, which has another number of elements")
    return (wanted,)


def _reverse(call: Call) -> tuple[Shape, ...]:
    _axis(call, call.inputs["input1"])
    return (call.inputs["input1"],)


def _slice(call: Call) -> tuple[Shape, ...]:
    shape, start, sizes = call.inputs["input1"], call.constants["start"], call.constants["size"]
    _count(start, len(shape), "start")
    _count(sizes, len(shape), "size")
    for i, (size, first, count) in enumerate(zip(shape, start, sizes, strict=True)):
        if first < 0 or (count < 1 and count != UNKNOWN) or (size != UNKNOWN and first + max(count, 1) > size):
            raise ValueError(f"takes {count} from {first} on in dimension {i}, which has {size}")
    return (sizes,)


def _tile(call: Call) -> tuple[Shape, ...]:
    shape, multiples = call.inputs["input1"], call.constants["multiples"]
    _count(multiples, len(shape), "multiples")
    if min(multiples) < 1:
        raise ValueError(f"has the multiples {list(multiples)}, expected 1 or more")
    return (tuple(UNKNOWN if one == UNKNOWN else one * times for one, times in zip(shape, multiples, strict=True)),)


def _transpose(call: Call) -> tuple[Shape, ...]:
    shape, order = call.inputs["input1"], call.attributes["perms"]
    if sorted(order) != list(range(len(shape))):
        raise ValueError(f"has the perms {list(order)}, expected every dimension from 0 to {len(shape) - 1} once")
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
    _count(scale, 4, "scale")
    _count(offset, 2, "offset")
    _count(border, 2, "border")
    if min(scale) < 1:
        raise ValueError(f"has the scale {list(scale)}, expected 1 or more")
    sizes = []
    for i, size in enumerate((height, width)):
        steps = (size - 1) * scale[2 * i] - offset[i] + border[i]
        sizes.append(UNKNOWN if size == UNKNOWN else steps // scale[2 * i + 1] + 1)
        if size != UNKNOWN and steps < 0:
            raise ValueError(f"has the border {list(border)}, which leaves nothing of the result")
    return ((batch, *sizes, channels),)


def _rescale(call: Call) -> tuple[Shape, ...]:
    shape = call.inputs["input"]
    wanted = shape[-1] if call.attributes["per_channel"][0] else 1
    for name in ("multiplier", "shift"):
        _equal(call.inputs[name][0], wanted, f"another number of entries in {name} than it has channels or 1")
    return (shape,)


_RULES: Final[dict[str, Rule]] = {
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
    "TABLE": _table,
    **dict.fromkeys(("REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PRODUCT", "REDUCE_SUM"), _reduce),
    "CONCAT": _concat,
    "PAD": _pad,
    "RESHAPE": _reshape,
    "REVERSE": _reverse,
    "SLICE": _slice,
    "TILE": _tile,
    "TRANSPOSE": _transpose,
    "GATHER": _gather,
    "SCATTER": _scatter,
    "RESIZE": _resize,
    "RESCALE": _rescale,
}
