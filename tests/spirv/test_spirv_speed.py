"""The reader's own effort: words are looked at in bulk, not one by one."""

from __future__ import annotations

from collections.abc import Callable

from scenario_runner.spirv import read_module
from tests.effort import calls_of


def test_a_module_of_a_megabyte_is_read_quickly(glsl: Callable[..., bytes]) -> None:
    """Reading a module of 1 MB and the interface of its entry point takes fewer calls than it has words."""
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
    interface, calls = calls_of(lambda: read_module(data).entry_points[0].interface)
    assert [binding.name for binding in interface.bindings] == ["A", "B"]
    assert calls < len(data) // 4
