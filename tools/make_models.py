"""The ML models of scenarios/ml/ as TOSA text, with their inputs and expected outputs for scenarios/generate.py.

    python tools/make_models.py [--converter model-converter]        writes their VGF files

The converter is the PyPI package ai_ml_sdk_model_converter. This file has every operator twice: as a line of TOSA, and
in NumPy after the TOSA 1.0 specification. NumPy computes floats in double precision and integers exactly, so expected
outputs come from no runner. Everything is seeded: only a newer converter changes the files.
"""

import argparse
import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FOLDER = Path(__file__).parent.parent / "scenarios" / "ml"

# y = x * sigmoid(x), one invocation for each float: an operator that the model's author wrote by hand.
SWISH = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < uint(x.length())) {
        y[i] = x[i] / (1.0 + exp(-x[i]));
    }
}
"""


@dataclass(frozen=True)
class Value:
    """A model's value: the name and element type in the text, and the expected numbers."""

    name: str
    kind: str
    data: Array

    @property
    def type(self) -> str:
        """The type in MLIR."""
        return f"tensor<{''.join(f'{size}x' for size in self.data.shape)}{self.kind}>"


@dataclass
class Model:
    """A model under construction; ``kind`` is the element type of floating-point operators (f32 or f16)."""

    kind: str = "f32"
    seed: int = 1
    lines: list[str] = field(default_factory=list)
    inputs: dict[str, Value] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    # Leaves

    def input(self, name: str, shape: tuple[int, ...], kind: str | None = None) -> Value:
        """Add a random input: floats from -1 to 1, or any int8."""
        kind = kind or self.kind
        if kind == "i8":
            data: Array = self.random.integers(-128, 128, shape).astype(np.int8)
        else:
            data = self.random.uniform(-1, 1, shape).astype(DTYPES[kind])
        self.inputs[name] = Value(f"%{name}", kind, data)
        return self.inputs[name]

    def const(self, data: Array, kind: str | None = None) -> Value:
        """Add a constant, written as a number or as bytes in hexadecimal."""
        kind = kind or self.kind
        data = np.asarray(data, DTYPES[kind])
        value = Value(self._name(), kind, data)
        if data.size == 1:
            text = repr(float(data.item())) if kind.startswith("f") else str(int(data.item()))
        else:
            text = f'"0x{data.tobytes().hex().upper()}"'
        self.lines.append(
            f'{value.name} = "tosa.const"() {{values = dense<{text}> : {value.type}}} : () -> {value.type}'
        )
        return value

    def weights(self, *shape: int) -> Value:
        """Add random weights, rounded to the model's type. The scale keeps the size of activations."""
        scale = 1.5 / np.sqrt(np.prod(shape[1:]))
        return self.const(self.random.uniform(-scale, scale, shape))

    # Operators

    def conv2d(self, x: Value, channels: int, size: int, *, pad: int = 0) -> Value:
        """Add a floating-point convolution, NHWC, stride 1."""
        w, b = self.weights(channels, size, size, x.data.shape[3]), self.weights(channels)
        return self._op("conv2d", [x, w, b, *self._zero(), *self._zero()], convolve(x.data, w.data, b.data, pad),
                        attributes=f"acc_type = f32, {spatial(pad)}")  # fmt: skip

    def depthwise(self, x: Value, *, pad: int = 1) -> Value:
        """Add a 3 x 3 depthwise convolution."""
        channels = x.data.shape[3]
        w, b = self.weights(3, 3, channels, 1), self.weights(channels)
        dense = np.zeros((channels, 3, 3, channels))
        for c in range(channels):
            dense[c, :, :, c] = w.data[:, :, c, 0]
        return self._op("depthwise_conv2d", [x, w, b, *self._zero(), *self._zero()],
                        convolve(x.data, dense, b.data, pad), attributes=f"acc_type = f32, {spatial(pad)}")  # fmt: skip

    def relu6(self, x: Value) -> Value:
        """Clamp to the range 0 to 6."""
        bounds = f"min_val = 0.0 : {x.kind}, max_val = 6.0 : {x.kind}"
        return self._op("clamp", [x], np.clip(x.data, 0, 6), attributes=bounds)

    def max_pool(self, x: Value) -> Value:
        """Take the maximum of every 2 x 2 elements."""
        n, h, w, c = x.data.shape
        data = x.data.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))
        attributes = "kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>"
        return self._op("max_pool2d", [x], data, attributes=attributes)

    def mean_pool(self, x: Value) -> Value:
        """Take the mean of the whole picture."""
        _, h, w, _ = x.data.shape
        attributes = (
            f"kernel = array<i64: {h}, {w}>, stride = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, acc_type = f32"
        )
        data = x.data.astype(np.float64).mean((1, 2), keepdims=True)
        return self._op("avg_pool2d", [x, *self._zero(), *self._zero()], data, attributes=attributes)

    def reshape(self, x: Value, *shape: int) -> Value:
        """Give the elements another shape."""
        name = self._name()
        numbers = f"dense<[{', '.join(map(str, shape))}]> : tensor<{len(shape)}xindex>"
        self.lines.append(f"{name} = tosa.const_shape {{values = {numbers}}} : () -> !tosa.shape<{len(shape)}>")
        target = Value(name, f"!tosa.shape<{len(shape)}>", np.zeros(0))
        return self._op("reshape", [x, target], x.data.reshape(shape))

    def transpose(self, x: Value, *order: int) -> Value:
        """Reorder the dimensions."""
        numbers = f"perms = array<i32: {', '.join(map(str, order))}>"
        return self._op("transpose", [x], x.data.transpose(order), attributes=numbers)

    def softmax(self, x: Value, axis: int) -> Value:
        """Add a softmax as several TOSA operators, as converters do."""
        top = self._op("reduce_max", [x], x.data.max(axis, keepdims=True), attributes=f"axis = {axis} : i32")
        shifted = self._op("sub", [x, top], x.data - top.data)
        raised = self._op("exp", [shifted], np.exp(shifted.data.astype(np.float64)))
        total = self._op(
            "reduce_sum", [raised], raised.data.sum(axis, keepdims=True), attributes=f"axis = {axis} : i32"
        )
        return self.mul(raised, self._op("reciprocal", [total], 1 / total.data.astype(np.float64)))

    def add(self, x: Value, y: Value) -> Value:
        """Add two values."""
        return self._op("add", [x, y], x.data + y.data)

    def mul(self, x: Value, y: Value) -> Value:
        """Multiply two values."""
        return self._op("mul", [x, y, self.const(np.zeros(1), "i8")], x.data * y.data)

    def swish(self, x: Value) -> Value:
        """Apply the GLSL shader `SWISH` to storage buffers."""
        attributes: dict[str, object] = {"entry_point": "main", "workgroup_sizes": [-(-x.data.size // 64), 1, 1]}
        attributes |= {"shader_language": "GLSL", "shader_code": SWISH}
        for binding, prefix in enumerate(("input_0", "output_0")):
            attributes[f"{prefix}_vkdescriptortype"] = "VK_DESCRIPTOR_TYPE_STORAGE_BUFFER"
            attributes[f"{prefix}_vkformat"] = "VK_FORMAT_R32_SFLOAT"
            attributes |= {f"{prefix}_binding": binding, f"{prefix}_descriptorset": 0}
        text = json.dumps(json.dumps(attributes))
        data = x.data / (1 + np.exp(-x.data.astype(np.float64)))
        return self._op("custom", [x], data, attributes=(
            f'domain_name = "com.arm.VulkanCustomShader", operator_name = "swish", implementation_attrs = {text}'
        ))  # fmt: skip

    def conv2d_int8(self, x: Value, channels: int, size: int, *, pad: int, zero_point: int) -> Value:
        """Add an int8 convolution and the rescale back to int8, with a multiplier for each channel."""
        shape = (channels, size, size, x.data.shape[3])
        w = self.const(self.random.integers(-127, 128, shape), "i8")
        b = self.const(self.random.integers(-500, 500, channels), "i32")
        zeros = [self.const(np.array([zero_point]), "i8"), self.const(np.array([0]), "i8")]
        sums = convolve(x.data.astype(np.int64) - zero_point, w.data.astype(np.int64), b.data.astype(np.int64), pad)
        wide = self._op("conv2d", [x, w, b, *zeros], sums, kind="i32", attributes=f"acc_type = i32, {spatial(pad)}")
        # The largest sum becomes about the largest int8: sum * multiplier / 2**shift, rounded half up.
        multiplier = self.random.integers(2**30, 2**31, channels)
        shift = np.floor(np.log2(np.abs(sums).max() * multiplier / 127)).astype(np.int64)
        scaled = (sums * multiplier + (np.int64(1) << (shift - 1))) >> shift
        parts = [
            wide, self.const(multiplier, "i32"), self.const(shift, "i8"),
            self.const(np.array([0]), "i32"), self.const(np.array([zero_point]), "i8"),
        ]  # fmt: skip
        return self._op("rescale", parts, np.clip(scaled + zero_point, -128, 127), kind="i8", attributes=(
            "scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = true, "
            "input_unsigned = false, output_unsigned = false"
        ))  # fmt: skip

    def relu_int8(self, x: Value, low: int) -> Value:
        """Clamp from below."""
        return self._op("clamp", [x], np.maximum(x.data, low), attributes=f"min_val = {low} : i8, max_val = 127 : i8")

    def argmax(self, x: Value, axis: int) -> Value:
        """Find the largest element's index."""
        return self._op("argmax", [x], x.data.argmax(axis), kind="i32", attributes=f"axis = {axis} : i32")

    # Text

    def text(self) -> str:
        """Return the model as MLIR."""

        def named(name: str) -> str:
            return f'{{ml_program.identifier = "{name}", tf_saved_model.index_path = ["{name}"]}}'

        takes = ", ".join(f"{v.name}: {v.type} {named(n)}" for n, v in self.inputs.items())
        gives = ", ".join(f"{v.type} {named(n)}" for n, v in self.outputs.items())
        function = f'tf.entry_function = {{inputs = "{",".join(self.inputs)}", outputs = "{",".join(self.outputs)}"}}'
        body = "\n".join(f"    {line}" for line in self.lines)
        names = ", ".join(v.name for v in self.outputs.values())
        types = ", ".join(v.type for v in self.outputs.values())
        return (
            f"module attributes {{tf_saved_model.semantics}} {{\n  func.func @main({takes}) -> ({gives})\n"
            f'      attributes {{{function}, tf_saved_model.exported_names = ["serving_default"]}} {{\n'
            f"{body}\n    return {names} : {types}\n  }}\n}}\n"
        )

    def _name(self) -> str:
        return f"%{len(self.lines)}"

    def _zero(self) -> tuple[Value]:
        return (self.const(np.zeros(1)),)

    def _op(self, name: str, operands: list[Value], data: Array, *, attributes: str = "", kind: str = "") -> Value:
        kind = kind or operands[0].kind
        exact = DTYPES[kind] if not kind.startswith("f") else np.float64
        result = Value(self._name(), kind, np.asarray(data).astype(exact))
        takes = ", ".join(v.kind if v.kind.startswith("!") else v.type for v in operands)
        values = ", ".join(v.name for v in operands)
        braces = f" {{{attributes}}}" if attributes else ""
        self.lines.append(f"{result.name} = tosa.{name} {values}{braces} : ({takes}) -> {result.type}")
        return result


DTYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "i32": np.int32}


def spatial(pad: int) -> str:
    """Return a convolution's attributes."""
    return f"pad = array<i64: {pad}, {pad}, {pad}, {pad}>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>"


def convolve(x: Array, w: Array, b: Array, pad: int) -> Array:
    """Compute an NHWC convolution with OHWI weights in float64 or int64."""
    wide = np.int64 if np.issubdtype(x.dtype, np.integer) else np.float64
    padded = np.pad(x.astype(wide), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[1:3], (1, 2))
    sums: Array = np.einsum("nyxiab,oabi->nyxo", windows, w.astype(wide))
    return sums + b.astype(wide)


def classifier(kind: str) -> Model:
    """Make a ten-class classifier: two convolutions, a depthwise convolution, pooling, a dense layer and softmax."""
    m = Model(kind, seed=11)
    x = m.input("picture", (1, 16, 16, 3))
    x = m.max_pool(m.relu6(m.conv2d(x, 8, 3, pad=1)))
    x = m.max_pool(m.relu6(m.conv2d(x, 16, 3, pad=1)))
    x = m.relu6(m.conv2d(m.relu6(m.depthwise(x)), 24, 1))
    x = m.conv2d(m.mean_pool(x), 10, 1)
    m.outputs["probabilities"] = m.softmax(m.reshape(x, 1, 10), 1)
    return m


def upscaler() -> Model:
    """Make a model that doubles a picture in half precision: three convolutions, then depth to space."""
    m = Model("f16", seed=12)
    picture = m.input("picture", (1, 8, 8, 3))
    x = m.relu6(m.conv2d(picture, 16, 3, pad=1))
    x = m.relu6(m.conv2d(x, 16, 3, pad=1))
    x = m.conv2d(x, 12, 3, pad=1)
    base = m.conv2d(picture, 12, 1)
    x = m.reshape(m.add(x, base), 1, 8, 8, 2, 2, 3)
    m.outputs["doubled"] = m.relu6(m.reshape(m.transpose(x, 0, 1, 3, 2, 4, 5), 1, 16, 16, 3))
    return m


def mixed() -> Model:
    """Make a convolutional model with a GLSL shader as activation, twice. The second activation is also an output."""
    m = Model("f32", seed=13)
    x = m.input("picture", (1, 12, 12, 4))
    x = m.swish(m.conv2d(x, 8, 3, pad=1))
    x = m.max_pool(x)
    x = m.swish(m.conv2d(x, 8, 3, pad=1))
    m.outputs["features"] = x
    x = m.relu6(m.depthwise(x))
    m.outputs["scores"] = m.softmax(m.reshape(m.conv2d(m.mean_pool(x), 5, 1), 1, 5), 1)
    return m


def quantised() -> Model:
    """Make an int8 classifier: convolutions with a rescale for each channel, and the best class's index."""
    m = Model("f32", seed=14)
    x = m.input("picture", (1, 12, 12, 3), "i8")
    x = m.relu_int8(m.conv2d_int8(x, 8, 3, pad=1, zero_point=-3), -3)
    x = m.max_pool(x)
    x = m.relu_int8(m.conv2d_int8(x, 16, 3, pad=1, zero_point=-3), -3)
    x = m.max_pool(x)
    x = m.conv2d_int8(x, 10, 3, pad=0, zero_point=-3)
    m.outputs["scores"] = x
    m.outputs["best"] = m.argmax(x, 3)
    return m


MODELS = {
    "classifier": lambda: classifier("f32"),
    "classifier_fp16": lambda: classifier("f16"),
    "classifier_int8": quantised,
    "mixed": mixed,
    "upscaler_fp16": upscaler,
}


def main() -> None:
    """Compile every model to a VGF file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--converter", default="model-converter")
    converter = parser.parse_args().converter
    for name, make in MODELS.items():
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as source:
            source.write(make().text())
            source.flush()
            subprocess.run([converter, "-i", source.name, "-o", FOLDER / name / "model.vgf"], check=True)


if __name__ == "__main__":
    main()
