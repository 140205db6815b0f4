"""The base classes for models, resources and commands, and value types that several models share.

Models are frozen and strict. An unknown key, a fraction for an integer, or ``true`` for a number is an error. Then
`diagnosis` decides whether a file may have it. Fields are named like the JSON keys. Only enum values can have
other spellings in a file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar, get_type_hints

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from scenario_runner.errors import ScenarioError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json
from scenario_runner.scenario.json_model import ModelBase, problems_in_code

_FIELDS = "\n\n    Fields:"
_BEYOND_REFERENCE: Final = "beyond the reference runner's format"

T = TypeVar("T")
BeyondReference = Annotated[T, _BEYOND_REFERENCE]
"""The type of a key that the reference runner lacks, such as ``BeyondReference[U32]``. `validate` lists these keys."""


class _PlainSignature:
    """A model's signature for `inspect`: the fields as keyword arguments, also before pydantic builds it."""

    def __get__(self, instance: Model | None, model: type[Model]) -> Signature:
        types = get_type_hints(model)  # without the metadata of Annotated
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
    """The base of all models: resources, commands and parts of these.

    A wrong value in code raises `ScenarioError`. Each problem has a pointer into the model.
    """

    @classmethod
    def completed(cls, values: dict[str, Json]) -> dict[str, Json]:
        """Add values that follow from the given values, such as the size of data. Raise ScenarioError."""
        return values

    if not TYPE_CHECKING:
        __signature__ = _PlainSignature()

        def __init__(self, /, **values: object) -> None:
            try:
                super().__init__(**self.completed(values))
            except ValidationError as error:
                raise ScenarioError(problems_in_code(type(self), error)) from None

        # pydantic then parses without a call of this __init__, which is slow.
        __init__.__pydantic_base_init__ = True

    # Docstrings repeat the field descriptions, so that nobody writes them twice.
    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        fields = "".join(f"\n    {name}: {field.description}" for name, field in cls.model_fields.items())
        cls.__doc__ = f"{cls.__doc__ or cls.__name__}{_FIELDS}{fields}"  # python -OO has no docstrings

    @classmethod
    def model_rebuild(cls, **options: Any) -> bool | None:
        built = super().model_rebuild(**options)
        if "__signature__" in cls.__dict__:
            del cls.__signature__  # the signature of pydantic shows every validator
        return built

    @classmethod
    def summary(cls) -> str:
        """Return the docstring without the list of fields."""
        return (cls.__doc__ or "").partition(_FIELDS)[0]


def wrong(message: str, code: str = "SR-JSON-005") -> PydanticCustomError:
    """Make an error for validators. The report shows the message unchanged."""
    # pydantic expands braces in a message, so the text is a value of a template.
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
ByteCount = Annotated[int, Field(ge=1, le=0xFFFF_FFFF_FFFF_FFFF)]
I32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
I64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]

# A resource's name, unique over all kinds.
Uid = Annotated[
    str, Field(min_length=1, description="Name of the resource, unique in the file."), AfterValidator(_no_nul)
]

# The uid of a resource defined elsewhere in the file.
Reference = Annotated[str, Field(min_length=1)]

# A uid, or an empty string for none.
OptionalReference = Annotated[str | None, AfterValidator(lambda text: text or None)]

RequiredPath = Annotated[str, Field(min_length=1), AfterValidator(_path)]
# A path, absolute or relative to the scenario's folder; an empty string means none.
OptionalPath = Annotated[str | None, AfterValidator(lambda text: _path(text) if text else None)]

if TYPE_CHECKING:
    Items: TypeAlias = Sequence[T]
else:

    class Items:
        """``Items[T]`` is a tuple. Models accept a list, too, and type checkers accept each sequence."""

        def __class_getitem__(cls, item: object) -> object:
            # strict=False accepts the list. The items stay strict.
            return Annotated[tuple[item, ...], Field(strict=False)]


References = Items[Reference]

ImplicitBarrier = Annotated[
    bool,
    Field(description="Insert a barrier after the command. If false, later commands need a dispatch_barrier."),
]

ShaderAccess = Annotated[
    Literal["readonly", "writeonly", "readwrite", "image_read"],
    Field(description="Use by shaders and graphs; `validate` warns of others. The shader decides how it is bound."),
]
Tiling = Literal["OPTIMAL", "LINEAR"]


# A JSON pointer into the entry, the uid at that place, and the allowed kinds of the resource.
Use = tuple[str, str, frozenset[str]]

# A field with uids → the allowed kinds of the resources. ``bindings.resource_ref`` is a field of each binding.
Targets = Mapping[str, frozenset[str]]

# Resource kinds that a command can bind.
STORAGE = frozenset({"buffer", "tensor", "image"})


class Part(Model):
    """The base of parts of resources. A file may have a bare uid instead of the object."""

    resource_ref: Reference

    @model_validator(mode="before")
    @classmethod
    def _from_uid(cls, value: Json) -> Json:
        if isinstance(value, str):
            return {"resource_ref": value}
        if not isinstance(value, dict | cls):
            raise wrong("expected a uid or an object")
        return value

    @classmethod
    def in_schema(cls, definition: dict[str, Json]) -> dict[str, Json]:
        description = definition.pop("description")
        return {"description": description, "anyOf": [{"type": "string"}, definition]}


class Entry(Model):
    """The base of resources and commands.

    The checks run after all entries are parsed. ``resources`` has the right resources by uid. The checks ignore unknown
    uids, because `scenario.scenario.check_entries` reports them.
    """

    refers_to: ClassVar[Targets] = {}
    beyond_reference: ClassVar[bool] = False
    """True for a kind that the reference runner lacks."""

    def references(self) -> Iterable[Use]:
        """Find the uids of other resources in the entry."""
        uses: list[Use] = []
        for name, kinds in self.refers_to.items():
            field, _, inner = name.partition(".")
            value = getattr(self, field)
            if isinstance(value, tuple):
                below = f"/{inner}" if inner else ""
                for index, part in enumerate(value):
                    uid = getattr(part, inner) if inner else part
                    if uid:
                        uses.append((f"/{field}/{index}{below}", uid, kinds))
                        continue
                    for number, each in enumerate(getattr(part, f"{inner}s", ())):  # an array of resources
                        if each.resource_ref:
                            uses.append((f"/{field}/{index}{below}s/{number}", each.resource_ref, kinds))
            elif value is not None:
                uses.append((f"/{name.replace('.', '/')}", getattr(value, inner) if inner else value, kinds))
        return uses

    def contradictions(self, resources: Resources) -> Iterable[Diagnostic]:
        """Find contradictions and keys without effect. Pointers start at the entry."""
        return ()


class Resource(Entry):
    """The base of resources. A class has a ``kind``, and a resource has a ``uid``."""

    uid: str


class Sourced(Resource):
    """A resource with content from ``src``, or from the field that only code can give."""

    required_in_json: ClassVar[frozenset[str]] = frozenset({"src"})

    src: object

    @model_validator(mode="after")
    def _has_source(self) -> Self:
        (field,) = self.code_only
        if self.src is None and getattr(self, field) is None:
            raise wrong(f"one of 'src' and {field!r} is required", "SR-JSON-004")
        return self


class Command(Entry):
    """The base of commands. A class has a ``kind``."""

    def shaders(self) -> tuple[str, ...]:
        """Return the uids of the command's shaders. The planner loads them before it resolves the command."""
        return ()


def keys_beyond_reference(model: ModelBase, above: str, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield the used keys that the reference runner lacks: each with the keys ``above``, and a pointer."""
    if isinstance(model, Entry) and model.beyond_reference:
        yield above, pointer
        return
    for key in sorted(model.model_fields_set):
        name, inside, value = f"{above}.{key}", f"{pointer}/{key}", getattr(model, key)
        if _BEYOND_REFERENCE in type(model).model_fields[key].metadata:
            yield name, inside
            continue
        parts = enumerate(value) if isinstance(value, tuple) else [("", value)]
        for index, part in parts:
            if isinstance(part, ModelBase):
                yield from keys_beyond_reference(part, name, f"{inside}/{index}".rstrip("/"))


Resources = Mapping[str, Resource]
R = TypeVar("R", bound=Resource)


def resource_of_class(resources: Resources, uid: str | None, model: type[R]) -> R | None:
    """Return the resource with this uid if it is of the class, else None."""
    resource = resources.get(uid or "")
    return resource if isinstance(resource, model) else None


def repeated(values: Iterable[object]) -> Iterable[tuple[int, int]]:
    """Find repeated values. Yield each repetition's position and the value's first position."""
    seen: dict[object, int] = {}
    for index, value in enumerate(values):
        first = seen.setdefault(value, index)
        if first != index:
            yield index, first


_AnyModel = TypeVar("_AnyModel", bound=ModelBase)


def built(model: type[_AnyModel]) -> type[_AnyModel]:
    """Return a model class, ready to validate."""
    if not model.__pydantic_complete__:
        build(model)
    return model


def build(model: type[ModelBase]) -> None:
    """Build a model's validator.

    Before the first build, pydantic searches the installed distributions for plugins. The search takes 20 ms, even with
    PYDANTIC_DISABLE_PLUGINS, while the build takes half a millisecond. No model here uses a plugin, so an empty finder
    replaces the search during the build.
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
