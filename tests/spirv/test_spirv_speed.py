"""The reader's own speed. Limits leave room for a busy machine; measured numbers are several times lower."""

from __future__ import annotations

import time
from collections.abc import Callable

from scenario_runner.spirv import read_module


def test_a_module_of_a_megabyte_is_read_quickly(glsl: Callable[..., bytes]) -> None:
    """Reading a module of 1 MB and the interface of its entry point takes at most 0.3 s."""
    lines = "\n".join(
        f"x{number % 16} = x{(number + 3) % 16} * {number}.5 + sin(x{(number + 1) % 16}) * a[{number % 256}u + i];"
        f"b[i + {number}u] = x{number % 16};"
        for number in range(3500)
    )
    variables = "\n".join(f"float x{number} = a[i + {number}];" for number in range(16))
    data = glsl(
        "layout(local_size_x = 64) in; layout(set = 0, binding = 0) readonly buffer A { float a[]; };"
        "layout(set = 0, binding = 1) writeonly buffer B { float b[]; };"
        f"void main() {{ uint i = gl_GlobalInvocationID.x; {variables} {lines} }}"
    )
    assert len(data) > 1_000_000
    best = min(seconds_to_read(data) for _ in range(3))
    assert best < 0.3


def seconds_to_read(data: bytes) -> float:
    start = time.perf_counter()
    interface = read_module(data).entry_points[0].interface
    assert [binding.name for binding in interface.bindings] == ["A", "B"]
    return time.perf_counter() - start
