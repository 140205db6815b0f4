"""Builds this example's model and converts it; then runs the scenario and compares the picture with NumPy's.

    python scenarios/custom_shaders/image_model/build.py

writes model.mlir (TOSA as MLIR text, with the two shaders in custom operations) and model.vgf beside this script.
The conversion needs Arm's model-converter: pip install '.[convert]'.
"""

import json
import runpy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import scenario_runner

HERE = Path(__file__).resolve().parent
EXAMPLE: dict[str, Any] = runpy.run_path(str(HERE / "expected.py"))
HEIGHT, WIDTH, KERNEL = EXAMPLE["HEIGHT"], EXAMPLE["WIDTH"], EXAMPLE["KERNEL"]

PICTURE = f"tensor<1x{HEIGHT}x{WIDTH}x4xi8>"  # four bytes a texel
LIGHT = f"tensor<1x{HEIGHT}x{WIDTH}x4xf32>"
NUMBERS = {"vkformat": "VK_FORMAT_R32_SFLOAT", "vkdescriptortype": "VK_DESCRIPTOR_TYPE_TENSOR_ARM"}
SAMPLED = {
    "vkformat": "VK_FORMAT_R8G8B8A8_UNORM",
    "vkdescriptortype": "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER",
    "sampler": {
        "min_filter": "VK_FILTER_NEAREST",
        "mag_filter": "VK_FILTER_NEAREST",
        "address_mode_u": "VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE",
        "address_mode_v": "VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE",
        "border_color": "VK_BORDER_COLOR_FLOAT_TRANSPARENT_BLACK",
    },
}
STORED = {"vkformat": "VK_FORMAT_R8G8B8A8_UNORM", "vkdescriptortype": "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE"}


def attributes(source: str, given: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a shader with an input at binding 0 and an output at binding 1."""
    found: dict[str, Any] = {
        "entry_point": "main",
        "workgroup_sizes": [-(-WIDTH // 8), -(-HEIGHT // 8), 1],  # of 8 x 8 invocations, one for each texel
        "shader_language": "GLSL",
        "shader_code": (HERE / source).read_text(encoding="utf-8"),
    }
    for binding, (name, keys) in enumerate((("input_0", given), ("output_0", made))):
        found |= {f"{name}_{key}": value for key, value in keys.items()}
        found |= {f"{name}_descriptorset": 0, f"{name}_binding": binding}
    return found


def shader(name: str, operand: str, types: str, found: dict[str, Any]) -> str:
    """The custom operation. The attributes are JSON, in a string of MLIR's, which are quoted like JSON's."""
    text = json.dumps(json.dumps(found))
    return (
        f'tosa.custom {operand} {{domain_name = "com.arm.VulkanCustomShader", operator_name = "{name}",'
        f" implementation_attrs = {text}}} : {types}"
    )


def constant(values: NDArray[Any]) -> str:
    """A constant of floats."""
    type = f"tensor<{'x'.join(map(str, values.shape))}xf32>"
    return f'"tosa.const"() {{values = dense<{values.tolist()}> : {type}}} : () -> {type}'


def model() -> str:
    """The model as MLIR text."""
    weights = np.zeros((4, 3, 3, 4), np.float32)  # output channel, row, column, input channel
    for channel in range(4):
        weights[channel, :, :, channel] = KERNEL
    convolution = (
        "tosa.conv2d %light, %weights, %bias, %zero, %zero {pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>,"
        " dilation = array<i64: 1, 1>, acc_type = f32}"
        f" : ({LIGHT}, tensor<4x3x3x4xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> {LIGHT}"
    )
    to_linear = attributes("to_linear.comp", SAMPLED, NUMBERS)
    to_picture = attributes("to_picture.comp", NUMBERS, STORED)
    lines = [
        f"%light = {shader('to_linear', '%picture', f'({PICTURE}) -> {LIGHT}', to_linear)}",
        f"%weights = {constant(weights)}",
        f"%bias = {constant(np.zeros(4, np.float32))}",
        f"%zero = {constant(np.zeros(1, np.float32))}",
        f"%blurred = {convolution}",
        f"%result = {shader('to_picture', '%blurred', f'({LIGHT}) -> {PICTURE}', to_picture)}",
        f"return %result : {PICTURE}",
    ]
    body = "".join(f"  {line}\n" for line in lines)
    return f"func.func @main(%picture: {PICTURE}) -> {PICTURE} {{\n{body}}}\n"


def main() -> None:
    """Build, convert, run, compare."""
    (HERE / "model.mlir").write_text(model(), encoding="utf-8")
    scenario_runner.convert(HERE / "model.mlir", HERE / "model.vgf")
    with scenario_runner.Runner() as runner, tempfile.TemporaryDirectory() as folder:
        result = runner.run(HERE / "scenario.json", output_dir=folder)
    wanted = EXAMPLE["expected"](np.load(HERE / "picture.npy"))["blurred"]
    got = result.array("blurred", "uint8").reshape(wanted.shape)
    difference = np.abs(got.astype(int) - wanted)
    print(f"largest difference from NumPy: {difference.max()} of 255")
    assert difference.max() <= 1


if __name__ == "__main__":
    main()
