"""Builds Vulkan structures for the cold paths: sType filled in, nested memory kept alive, lengths set from the data.

Hot paths (recording of dispatches and barriers) hold ready-made cdata and call the raw functions instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from scenario_runner.vulkan import NULL, ffi
from scenario_runner.vulkan._generated.structures import SPELLINGS, STRUCTURES
from scenario_runner.vulkan.loader import check, type_source

_alive: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
"""What each structure points to; entries go with the structure."""

_CData: Any = ffi.CData


class _Layout:
    """One structure type: where it is declared, its members, its sType and its array lengths."""

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
    """Look a type up that a process knows (`loader.known_types`): one that is forked from this one need not."""
    with suppress(LookupError, TypeError):
        (type_source if name.startswith("PFN_") else _layout)(name)


def new(struct: str, /, **members: Any) -> Any:
    """A pointer to a new zeroed structure with its sType and the given members set.

    What a member points to lives as long as the returned object. Members may be given as

    - numbers, handles and other cdata as cffi takes them; None for NULL; str or bytes for ``char*``;
    - a list for an array (of numbers, handles, strings, dicts of members, results of `new`), or anything with the
      buffer protocol; the member that holds the array's length is then set too, unless it is given;
    - a dict or a result of `new` for a structure, inside this one or pointed to.

    Bytes (``void*``, ``uint8_t*``) are not copied: their buffer is kept alive and must not change while it is in use.
    Raises TypeError for an unknown structure or a value of the wrong kind, AttributeError for an unknown member,
    ValueError for arrays that share a length member and differ in length.
    """
    layout = _layout(struct)
    pointer = ffi.new(layout.pointer)
    keep: list[Any] = []
    _fill(pointer, layout, members, keep)
    if keep:
        _alive[pointer] = keep
    return pointer


def chain(head: Any, *structs: Any) -> Any:
    """Append structures to ``head``'s pNext chain, in this order; returns ``head``, which keeps them alive."""
    last = ffi.cast("VkBaseOutStructure*", head)
    for struct in structs:
        while last.pNext:
            last = last.pNext
        last.pNext = ffi.cast("VkBaseOutStructure*", struct)
    _alive.setdefault(head, []).extend(structs)
    return head


def enumerated(kind: str, call: str, ask: Callable[..., Any], *arguments: Any) -> Any:
    """An array of what a command lists, as ``call`` in messages: asked how many there are, then for all of them.

    ``arguments`` come before the pointers to the number and to the array of ``kind``. Raises what `check` raises.
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


def _fill(target: Any, layout: _Layout, members: Mapping[str, Any], keep: list[Any]) -> None:
    if layout.structure_type is not None:
        target.sType = layout.structure_type
    counted: dict[str, int] = {}
    for name, value in members.items():
        kind = layout.fields.get(name)
        if kind is None:
            raise AttributeError(f"{layout.name} has no member {name!r}; it has {', '.join(layout.fields)}")
        if kind.kind == "pointer":
            pointer, length = _pointer(layout, name, kind.item, value, keep)
            setattr(target, name, pointer)
            counter = layout.lengths.get(name)
            if length is not None and counter is not None and counter not in members:
                if counted.setdefault(counter, length) != length:
                    raise ValueError(f"{layout.name}.{name} has {length} elements, but {counter} is {counted[counter]}")
                setattr(target, counter, length)
        elif isinstance(value, dict) and kind.kind in ("struct", "union"):
            _fill(getattr(target, name), _nested(kind), value, keep)
        else:
            if isinstance(value, _CData):
                keep.append(value)
                if kind.kind == "struct" and ffi.typeof(value).kind == "pointer":
                    value = value[0]
            setattr(target, name, value)


def _nested(kind: Any) -> _Layout:
    return _layout(kind.cname.removeprefix("struct ").removeprefix("union "))


def _pointer(layout: _Layout, name: str, item: Any, value: Any, keep: list[Any]) -> tuple[Any, int | None]:
    """A pointer to ``value`` and, where it is an array, its length as the length member counts."""
    if value is None:
        return NULL, None
    if isinstance(value, _CData):
        keep.append(value)
        kind = ffi.typeof(value)
        if kind.kind != "array":
            return value, None
        return value, _length(layout, name, item, len(value), ffi.sizeof(value))
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes) and item.cname == "char":
        array = ffi.new("char[]", value)
    elif isinstance(value, dict):
        nested = _nested(item)
        array = ffi.new(nested.pointer)
        _fill(array, nested, value, keep)
        keep.append(array)
        return array, 1
    elif isinstance(value, list | tuple):
        if not value:
            return NULL, 0
        array = _array(layout, item, value, keep)
    else:
        array = _buffer(layout, name, item, value)
        if not array:
            return NULL, 0
    keep.append(array)
    return array, _length(layout, name, item, len(array), ffi.sizeof(array))


def _length(layout: _Layout, name: str, item: Any, elements: int, size_bytes: int) -> int:
    """Lengths of untyped memory, and those of type size_t (``codeSize``, ``dataSize``), count bytes."""
    counter = layout.lengths.get(name)
    in_bytes = item.kind == "void" or (counter is not None and layout.fields[counter].cname == "size_t")
    return size_bytes if in_bytes else elements


def _array(layout: _Layout, item: Any, values: list[Any] | tuple[Any, ...], keep: list[Any]) -> Any:
    source = layout.source
    if item.kind in ("struct", "union") and item.fields:
        array = ffi.new(source.typeof(source.getctype(item, "[]")), len(values))
        for index, value in enumerate(values):
            if isinstance(value, dict):
                _fill(array[index], _nested(item), value, keep)
            else:
                keep.append(value)
                array[index] = value[0] if ffi.typeof(value).kind == "pointer" else value
        return array
    if item.kind == "pointer" and item.item.cname == "char":
        values = [ffi.new("char[]", value.encode() if isinstance(value, str) else value) for value in values]
        keep.extend(values)
    return ffi.new(source.typeof(source.getctype(item, "[]")), values)


def _buffer(layout: _Layout, name: str, item: Any, value: Any) -> Any:
    """The memory of an object with the buffer protocol."""
    try:
        view = memoryview(value).cast("B")
    except TypeError:
        raise TypeError(f"{layout.name}.{name} cannot be made from {type(value).__name__}") from None
    if not view.nbytes:
        return NULL
    if item.kind == "void":
        return ffi.from_buffer(view)
    return ffi.from_buffer(layout.source.typeof(layout.source.getctype(item, "[]")), view)
