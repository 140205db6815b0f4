"""Layers by TOSA's rules: each operator alone, with the inputs that the device gave it."""

import json
from pathlib import Path

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.tosa.layer_comparison import LayeredModel
from scenario_runner.tosa.model_layers import cut
from tests.left_out import TOSA_TOOLS, VGF_LIBRARY, module_of, needs
from tests.program import Program

judge_by_tosa = module_of(TOSA_TOOLS, "scenario_runner.tosa.layer_rules").judge_by_tosa

pytestmark = needs(VGF_LIBRARY)

SIZES = (("a", "4x8x8x3"), ("b", "4x8x8x6"), ("c", "4x4x4x6"), ("d", "4x1x4x6"), ("e", "4x2x8x6"))
RULES = {
    "conv": "DOT_PRODUCT", "gate": "ABS_ERROR", "scaled": "ULP", "pooled": "DOT_PRODUCT", "sum": "DOT_PRODUCT",
    "product": "REDUCE_PRODUCT", "both": "ULP", "larger": "MAX_RELATIVE", "cut": "EXACT",
}  # fmt: skip


def model(type: str, last_bias: float = 0.5) -> str:
    """Return MLIR with an operator of each kind of rule in a chain; ``last_bias`` is the bias of the last channel."""
    t = {name: f"tensor<{shape}x{type}>" for name, shape in SIZES}
    lines = [f"func.func @main(%x: {t['a']}) -> {t['e']} {{"]
    weights = numpy.random.default_rng(1).uniform(-1, 1, 6 * 3 * 3 * 3).astype("f4").reshape(6, 3, 3, 3)
    for name, value, shape in (
        ("w", weights.tolist(), "6x3x3x3"),
        ("bias", [0.5] * 5 + [last_bias], "6"),
        ("z", 0.0, "1"),
    ):
        kind = f"tensor<{shape}x{type}>"
        lines.append(f'%{name} = "tosa.const"() {{values = dense<{value}> : {kind}}} : () -> {kind}')
    for name, value, length in (("s", "[2, 1, 2, 1]", 4), ("o", "[0, 0]", 2), ("r", "[1, 1]", 2)):
        kind = f"!tosa.shape<{length}>"
        lines.append(f"%{name} = tosa.const_shape {{values = dense<{value}> : tensor<{length}xindex>}} : () -> {kind}")
    lines.append('%sh = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>')
    one = f"tensor<1x{type}>"
    shapes = "!tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>"
    window = "kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, acc_type = f32"
    same = "pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, acc_type = f32"
    lines += [
        f"%0 = tosa.conv2d %x, %w, %bias, %z, %z {{{same}}} : "
        f'({t["a"]}, tensor<6x3x3x3x{type}>, tensor<6x{type}>, {one}, {one}) -> {t["b"]} loc("conv")',
        f'%1 = tosa.sigmoid %0 : ({t["b"]}) -> {t["b"]} loc("gate")',
        f'%2 = tosa.mul %0, %1, %sh : ({t["b"]}, {t["b"]}, tensor<1xi8>) -> {t["b"]} loc("scaled")',
        f'%3 = tosa.avg_pool2d %2, %z, %z {{{window}}} : ({t["b"]}, {one}, {one}) -> {t["c"]} loc("pooled")',
        f'%4 = tosa.reduce_sum %3 {{axis = 1 : i32}} : ({t["c"]}) -> {t["d"]} loc("sum")',
        f'%5 = tosa.reduce_product %3 {{axis = 1 : i32}} : ({t["c"]}) -> {t["d"]} loc("product")',
        f'%6 = tosa.add %4, %5 : ({t["d"]}, {t["d"]}) -> {t["d"]} loc("both")',
        f'%7 = tosa.resize %6, %s, %o, %r {{mode = BILINEAR}} : ({t["d"]}, {shapes}) -> {t["e"]} loc("larger")',
        f'%8 = tosa.clamp %7 {{min_val = -1.0 : {type}, max_val = 1.0 : {type}}} : ({t["e"]}) -> {t["e"]} loc("cut")',
        f"return %8 : {t['e']}\n}}",
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("type", ["f32", pytest.param("f16", marks=pytest.mark.heavy)])
def test_one_wrong_operator(tmp_path: Path, type: str) -> None:
    """Each operator is judged by the mode of its own tests; one that reads wrong results may be right."""
    (tmp_path / "model.mlir").write_text(model(type))
    (tmp_path / "wrong.mlir").write_text(model(type, 0.75))
    right, wrong = (LayeredModel(str(tmp_path / name)) for name in ("model.mlir", "wrong.mlir"))
    for one in (right, wrong):
        one.take_inputs([], seed=3)
    with Runner() as runner:
        actual = wrong.run(runner)
    conv, *others = judge_by_tosa(right, actual, right.layers)
    assert (conv.verdict, conv.wrong) == ("beyond", 4 * 8 * 8)
    assert conv.error == pytest.approx(0.25, rel=0.01)
    assert {json.loads(index)[3] for index, *_ in conv.worst} == {5}
    assert conv.message.startswith("256 of 1536 elements (16.7 %) are wrong by TOSA's mode DOT_PRODUCT, the worst at [")
    assert {layer.verdict for layer in others} == {"within"}
    assert {layer.layer.name: layer.expected for layer in (conv, *others)} == RULES


def test_some_layers(program: Program, tmp_path: Path) -> None:
    """Layers outside of --layers still feed others. A tolerance, or no matching layer, is an error."""
    (tmp_path / "model.mlir").write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        '%0 = tosa.abs %x : (tensor<4xf32>) -> tensor<4xf32> loc("positive")\n'
        '%1 = tosa.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32> loc("gate")\n'
        '%2 = tosa.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("sum")\n'
        "return %2 : tensor<4xf32>\n}"
    )
    words = ("compare-layers", "model.mlir", "--expected", "tosa")
    ended = program.succeed(*words, "--layers", "s*", "--json")
    layers = {layer["layer"]: (layer["expected"], layer["verdict"]) for layer in json.loads(ended.out)["layers"]}
    assert layers == {"gate": ("ABS_ERROR", "within"), "sum": ("ULP", "within")}
    ended = program(*words, "--layers", "relu")
    assert (ended.code, ended.err.splitlines()[0]) == (2, "error: model.mlir: no layer matches 'relu'")
    ended = program(*words, "--rtol", "0.1")
    assert (ended.code, ended.err.splitlines()) == (2, [
        "error: --expected tosa: TOSA's rules set the tolerance",
        "  help: leave out --atol, --rtol and --ulp, or use --expected reference",
    ])  # fmt: skip


def test_a_custom_operator(program: Program, checkout: Path) -> None:
    """A custom operator has no rule; the others are judged, also one that reads its result. Without others nothing is
    within a tolerance."""
    words = ("compare-layers", checkout / "tests/tosa/fixtures/mixed.mlir", "--expected", "tosa")
    ended = program.succeed(*words)
    assert "mixed.mlir: 3 layers, 2 compared\n" in ended.out
    assert "\nnot compared: line_4: TOSA has no rule for custom operators\n" in ended.out
    assert [line.split()[-2:] for line in ended.out.splitlines()[4:7]] == [
        ["within", "ULP"],
        ["-", "-"],
        ["within", "ULP"],
    ]
    ended = program.fail(2, *words, "--layers", "custom")
    reason = "TOSA's rules can judge none of the layers: line_4: TOSA has no rule for custom operators\n"
    assert reason in ended.err


def test_narrow_types(program: Program, tmp_path: Path) -> None:
    """The reference model reads inputs of types that NumPy lacks."""
    types = [f"tensor<3x4x{type}>" for type in ("f8E4M3FN", "f8E5M2", "bf16")]
    arguments = ", ".join(f"%x{number}: {type}" for number, type in enumerate(types))
    lines = [f"%{number} = tosa.reverse %x{number} {{axis = 1 : i32}} : ({t}) -> {t}" for number, t in enumerate(types)]
    lines.append(f"return %0, %1, %2 : {', '.join(types)}")
    text = "\n".join([f"func.func @main({arguments}) -> ({', '.join(types)}) {{", *lines, "}"])
    (tmp_path / "model.mlir").write_text(text)
    ended = program.succeed("compare-layers", "model.mlir", "--expected", "tosa", "--json")
    layers = json.loads(ended.out)["layers"]
    assert [(layer["expected"], layer["verdict"]) for layer in layers] == [("EXACT", "within")] * 3


def test_a_layer_without_the_constants_of_others(tmp_path: Path) -> None:
    """The reference model reads only an operator's own constants."""
    sizes = []
    for count in (8, 100_000):
        large, one = f"tensor<{count}xf32>", "tensor<1xf32>"
        (tmp_path / "model.mlir").write_text(
            f"func.func @main(%x: {one}) -> {large} {{\n"
            f'%a = "tosa.const"() {{values = dense<0.5> : {one}}} : () -> {one}\n'
            f'%b = "tosa.const"() {{values = dense<0.25> : {large}}} : () -> {large}\n'
            f'%0 = tosa.add %x, %a : ({one}, {one}) -> {one} loc("small")\n'
            f'%1 = tosa.add %0, %b : ({one}, {large}) -> {large} loc("large")\n'
            f"return %1 : {large}\n}}"
        )
        model = LayeredModel(str(tmp_path / "model.mlir"))
        model.take_inputs([])
        known = {*model.inputs, *(layer.tensor for layer in model.layers)}
        sizes.append({layer.name: len(cut(model.content, layer.tensor, known)[0]) for layer in model.layers})
    few, many = sizes
    assert many["small"] == few["small"] < 2000
    assert many["large"] - few["large"] == 4 * (100_000 - 8)
