"""The Vulkan loader library, the commands with their C types, and the errors for their results.

The types come from the `vulkan` package and from generated bindings for the Arm extensions (`arm_ffi`); both mix. Each
command is looked up once and called without trampolines. Every cffi object is a `Handle`.

Source: Vulkan specification, "Return Codes".
"""

import os
import sys
from collections.abc import Callable
from functools import cache

from scenario_runner import errors
from scenario_runner.errors import NoDeviceError, UnsupportedError
from scenario_runner.errors.installation import install_here
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk

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
    """Open the Vulkan loader as a cffi library (``load().vkCreateInstance(...)``), once.

    Raises NoDeviceError without a loader; the message says which package to install.
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
    from scenario_runner.vulkan._generated.results import RESULTS  # only errors need the table

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

    Raises LookupError if neither does.
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
