"""Builds Vulkan structures for cold paths: sType filled in, nested memory kept alive, lengths set from the data.

Hot paths (recording of dispatches and barriers) keep ready-made cdata and call the raw functions.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from scenario_runner.vulkan import NULL, Handle, ffi
from scenario_runner.vulkan._generated.structures import SPELLINGS, STRUCTURES
from scenario_runner.vulkan.vulkan_loader import check, type_source

Member: TypeAlias = Any
"""A member's value, as `new` takes it."""

_alive: WeakKeyDictionary[Handle, list[Member]] = WeakKeyDictionary()
"""Objects that each structure points to; entries go with the structure."""

_CData: Handle = ffi.CData


class _Layout:
    """A structure type: declaration, members, sType and array lengths."""

    __slots__ = ("fields", "lengths", "name", "pointer", "source", "structure_type")

    def __init__(self, name: str) -> None:
        spelling = SPELLINGS.get(name, name)
        try:
            self.source = type_source(spelling)
            self.pointer = self.source.typeof(f"{spelling}*")
            self.fields = {member: field.type for member, field in self.pointer.item.fields or ()}
        except (LookupError, AttributeError):  # only structures and unions have fields
            raise TypeError(f"no Vulkan structure is called {name!r}") from None
        self.name = name
        self.structure_type, lengths = STRUCTURES.get(name, (None, ()))
        self.lengths = dict(lengths)


_layout = cache(_Layout)


def prepare(name: str) -> None:
    """Look up a type of `vulkan_loader.known_types` in advance, so that forked processes need not."""
    with suppress(LookupError, TypeError):
        (type_source if name.startswith("PFN_") else _layout)(name)


def new(struct: str, /, **members: Member) -> Handle:
    """Return a pointer to a new zeroed structure with the sType and the given members.

    Memory that a member points to lives as long as the returned object. Members may be given as

    - numbers, handles and other cdata as cffi takes them; None for NULL; str or bytes for ``char*``;
    - a list for an array (of numbers, handles, strings, dicts of members, results of `new`), or any object with the
      buffer protocol; the member with the array's length is then set too, unless it is given;
    - a dict or a result of `new` for a structure, embedded or pointed to.

    Bytes (``void*``, ``uint8_t*``) are not copied: their buffer stays alive and must not change while it is in use.
    Raises TypeError for an unknown structure or member, and for a value of the wrong kind.
    """
    layout = _layout(struct)
    keep: list[Member] = []
    pointer = ffi.new(layout.pointer, _initializer(layout, members, keep))
    if keep:
        _alive[pointer] = keep
    return pointer


def chain(head: Handle, *structs: Handle) -> Handle:
    """Append structures to ``head``'s pNext chain, in this order. Return ``head``, which keeps them alive."""
    last = ffi.cast("VkBaseOutStructure*", head)
    for struct in structs:
        while last.pNext:
            last = last.pNext
        last.pNext = ffi.cast("VkBaseOutStructure*", struct)
    _alive.setdefault(head, []).extend(structs)
    return head


def enumerated(kind: str, call: str, ask: Callable[..., int | None], *arguments: Handle) -> Handle:
    """Call a vkEnumerate… or vkGet… command for the count, then for the array. Return the array.

    ``call`` names the command in messages. ``arguments`` come before the pointers to the count and to the array of
    ``kind``. Raises the errors of `check`.
    """
    count = ffi.new("uint32_t*")
    check(ask(*arguments, count, NULL) or 0, call)
    structures = type_source(kind).new(f"{kind}[]", count[0])
    structure_type, _ = STRUCTURES.get(kind, (None, ()))
    for structure in structures if structure_type is not None else ():
        structure.sType = structure_type
    if count[0]:
        check(ask(*arguments, count, structures) or 0, call)
    return structures


def _initializer(layout: _Layout, members: Mapping[str, Member], keep: list[Member]) -> dict[str, Member]:
    """Return the members as cffi takes them, with sType and the lengths of arrays."""
    values: dict[str, Member] = {} if layout.structure_type is None else {"sType": layout.structure_type}
    for name, value in members.items():
        kind = layout.fields.get(name)
        if kind is None:
            raise TypeError(f"{layout.name} has no member {name!r}; it has {', '.join(layout.fields)}")
        if kind.kind != "pointer":
            values[name] = value if isinstance(value, int) else _value(kind, value, keep)
            continue
        values[name] = pointer = _pointer(layout, kind.item, value, keep)
        counter = layout.lengths.get(name)
        if counter is not None and ffi.typeof(pointer).kind == "array":
            # untyped memory's lengths, and lengths of type size_t (``codeSize``, ``dataSize``), count bytes
            in_bytes = kind.item.kind == "void" or layout.fields[counter].cname == "size_t"
            values.setdefault(counter, ffi.sizeof(pointer) if in_bytes else len(pointer))
    return values


def _value(kind: Handle, value: Member, keep: list[Member]) -> Member:
    if isinstance(value, dict):
        return _initializer(_layout_of(kind), value, keep)
    if isinstance(value, _CData):
        keep.append(value)
        if kind.kind == "struct" and ffi.typeof(value).kind == "pointer":
            return value[0]
    return value


def _layout_of(kind: Handle) -> _Layout:
    return _layout(kind.cname.removeprefix("struct ").removeprefix("union "))


def _pointer(layout: _Layout, item: Handle, value: Member, keep: list[Member]) -> Handle:
    """Return a pointer to ``value`` or to an array of ``value``'s elements; NULL for None and empty arrays."""
    if value is None or (isinstance(value, list | bytes) and not value):
        return NULL
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, _CData):
        pointer = value
    elif isinstance(value, bytes) and item.cname == "char":
        pointer = ffi.new("char[]", value)
    elif isinstance(value, dict):
        nested = _layout_of(item)
        pointer = ffi.new(nested.pointer, _initializer(nested, value, keep))
    elif item.kind == "void":
        pointer = ffi.from_buffer(value)
    else:
        array = layout.source.typeof(layout.source.getctype(item, "[]"))
        if not isinstance(value, list):
            pointer = ffi.from_buffer(array, value)
        elif item.kind == "pointer":  # of texts, or handles
            value = [_pointer(layout, item.item, element, keep) for element in value]
            pointer = ffi.new(array, value)
        else:
            pointer = ffi.new(array, [_value(item, element, keep) for element in value])
    keep.append(pointer)
    return pointer
