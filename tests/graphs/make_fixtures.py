"""Writes the models of ``fixtures/``: what ``model-converter`` makes of the MLIR beside each, and ``operators.spv``.

    python tests/graphs/make_fixtures.py [--converter model-converter] [--old-converter PATH]

operators.spv has every operator of TOSA 1.0 in all types that the converter takes; nothing runs it, it is what the
signatures are compared with. The converter is the PyPI package ai_ml_sdk_model_converter (0.11 made the committed
files); ``--old-converter`` is the one of version 0.7, which still writes the format 0.4.0 and makes ``conv_0_4.vgf``.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scenario_runner.graphs import read_vgf

FIXTURES = Path(__file__).parent / "fixtures"
FLOATS = ("f32", "f16", "bf16")
INTS = ("i8", "i16", "i32")
MOVED = ("i1", *INTS, *FLOATS, "f8E4M3FN", "f8E5M2")
SPATIAL = "pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 2, 1>, dilation = array<i64: 1, 2>"
VOLUME = "pad = array<i64: 1, 1, 1, 1, 1, 1>, stride = array<i64: 1, 2, 1>, dilation = array<i64: 1, 1, 2>"
POOL = "kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>"
CONVOLUTIONS = (
    ("f32", "f32", "f32", "f32"), ("f16", "f16", "f16", "f16"), ("f16", "f16", "f16", "f32"),
    ("bf16", "bf16", "bf16", "f32"), ("i8", "i8", "i32", "i32"), ("i8", "i4", "i32", "i32"),
    ("i16", "i8", "i48", "i48"), ("f8E4M3FN", "f8E4M3FN", "f16", "f16"), ("f8E5M2", "f8E5M2", "f16", "f16"),
)  # fmt: skip

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
        """An operator, whose results are outputs."""
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
        self, name: str, kinds: Sequence[str], shapes: Sequence[Sequence[int | str]], result: Sequence[int | str],
        attributes: str = "", gives: str = "",
    ) -> None:  # fmt: skip
        """An operator for each of the types, whose operands are all of that type."""
        for kind in kinds:
            operands = [self.input(shape, kind) for shape in shapes]
            self.add(name, operands, tensor(result, gives or kind), attributes.replace("KIND", kind))

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
    rows = (
        ("conv2d", (1, 9, 8, 3), (4, 3, 3, 3), 4, (1, 5, 6, 4), SPATIAL),
        ("conv3d", (1, 4, 9, 8, 3), (4, 3, 3, 3, 3), 4, (1, 4, 5, 6, 4), VOLUME),
        ("depthwise_conv2d", (1, 9, 8, 3), (3, 3, 3, 2), 6, (1, 5, 6, 6), SPATIAL),
        ("transpose_conv2d", (1, 8, 8, 3), (4, 3, 3, 3), 4, (1, 17, 10, 4),
         "out_pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 1>"),
    )  # fmt: skip
    for name, shape, weights, channels, result, attributes in rows:
        for kind, weight, out, accumulator in CONVOLUTIONS:
            operands = [
                g.input(shape, kind), g.const(weights, weight, 1), g.const(channels if "f" in kind else 1, out),
                g.const(1, kind), g.const(1, weight),
            ]  # fmt: skip
            g.add(name, operands, tensor(result, out), f"acc_type = {accumulator}, {attributes}")


def elementwise(g: Graph) -> None:
    """All that work number by number."""
    one, two = [(2, 3)], [(2, 3), (2, 1)]
    for name in ["ceil", "cos", "erf", "exp", "floor", "log", "reciprocal", "rsqrt", "sigmoid", "sin", "tanh"]:
        g.simple(name, FLOATS, one, (2, 3))
    g.simple("abs", (*FLOATS, "i32"), one, (2, 3))
    g.simple("clz", ["i32"], one, (2, 3))
    g.simple("bitwise_not", INTS, one, (2, 3))
    g.simple("logical_not", ["i1"], one, (2, 3))
    g.simple("clamp", FLOATS, one, (2, 3), "min_val = 0.0 : KIND, max_val = 6.0 : KIND")
    g.simple("clamp", ("i8", "i16"), one, (2, 3), "min_val = -3 : KIND, max_val = 7 : KIND")
    for name in ("add", "sub", "maximum", "minimum"):
        g.simple(name, (*FLOATS, "i32"), two, (2, 3))
    g.simple("pow", FLOATS, two, (2, 3))
    g.simple("intdiv", ["i32"], two, (2, 3))
    for name in ["bitwise_and", "bitwise_or", "bitwise_xor", "logical_left_shift", "logical_right_shift"]:
        g.simple(name, INTS, two, (2, 3))
    g.simple("arithmetic_right_shift", INTS, two, (2, 3), "round = true")
    for name in ("logical_and", "logical_or", "logical_xor"):
        g.simple(name, ["i1"], two, (2, 3))
    for name in ("equal", "greater", "greater_equal"):
        g.simple(name, (*FLOATS, "i32"), two, (2, 3), gives="i1")
    for kind in (*FLOATS, *INTS):
        g.add("mul", [g.input((2, 3), kind), g.input((1, 3), kind), g.const(1, "i8")],
              tensor((2, 3), "i32" if kind in INTS else kind))  # fmt: skip
        g.add("negate", [g.input((2, 3), kind), g.const(1, kind), g.const(1, kind)], tensor((2, 3), kind))
    for kind in ("i1", *INTS, *FLOATS):
        operands = [g.input((2, 1), "i1"), g.input((2, 3), kind), g.input((1, 3), kind)]
        g.add("select", operands, tensor((2, 3), kind))
    g.add("table", [g.input((2, 3), "i8"), g.const(256, "i8", 1)], tensor((2, 3), "i8"))
    g.add("table", [g.input((2, 3), "i16"), g.const(513, "i16", 1)], tensor((2, 3), "i32"))


def conversions(g: Graph) -> None:
    """CAST and RESCALE."""
    pairs = [("i1", kind) for kind in INTS] + [(kind, "i1") for kind in INTS]
    pairs += [(kind, other) for kind in INTS for other in (*INTS, *FLOATS) if kind != other]
    pairs += [(kind, other) for kind in FLOATS for other in INTS]
    pairs += [("f32", "f16"), ("f16", "f32"), ("f32", "bf16"), ("bf16", "f32")]
    for kind in ("f8E4M3FN", "f8E5M2"):
        pairs += [(kind, other) for other in FLOATS] + [(other, kind) for other in FLOATS]
    for kind, other in pairs:
        g.add("cast", [g.input((2, 3), kind)], tensor((2, 3), other))
    rows = [(kind, other, True, "", count) for kind in INTS for other in INTS for count in (1, 3)]
    rows += [(kind, other, False, "", 1) for kind in (*INTS, "i48") for other in INTS]
    rows += [("i8", "i8", True, "input", 1), ("i16", "i8", True, "output", 1), ("i8", "i16", True, "input", 1)]
    for kind, other, wide, unsigned, count in rows:
        operands = [
            g.input((2, 3), kind), g.const(count, "i32" if wide else "i16", 16384),
            g.const(count, "i8", 30 if wide else 14), g.const(1, kind), g.const(1, other),
        ]  # fmt: skip
        flags = ", ".join(f"{each}_unsigned = {str(each == unsigned).lower()}" for each in ("input", "output"))
        g.add("rescale", operands, tensor((2, 3), other), (
            f"scale32 = {str(wide).lower()}, rounding_mode = SINGLE_ROUND,"
            f" per_channel = {str(count > 1).lower()}, {flags}"
        ))  # fmt: skip


def moves(g: Graph) -> None:
    """Add operators that move elements without looking at them."""
    g.simple("concat", MOVED, [(2, 3), (2, 4), (2, 1)], (2, 8), "axis = 1 : i32")
    g.simple("reverse", MOVED, [(2, 3)], (2, 3), "axis = 1 : i32")
    g.simple("transpose", MOVED, [(2, 3, 4)], (4, 2, 3), "perms = array<i32: 2, 0, 1>")
    for kind in MOVED:
        g.add("pad", [g.input((2, 3), kind), g.shape(1, 1, 0, 2), g.const(1, kind)], tensor((4, 5), kind))
        g.add("reshape", [g.input((2, 3, 4), kind), g.shape(6, 4)], tensor((6, 4), kind))
        g.add("slice", [g.input((4, 6), kind), g.shape(1, 2), g.shape(2, 3)], tensor((2, 3), kind))
        g.add("tile", [g.input((2, 3), kind), g.shape(2, 3)], tensor((4, 9), kind))
        if kind != "i1":
            values, indices = g.input((2, 5, 4), kind), g.input((2, 3), "i32")
            g.add("gather", [values, indices], tensor((2, 3, 4), kind))
            g.add("scatter", [values, indices, g.input((2, 3, 4), kind)], tensor((2, 5, 4), kind))


def others(g: Graph) -> None:
    """Pools, reductions, products, transforms."""
    for kind in ("i8", "i16", *FLOATS, "f8E4M3FN", "f8E5M2"):
        out = "f16" if kind.startswith("f8") else "i32" if kind in INTS else "f16" if kind == "f16" else "f32"
        operands = [g.input((1, 8, 8, 3), kind), g.const(1, kind), g.const(1, kind)]
        g.add("avg_pool2d", operands, tensor((1, 4, 4, 3), kind), f"{POOL}, acc_type = {out}")
        g.simple("max_pool2d", [kind], [(1, 8, 8, 3)], (1, 4, 4, 3), f"{POOL}, nan_mode = IGNORE")
        g.simple("argmax", [kind], [(2, 3, 4)], (2, 4), "axis = 1 : i32", gives="i32")
        for product in {"i8": ("i32",), "i16": ("i48",), "f16": ("f16", "f32")}.get(kind, (out,)):
            operands = [g.input((2, 3, 4), kind), g.input((2, 4, 5), kind), g.const(1, kind), g.const(1, kind)]
            g.add("matmul", operands, tensor((2, 3, 5), product))
    for name in ("reduce_all", "reduce_any"):
        g.simple(name, ["i1"], [(2, 3)], (2, 1), "axis = 1 : i32")
    for name in ("reduce_max", "reduce_min"):
        g.simple(name, (*INTS, *FLOATS), [(2, 3)], (2, 1), "axis = 1 : i32")
    g.simple("reduce_product", FLOATS, [(2, 3)], (1, 3), "axis = 0 : i32")
    g.simple("reduce_sum", (*FLOATS, "i32"), [(2, 3)], (1, 3), "axis = 0 : i32")
    rows = [(kind, kind, "NEAREST_NEIGHBOR") for kind in ("i8", "i16", *FLOATS)]
    rows += [(kind, kind, "BILINEAR") for kind in FLOATS] + [("i8", "i32", "BILINEAR"), ("i16", "i48", "BILINEAR")]
    for kind, out, mode in rows:
        operands = [g.input((1, 4, 4, 3), kind), g.shape(4, 2, 4, 2), g.shape(0, 0), g.shape(0, 0)]
        g.add("resize", operands, tensor((1, 7, 7, 3), out), f"mode = {mode}")
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
    for make in (convolutions, elementwise, conversions, moves, others):
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
