"""``scenario-runner compare-layers``: the first wrong layer, against arrays, the reference model or a device."""

import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy
import pytest

from scenario_runner.tosa.model_converter import find_converter
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Program

pytestmark = needs(VGF_LIBRARY)

X = numpy.random.default_rng(1).uniform(-1, 1, (1, 4, 3, 8)).astype("f4")
WEIGHTS = [numpy.random.default_rng(seed).uniform(-0.5, 0.5, (8, 8)).astype("f4") for seed in (2, 3, 4)]
TYPE = "tensor<1x4x3x8xf32>"
NAMES = ["first", "squashed", "second", "third", "sum"]


def model(weights: list[numpy.ndarray] = WEIGHTS, type: str = "f32") -> str:
    """Three 1 x 1 convolutions with tanh behind the first, and the sum of the last and of tanh, as MLIR."""
    value = f"tensor<1x4x3x8x{type}>"
    lines = [f"func.func @main(%x: {value}) -> {value} {{"]
    for name, shape in (("z", "1"), ("b", "8")):
        lines.append(
            f'%{name} = "tosa.const"() {{values = dense<0.0> : tensor<{shape}x{type}>}} : () -> tensor<{shape}x{type}>'
        )
    for number, array in enumerate(weights):
        data = array if type == "f32" else array.astype(ml_dtypes.bfloat16)
        kind = f"tensor<8x1x1x8x{type}>"
        lines.append(
            f'%w{number} = "tosa.const"() {{values = dense<"0x{data.tobytes().hex()}"> : {kind}}} : () -> {kind}'
        )

    def convolution(name: str, number: int, x: str) -> str:
        types = f"{value}, tensor<8x1x1x8x{type}>, tensor<8x{type}>, tensor<1x{type}>, tensor<1x{type}>"
        attributes = (
            "acc_type = f32, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>"
        )
        return (
            f'%{name} = tosa.conv2d {x}, %w{number}, %b, %z, %z {{{attributes}}} : ({types}) -> {value} loc("{name}")'
        )

    lines += [
        convolution("first", 0, "%x"),
        f'%t = tosa.tanh %first : ({value}) -> {value} loc("squashed")',
        convolution("second", 1, "%t"),
        convolution("third", 2, "%second"),
        f'%sum = tosa.add %third, %t : ({value}, {value}) -> {value} loc("sum")',
        f"return %sum : {value}\n}}",
    ]
    return "\n".join(lines)


def activations() -> dict[str, numpy.ndarray]:
    """The results of the undamaged model, in double precision."""
    first = X.astype("f8") @ WEIGHTS[0].T
    squashed = numpy.tanh(first)
    second = squashed @ WEIGHTS[1].T
    third = second @ WEIGHTS[2].T
    arrays = (first, squashed, second, third, third + squashed)
    return {name: array.astype("f4") for name, array in zip(NAMES, arrays, strict=True)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the model, an input and the expected results of the layers."""
    (tmp_path / "model.mlir").write_text(model())
    numpy.save(tmp_path / "x.npy", X)
    numpy.savez(tmp_path / "expected.npz", **activations())
    return tmp_path


COMMAND = ("compare-layers", "model.mlir", "--input", "0=x.npy", "--expected")


def layers(output: str) -> dict[str, dict]:
    """The layers of the JSON by name."""
    return {layer["layer"]: layer for layer in json.loads(output)["layers"]}


def test_all_layers_are_right(folder: Path, program: Program) -> None:
    """Layers are compared in the order of the operators, each under the name of its location."""
    ended = program.succeed(*COMMAND, "expected.npz")
    lines = ended.out.splitlines()
    assert lines[0] == "model.mlir: 5 layers, 5 compared"
    assert [line.split()[:3] for line in lines[2:7]] == [
        [name, operator, "1x4x3x8xf32"]
        for name, operator in zip(NAMES, ("CONV2D", "TANH", "CONV2D", "CONV2D", "ADD"), strict=True)
    ]
    assert lines[7:] == ["all compared layers are within the tolerance"]


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_one_damaged_weight(folder: Path, program: Program, damaged: int) -> None:
    """The layer that reads the weight is the first beyond the tolerance, with its worst elements and a picture."""
    weights = [array.copy() for array in WEIGHTS]
    weights[damaged][5, 2] += 0.25
    (folder / "model.mlir").write_text(model(weights))
    wrong = ("first", "second", "third")[damaged]
    source, verdict = (("TosaInput_0", "an input of the model"), ("squashed", "within the tolerance"),
                       ("second", "within the tolerance"))[damaged]  # fmt: skip
    ended = program(*COMMAND, "expected.npz", "--html", "page.html", exit_code=1)
    lines = ended.out.splitlines()
    at = lines.index(f"{wrong} (CONV2D) is the first layer beyond the tolerance")
    assert lines[at + 1] == f"  input {source}: {verdict}"
    index = numpy.array([json.loads(line[: line.index("]") + 1]) for line in lines[at + 3 :]])
    assert index.shape == (8, 4)
    assert (index[:, 3] == 5).all()  # the channel that the weight is of
    page = (folder / "page.html").read_text()
    assert lines[at] in page
    assert 'src="data:image/png;base64,' in page


def test_a_folder_of_arrays_with_channels_first(folder: Path, program: Program) -> None:
    """Case and punctuation of names do not count, channels may be in the second place, and layers may be left out."""
    (folder / "arrays").mkdir()
    for name, array in list(activations().items())[1:3]:
        numpy.save(folder / "arrays" / f"Tosa.{name.upper()}.npy", numpy.moveaxis(array, -1, 1))
    numpy.save(folder / "arrays" / "other.npy", X)
    weights = [WEIGHTS[0], WEIGHTS[1] * 2, WEIGHTS[2]]
    (folder / "model.mlir").write_text(model(weights))
    ended = program(*COMMAND, "arrays", "--json", exit_code=1)
    assert {name: layer["verdict"] for name, layer in layers(ended.out).items()} == {
        "first": "-", "squashed": "within", "second": "beyond", "third": "-", "sum": "-",
    }  # fmt: skip
    assert json.loads(ended.out)["unmatched"] == ["other"]


def test_a_tolerance(folder: Path, program: Program) -> None:
    """Errors are absolute and relative to the greatest magnitude; --atol replaces the tolerance of the type."""
    arrays = activations()
    arrays["second"][0, 1, 2, 3] += 0.01
    numpy.savez(folder / "expected.npz", **arrays)
    ended = program(*COMMAND, "expected.npz", "--json")
    second = layers(ended.out)["second"]
    assert (ended.code, second["wrong"], second["worst"][0][0]) == (1, 1, "[0, 1, 2, 3]")
    assert second["error"] == pytest.approx(0.01, rel=1e-3)
    assert second["relative"] == pytest.approx(0.01 / abs(arrays["second"]).max(), rel=1e-3)
    assert program(*COMMAND, "expected.npz", "--atol", "0.011").code == 0


@pytest.mark.parametrize("type", ["f32", "bf16"])
def test_the_reference_model(folder: Path, program: Program, type: str) -> None:
    """TOSA's reference model computes the same, from random numbers that a seed and a range name."""
    (folder / "model.mlir").write_text(model(type=type))
    ended = program.succeed("compare-layers", "model.mlir", "--expected", "reference", "--seed", "3", "--range", "-2:1")
    lines = ended.out.splitlines()
    assert lines[:2] == ["model.mlir: 5 layers, 5 compared", "random inputs of the seed 3: TosaInput_0"]


def test_names_that_are_alike(folder: Path, program: Program) -> None:
    """All layers have names of their own, also where numbering makes one that is there, and are compared by these."""
    names = ["a", "a", "a_2", "A.2", "TosaInput_0", "a-2"]
    type = "tensor<2xf32>"
    operators = ("abs", "exp", "tanh", "negate", "ceil", "floor")
    lines = [f"func.func @main(%x: {type}) -> {type} {{"]
    for number, (name, operator) in enumerate(zip(names, operators, strict=True)):
        source = f"%{number - 1}" if number else "%x"
        if operator == "negate":
            lines.append('%z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>')
            more, types = ", %z, %z", f"{type}, tensor<1xf32>, tensor<1xf32>"
        else:
            more, types = "", type
        lines.append(f'%{number} = tosa.{operator} {source}{more} : ({types}) -> {type} loc("{name}")')
    (folder / "model.mlir").write_text("\n".join([*lines, f"return %5 : {type}\n}}"]))
    words = ("compare-layers", "model.mlir", "--json", "--range", "-1e300:1e-300", "--expected")
    ended = program.succeed(*words, "reference")
    compared = {layer["layer"]: layer["expected"] for layer in json.loads(ended.out)["layers"]}
    assert list(compared) == ["a", "a_2", "a_2_2", "A.2", "TosaInput_0_2", "a-2"]
    assert all(name == expected for name, expected in compared.items())


def test_a_layer_of_zeros(folder: Path, program: Program) -> None:
    """A layer with expected values of 0 uses a tolerance relative to 1."""
    arrays = {name: numpy.zeros_like(array) for name, array in activations().items()}
    (folder / "model.mlir").write_text(model([array * 1e-5 for array in WEIGHTS[:1]] + WEIGHTS[1:]))
    numpy.savez(folder / "expected.npz", first=arrays["first"])
    ended = program(*COMMAND, "expected.npz", "--json")
    first = layers(ended.out)["first"]
    assert (ended.code, first["verdict"]) == (0, "within")
    assert 0 < first["error"] == first["relative"] < 1e-4


def test_another_device(folder: Path, program: Program) -> None:
    """The layers of a pattern, of operators as well, on two devices (here one)."""
    ended = program(*COMMAND, "device:0", "--layers", "conv*", "--json")
    found = layers(ended.out)
    assert (ended.code, list(found)) == (0, ["first", "second", "third", "sum"])  # the model's own output stays
    assert found["second"]["inputs"] == ["squashed"]


def test_names_of_a_framework(folder: Path, program: Program) -> None:
    """An array belongs to the last layer of its type and shape that its node or module was lowered to."""
    described = {
        "aten_info": {"node_name": "convolution_1"},
        "nn_module_stack": {"a": ["block", "Block"], "b": ["block.conv", "Conv2d"]},
    }
    location = json.dumps(described).encode()
    name = "y" * (len(location) - len('loc("")'))  # its place in the file is taken by the other location
    (folder / "model.mlir").write_text(model().replace('loc("first")', f'loc("{name}")').replace("squashed", name))
    options = ["--tosa-flatbuffer", "--emit-debug-info", "-i", folder / "model.mlir", "-o", folder / "model.tosa"]
    subprocess.run([str(find_converter()), *options], capture_output=True, check=True)
    content = (folder / "model.tosa").read_bytes()
    assert content.count(name.encode()) == 2
    (folder / "model.tosa").write_bytes(content.replace(f'loc("{name}")'.encode(), location))
    numpy.savez(folder / "expected.npz", **{"block.conv": activations()["squashed"], "block": X, "relu": X})
    ended = program("compare-layers", "model.tosa", *COMMAND[2:], "expected.npz", "--json")
    result = json.loads(ended.out)
    assert (ended.code, result["unmatched"]) == (0, ["block", "relu"])
    assert [layer["expected"] for layer in result["layers"]] == [None, "block.conv", None, None, None]


def test_converting_with_intermediates(folder: Path, program: Program) -> None:
    """The VGF's outputs have the names of the layers, after the outputs of the model."""
    ended = program("convert", "model.mlir", "-o", "model.vgf", "--expose-intermediates=*S*")
    assert ended == (0, "wrote model.vgf\n", "")
    described = json.loads(program("vgf", "show", "model.vgf", "--json").out)
    assert [output["names"] for output in described["outputs"]] == [["sum"], ["first"], ["squashed"], ["second"]]
    assert program("model.vgf", "--input", "0=x.npy", "--output", "out").code == 0
    expected = activations()["squashed"]
    numpy.testing.assert_allclose(numpy.load(folder / "out" / "squashed.npy"), expected, atol=1e-6)


def test_wrong_uses(folder: Path, program: Program) -> None:
    """Each wrong use is one error before anything runs."""
    assert program("convert", "model.mlir", "-o", "model.vgf").code == 0
    (folder / "empty").mkdir()
    numpy.savez(folder / "none.npz", a=X[0], b=X)
    numpy.savez(folder / "shape.npz", first=X[:, :2])
    numpy.savez(folder / "text.npz", first=numpy.array(["a"]))
    (folder / "open.mlir").write_text(model().replace("1x4x3x8", "?x4x3x8"))
    (folder / "functions.mlir").write_text(model() + model().replace("@main", "@other"))
    tensor = f"the layer is {TYPE}"
    for words, code, message, help in (
        (("model.vgf", "--expected", "reference"), 4, "model.vgf: is a VGF file, expected a TOSA model",
         "name the TOSA model that it was made from; convert --expose-intermediates turns layers into outputs"),
        (("functions.mlir", "--expected", "reference"), 2,
         "functions.mlir: the model has several functions; layers need a model with one function", None),
        ((*COMMAND[1:], "reference", "--layers", "relu*"), 2, "model.mlir: no layer matches 'relu*'",
         f"the layers: {', '.join(NAMES)}"),
        (("model.mlir", "--expected", "reference", "--input", "y=x.npy"), 2, "--input y: model.mlir has no such input",
         "its inputs: TosaInput_0"),
        (("model.mlir", "--expected", "reference", "--input", "0=y.npy"), 4,
         "y.npy: cannot be opened: no such file or directory", None),
        ((*COMMAND[1:], "missing.npz"), 4, "missing.npz: cannot be opened: no such file or directory", None),
        ((*COMMAND[1:], "x.npy"), 4, "x.npy: is not a .npz file with arrays of numbers",
         "numpy.savez(FILE, **arrays) writes one"),
        ((*COMMAND[1:], "empty"), 4, "empty: holds no arrays, expected results of layers by name", None),
        ((*COMMAND[1:], "none.npz"), 2, "none.npz: no array has the name, type and shape of a layer",
         f"arrays: a, b; layers: {', '.join(NAMES)}"),
        ((*COMMAND[1:], "shape.npz"), 4,
         f"shape.npz: 'first' holds float32 of the shape [1, 2, 3, 8], but {tensor}", None),
        ((*COMMAND[1:], "text.npz"), 4, f"text.npz: 'first' holds <U1 of the shape [1], but {tensor}", None),
        (("open.mlir", "--expected", "reference"), 6,
         "open.mlir: the input 'TosaInput_0' is tensor<?x4x3x8xf32> with an open shape",
         "give it fixed dimensions before it is lowered"),
        (("model.mlir", "--expected", "reference", "--html", "./model.mlir"), 2,
         "./model.mlir: the page would overwrite the model", "choose another file"),
        ((*COMMAND[1:], "device:77"), 8, "model.mlir: there is no device 77", None),
    ):  # fmt: skip
        ended = program("compare-layers", "--html", "page.html", *words)
        first, *others = ended.err.splitlines()
        assert (ended.code, ended.out, first.startswith(f"error: {message}")) == (code, "", True), ended
        assert help is None or others == [f"  help: {help}"]
    assert not (folder / "page.html").exists()


def test_a_reference_model_that_fails_or_is_missing(folder: Path, program: Program) -> None:
    """A model that the reference model cannot run is one error, and so is that it is not installed."""
    mixed = Path(__file__).parents[1] / "tosa" / "fixtures" / "mixed.mlir"
    ended = program("compare-layers", mixed, "--expected", "reference")
    message = (
        f"error: {mixed}: TOSA's reference model cannot run the model: Invalid TOSA graph: Can't find the custom "
        "shared library: com.arm.VulkanCustomShader::Mix is not registered.\n"
    )
    assert (ended.code, ended.err) == (6, message)
    code = (
        "import sys; sys.modules['tosa_reference_model'] = None; from scenario_runner.cli import main; "
        "sys.exit(main(['compare-layers', 'model.mlir', '--expected', 'reference']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (6, "", [
        "error: TOSA's reference model (package tosa-tools) is not installed",
        "  help: pip install tosa-tools",
    ])  # fmt: skip
