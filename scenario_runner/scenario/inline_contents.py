"""Content inside a scenario: an object in ``src`` with numbers for a resource, or with a shader's text."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from itertools import chain
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from scenario_runner.errors.text import Json
from scenario_runner.scenario.entries import U64, Items, Model, OptionalPath, RequiredPath, wrong
from scenario_runner.scenario.json_model import OBJECT, PATH

# Item type → `struct` code for a number with as many bits.
STRUCT_CODES = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "float16": "e",
    "int32": "i",
    "uint32": "I",
    "float32": "f",
    "int64": "q",
    "uint64": "Q",
    "float64": "d",
    "bfloat16": "H",
    "float8_e4m3": "B",
    "float8_e5m2": "B",
}
DEFAULT_DTYPE = "float32"
_RULES = ("values", "fill", "series", "random")
# Texts for values that JSON cannot write.
NO_NUMBER = "nan|-?inf|0x[0-9a-fA-F]{1,16}"


def finite_number(value: Json) -> Json:
    """Check that a value is a number, finite and of at most 64 bits. Raises PydanticCustomError."""
    kind = type(value)
    if kind is int:
        if not -(2**63) <= value < 2**64:
            raise wrong("expected a number that fits 64 bits")
    elif kind is float:
        if value - value != 0.0:
            raise wrong("expected a finite number")
    else:
        raise wrong("expected a number")
    return value


Number = Annotated[int | float, BeforeValidator(finite_number)]
_Pair = Annotated[Items[Number], Field(min_length=2, max_length=2)]


def flattened(values: list[Json]) -> tuple[tuple[int, ...], list[Json]]:
    """Return the shape of nested lists and the innermost entries. Raise ValueError if lengths differ or are 0."""
    shape: tuple[int, ...] = (len(values),)
    while any(isinstance(value, list) for value in values):
        lengths = {len(value) if isinstance(value, list) else -1 for value in values}
        if len(lengths) > 1:
            raise ValueError("expected arrays of the same length")
        shape += (lengths.pop(),)
        values = list(chain.from_iterable(values))
    if not values:
        raise ValueError("expected at least one value")
    return shape, values


def numbers_in(value: object) -> list[object]:
    """Return numbers and texts for numbers from a single value or from nested arrays of equal lengths.

    Raises PydanticCustomError for other values.
    """
    try:
        _, entries = flattened(value if isinstance(value, list) else [value])
    except ValueError as error:
        raise wrong(str(error)) from None
    is_number = re.compile(NO_NUMBER).fullmatch
    for entry in entries:
        if not (is_number(entry) if isinstance(entry, str) else isinstance(entry, int | float)):
            raise wrong("expected numbers, 'nan', 'inf', '-inf', bits such as '0x7fc00000', or arrays of these")
    return entries


def _checked_values(value: object) -> object:
    numbers_in(value)
    return value


_Values = Annotated[list[Json], BeforeValidator(_checked_values), WithJsonSchema({"type": "array", "minItems": 1})]
_Fill = Annotated[
    Json,
    BeforeValidator(_checked_values),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "string"}, {"type": "array"}]}),
]


class Content(Model):
    """Initial content as an object in `src`: one of `values`, `fill`, `series` and `random`."""

    values: _Values | None = Field(
        default=None,
        description="The items: numbers, or 'nan', 'inf', '-inf' and bits such as '0x7fc00000', in order or in nested "
        "arrays of the resource's shape. They give size or dims where these are left out.",
    )
    fill: _Fill | None = Field(default=None, description="A value for all items, or an array that is repeated.")
    series: _Pair | None = Field(default=None, description="Start and step: item i is start + step * i.")
    random: U64 | None = Field(
        default=None, description="Seed of random numbers, the same on every machine ([definition](contents.md))."
    )
    range: _Pair | None = Field(
        default=None,
        description="Bounds of random numbers: both included for integers (default: all of the type), the upper one "
        "excluded for floats (default: 0 and 1).",
    )
    count: Annotated[int, Field(ge=1, le=2**48)] | None = Field(
        default=None, description="Number of items, where nothing else says it, as for a raw_data."
    )
    dtype: Literal[tuple(STRUCT_CODES)] | None = Field(  # type: ignore[valid-type]
        default=None,
        description="Type of the items; float32 by default. Tensors and images have the type of their format.",
    )

    @model_validator(mode="after")
    def _has_one_rule(self) -> Self:
        if sum(getattr(self, rule) is not None for rule in _RULES) != 1:
            raise wrong("needs one of the keys 'values', 'fill', 'series' and 'random'", "SR-JSON-004")
        if self.range is not None and (self.random is None or self.range[0] > self.range[1]):
            raise wrong("'range' is for 'random', and has the lower bound first")
        return self


def _checked_text(value: object) -> object:
    if isinstance(value, list | tuple) and value and all(isinstance(line, str) for line in value):
        return tuple(value)
    if not isinstance(value, str):
        raise wrong("expected a string, or an array of strings, one for each line")
    return value


_Text = Annotated[
    Json,
    BeforeValidator(_checked_text),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]


class ShaderText(Model):
    """The source of a shader as an object in `src`."""

    text: _Text = Field(
        description="GLSL or HLSL, as one string or as an array of lines. Includes start from the scenario's folder."
    )

    @property
    def source(self) -> str:
        """The text with line ends."""
        return self.text if isinstance(self.text, str) else "\n".join((*self.text, ""))


_BY_FORM = Discriminator(lambda value: OBJECT if isinstance(value, dict | Model) else PATH)
OptionalContent = Annotated[Annotated[OptionalPath, Tag(PATH)] | Annotated[Content, Tag(OBJECT)], _BY_FORM]
RequiredContent = Annotated[Annotated[RequiredPath, Tag(PATH)] | Annotated[Content, Tag(OBJECT)], _BY_FORM]
RequiredSource = Annotated[Annotated[RequiredPath, Tag(PATH)] | Annotated[ShaderText, Tag(OBJECT)], _BY_FORM]


def file_of(resource: object) -> str | None:
    """Return the path in ``src``, or None if ``src`` is an object or missing."""
    src = getattr(resource, "src", None)
    return src if isinstance(src, str) else None


def tells_shape(src: object) -> bool:
    """Return whether ``src`` is an object for the resource's shape, right or wrong."""
    return isinstance(src, dict) and not src.keys().isdisjoint(("values", "count"))


def shape_in(src: Json) -> tuple[int, ...] | None:
    """Return the shape from an object in ``src``, before or after validation; None without a shape."""
    keys: Mapping[str, Json] = src if isinstance(src, dict) else vars(src) if isinstance(src, Content) else {}
    if isinstance(keys.get("values"), list):
        try:
            return flattened(keys["values"])[0]
        except ValueError:
            return None
    count = keys.get("count")
    return (count,) if isinstance(count, int) else None


def item_size_bytes(src: object) -> int:
    """Return the size of an item in a buffer's ``src`` object; 1 for a wrong type, which validation reports."""
    keys = src if isinstance(src, dict) else vars(src)
    dtype = keys.get("dtype") or DEFAULT_DTYPE
    return struct.calcsize(STRUCT_CODES[dtype]) if isinstance(dtype, str) and dtype in STRUCT_CODES else 1
