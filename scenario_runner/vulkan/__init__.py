"""The only package that calls Vulkan: it receives a plan and sources of bytes, and returns bytes.

``ffi`` has the types of the Vulkan C API from the `vulkan` package. Only the package's generated type module is loaded:
the wrappers take three times as long to import, and open the loader on the way. Both ways of loading give the same
types in a process.
"""

import os
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any, TypeAlias

Handle: TypeAlias = Any
"""An object of cffi, which has no static types: a handle, structure, array, command or library."""


def _package_types() -> Handle:
    """Return the FFI object of the `vulkan` package without running the package's ``__init__``."""
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
    # Registered under the real name, so that a later `import vulkan` reuses this module instead of a second set of
    # types.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module.ffi


ffi: Handle = _package_types()
NULL: Handle = ffi.NULL
