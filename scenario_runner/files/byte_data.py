"""Bytes of arrays from callers of the Python API, and overlapping spans of bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from scenario_runner.errors import UsageError

ArrayLike: TypeAlias = Any
"""A caller's array: a NumPy array, an object with ``__array__`` or ``__dlpack__``, or a buffer of bytes."""

# Types of Vulkan that NumPy only has through ml_dtypes. Other float8 types use the same bits for other values.
_ML_TYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def array_of(data: ArrayLike, name: str) -> ArrayLike:
    """Convert an object with ``__array__`` or ``__dlpack__`` to a NumPy array. Return other data unchanged.

    Tensors of PyTorch may require gradients, lie on a device, or have types that NumPy only has through ml_dtypes.
    Raises UsageError if the object refuses, as another library's tensor on a GPU may.
    """
    convert = next((protocol for protocol in ("__array__", "__dlpack__") if hasattr(data, protocol)), None)
    if convert is None:
        return data
    import numpy

    try:
        if hasattr(data, "detach"):
            data = data.detach().cpu()
            type_name = str(data.dtype).removeprefix("torch.")
            if type_name in _ML_TYPES:
                import ml_dtypes

                return data.float().numpy().astype(getattr(ml_dtypes, type_name))
        return numpy.asarray(data) if convert == "__array__" else numpy.from_dlpack(data)
    except Exception as error:  # of another library
        raise UsageError(f"input {name!r} is a {type(data).__name__} that gives no array: {error}") from error


def plain_bytes(data: ArrayLike, name: str) -> memoryview:
    """Return data as little-endian bytes in C order, if possible without a copy. Raises UsageError."""
    data = array_of(data, name)
    numpy = sys.modules.get("numpy")  # a caller with an array has imported NumPy
    if numpy is not None and isinstance(data, numpy.ndarray):
        if data.dtype.hasobject:
            raise UsageError(f"input {name!r} is an array of Python objects, expected numbers")
        if data.dtype.byteorder == ">" or (data.dtype.byteorder == "=" and sys.byteorder == "big"):
            data = data.astype(data.dtype.newbyteorder("<"))
        data = numpy.ascontiguousarray(data)
        return memoryview(data.reshape(-1).view(numpy.uint8)) if data.size else memoryview(b"")
    try:
        view = memoryview(data)
    except TypeError:
        raise UsageError(
            f"input {name!r} is a {type(data).__name__}, expected a NumPy array, an object with __array__ or"
            " __dlpack__ (tensors of PyTorch and JAX), or bytes"
        ) from None
    return view.cast("B") if view.c_contiguous and view.ndim == 1 else memoryview(view.tobytes())


Span = tuple[int, int]
_Owner = TypeVar("_Owner")


def overlap(one: Span, other: Span) -> bool:
    """Return whether two spans share a byte."""
    return max(one[0], other[0]) < min(one[1], other[1])


def collisions(spans: Iterable[tuple[Span, _Owner]]) -> Iterator[tuple[_Owner, _Owner]]:
    """Yield the owners of overlapping spans in pairs: of a span, and of the furthest span that begins before."""
    furthest: tuple[Span, _Owner] | None = None
    for span in sorted(spans, key=lambda item: item[0][0]):
        if furthest is not None and overlap(span[0], furthest[0]):
            yield span[1], furthest[1]
        if furthest is None or span[0][1] > furthest[0][1]:
            furthest = span
