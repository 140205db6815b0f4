"""A shader that ends the process that runs it, by a real fault of a driver."""

import pytest

from tests.scenes import glsl

# llvmpipe checks no index of shared memory.
_DATA = "layout(binding = 0) buffer B { uint a[]; };\nshared uint s[4];\n"
_SHADER = glsl("s[a[0] * 400000000u] = 7u; barrier(); a[1] = s[a[2] * 300000000u];", _DATA)


def crash_shader(device_name: str) -> str:
    """The shader, whose buffer ``a`` has four numbers that are 1. Skips the test on a device that has no such fault."""
    if "llvmpipe" not in device_name:
        pytest.skip(f"needs llvmpipe: {device_name} checks indexes of shared memory")
    return _SHADER
