"""Writes the models of ``fixtures/``: what ``model-converter`` makes of the MLIR beside each, and ``operators.spv``.

    python tests/ml/make_fixtures.py [--converter model-converter] [--old-converter PATH]

operators.spv has every operator of TOSA 1.0; nothing runs it, it is what the rules of shapes are compared with. The
converter is the PyPI package ai_ml_sdk_model_converter (0.11 made the committed files); ``--old-converter`` is the one
of version 0.7, which still writes the format 0.4.0 and makes ``conv_0_4.vgf``.
"""

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scenario_runner.ml.vgf_file import read_vgf

FIXTURES = Path(__file__).parent / "fixtures"
SPATIAL = "pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 2, 1>, dilation = array<i64: 1, 2>"
VOLUME = "pad = array<i64: 1, 1, 1, 1, 1, 1>, stride = array<i64: 1, 2, 1>, dilation = array<i64: 1, 1, 2>"
POOL = "kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>"
Value = tuple[str, str]


def tensor(shape: Sequence[int | str], kind: str) -> str:
    """A type as MLIR writes it."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{kind}>"


class Graph:
    """Collects operators, each with inputs and outputs of its own."""

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.lines: list[str] = []

    def input(self, shape: Sequence[int | str], kind: str) -> Value:
        """A new input of the graph."""
        self.inputs.append((f"%a{len(self.inputs)}", tensor(shape, kind)))
        return self.inputs[-1]

    def const(self, shape: int | Sequence[int | str], kind: str, value: int = 0) -> Value:
        """A constant; of one dimension where its size is a number."""
        number = repr(float(value)) if "f" in kind else ("true" if value else "false") if kind == "i1" else str(value)
        type = tensor((shape,) if isinstance(shape, int) else shape, kind)
        return self._line(f'"tosa.const"() {{values = dense<{number}> : {type}}} : () ->', type)

    def shape(self, *sizes: int) -> Value:
        """A shape."""
        kind = f"!tosa.shape<{len(sizes)}>"
        values = f"dense<[{', '.join(map(str, sizes))}]> : tensor<{len(sizes)}xindex>"
        return self._line(f"tosa.const_shape {{values = {values}}} : () ->", kind)

    def add(self, name: str, operands: Sequence[Value], results: str | Sequence[str], attributes: str = "") -> None:
        """Add an operator with results as outputs."""
        results = (results,) if isinstance(results, str) else results
        names = [f"%r{len(self.outputs) + i}" for i in range(len(results))]
        self.outputs += zip(names, results, strict=True)
        braces = f" {{{attributes}}}" if attributes else ""
        gives = results[0] if len(results) == 1 else f"({', '.join(results)})"
        self.lines.append(
            f"{', '.join(names)} = tosa.{name} {', '.join(one for one, _ in operands)}{braces} :"
            f" ({', '.join(kind for _, kind in operands)}) -> {gives}"
        )

    def simple(
        self, name: str, shapes: Sequence[Sequence[int | str]], result: Sequence[int | str],
        attributes: str = "", kind: str = "f32", gives: str = "",
    ) -> None:  # fmt: skip
        """Add an operator with operands of one type."""
        self.add(name, [self.input(shape, kind) for shape in shapes], tensor(result, gives or kind), attributes)

    def text(self) -> str:
        """The model."""
        takes = ", ".join(f"{name}: {kind}" for name, kind in self.inputs)
        values, kinds = (", ".join(each) for each in zip(*self.outputs, strict=True))
        inputs, outputs = (",".join(name[1:] for name, _ in values) for values in (self.inputs, self.outputs))
        names = f'tf.entry_function = {{inputs = "{inputs}", outputs = "{outputs}"}}'
        body = "\n".join([*self.lines, f"return {values} : {kinds}"])
        return f"func.func @main({takes}) -> ({kinds}) attributes {{{names}}} {{\n{body}\n}}\n"

    def _line(self, text: str, kind: str) -> Value:
        name = f"%c{len(self.lines)}"
        self.lines.append(f"{name} = {text} {kind}")
        return name, kind


def convolutions(g: Graph) -> None:
    """The four of them."""
    for name, shape, weights, channels, result, attributes in (
        ("conv2d", (1, 9, 8, 3), (4, 3, 3, 3), 4, (1, 5, 6, 4), SPATIAL),
        ("conv3d", (1, 4, 9, 8, 3), (4, 3, 3, 3, 3), 4, (1, 4, 5, 6, 4), VOLUME),
        ("depthwise_conv2d", (1, 9, 8, 3), (3, 3, 3, 2), 6, (1, 5, 6, 6), SPATIAL),
        ("transpose_conv2d", (1, 8, 8, 3), (4, 3, 3, 3), 4, (1, 17, 10, 4),
         "out_pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 1>"),
    ):  # fmt: skip
        for kind, out, bias in (("f32", "f32", channels), ("i8", "i32", 1)):
            operands = [g.input(shape, kind), g.const(weights, kind, 1), g.const(bias, out)]
            operands += [g.const(1, kind), g.const(1, kind)]
            g.add(name, operands, tensor(result, out), f"acc_type = {out}, {attributes}")


def elementwise(g: Graph) -> None:
    """All elementwise operators, and the operators that change a type."""
    one, two = [(2, 3)], [(2, 3), (2, 1)]
    for name in ["abs", "ceil", "cos", "erf", "exp", "floor", "log", "reciprocal", "rsqrt", "sigmoid", "sin", "tanh"]:
        g.simple(name, one, (2, 3))
    for name, kind in (("clz", "i32"), ("bitwise_not", "i8"), ("logical_not", "i1")):
        g.simple(name, one, (2, 3), kind=kind)
    g.simple("clamp", one, (2, 3), "min_val = 0.0 : f32, max_val = 6.0 : f32")
    for name in ("add", "sub", "maximum", "minimum", "pow"):
        g.simple(name, two, (2, 3))
    for name in ["intdiv", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_left_shift", "logical_right_shift"]:
        g.simple(name, two, (2, 3), kind="i32")
    g.simple("arithmetic_right_shift", two, (2, 3), "round = true", kind="i8")
    for name in ("logical_and", "logical_or", "logical_xor"):
        g.simple(name, two, (2, 3), kind="i1")
    for name in ("equal", "greater", "greater_equal"):
        g.simple(name, two, (2, 3), gives="i1")
    g.add("mul", [g.input((2, 3), "i8"), g.input((1, 3), "i8"), g.const(1, "i8")], tensor((2, 3), "i32"))
    g.add("negate", [g.input((2, 3), "i8"), g.const(1, "i8"), g.const(1, "i8")], tensor((2, 3), "i8"))
    g.add("select", [g.input((2, 1), "i1"), g.input((2, 3), "f32"), g.input((1, 3), "f32")], tensor((2, 3), "f32"))
    g.add("table", [g.input((2, 3), "i8"), g.const(256, "i8", 1)], tensor((2, 3), "i8"))
    g.add("cast", [g.input((2, 3), "f32")], tensor((2, 3), "i8"))
    flags = "scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false"
    operands = [g.input((2, 3), "i8"), g.const(3, "i32", 16384), g.const(3, "i8", 30), g.const(1, "i8")]
    g.add("rescale", [*operands, g.const(1, "i8")], tensor((2, 3), "i8"), f"{flags}, output_unsigned = false")


def moves(g: Graph) -> None:
    """Add operators that move elements without looking at them."""
    g.simple("concat", [(2, 3), (2, 4), (2, 1)], (2, 8), "axis = 1 : i32")
    g.simple("reverse", [(2, 3)], (2, 3), "axis = 1 : i32")
    g.simple("transpose", [(2, 3, 4)], (4, 2, 3), "perms = array<i32: 2, 0, 1>")
    g.add("pad", [g.input((2, 3), "f32"), g.shape(1, 1, 0, 2), g.const(1, "f32")], tensor((4, 5), "f32"))
    g.add("reshape", [g.input((2, 3, 4), "f32"), g.shape(6, 4)], tensor((6, 4), "f32"))
    g.add("slice", [g.input((4, 6), "f32"), g.shape(1, 2), g.shape(2, 3)], tensor((2, 3), "f32"))
    g.add("tile", [g.input((2, 3), "f32"), g.shape(2, 3)], tensor((4, 9), "f32"))
    values, indices = g.input((2, 5, 4), "f32"), g.input((2, 3), "i32")
    g.add("gather", [values, indices], tensor((2, 3, 4), "f32"))
    g.add("scatter", [values, indices, g.input((2, 3, 4), "f32")], tensor((2, 5, 4), "f32"))


def others(g: Graph) -> None:
    """Pools, reductions, products, transforms."""
    operands = [g.input((1, 8, 8, 3), "i8"), g.const(1, "i8"), g.const(1, "i8")]
    g.add("avg_pool2d", operands, tensor((1, 4, 4, 3), "i8"), f"{POOL}, acc_type = i32")
    g.simple("max_pool2d", [(1, 8, 8, 3)], (1, 4, 4, 3), f"{POOL}, nan_mode = IGNORE")
    g.simple("argmax", [(2, 3, 4)], (2, 4), "axis = 1 : i32", gives="i32")
    operands = [g.input((2, 3, 4), "i8"), g.input((2, 4, 5), "i8"), g.const(1, "i8"), g.const(1, "i8")]
    g.add("matmul", operands, tensor((2, 3, 5), "i32"))
    for name in ("all", "any", "max", "min", "product", "sum"):
        g.simple(f"reduce_{name}", [(2, 3)], (2, 1), "axis = 1 : i32", kind="i1" if name in ("all", "any") else "f32")
    operands = [g.input((1, 4, 4, 3), "f32"), g.shape(4, 2, 4, 2), g.shape(0, 0), g.shape(0, 0)]
    g.add("resize", operands, tensor((1, 7, 7, 3), "f32"), "mode = BILINEAR")
    plane = tensor((2, 4, 8), "f32")
    flags = "inverse = false, local_bound = false"
    g.add("fft2d", [g.input((2, 4, 8), "f32"), g.input((2, 4, 8), "f32")], [plane, plane], flags)
    g.add("rfft2d", [g.input((2, 4, 8), "f32")], [tensor((2, 4, 5), "f32")] * 2, "local_bound = true")


def main() -> None:
    """Write the fixtures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--converter", default="model-converter")
    parser.add_argument("--old-converter")
    arguments = parser.parse_args()

    def convert(source: Path, made: Path, converter: str = arguments.converter) -> None:
        subprocess.run([converter, "-i", source, "-o", made], check=True, stdout=subprocess.DEVNULL)

    for source in FIXTURES.glob("*.mlir"):
        convert(source, source.with_suffix(".vgf"))
    if arguments.old_converter:
        convert(FIXTURES / "conv.mlir", FIXTURES / "conv_0_4.vgf", arguments.old_converter)
    graph = Graph()
    for make in (convolutions, elementwise, moves, others):
        make(graph)
    with tempfile.TemporaryDirectory() as folder:
        source, model = Path(folder) / "operators.mlir", Path(folder) / "operators.vgf"
        source.write_text(graph.text())
        convert(source, model)
        code = read_vgf(model).modules[0].code
    assert isinstance(code, bytes)
    (FIXTURES / "operators.spv").write_bytes(code)


if __name__ == "__main__":
    main()
