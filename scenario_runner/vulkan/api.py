"""The Vulkan C API through cffi: types, the loader library, and functions looked up without trampolines.

The types are those of the `vulkan` package, of which only the generated type module is loaded: its wrappers cost
three times as much to import and open the loader on the way. Both ways of loading give the same types in one process.
What the package lacks (the Arm extensions) is in `arm_ffi`, whose types mix with these.

Typing: cffi has no static types, so everything here is `Any` to the type checker.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any

from scenario_runner.errors import NoDeviceError, UnsupportedError

LOADER_VARIABLE = "SCENARIO_RUNNER_VULKAN_LOADER"
"""Environment variable with the path of the Vulkan loader library, for loaders outside the system's search path."""

_LOADER_NAMES = {
    "win32": ("vulkan-1.dll",),
    "darwin": ("libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"),
}
_LOADER_NAMES_ELSEWHERE = ("libvulkan.so.1", "libvulkan.so")
_INSTALL_ON_WINDOWS = "install the graphics driver of your GPU's vendor, which brings vulkan-1.dll"


def _package_types() -> Any:
    """The `vulkan` package's FFI object, without running the package's ``__init__``."""
    name = "vulkan._vulkancache"
    if name in sys.modules:
        return sys.modules[name].ffi
    package = find_spec("vulkan")
    directories = package.submodule_search_locations if package is not None else None
    if not directories:
        raise ModuleNotFoundError("the Python package 'vulkan' is missing: pip install vulkan", name="vulkan")
    path = os.path.join(directories[0], "_vulkancache.py")
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    # Under its real name, so that a later `import vulkan` takes this module and not a second set of types.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module.ffi


ffi: Any = _package_types()
NULL: Any = ffi.NULL


@cache
def arm_ffi() -> Any:
    """FFI object with the Arm extensions and what else the package lacks; imported on first use (1 ms).

    Of the package's types it knows the names of those that its own structures and commands use, not all.
    """
    from scenario_runner.vulkan._generated import arm

    return arm.ffi


def type_source(name: str) -> Any:
    """The FFI object that declares the C type ``name``, such as ``VkTensorARM`` or ``PFN_vkCreateBuffer``.

    Raises LookupError when neither does.
    """
    try:
        ffi.typeof(name)
        return ffi
    except ffi.error:
        pass
    try:
        arm_ffi().typeof(name)
        return arm_ffi()
    except ffi.error:
        raise LookupError(f"no C type is called {name!r}") from None


@cache
def load() -> Any:
    """The Vulkan loader as a cffi library (``load().vkCreateInstance(...)``), opened once.

    Raises NoDeviceError when there is none; the text says what to install.
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
            reasons.append(f"{name!r}: it is no Vulkan loader (it has no vkGetInstanceProcAddr)")
            continue
        return library
    if path:
        advice = f"{LOADER_VARIABLE} must be the path of a Vulkan loader library; unset it to search the system"
    else:
        from scenario_runner.system_packages import install_here

        install = _INSTALL_ON_WINDOWS if sys.platform == "win32" else install_here("loader", "driver")
        advice = f"{install}, or set {LOADER_VARIABLE} to the loader's path"
    raise NoDeviceError(f"no Vulkan loader could be opened ({'; '.join(reasons)})", help=advice)


def _reason(error: OSError, name: str) -> str:
    """cffi's text without the name of the library, which it puts in front once or twice."""
    text = str(error).removeprefix("cannot load library ")
    for prefix in (f"'{name}': ", f"{name}: "):
        text = text.removeprefix(prefix)
    return text.split(".  Additionally,", 1)[0]


def instance_function(instance: Any, name: str) -> Any:
    """The command ``name`` for an instance and its physical devices, ready to be called.

    ``instance`` is a VkInstance, or NULL for the commands that need none. Raises UnsupportedError when the loader has
    no such command for this instance, LookupError when the bindings do not know it.
    """
    return _function(load().vkGetInstanceProcAddr, "instance", instance, name)


def device_function(device: Any, name: str) -> Any:
    """The command ``name`` of a device, its queues and its command buffers, past the loader's own dispatch.

    Raises UnsupportedError when the device has no such command (its extension is not enabled), LookupError when the
    bindings do not know it.
    """
    return _function(load().vkGetDeviceProcAddr, "device", device, name)


def _function(look_up: Any, kind: str, parent: Any, name: str) -> Any:
    source = type_source(f"PFN_{name}")
    address = look_up(parent, name.encode())
    if not address:
        raise UnsupportedError(f"the Vulkan {kind} has no command {name!r}: its extension is not enabled or not there")
    return source.cast(f"PFN_{name}", address)


def constant(name: str) -> int | float:
    """The value of an enumeration constant or flag bit, such as ``VK_IMAGE_LAYOUT_GENERAL``; LookupError if unknown.

    Names that were replaced by a newer one (``..._KHR`` after promotion) are unknown; VkFormat is in `formats`.
    """
    from scenario_runner.vulkan._generated import constants

    try:
        value: int | float = vars(constants)[name]
    except KeyError:
        raise LookupError(f"no Vulkan constant is called {name!r}") from None
    return value
