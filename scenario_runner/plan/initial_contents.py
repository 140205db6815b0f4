"""From a resource of a scenario to the source of its initial content: an array given in code, a file, or an object in
``src``, which is checked against type, size and shape."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping
from math import isfinite, prod
from typing import Any, NoReturn

from scenario_runner.errors import error_of
from scenario_runner.errors.diagnostic import error
from scenario_runner.files.byte_data import ArrayLike
from scenario_runner.files.vk_formats import Format
from scenario_runner.plan.sources import ArraySource, GeneratedSource, NpySource
from scenario_runner.scenario import Scenario
from scenario_runner.scenario.inline_contents import DEFAULT_DTYPE, STRUCT_CODES, flattened

_KEPT_BYTES = 64 << 10  # content of this size is made when planning: a run with the kept plan needs no NumPy for it
_PACKED = ("bool", "bfloat16", "float8_e4m3", "float8_e5m2")  # for which `struct` has no rules


def source_of(
    scenario: Scenario,
    resource: Any,
    inputs: Mapping[str, ArrayLike],
    shape: tuple[int, ...] | None = None,
    format: Format | None = None,
) -> NpySource | ArraySource | GeneratedSource | None:
    """Return the source of a resource: ``inputs`` come before ``data``, and ``data`` before ``src``; None for zeros.

    ``shape`` and ``format`` describe its array where both are known; an object in ``src`` may follow them.
    """
    if resource.uid in inputs:
        return ArraySource(inputs[resource.uid], resource.uid)
    if resource.data is not None:
        return ArraySource(resource.data, resource.uid)
    if resource.src is not None and not isinstance(resource.src, str):
        return content_source(scenario, resource, shape, format)
    if resource.src is not None:
        return NpySource(os.path.join(scenario.base_dir, resource.src))
    return None


def content_source(
    scenario: Scenario, resource: Any, shape: tuple[int, ...] | None = None, format: Format | None = None
) -> GeneratedSource:
    """The content of a resource whose ``src`` is an object.

    ``shape`` is that of the array that holds it and ``format`` the format of its items, where the resource has such.
    Raises ScenarioError, with the place.
    """
    content, place = resource.src, f"{scenario.resource_pointer(resource.uid)}/src"

    def fail(code: str, key: str, message: str, help: str | None = None) -> NoReturn:
        raise error_of([error(code, f"{place}{key}", f"{resource.kind} {resource.uid!r:.100} {message}", help)])

    dtype = content.dtype or DEFAULT_DTYPE
    descr = ""
    if format is not None:
        dtype, descr = _type_of(format, fail), format.numpy_dtype or ""
        if content.dtype not in (None, dtype):
            message = f"of {format.name} has items of {dtype}, not {content.dtype}"
            fail("SR-DATA-002", "/dtype", message, "leave out 'dtype'")
    item_size = struct.calcsize(STRUCT_CODES[dtype])
    shape = _shape(resource, shape, item_size, dtype, fail)
    count = prod(shape)

    def encoded(values: list[float], key: str) -> bytes:
        try:
            return _encoded(values, dtype)
        except ValueError as reason:
            fail("SR-DATA-002", key, f"has items of {dtype}: {reason}")

    size_bytes = count * item_size
    source = GeneratedSource(dtype, descr, shape, size_bytes, size_bytes)
    if content.values is not None:
        return source._replace(pattern=encoded(flattened(content.values)[1], "/values"))
    if content.fill is not None:
        _, repeated = flattened(content.fill if isinstance(content.fill, list) else [content.fill])
        if count % len(repeated):
            fail("SR-DATA-001", "/fill", f"has {count} items, no multiple of the {len(repeated)} that are repeated")
        return source._replace(pattern=encoded(repeated, "/fill"))
    convert = float if "float" in dtype else lambda value: int(value) if value == int(value) else value
    if content.series is not None:
        start, step = map(convert, content.series)
        encoded([start, start + step * (count - 1)], "/series")
        if "float" not in dtype and isinstance(step, float):
            fail("SR-DATA-002", "/series", f"has items of {dtype}, got the step {step!r}")
        source = source._replace(rule=("series", start, step))
    else:
        low, high = map(convert, content.range or _whole_range(dtype))
        encoded([low, high], "/range")
        if not isfinite(high - low):
            fail("SR-DATA-002", "/range", f"has items of {dtype}: no number is as large as the range")
        source = source._replace(rule=("random", content.random, low, high))
    return source.kept() if size_bytes <= _KEPT_BYTES else source


def _shape(
    resource: Any, shape: tuple[int, ...] | None, item_size: int, dtype: str, fail: Callable[..., NoReturn]
) -> tuple[int, ...]:
    """The shape of the content of a resource, given as ``shape`` or by its size, its values or its count."""
    content = resource.src
    given, flat = flattened(content.values) if content.values is not None else (None, [])
    if shape is None and resource.kind == "buffer":
        shape = (resource.size // item_size,)
        if resource.size % item_size:
            fail("SR-DATA-001", "", f"has {resource.size} bytes: no whole number of items of {dtype}")
    if shape is None:
        shape = given or (() if content.count is None else (content.count,))
        if not shape:
            fail("SR-DATA-003", "", "has no size: nothing says the number of its items", "add 'count'")
    count, held = prod(shape), content.count if given is None else len(flat)
    if held not in (None, count):
        key = "/count" if given is None else "/values"
        fail("SR-DATA-001", key, f"has {count} items of {dtype}, got {held}", "both numbers must be equal")
    if given is not None and len(given) > 1 and resource.kind != "buffer" and _trimmed(given) != _trimmed(shape):
        fail("SR-DATA-001", "/values", f"has items of the shape {list(shape)}, got {list(given)}")
    return shape


def _type_of(format: Format, fail: Callable[..., NoReturn]) -> str:
    from scenario_runner.files.elements import element_of_format

    if format.numpy_dtype is None:
        help = "use a .dds file"
        fail("SR-DATA-004", "", f"has the format {format.name}, whose blocks are no items that numbers stand for", help)
    return element_of_format(format).name


def _trimmed(shape: tuple[int, ...]) -> list[int]:
    """A shape without axes of length 1, which do not change the order of items."""
    return [length for length in shape if length != 1]


def _whole_range(dtype: str) -> tuple[float, float]:
    if "float" in dtype:
        return 0.0, 1.0
    bits = 1 if dtype == "bool" else 8 * struct.calcsize(STRUCT_CODES[dtype])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)


def _encoded(values: list[float], dtype: str) -> bytes:
    """The bytes of numbers, rounded to the nearest. Raises ValueError for one that the type cannot hold."""
    data = None
    if dtype not in _PACKED:
        try:
            if all(map(isfinite, values)):
                data = struct.pack(f"<{len(values)}{STRUCT_CODES[dtype]}", *values)
        except (struct.error, TypeError, OverflowError):
            pass  # texts, and what the other way has a message for
    if data is None:
        from scenario_runner.files.elements import ELEMENTS, encoded

        return encoded(values, ELEMENTS[dtype], len(values))
    if "float" in dtype:
        for value, rounded in zip(values, struct.unpack(f"<{len(values)}{STRUCT_CODES[dtype]}", data), strict=True):
            if type(value) is int and value != rounded:
                raise ValueError(f"the nearest one to {value} is {int(rounded)}")
    return data
