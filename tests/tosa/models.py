"""TOSA models as MLIR text, with shaders in them, for the tests that convert them."""

import json
from collections.abc import Sequence
from typing import Any

TENSOR, BUFFER = "TENSOR_ARM", "STORAGE_BUFFER"
F32 = "VK_FORMAT_R32_SFLOAT"
GRID = "tensor<4x16xf32>"
SIZE = 64


def attributes(inputs: Sequence[str], outputs: Sequence[str], code: str | None, **changes: Any) -> dict[str, Any]:
    """Return attributes of a GLSL shader, or of a placeholder without ``code``, with resources of these descriptor
    types in set 0. ``changes`` replace keys; None removes a key."""
    found: dict[str, Any] = {"entry_point": "main", "workgroup_sizes": [1, 1, 1]}
    if code is not None:
        found |= {"shader_language": "GLSL", "shader_code": code}
    names = [*(f"input_{i}" for i in range(len(inputs))), *(f"output_{i}" for i in range(len(outputs)))]
    for binding, (name, descriptor) in enumerate(zip(names, (*inputs, *outputs), strict=True)):
        found[f"{name}_vkformat"] = F32
        found[f"{name}_vkdescriptortype"] = f"VK_DESCRIPTOR_TYPE_{descriptor}"
        found[f"{name}_binding"] = binding
        found[f"{name}_descriptorset"] = 0
    return {key: value for key, value in (found | changes).items() if value is not None}


def linear(inputs: Sequence[str], outputs: Sequence[str], *factors: Sequence[float]) -> str:
    """GLSL of a shader over 64 floats: result *r* is the sum of the operands times ``factors[r]``, plus the last one.

    Tensors are of the type `GRID`. Workgroups have 8 invocations.
    """
    lines = ["#version 460", "layout(local_size_x = 8) in;"]
    if TENSOR in (*inputs, *outputs):
        lines.insert(1, "#extension GL_ARM_tensors : require")
    for binding, descriptor in enumerate((*inputs, *outputs)):
        place = f"layout(set = 0, binding = {binding})"
        lines.append(
            f"{place} uniform tensorARM<float, 2> t{binding};"
            if descriptor == TENSOR
            else f"{place} buffer B{binding} {{ float b{binding}[]; }};"
        )
    lines += ["void main() {", "    uint i = gl_GlobalInvocationID.x;", f"    float v[{len(inputs) + 1}];"]
    at = "uint[](i / 16, i % 16)"
    for binding, descriptor in enumerate(inputs):
        read = f"tensorReadARM(t{binding}, {at}, v[{binding}]);"
        lines.append(f"    {read}" if descriptor == TENSOR else f"    v[{binding}] = b{binding}[i];")
    for number, descriptor in enumerate(outputs):
        binding = len(inputs) + number
        terms = [f"v[{k}] * {float(factor)}" for k, factor in enumerate(factors[number][:-1])]
        value = " + ".join([*terms, str(float(factors[number][-1]))])
        write = f"tensorWriteARM(t{binding}, {at}, {value});"
        lines.append(f"    {write}" if descriptor == TENSOR else f"    b{binding}[i] = {value};")
    return "\n".join([*lines, "}", ""])


def custom(
    results: str,
    operands: Sequence[str],
    given: dict[str, Any] | str,
    *,
    name: str = "shader",
    domain: str = "com.arm.VulkanCustomShader",
    type: str = GRID,
    count: int = 1,
) -> str:
    """A custom operation with ``count`` results; ``given`` are its attributes, or their text."""
    text = json.dumps(given if isinstance(given, str) else json.dumps(given))
    made = type if count == 1 else f"({', '.join([type] * count)})"
    return (
        f'{results} = tosa.custom {", ".join(operands)} {{domain_name = "{domain}", operator_name = "{name}", '
        f"implementation_attrs = {text}}} : ({', '.join([type] * len(operands))}) -> {made}"
    )


def shader(
    results: str,
    operands: Sequence[str],
    *factors: Sequence[float],
    inputs: Sequence[str] | str = BUFFER,
    outputs: Sequence[str] | str = BUFFER,
    name: str = "shader",
    **changes: Any,
) -> str:
    """Return a custom operation that computes `linear` on 64 floats, with one descriptor type for all resources or
    one for each."""
    inputs = [inputs] * len(operands) if isinstance(inputs, str) else inputs
    outputs = [outputs] * len(factors) if isinstance(outputs, str) else outputs
    code = linear(inputs, outputs, *factors)
    given = attributes(inputs, outputs, code, **{"workgroup_sizes": [8, 1, 1], **changes})
    return custom(results, operands, given, name=name, count=len(factors))


def add(result: str, one: str, other: str) -> str:
    """A sum of two values."""
    return f"{result} = tosa.add {one}, {other} : ({GRID}, {GRID}) -> {GRID}"


def constant(result: str, values: Any) -> str:
    """A constant of the type `GRID`."""
    return f'{result} = "tosa.const"() {{values = dense<{values.tolist()}> : {GRID}}} : () -> {GRID}'


def reshape(result: str, operand: str) -> list[str]:
    """A reshape to the same shape."""
    shape = f"%shape_of_{result[1:]}"
    return [
        f"{shape} = tosa.const_shape {{values = dense<[4, 16]> : tensor<2xindex>}} : () -> !tosa.shape<2>",
        f"{result} = tosa.reshape {operand}, {shape} : ({GRID}, !tosa.shape<2>) -> {GRID}",
    ]


def function(arguments: Sequence[str], body: Sequence[str], returned: Sequence[str], name: str = "main") -> str:
    """Return a function on values of one type. Its inputs have the names of the arguments, and its outputs are
    ``out0``, ..."""
    outputs = [f"out{i}" for i in range(len(returned))]
    entry = f'tf.entry_function = {{inputs = "{",".join(arguments)}", outputs = "{",".join(outputs)}"}}'
    takes = ", ".join(f"%{argument}: {GRID}" for argument in arguments)
    types = ", ".join([GRID] * len(returned))
    lines = "\n".join(f"  {line}" for line in [*body, f"return {', '.join(returned)} : {types}"])
    return f"func.func @{name}({takes}) -> ({types}) attributes {{{entry}}} {{\n{lines}\n}}\n"


BRANCH = [
    '%c = "tosa.const"() {values = dense<true> : tensor<i1>} : () -> tensor<i1>',
    f"""%1 = tosa.cond_if %c (%a = %x) : tensor<i1> ({GRID}) -> {GRID} {{
  ^bb0(%a: {GRID}):
    {shader("%9", ["%a"], [1, 0], name="Inner")}
    tosa.yield %9 : {GRID}
  }} else {{
  ^bb0(%b: {GRID}):
    tosa.yield %b : {GRID}
  }}""",
]
"""A shader ``Inner`` within a branch, of the argument x."""
