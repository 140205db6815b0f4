"""Models with the layers of well-known networks, random weights and small inputs. The benchmark converts them.

As in tools/make_models.py, every operator is a line of TOSA and NumPy code. Batch normalization is folded into the
convolutions. Sources of the layers: He et al. 2015 (ResNet18), Sandler et al. 2018 (MobileNetV2), Tan and Le 2019
(EfficientNet-B0), Devlin et al. 2018 (one encoder layer of BERT-base).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.bounds import Bound
from benchmarks.programs import Program
from benchmarks.workloads.graphs import Graph, dispatch_graph, model, tensor
from benchmarks.workloads.workload import write_scenario
from scenario_runner import convert
from scenario_runner.tosa.model_converter import PACKAGE, find_converter
from tools.make_models import Array, Model, Value

Layers = Callable[["Network", Value, int], Value]
# The divisor of channels with --quick.
QUICK = 8


class Models(Graph):
    """A process with a single network inference. Outputs differ from NumPy only by rounding."""

    time_bound = Bound(must=1.05)
    memory_bound = Bound(must=1.05)

    def __init__(self, name: str, layers: Layers, shape: tuple[int, ...], quick_shape: tuple[int, ...]) -> None:
        self.name, self.title = f"models-{name}", f"{name}, input {list(shape)}"
        self._layers, self._shape, self._quick_shape = layers, shape, quick_shape

    def missing(self) -> str | None:
        return super().missing() or (None if find_converter() else f"it needs pip install {PACKAGE}")

    def make(self, folder: Path, *, quick: bool) -> None:
        network = Network(seed=22)
        x = network.input("x", self._quick_shape if quick else self._shape)
        y = network.outputs["y"] = self._layers(network, x, QUICK if quick else 1)
        (folder / "model.mlir").write_text(network.text(), encoding="utf-8")
        convert(folder / "model.mlir", folder / "model.vgf")
        np.save(folder / "x.npy", x.data)
        np.save(folder / "expected.npy", y.data)
        resources = [tensor("x", [*x.data.shape], src="x.npy"), tensor("y", [*y.data.shape], dst="y.npy")]
        write_scenario(folder / "scenario.json", [dispatch_graph("x", "y")], [model(), *resources])

    def check(self, folder: Path, program: Program, output: Path) -> None:
        expected = np.load(folder / "expected.npy")
        np.testing.assert_allclose(np.load(output / "y.npy"), expected, rtol=0, atol=1e-4 * np.abs(expected).max())


class Network(Model):
    """A network with layers in single precision, [N, H, W, C]."""

    def weights(self, *shape: int, inputs: int = 0) -> Value:
        """Add uniform weights for ``inputs`` summands of an output (He et al. 2015), or without inputs biases."""
        scale = math.sqrt(6 / inputs) if inputs else 0.1
        return self.const(self.random.uniform(-scale, scale, shape))

    def conv(self, x: Value, channels: int, size: int, stride: int = 1, *, depthwise: bool = False) -> Value:
        """Add a convolution with bias, which divides the size by the stride."""
        windows, inputs = _windows(x.data, size, stride, 0.0), x.data.shape[3]
        shape = (size, size, channels, 1) if depthwise else (channels, size, size, inputs)
        w = self.weights(*shape, inputs=size * size * (1 if depthwise else inputs))
        b = self.weights(channels)
        if depthwise:
            sums = np.einsum("nyxcab,abc->nyxc", windows, w.data[..., 0].astype(np.float64))
        else:
            sums = np.tensordot(windows, w.data.astype(np.float64), axes=([3, 4, 5], [3, 1, 2]))
        attributes = f"acc_type = f32, {_spatial(size, stride)}, dilation = array<i64: 1, 1>"
        name = "depthwise_conv2d" if depthwise else "conv2d"
        return self._op(name, [x, w, b, *self._zero(), *self._zero()], sums + b.data, attributes=attributes)

    def max_pool_3(self, x: Value) -> Value:
        """Take the maximum of 3 x 3 elements at every other place."""
        windows = _windows(x.data, 3, 2, -np.inf)
        attributes = f"kernel = array<i64: 3, 3>, {_spatial(3, 2)}"
        return self._op("max_pool2d", [x], windows.max((4, 5)), attributes=attributes)

    def relu(self, x: Value) -> Value:
        limit = float(np.finfo(np.float32).max)
        return self._op("clamp", [x], np.maximum(x.data, 0), attributes=f"min_val = 0.0 : f32, max_val = {limit} : f32")

    def sigmoid(self, x: Value) -> Value:
        return self._op("sigmoid", [x], 1 / (1 + np.exp(-x.data)))

    def silu(self, x: Value) -> Value:
        return self.mul(x, self.sigmoid(x))

    def dense(self, x: Value, channels: int) -> Value:
        """Add a dense layer over the last of three dimensions."""
        inputs = x.data.shape[2]
        product = self.matmul(x, self.weights(1, inputs, channels, inputs=2 * inputs))
        return self.add(product, self.weights(1, 1, channels))

    def matmul(self, x: Value, y: Value) -> Value:
        return self._op("matmul", [x, y, *self._zero(), *self._zero()], np.matmul(x.data, y.data, dtype=np.float64))

    def mean(self, x: Value) -> Value:
        total = self._op("reduce_sum", [x], x.data.sum(2, keepdims=True), attributes="axis = 2 : i32")
        return self.mul(total, self.const(np.full((1, 1, 1), 1 / x.data.shape[2])))

    def layer_norm(self, x: Value) -> Value:
        """Normalize the last of three dimensions, with scale and offset."""
        mean = self.mean(x)
        centered = self._op("sub", [x, mean], x.data - mean.data)
        variance = self.add(self.mean(self.mul(centered, centered)), self.const(np.full((1, 1, 1), 1e-5)))
        normal = self.mul(centered, self._op("rsqrt", [variance], 1 / np.sqrt(variance.data)))
        width = x.data.shape[2]
        return self.add(self.mul(normal, self.const(1 + 0.1 * self.random.normal(size=(1, 1, width)))),
                        self.weights(1, 1, width))  # fmt: skip

    def gelu(self, x: Value) -> Value:
        scaled = self.mul(x, self.const(np.full((1, 1, 1), math.sqrt(0.5))))
        error = self._op("erf", [scaled], np.vectorize(math.erf)(scaled.data))
        half = self.mul(x, self.const(np.full((1, 1, 1), 0.5)))
        return self.add(half, self.mul(half, error))


def _windows(x: Array, size: int, stride: int, padding: float) -> Array:
    """Return the windows [N, Y, X, C, size, size] in float64."""
    pads = size // 2, size // 2
    padded = np.pad(x.astype(np.float64), ((0, 0), pads, pads, (0, 0)), constant_values=padding)
    return np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))[:, ::stride, ::stride]


def _spatial(size: int, stride: int) -> str:
    """Return attributes that divide a picture's size by the stride."""
    pads = ", ".join([str(size // 2)] * 4)
    return f"pad = array<i64: {pads}>, stride = array<i64: {stride}, {stride}>"


def resnet18(m: Network, x: Value, less: int) -> Value:
    x = m.max_pool_3(m.relu(m.conv(x, 64 // less, 7, 2)))
    for channels, stride in (64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1):
        channels //= less
        inner = m.conv(m.relu(m.conv(x, channels, 3, stride)), channels, 3)
        shortcut = x if x.data.shape == inner.data.shape else m.conv(x, channels, 1, stride)
        x = m.relu(m.add(inner, shortcut))
    return m.conv(m.mean_pool(x), 1000 // less, 1)


def mobilenet_v2(m: Network, x: Value, less: int) -> Value:
    x = m.relu6(m.conv(x, 32 // less, 3, 2))
    for expansion, channels, count, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for stride in [first] + [1] * (count - 1):
            width = x.data.shape[3] * expansion
            inner = x if expansion == 1 else m.relu6(m.conv(x, width, 1))
            inner = m.relu6(m.conv(inner, width, 3, stride, depthwise=True))
            inner = m.conv(inner, channels // less, 1)
            x = m.add(x, inner) if x.data.shape == inner.data.shape else inner
    x = m.relu6(m.conv(x, 1280 // less, 1))
    return m.conv(m.mean_pool(x), 1000 // less, 1)


def efficientnet_b0(m: Network, x: Value, less: int) -> Value:
    x = m.silu(m.conv(x, 32 // less, 3, 2))
    for expansion, channels, count, first, size in (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    ):  # fmt: skip
        for stride in [first] + [1] * (count - 1):
            width = x.data.shape[3] * expansion
            inner = x if expansion == 1 else m.silu(m.conv(x, width, 1))
            inner = m.silu(m.conv(inner, width, size, stride, depthwise=True))
            squeezed = m.silu(m.conv(m.mean_pool(inner), max(x.data.shape[3] // 4, 1), 1))
            inner = m.conv(m.mul(inner, m.sigmoid(m.conv(squeezed, width, 1))), channels // less, 1)
            x = m.add(x, inner) if x.data.shape == inner.data.shape else inner
    x = m.silu(m.conv(x, 1280 // less, 1))
    return m.conv(m.mean_pool(x), 1000 // less, 1)


def transformer(m: Network, x: Value, _less: int) -> Value:
    """Make an encoder layer with 12 heads and normalization after additions."""
    _, length, width = x.data.shape
    heads = 12

    def split(x: Value) -> Value:
        return m.reshape(m.transpose(m.reshape(x, 1, length, heads, width // heads), 0, 2, 1, 3),
                         heads, length, width // heads)  # fmt: skip

    query, key, value = (split(m.dense(x, width)) for _ in range(3))
    scale = m.const(np.full((1, 1, 1), 1 / math.sqrt(width // heads)))
    attention = m.softmax(m.mul(m.matmul(query, m.transpose(key, 0, 2, 1)), scale), 2)
    mixed = m.reshape(m.matmul(attention, value), 1, heads, length, width // heads)
    mixed = m.reshape(m.transpose(mixed, 0, 2, 1, 3), 1, length, width)
    x = m.layer_norm(m.add(x, m.dense(mixed, width)))
    return m.layer_norm(m.add(x, m.dense(m.gelu(m.dense(x, 4 * width)), width)))


def all_models() -> list[Models]:
    """Return the four networks. TOSA demands picture sizes that the strides divide."""
    picture, small = (1, 65, 65, 3), (1, 33, 33, 3)
    return [
        Models("resnet18", resnet18, picture, small),
        Models("mobilenet-v2", mobilenet_v2, picture, small),
        Models("efficientnet-b0", efficientnet_b0, picture, small),
        Models("transformer", transformer, (1, 64, 768), (1, 8, 96)),
    ]
