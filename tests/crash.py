"""A shader that ends the process that runs it: it stores through an address that no process has."""

import pytest

from tests.scenes import glsl

_DATA = """layout(binding = 0) buffer B { uint a[]; };
layout(buffer_reference) buffer Nowhere { uint number; };
"""
_EXTENSIONS = "#extension GL_EXT_buffer_reference : require\n#extension GL_EXT_buffer_reference_uvec2 : require\n"
# The first page of memory belongs to nobody, on every system. No driver has to check addresses.
_SHADER = glsl("Nowhere(uvec2(a[0] * 64u, 0u)).number = a[1];", _EXTENSIONS + _DATA)


def crash_shader(device_name: str) -> str:
    """Return the shader; it needs a buffer ``a`` with four numbers of 1. Skip the test on a device that is no
    processor."""
    if "llvmpipe" not in device_name:
        pytest.skip(f"needs llvmpipe: {device_name} has memory of its own")
    return _SHADER
