"""The base of every model, and the value types that several models share.

Models are frozen and strict: an unknown key, a fraction for an integer, or ``true`` for a number is an error; what
files may hold beyond that is the business of `leniency`. Their
fields have the names that the JSON has: only the spellings of enum values differ between the file and the code.
"""

from __future__ import annotations

import os
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from scenario_runner.errors import ScenarioError
from scenario_runner.scenario.model_base import ModelBase

_FIELDS = "\n\n    Fields:"


class _PlainSignature:
    """``inspect.signature`` of a model: its fields as keyword arguments, also before pydantic has built the model."""

    def __get__(self, instance: Model | None, model: type[Model]) -> Signature:
        types = get_type_hints(model)  # without what Annotated adds, which only pydantic reads
        parameters = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                annotation=types[name],
                default=Parameter.empty if field.is_required() else field.default,
            )
            for name, field in model.model_fields.items()
        ]
        return Signature(parameters, return_annotation=None)


class Model(ModelBase):
    """What every resource, command and part of one has in common.

    Building one in code with wrong values raises `ScenarioError`, whose problems carry a pointer into the model.
    """

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The values given in code, with those that follow from them. Raises ScenarioError."""
        return values

    if not TYPE_CHECKING:
        __signature__ = _PlainSignature()

        def __init__(self, /, **values: Any) -> None:
            try:
                super().__init__(**self.completed(values))
            except ValidationError as error:
                from scenario_runner.scenario.wording import problems_in_code

                raise ScenarioError(problems_in_code(type(self), error)) from None

        # Tells pydantic that this __init__ only wraps its own, so that parsing does not take the slow way through it.
        __init__.__pydantic_base_init__ = True

    # Here and not in each class: the descriptions of the fields are the one place for what they mean.
    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        fields = "".join(f"\n    {name}: {field.description}" for name, field in cls.model_fields.items())
        cls.__doc__ = f"{cls.__doc__ or cls.__name__}{_FIELDS}{fields}"  # python -OO has no docstrings

    @classmethod
    def model_rebuild(cls, **options: Any) -> bool | None:
        built = super().model_rebuild(**options)
        if "__signature__" in cls.__dict__:
            del cls.__signature__  # pydantic's own, which shows every validator
        return built

    @classmethod
    def summary(cls) -> str:
        """The docstring without the list of fields."""
        return (cls.__doc__ or "").partition(_FIELDS)[0]


def wrong(message: str) -> PydanticCustomError:
    """An error for validators to raise: the message stands in the report as it is."""
    # The braces are pydantic's template syntax, so the text goes in as a value.
    return PydanticCustomError("wrong", "{message}", {"message": message})


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise wrong("a NUL character is not allowed here")
    return text


def _path(text: str) -> str:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise wrong("the string contains half of a surrogate pair, which no path can hold") from None
    return _no_nul(text)


def _unset_if_empty(text: str | None) -> str | None:
    return _path(text) if text else None


def _reference_or_none(text: str | None) -> str | None:
    return text or None


U32 = Annotated[int, Field(ge=0, le=0xFFFF_FFFF)]
U64 = Annotated[int, Field(ge=0, le=0xFFFF_FFFF_FFFF_FFFF)]
I64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]

Uid = Annotated[
    str,
    Field(min_length=1, description="Name of the resource, unique over all kinds of resources in the file."),
    AfterValidator(_no_nul),
]
"""The name of a resource, unique over all kinds."""

Reference = Annotated[str, Field(min_length=1)]
"""The uid of a resource defined elsewhere in the file."""

OptionalReference = Annotated[str | None, AfterValidator(_reference_or_none)]
"""A uid, or an empty string for none."""

RequiredPath = Annotated[str, Field(min_length=1), AfterValidator(_path)]
OptionalPath = Annotated[str | None, AfterValidator(_unset_if_empty)]
"""A path, absolute or relative to the folder of the scenario; an empty string means none."""

# strict=False here lets a list stand for the tuple; the items keep the strictness of the model.
References = Annotated[tuple[Reference, ...], Field(strict=False)]

ImplicitBarrier = Annotated[
    bool,
    Field(
        description=(
            "Whether a barrier follows, so that later commands wait for this one and see what it wrote. With false, "
            "the scenario must order them with dispatch_barrier."
        )
    ),
]

ShaderAccess = Annotated[
    Literal["readonly", "writeonly", "readwrite", "image_read"],
    Field(
        description=(
            "How shaders and graphs use the resource. A shader that does otherwise is a warning of `validate`; how the "
            "resource is bound follows from the shader."
        )
    ),
]
Tiling = Literal["OPTIMAL", "LINEAR"]


AnyModel = TypeVar("AnyModel", bound=Model)


def require_source(model: AnyModel, src: str | None, field: str, value: Any) -> AnyModel:
    """Check that a model has its content from ``src`` or, in code, from ``field``; returns the model."""
    if src is None and value is None:
        raise PydanticCustomError("no_source", "{message}", {"message": f"one of 'src' and {field!r} is required"})
    return model
