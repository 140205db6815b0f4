"""The types that the `vulkan` package lacks: those of the Arm extensions, which mix with the package's."""

from __future__ import annotations

from functools import cache
from typing import Any

from scenario_runner.vulkan.api.ffi import ffi


@cache
def arm_ffi() -> Any:
    """FFI object with the Arm extensions and what else the package lacks; imported on first use (1 ms).

    Of the package's types it knows the names of those that its own structures and commands use, not all.
    """
    from scenario_runner.vulkan.api._generated import arm

    return arm.ffi


known_types: dict[str, Any] = {}
"""The types that were looked up so far, and the FFI object of each."""


def type_source(name: str) -> Any:
    """The FFI object that declares the C type ``name``, such as ``VkTensorARM`` or ``PFN_vkCreateBuffer``.

    Raises LookupError when neither does.
    """
    source = known_types.get(name)
    if source is None:
        source = known_types[name] = _declaring(name)
    return source


def _declaring(name: str) -> Any:
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
