"""The Vulkan API: the loader library, the commands with their C types, the errors for results, and structures.

The types come from the `vulkan` package and from generated bindings for the Arm extensions (`arm_ffi`); both mix. Each
command is looked up once and called without trampolines. Every cffi object is a `Handle`.

`new` builds structures for cold paths: sType filled in, nested memory kept alive, lengths set from the data. Hot paths
(recording of dispatches and barriers) keep ready-made cdata and call the raw functions.

Source: Vulkan specification, "Return Codes".
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from scenario_runner import errors
from scenario_runner.errors import NoDeviceError, UnsupportedError
from scenario_runner.errors.installation import install_here
from scenario_runner.vulkan import NULL, Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan._generated.constants import RESULTS
from scenario_runner.vulkan._generated.structures import SPELLINGS, STRUCTURES

LOADER_VARIABLE = "SCENARIO_RUNNER_VULKAN_LOADER"
"""Environment variable with the path of the Vulkan loader library, for loaders outside the system's search path."""

_LOADER_NAMES = {
    "win32": ("vulkan-1.dll",),
    "darwin": ("libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"),
}
_LOADER_NAMES_ELSEWHERE = ("libvulkan.so.1", "libvulkan.so")
_INSTALL_ON_WINDOWS = "install the graphics driver of your GPU's vendor, which brings vulkan-1.dll"


API_1_2 = 1 << 22 | 2 << 12
API_1_3 = 1 << 22 | 3 << 12
API_1_4 = 1 << 22 | 4 << 12


def version_text(version: int, parts: int = 3) -> str:
    """Return the first parts of a packed Vulkan version (VK_MAKE_API_VERSION): '1.3.275', '1.3'."""
    return ".".join(map(str, (version >> 22 & 0x7F, version >> 12 & 0x3FF, version & 0xFFF)[:parts]))


@cache
def load() -> Handle:
    """Open the Vulkan loader as a cffi library (``load().vkCreateInstance(...)``). Later calls return the same library.

    Raises NoDeviceError if the loader is missing; the message says which package to install.
    """
    path = os.environ.get(LOADER_VARIABLE)
    names = (path,) if path else _LOADER_NAMES.get(sys.platform, _LOADER_NAMES_ELSEWHERE)
    reasons = []
    for name in names:
        try:
            library = ffi.dlopen(name)
        except OSError as error:
            reasons.append(f"{name!r}: {_reason(error, name)}")
            continue
        try:
            library.vkGetInstanceProcAddr  # noqa: B018 - looks the symbol up
        except ffi.error:
            reasons.append(f"{name!r}: it is not a Vulkan loader (it has no vkGetInstanceProcAddr)")
            continue
        return library
    if path:
        advice = f"{LOADER_VARIABLE} must be the path of a Vulkan loader library; unset it to search the system"
    else:
        install = _INSTALL_ON_WINDOWS if sys.platform == "win32" else install_here("loader", "driver")
        advice = f"{install}, or set {LOADER_VARIABLE} to the loader's path"
    raise NoDeviceError(f"no Vulkan loader could be opened ({'; '.join(reasons)})", help=advice)


def loader_version() -> int:
    """Return the packed Vulkan version of the loader. Raises NoDeviceError."""
    number = ffi.new("uint32_t*")
    check(instance_function(ffi.NULL, "vkEnumerateInstanceVersion")(number), "vkEnumerateInstanceVersion")
    return int(number[0])


def _reason(error: OSError, name: str) -> str:
    """Return cffi's message without the library's name, which cffi repeats once or twice."""
    text = str(error).removeprefix("cannot load library ")
    for prefix in (f"'{name}': ", f"{name}: "):
        text = text.removeprefix(prefix)
    return text.split(".  Additionally,", 1)[0]


def instance_function(instance: Handle, name: str) -> Handle:
    """Return the command ``name`` for an instance or its physical devices.

    ``instance`` is a VkInstance, or NULL for commands that need no instance. Raises UnsupportedError if the loader
    lacks the command for this instance, LookupError if the bindings lack it.
    """
    return _function("Instance", instance, name)


def device_function(device: Handle, name: str) -> Handle:
    """Return the command ``name`` for a device, queue or command buffer, past the loader's dispatch.

    Raises UnsupportedError if the device lacks the command (the extension is not enabled), LookupError if the bindings
    lack it.
    """
    return _function("Device", device, name)


def _function(kind: str, parent: Handle, name: str) -> Handle:
    source = type_source(f"PFN_{name}")
    address = getattr(load(), f"vkGet{kind}ProcAddr")(parent, name.encode())
    if not address:
        message = f"the Vulkan {kind.lower()} has no command {name!r}: its extension is not enabled or not available"
        raise UnsupportedError(message)
    return source.cast(f"PFN_{name}", address)


class Functions:
    """The commands of ``parent``. `instance_function` or `device_function` looks each up on first use; later uses
    are plain attribute reads."""

    def __init__(self, look_up: Callable[[Handle, str], Handle], parent: Handle) -> None:
        self._look_up = look_up
        self._parent = parent

    def __getattr__(self, name: str) -> Handle:
        if not name.startswith("vk"):
            raise AttributeError(name)
        function = self.__dict__[name] = self._look_up(self._parent, name)
        return function


def library_of(function: Handle) -> str | None:
    """Return the file of a function; None if the platform cannot tell (dladdr of the C library)."""
    import ctypes

    class Found(ctypes.Structure):
        """Dl_info."""

        _fields_ = (
            ("file_name", ctypes.c_char_p),
            ("file_base", ctypes.c_void_p),
            ("symbol_name", ctypes.c_char_p),
            ("symbol_address", ctypes.c_void_p),
        )

    address = int(ffi.cast("uintptr_t", function))
    library = Found()
    try:
        if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(library)) or not library.file_name:
            return None
    except (OSError, AttributeError, TypeError):  # Windows has no such function
        return None
    return os.fsdecode(library.file_name)


_CLASSES: dict[int, type[errors.ScenarioRunnerError]] = {
    vk.ERROR_OUT_OF_HOST_MEMORY: errors.OutOfMemoryError,
    vk.ERROR_OUT_OF_DEVICE_MEMORY: errors.OutOfMemoryError,
    vk.ERROR_MEMORY_MAP_FAILED: errors.OutOfMemoryError,
    vk.ERROR_TOO_MANY_OBJECTS: errors.OutOfMemoryError,
    vk.ERROR_FRAGMENTED_POOL: errors.OutOfMemoryError,
    vk.ERROR_OUT_OF_POOL_MEMORY: errors.OutOfMemoryError,
    vk.ERROR_FRAGMENTATION: errors.OutOfMemoryError,
    vk.ERROR_COMPRESSION_EXHAUSTED_EXT: errors.OutOfMemoryError,
    vk.ERROR_DEVICE_LOST: errors.DeviceLostError,
    vk.ERROR_INCOMPATIBLE_DRIVER: errors.NoDeviceError,
    vk.ERROR_LAYER_NOT_PRESENT: errors.UnsupportedError,
    vk.ERROR_EXTENSION_NOT_PRESENT: errors.UnsupportedError,
    vk.ERROR_FEATURE_NOT_PRESENT: errors.UnsupportedError,
    vk.ERROR_FORMAT_NOT_SUPPORTED: errors.UnsupportedError,
    vk.ERROR_INVALID_SHADER_NV: errors.ShaderError,
}


def result_name(result: int) -> str:
    """Return the registry's name of a VkResult, such as "VK_ERROR_DEVICE_LOST"; "VkResult 5" for an unknown number."""
    return str(RESULTS.get(result, f"VkResult {result}"))


def error_class(result: int) -> type[errors.ScenarioRunnerError]:
    """Return our exception class for a negative VkResult; the default is `errors.DeviceError`."""
    return _CLASSES.get(result, errors.DeviceError)


def check(result: int, call: str, purpose: str = "") -> int:
    """Return a successful VkResult. Otherwise raise the matching exception, naming the call and the purpose."""
    if result < 0:
        what = f" ({purpose})" if purpose else ""
        help = None
        if result == vk.ERROR_DEVICE_LOST:
            help = "a shader that reads or writes out of bounds is the usual cause; the system's log may say more"
        raise error_class(result)(f"{call} failed with {result_name(result)}{what}", help=help)
    return result


@cache
def arm_ffi() -> Handle:
    """Return the FFI object of the Arm extensions and other types that the package lacks; imported on first use (1 ms).

    It knows only the package's types that the Arm structures and commands use.
    """
    from scenario_runner.vulkan._generated import arm

    return arm.ffi


known_types: dict[str, Handle] = {}
"""Types looked up so far, and the FFI object of each."""


def type_source(name: str) -> Handle:
    """Return the FFI object that declares the C type ``name``, such as ``VkTensorARM`` or ``PFN_vkCreateBuffer``.

    Raises LookupError if neither FFI object declares it.
    """
    source = known_types.get(name)
    if source is None:
        try:
            ffi.typeof(name)
            source = ffi
        except ffi.error:
            try:
                source = arm_ffi()
                source.typeof(name)
            except ffi.error:
                raise LookupError(f"no C type is called {name!r}") from None
        known_types[name] = source
    return source


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
    """Look up a type of `vulkan_api.known_types` in advance, so that forked processes need not."""
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
