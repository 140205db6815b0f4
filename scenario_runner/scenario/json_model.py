"""The base class for models that read JSON, and the messages for errors that pydantic finds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from scenario_runner.errors.diagnostic import Diagnostic, escape
from scenario_runner.errors.text import Json, close_match, listed, with_article


class ModelBase(BaseModel):
    """The settings of all models, and class variables that describe a model."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True, protected_namespaces=())

    # The entry's key in the JSON; empty for parts of entries.
    kind: ClassVar[str] = ""

    # Fields for code only. JSON and the JSON Schema lack them.
    code_only: ClassVar[frozenset[str]] = frozenset()

    # Keys that a file must have, although code can give a code-only field instead.
    required_in_json: ClassVar[frozenset[str]] = frozenset()

    # Keys of older dialects that are no longer supported → advice.
    retired: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def fields_by_key(cls) -> dict[str, FieldInfo]:
        """Return the fields that a file can have, by JSON key. A key like ``from`` has another name in code."""
        fields = cls.model_fields.items()
        return {field.alias or name: field for name, field in fields if name not in cls.code_only}

    @classmethod
    def in_schema(cls, definition: dict[str, object]) -> dict[str, object]:
        """Add values to the model's JSON Schema that validators accept beyond the field types."""
        return definition


# Names of a key's forms. pydantic adds these names to error places.
PATH, OBJECT, ARRAY = "<path>", "<object>", "<array>"
OTHER_NAMES = {"data_type": "format", "range": "rangeND", "shader": "shader_ref", "graph": "graph_ref"}
_OTHER_TYPES = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "uint": "uint32"}


def at(loc: Sequence[str | int], message: str, help: str | None = None, *, code: str = "SR-JSON-005") -> Diagnostic:
    """Make an error at the keys and indices ``loc``. The default code is for a wrong value."""
    return Diagnostic(code, "error", pointer_of(loc), message, help)


def pointer_of(loc: Sequence[str | int]) -> str:
    """Return the JSON pointer of a place."""
    return "".join(f"/{escape(str(step))}" for step in loc)


def shown(value: object) -> str:
    """Format a value of the file for messages: short, like JSON, but with strings in single quotes."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "an array"
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits"
    text = repr(value[:61] if isinstance(value, str) else value)
    return text if len(text) <= 62 else f"{text[:56]}...{text[0]}" if isinstance(value, str) else f"{text[:56]}..."


def details_of(error: ValidationError) -> Iterator[Any]:
    """Yield pydantic's errors from a failed validation, with places as in the file."""
    for detail in error.errors(include_url=False):
        yield {**detail, "loc": tuple(step for step in detail["loc"] if step not in (PATH, OBJECT, ARRAY))}


def findings(model: type[ModelBase], error: ValidationError) -> Iterator[Diagnostic]:
    """Yield the problems of a failed validation."""
    for detail in details_of(error):
        if detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]:
            continue  # pydantic counts right entries only
        yield _finding(model, detail["type"], detail["loc"], detail["input"], detail.get("ctx", {}), detail["msg"])


def problems_in_code(model: type[ModelBase], error: ValidationError) -> list[Diagnostic]:
    """Return the problems in a model built in code. Messages begin with the field, because there is no file."""
    problems = []
    for finding in findings(model, error):
        steps = (finding.pointer or "").split("/")[1:]
        place = model.__name__ + "".join(f"[{step}]" if step.isdigit() else f".{step}" for step in steps)
        problems.append(finding._replace(pointer=None, message=f"{place}: {finding.message}"))
    return problems


def _finding(
    model: type[ModelBase], type: str, loc: tuple[str | int, ...], value: Json, context: dict[str, Json], text: str
) -> Diagnostic:
    got = shown(value)
    if type == "missing":
        return at(loc[:-1], f"the required key {loc[-1]!r} is missing", code="SR-JSON-004")
    if type == "extra_forbidden":
        return unknown_key(model, loc)
    if type == "literal_error":
        names = re.findall(r"'([^']*)'", str(context["expected"]))
        other = _OTHER_TYPES.get(value) if isinstance(value, str) else None
        hint = f" (did you mean {other!r}?)" if other in names else close_match(value, names)
        return at(loc, f"expected one of {listed(names)}, got {got}{hint}")
    if "data" in model.code_only and loc == ("size",) and value is None:
        return at((), "one of 'size' and 'data' is required", code="SR-JSON-004")
    if type in _EXPECTED:
        number = "a number" if any(isinstance(bound, float) for bound in context.values()) else "an integer"
        message = f"expected {_EXPECTED[type].format_map({**context, 'number': number})}, got {got}"
        is_array = loc[-1:] == ("src",) and isinstance(value, list)
        is_first_number = loc[:1] == ("outputs",) and loc[-1] == 0 and isinstance(value, int | float)
        help = 'for numbers, write { "values": [1, 2] }' if is_array or is_first_number else None
        return at(loc, message, help)
    if type in ("too_short", "too_long"):
        limit, most = ("at least", context["min_length"]) if type == "too_short" else ("at most", context["max_length"])
        return at(loc, f"expected {limit} {most} {'entry' if most == 1 else 'entries'}, got {len(value)}")
    if type == "wrong":
        got = f", got {got}" if text.startswith("expected") else ""
        return at(loc, f"{text}{got}", code=context["code"])
    return at(loc, f"{text[:1].lower()}{text[1:]}, got {got}")


_EXPECTED = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "int_parsing_size": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a string",
    "string_unicode": "a string without lone surrogates",
    "string_too_short": "a string that is not empty",
    "tuple_type": "an array",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dict_type": "an object",
    "string_pattern_mismatch": "a string that matches {pattern}",
    "finite_number": "a finite number",
    "greater_than": "{number} above {gt}",
    "greater_than_equal": "{number} of at least {ge}",
    "less_than_equal": "{number} of at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
}


def unknown_key(model: type[ModelBase], loc: tuple[str | int, ...]) -> Diagnostic:
    """Make the finding for an unknown key of a model or a model's part."""
    owner = part_of(model, loc[:-1])
    key = str(loc[-1])
    if key in owner.retired:
        return at(loc, f"{key!r} is no longer supported", owner.retired[key], code="SR-JSON-003")
    names = [*owner.fields_by_key()]
    other = OTHER_NAMES.get(key)
    hint = f" (did you mean {other!r}?)" if other in names else close_match(key, names)
    advice = f"the keys of {with_article(name_of(owner))}: {', '.join(names)}"
    return at(loc, f"unknown key {shown(key)}{hint}", advice, code="SR-JSON-003")


def name_of(model: type[ModelBase]) -> str:
    """Name a model for messages: the JSON key, or the words of the class name."""
    return model.kind or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.__name__).lower()


def part_of(model: type[ModelBase], loc: tuple[str | int, ...]) -> type[ModelBase]:
    """Return the model at a location inside an entry."""
    for step in loc:
        field = model.fields_by_key().get(step) if isinstance(step, str) else None
        inner = _model_in(field.annotation) if field is not None else None
        if inner is not None:
            model = inner
    return model


def _model_in(annotation: object) -> type[ModelBase] | None:
    if isinstance(annotation, type) and issubclass(annotation, ModelBase):
        return annotation
    for argument in get_args(annotation):
        model = _model_in(argument)
        if model is not None:
            return model
    return None
