"""The bases of all models, resources and commands, and the value types that several of them share.

Models are frozen and strict: an unknown key, a fraction for an integer, or ``true`` for a number is an error; what
files may hold beyond that is the business of `diagnosis`. Their fields have the names that the JSON has: only the
spellings of enum values differ between the file and the code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from inspect import Parameter, Signature
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar, get_type_hints

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from scenario_runner.errors import ScenarioError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json
from scenario_runner.scenario.json_model import ModelBase

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
    """The base of every resource, command and part of one.

    Building one in code with wrong values raises `ScenarioError`, whose problems carry a pointer into the model.
    """

    @classmethod
    def completed(cls, values: dict[str, Json]) -> dict[str, Json]:
        """The values given in code, with those that follow from them. Raises ScenarioError."""
        return values

    if not TYPE_CHECKING:
        __signature__ = _PlainSignature()

        def __init__(self, /, **values: object) -> None:
            try:
                super().__init__(**self.completed(values))
            except ValidationError as error:
                from scenario_runner.scenario.json_model import problems_in_code

                raise ScenarioError(problems_in_code(type(self), error)) from None

        # Tells pydantic that this __init__ only wraps its own, so that parsing does not take the slow way through it.
        __init__.__pydantic_base_init__ = True

    # Here and not in each class: the descriptions of the fields are the one place for what they mean.
    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
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


def wrong(message: str, code: str = "SR-JSON-005") -> PydanticCustomError:
    """An error for validators to raise: the message stands in the report as it is."""
    # The braces are pydantic's template syntax, so the text goes in as a value.
    return PydanticCustomError("wrong", "{message}", {"message": message, "code": code})


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


U32 = Annotated[int, Field(ge=0, le=0xFFFF_FFFF)]
U64 = Annotated[int, Field(ge=0, le=0xFFFF_FFFF_FFFF_FFFF)]
I64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]

# The name of a resource, unique over all kinds.
Uid = Annotated[
    str, Field(min_length=1, description="Name of the resource, unique in the file."), AfterValidator(_no_nul)
]

# The uid of a resource defined elsewhere in the file.
Reference = Annotated[str, Field(min_length=1)]

# A uid, or an empty string for none.
OptionalReference = Annotated[str | None, AfterValidator(lambda text: text or None)]

RequiredPath = Annotated[str, Field(min_length=1), AfterValidator(_path)]
# A path, absolute or relative to the folder of the scenario; an empty string means none.
OptionalPath = Annotated[str | None, AfterValidator(lambda text: _path(text) if text else None)]

# strict=False here lets a list stand for the tuple; the items keep the strictness of the model.
References = Annotated[tuple[Reference, ...], Field(strict=False)]

ImplicitBarrier = Annotated[
    bool,
    Field(description="Insert a barrier after the command. If false, later commands need a dispatch_barrier."),
]

ShaderAccess = Annotated[
    Literal["readonly", "writeonly", "readwrite", "image_read"],
    Field(description="Use by shaders and graphs; `validate` warns of others. The shader decides how it is bound."),
]
Tiling = Literal["OPTIMAL", "LINEAR"]


# Where in the entry a uid stands (a JSON pointer), the uid, and the kinds that it may have.
Use = tuple[str, str, frozenset[str]]

# The fields of an entry that name resources → the kinds that these may have; ``bindings.resource_ref`` is a field of
# each of the ``bindings``.
Targets = Mapping[str, frozenset[str]]

# Kinds that a binding can show to a shader.
STORAGE = frozenset({"buffer", "tensor", "image"})


class Entry(Model):
    """The base of resources and commands.

    The methods are called when all entries of a scenario are there; ``resources`` are those by uid, without any that is
    wrong. What a reference that leads nowhere would say is left out: `scenario.scenario.check_entries` reports it.
    """

    refers_to: ClassVar[Targets] = {}

    def references(self) -> Iterable[Use]:
        """Every uid of another resource that the entry names."""
        uses: list[Use] = []
        for name, kinds in self.refers_to.items():
            field, _, inner = name.partition(".")
            value = getattr(self, field)
            if isinstance(value, tuple):
                below = f"/{inner}" if inner else ""
                for index, part in enumerate(value):
                    uses.append((f"/{field}/{index}{below}", getattr(part, inner) if inner else part, kinds))
            elif value is not None:
                uses.append((f"/{field}", value, kinds))
        return uses

    def contradictions(self, resources: Resources) -> Iterable[Diagnostic]:
        """Find contradictions, and warn of what has no effect; each pointer starts from the entry."""
        return ()


class Resource(Entry):
    """Any resource; its class has a ``kind``, and each one has a ``uid``."""

    uid: str


class Sourced(Resource):
    """A resource with its content from ``src`` or, in code, from its field for code."""

    required_in_json: ClassVar[frozenset[str]] = frozenset({"src"})

    src: object

    @model_validator(mode="after")
    def _has_source(self) -> Self:
        (field,) = self.code_only
        if self.src is None and getattr(self, field) is None:
            raise wrong(f"one of 'src' and {field!r} is required", "SR-JSON-004")
        return self


class Command(Entry):
    """Any command; its class has a ``kind``."""

    def shaders(self) -> tuple[str, ...]:
        """uids of the shaders that the command runs; they are compiled or read before the command is resolved."""
        return ()


Resources = Mapping[str, Resource]
R = TypeVar("R", bound=Resource)


def resource_of_class(resources: Resources, uid: str | None, model: type[R]) -> R | None:
    """Return the resource with this uid if it is of the class, else None."""
    resource = resources.get(uid or "")
    return resource if isinstance(resource, model) else None


def repeated(values: Iterable[object]) -> Iterable[tuple[int, int]]:
    """The position of each value that was there before, with the first position of it."""
    seen: dict[object, int] = {}
    for index, value in enumerate(values):
        first = seen.setdefault(value, index)
        if first != index:
            yield index, first


def built(model: type[Model]) -> type[Model]:
    """Return a model class, ready to validate."""
    if not model.__pydantic_complete__:
        build(model)
    return model


def build(model: type[Model]) -> None:
    """Build the validator of a model.

    Before its first build pydantic imports what reads the metadata of installed distributions, in search of plugins.
    That costs 20 ms, with PYDANTIC_DISABLE_PLUGINS as well; the build costs half of one. Nothing here wants a plugin,
    so for the time of the build an empty finder stands in for its own.
    """
    name = "pydantic.plugin._loader"
    if name in sys.modules:
        model.model_rebuild()
        return
    finder = ModuleType(name)
    finder.get_plugins = tuple  # type: ignore[attr-defined]
    sys.modules[name] = finder
    try:
        model.model_rebuild()
    finally:
        del sys.modules[name]
