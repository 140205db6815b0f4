"""The operators of TOSA 1.0: the roles of their operands, and the shapes of their results.

A shape is a tuple of sizes of at least 1, or `UNKNOWN`. A rule takes the shapes of an operator's inputs in order, and
constant operands by name. It returns the shape of the results, or raises `ShapeError` if the inputs do not fit.

Source: TOSA 1.0 specification, the operators' argument tables, ERROR_IF and REQUIRE conditions; SPIR-V extended
instruction set "TOSA.001000.1".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Final, TypeAlias

from scenario_runner.shaders.spirv._generated.tosa import OPERANDS

Shape: TypeAlias = tuple[int, ...]
Rule: TypeAlias = Callable[..., Shape]
UNKNOWN: Final = -1
INSTRUCTION_SET: Final = "TOSA.001000.1"

OPERATORS: Final = tuple(OPERANDS)
"""The operators by number."""

_INPUTS: Final = frozenset({
    "input", "input1", "input2", "input3", "input_real", "input_imag", "a", "b", "weight", "bias", "values",
    "values_in", "indices", "table", "multiplier", "shift",
})  # fmt: skip


class ShapeError(ValueError):
    """An operator cannot have such operands. The message ends a sentence that begins with the operator."""


def operands_of(operator: str, count: int) -> list[tuple[str, str]]:
    """Name the ``count`` operands of an operator, with their roles.

    The role is "input", "constant" for an attribute, or "single" for a single-element tensor such as a zero point.
    """
    names = OPERANDS[operator].split()
    if operator == "CONCAT" or (operator not in _RULES and operator != "MUL"):
        names += names[-1:] * (count - len(names))
    return [(name, _role(operator, name)) for name in names]


def _role(operator: str, name: str) -> str:
    if name.endswith("_zp") or name == "pad_const" or (operator, name) == ("MUL", "shift"):
        return "single"
    return "input" if name in _INPUTS else "constant"


def result_shapes(name: str, inputs: Sequence[Shape], constants: Mapping[str, tuple[int, ...]]) -> tuple[Shape, ...]:
    """Infer the shapes of an operator's results. ``inputs`` lacks operands of a single element.

    Raises ShapeError if the inputs do not fit.
    """
    rule: Rule = _RULES.get(name, _elementwise)
    shape = rule(*inputs, **constants)
    if any(size < 1 and size != UNKNOWN for size in shape):
        raise ShapeError(f"makes a tensor of {shown(shape)}, but sizes must be 1 or more")
    return (shape, shape) if name in ("FFT2D", "RFFT2D") else (shape,)


def shown(shape: Shape) -> str:
    """Format a shape for messages."""
    return f"[{', '.join('?' if size == UNKNOWN else str(size) for size in shape)}]"


def merged(one: Shape, other: Shape) -> Shape | None:
    """Merge two partly known forms of a shape; return None if they contradict each other."""
    if len(one) != len(other):
        return None
    for first, second in zip(one, other, strict=True):
        if first != second and UNKNOWN not in (first, second):
            return None
    return tuple(map(max, one, other))  # UNKNOWN is less than any size


def _equal(one: int, other: int, sizes: str) -> int:
    """Merge two sizes that must be equal; messages call them ``sizes``."""
    if one != other and UNKNOWN not in (one, other):
        raise ShapeError(f"has {sizes}: {one} and {other}, expected the same")
    return max(one, other)


def _equation(equation: str) -> Rule:
    """Make a rule from an equation as in `numpy.einsum`: the same letter stands for equal sizes."""
    letters, result = equation.split(" -> ")

    def rule(*shapes: Shape, **_: object) -> Shape:
        sizes: dict[str, int] = {}
        clash = f"inputs of the shapes {' and '.join(map(shown, shapes))} with different sizes in one dimension"
        for names, shape in zip(letters.split(), shapes, strict=True):
            for name, size in zip(names, shape, strict=True):
                sizes[name] = _equal(sizes.get(name, UNKNOWN), size, clash)
        return tuple(sizes[name] for name in result)

    return rule


def _elementwise(*shapes: Shape, **_: object) -> Shape:
    """Infer the shape of an elementwise operator: inputs of the same rank are broadcast."""
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
    raise ShapeError(f"has inputs of the shapes {' and '.join(map(shown, shapes))} with sizes neither equal nor 1")


def _first(first: Shape, *_others: Shape, **_: object) -> Shape:
    return first


def _argmax(shape: Shape, *, axis: Shape, **_: object) -> Shape:
    (i,) = axis
    return shape[:i] + shape[i + 1 :] or (1,)


def _reduce(shape: Shape, *, axis: Shape, **_: object) -> Shape:
    (i,) = axis
    return (*shape[:i], 1, *shape[i + 1 :])


def _pool(shape: Shape, *, kernel: Shape, pad: Shape, stride: Shape, **_: object) -> Shape:
    batch, *sizes, channels = shape
    return (batch, *_windows(sizes, kernel, pad, stride, (1, 1)), channels)


def _convolution(
    shape: Shape, weight: Shape, bias: Shape, *, pad: Shape, stride: Shape, dilation: Shape, **_: object
) -> Shape:
    """Infer the shape of a convolution with any number of dimensions between batch and channels."""
    batch, *sizes, channels = shape
    out, *kernel, in_channels = weight
    _equal(channels, in_channels, "different numbers of channels in input and weight")
    return (batch, *_windows(sizes, kernel, pad, stride, dilation), _with_bias(out, bias))


def _depthwise(shape: Shape, weight: Shape, bias: Shape, **constants: Shape) -> Shape:
    *kernel, in_channels, multiplier = weight
    channels = _equal(shape[-1], in_channels, "different numbers of channels in input and weight")
    out = UNKNOWN if UNKNOWN in (channels, multiplier) else channels * multiplier
    return _convolution(shape, (out, *kernel, channels), bias, **constants)


def _transpose_convolution(
    shape: Shape, weight: Shape, bias: Shape, *, out_pad: Shape, stride: Shape, **_: object
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
            padded = f"{before} + {size} + {after} elements"
            raise ShapeError(f"has a kernel of {covered} in {name}, but the padded input has {padded}")
        else:
            counts.append(room // step + 1)
    return counts


def _with_bias(channels: int, bias: Shape) -> int:
    """Return the channels of the result. The bias has a number for each channel, or a single number."""
    (count,) = bias
    return channels if count == 1 else _equal(channels, count, "different numbers of channels in weight and bias")


def _rfft(shape: Shape, **_: object) -> Shape:
    batch, height, width = shape
    return batch, height, UNKNOWN if width == UNKNOWN else width // 2 + 1


def _concat(*shapes: Shape, axis: Shape, **_: object) -> Shape:
    result = list(shapes[0])
    for shape in shapes[1:]:
        for i, size in enumerate(shape):
            if i not in axis:
                result[i] = _equal(result[i], size, f"inputs of different sizes in dimension {i}")
            else:
                result[i] = UNKNOWN if UNKNOWN in (result[i], size) else result[i] + size
    return tuple(result)


def _pad(shape: Shape, *, padding: Shape, **_: object) -> Shape:
    dimensions = zip(shape, padding[::2], padding[1::2], strict=True)
    return tuple(size if size == UNKNOWN else size + before + after for size, before, after in dimensions)


def _reshape(old: Shape, *, shape: Shape, **_: object) -> Shape:
    if UNKNOWN in old:
        return shape
    count, known = prod(old), prod(size for size in shape if size != UNKNOWN)
    if UNKNOWN in shape and count % known == 0:
        return tuple(count // known if size == UNKNOWN else size for size in shape)
    if count != known:
        raise ShapeError(f"reshapes {shown(old)} to {shown(shape)}, but the numbers of elements differ")
    return shape


def _slice(shape: Shape, *, start: Shape, size: Shape, **_: object) -> Shape:
    for i, (room, first, count) in enumerate(zip(shape, start, size, strict=True)):
        if room != UNKNOWN and first + max(count, 1) > room:
            raise ShapeError(f"takes {count} from {first} on in dimension {i}, which has {room}")
    return size


def _tile(shape: Shape, *, multiples: Shape, **_: object) -> Shape:
    return tuple(UNKNOWN if one == UNKNOWN else one * times for one, times in zip(shape, multiples, strict=True))


def _transpose(shape: Shape, *, perms: Shape, **_: object) -> Shape:
    return tuple(shape[i] for i in perms)


def _resize(shape: Shape, *, scale: Shape, offset: Shape, border: Shape, **_: object) -> Shape:
    batch, *sizes, channels = shape
    dimensions = zip(sizes, scale[::2], scale[1::2], offset, border, strict=True)
    sizes = [
        UNKNOWN if size == UNKNOWN else ((size - 1) * numerator - first + last) // denominator + 1
        for size, numerator, denominator, first, last in dimensions
    ]
    return (batch, *sizes, channels)


_RULES: Final[dict[str, Rule]] = {
    "ARGMAX": _argmax,
    **dict.fromkeys(("AVG_POOL2D", "MAX_POOL2D"), _pool),
    **dict.fromkeys(("CONV2D", "CONV3D"), _convolution),
    "DEPTHWISE_CONV2D": _depthwise,
    "TRANSPOSE_CONV2D": _transpose_convolution,
    "FFT2D": _equation("nhw nhw -> nhw"),
    "RFFT2D": _rfft,
    "MATMUL": _equation("nhk nkw -> nhw"),
    **dict.fromkeys(("CLAMP", "TABLE", "NEGATE", "REVERSE", "RESCALE"), _first),
    **dict.fromkeys((name for name in OPERATORS if name.startswith("REDUCE_")), _reduce),
    "CONCAT": _concat,
    "PAD": _pad,
    "RESHAPE": _reshape,
    "SLICE": _slice,
    "TILE": _tile,
    "TRANSPOSE": _transpose,
    "GATHER": _equation("nkc nw -> nwc"),
    "SCATTER": _equation("nkc nw nwc -> nkc"),
    "RESIZE": _resize,
}
