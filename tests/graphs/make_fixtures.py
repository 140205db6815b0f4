"""Writes the models under ``fixtures/``: TOSA as MLIR text, and what ``model-converter`` makes of it.

    python tests/graphs/make_fixtures.py [--converter model-converter] [--old-converter PATH]

The converter is the PyPI package ai_ml_sdk_model_converter (0.11 made the committed files); ``--old-converter`` is the
one of version 0.7, which still writes the format 0.4.0 and makes ``conv_0_4.vgf``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"
GRID = "tensor<4x16xf32>"
PIXELS = "tensor<1x4x8x4xf32>"
BUFFER = ("STORAGE_BUFFER", "R32_SFLOAT")

# y[i] = a[i] * a[i] + 0.5 * b[i] over 64 floats.
SQUARE_PLUS_HALF = """#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    y[i] = a[i] * a[i] + 0.5 * b[i];
}
"""

# A mirrored copy of an 8 x 4 image.
MIRROR = """#version 450
layout(local_size_x = 8, local_size_y = 4) in;
layout(set = 0, binding = 0) uniform sampler2D source;
layout(set = 1, binding = 3, rgba32f) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(target, at, texelFetch(source, ivec2(7 - at.x, at.y), 0));
}
"""


def shader(
    operands: str,
    types: str,
    inputs: list[tuple[str, str, int, int]],
    outputs: list[tuple[str, str, int, int]],
    *,
    code: str | None,
    groups: tuple[int, int, int],
    sampled: bool = False,
) -> str:
    """A TOSA custom operation that runs a GLSL shader, or a placeholder for one."""
    attributes: dict[str, object] = {"entry_point": "main", "workgroup_sizes": list(groups)}
    if code is not None:
        attributes |= {"shader_language": "GLSL", "shader_code": code}
    for prefix, resources in (("input", inputs), ("output", outputs)):
        for i, (descriptor, form, binding, descriptor_set) in enumerate(resources):
            name = f"{prefix}_{i}"
            attributes[f"{name}_vkdescriptortype"] = f"VK_DESCRIPTOR_TYPE_{descriptor}"
            attributes[f"{name}_vkformat"] = f"VK_FORMAT_{form}"
            attributes[f"{name}_binding"] = binding
            attributes[f"{name}_descriptorset"] = descriptor_set
    if sampled:
        attributes["input_0_sampler"] = {
            "min_filter": "VK_FILTER_LINEAR",
            "mag_filter": "VK_FILTER_NEAREST",
            "address_mode_u": "VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE",
            "address_mode_v": "VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT",
            "border_color": "VK_BORDER_COLOR_INT_OPAQUE_WHITE",
        }
    text = json.dumps(json.dumps(attributes))
    return (
        f'tosa.custom {operands} {{domain_name = "com.arm.VulkanCustomShader", operator_name = "shader", '
        f"implementation_attrs = {text}}} : {types}"
    )


def model(arguments: dict[str, str], body: list[str], results: dict[str, tuple[str, str]]) -> str:
    """MLIR of one function; ``arguments`` are name to type, ``results`` are name to (value, type)."""

    def named(name: str) -> str:
        return f'{{ml_program.identifier = "{name}", tf_saved_model.index_path = ["{name}"]}}'

    takes = ", ".join(f"%{name}: {kind} {named(name)}" for name, kind in arguments.items())
    gives = ", ".join(f"{kind} {named(name)}" for name, (_, kind) in results.items())
    function = f'tf.entry_function = {{inputs = "{",".join(arguments)}", outputs = "{",".join(results)}"}}'
    returns = (
        ", ".join(value for value, _ in results.values()) + " : " + ", ".join(kind for _, kind in results.values())
    )
    lines = "\n".join(f"    {line}" for line in body)
    return (
        f"module attributes {{tf_saved_model.semantics}} {{\n"
        f"  func.func @main({takes}) -> ({gives})\n"
        f'      attributes {{{function}, tf_saved_model.exported_names = ["serving_default"]}} {{\n'
        f"{lines}\n    return {returns}\n  }}\n}}\n"
    )


def models() -> dict[str, str]:
    """Name to MLIR text."""
    weights = ", ".join(f"{(i * 7 % 11 - 5) / 8}" for i in range(4 * 3 * 3 * 2))
    one = f"({GRID}) -> {GRID}"
    two = f"({GRID}, {GRID}) -> {GRID}"
    conv = "(tensor<1x8x8x2xf32>, tensor<4x3x3x2xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>)"
    return {
        # A graph with weights in the constant section (more than 16 elements) and a bias that is not there.
        "conv": model(
            {"x": "tensor<1x8x8x2xf32>"},
            [
                f'%flat = "tosa.const"() {{values = dense<[{weights}]> : tensor<72xf32>}} : () -> tensor<72xf32>',
                "%shape = tosa.const_shape {values = dense<[4, 3, 3, 2]> : tensor<4xindex>} : () -> !tosa.shape<4>",
                "%w = tosa.reshape %flat, %shape : (tensor<72xf32>, !tosa.shape<4>) -> tensor<4x3x3x2xf32>",
                '%b = "tosa.const"() {values = dense<[0.5, -1.0, 2.0, 0.0]> : tensor<4xf32>} : () -> tensor<4xf32>',
                '%z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>',
                "%0 = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>, "
                "pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : "
                f"{conv} -> tensor<1x8x8x4xf32>",
                "%1 = tosa.clamp %0 {min_val = 0.0 : f32, max_val = 6.0 : f32} : "
                "(tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32>",
            ],
            {"y": ("%1", "tensor<1x8x8x4xf32>")},
        ),
        # Graph and shader; x is seen as a tensor by the one and as a buffer by the other.
        "mixed": model(
            {"x": GRID, "y": GRID},
            [
                f"%0 = tosa.add %x, %y : {two}",
                "%1 = "
                + shader(
                    "%0, %x",
                    two,
                    [(*BUFFER, 0, 0), (*BUFFER, 1, 0)],
                    [(*BUFFER, 2, 0)],
                    code=SQUARE_PLUS_HALF,
                    groups=(4, 1, 1),
                ),
                f"%2 = tosa.add %1, %y : {two}",
            ],
            {"z": ("%2", GRID)},
        ),
        # A shader without code between two graphs, whose result is also an output.
        "placeholder": model(
            {"x": GRID},
            [
                f"%0 = tosa.add %x, %x : {two}",
                "%1 = " + shader("%0", one, [(*BUFFER, 0, 0)], [(*BUFFER, 1, 0)], code=None, groups=(4, 1, 1)),
                f"%2 = tosa.add %1, %x : {two}",
            ],
            {"shaded": ("%1", GRID), "sum": ("%2", GRID)},
        ),
        # Several inputs and outputs: a result returned twice, and an input returned as it is.
        "ends": model(
            {"left": GRID, "right": GRID},
            [f"%0 = tosa.add %left, %right : {two}", f"%1 = tosa.sub %left, %right : {two}"],
            {"sum": ("%0", GRID), "difference": ("%1", GRID), "sum_again": ("%0", GRID), "same": ("%left", GRID)},
        ),
        # x is not used, so its slot is dropped but not its name.
        "unused": model(
            {"x": GRID, "y": GRID, "z": GRID},
            [
                "%0 = " + shader("%y", one, [(*BUFFER, 0, 0)], [(*BUFFER, 1, 0)], code=None, groups=(4, 1, 1)),
                f"%1 = tosa.add %0, %z : {two}",
            ],
            {"sum": ("%1", GRID)},
        ),
        # A sampled image in, a storage image out, in two descriptor sets.
        "image": model(
            {"picture": PIXELS},
            [
                "%0 = "
                + shader(
                    "%picture",
                    f"({PIXELS}) -> {PIXELS}",
                    [("COMBINED_IMAGE_SAMPLER", "R32G32B32A32_SFLOAT", 0, 0)],
                    [("STORAGE_IMAGE", "R32G32B32A32_SFLOAT", 3, 1)],
                    code=MIRROR,
                    groups=(1, 1, 1),
                    sampled=True,
                ),
            ],
            {"mirrored": ("%0", PIXELS)},
        ),
        # Not sound: the shader has one binding for its input and its output.
        "twice_bound": model(
            {"x": GRID},
            [
                "%0 = " + shader("%x", one, [(*BUFFER, 0, 0)], [(*BUFFER, 0, 0)], code=None, groups=(4, 1, 1)),
                f"%1 = tosa.add %0, %x : {two}",
            ],
            {"y": ("%1", GRID)},
        ),
        # One of the two results of an operator is not used.
        "half": model(
            {"x": "tensor<1x4x8xf32>"},
            ["%0, %1 = tosa.rfft2d %x : (tensor<1x4x8xf32>) -> (tensor<1x4x5xf32>, tensor<1x4x5xf32>)"],
            {"real": ("%0", "tensor<1x4x5xf32>")},
        ),
        # The number of rows is not known.
        "dynamic": model(
            {"x": "tensor<?x16xf32>"},
            ["%0 = tosa.add %x, %x : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>"],
            {"y": ("%0", "tensor<?x16xf32>")},
        ),
    }


def main() -> None:
    """Write and convert every model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--converter", default="model-converter")
    parser.add_argument("--old-converter")
    arguments = parser.parse_args()
    for name, text in models().items():
        source = FIXTURES / f"{name}.mlir"
        source.write_text(text)
        subprocess.run([arguments.converter, "-i", source, "-o", source.with_suffix(".vgf")], check=True)
    if arguments.old_converter:
        old = FIXTURES / "conv_0_4.vgf"
        subprocess.run([arguments.old_converter, "-i", FIXTURES / "conv.mlir", "-o", old], check=True)


if __name__ == "__main__":
    main()
