"""ExecuTorch programs and TOSA models where a model is expected."""

import pickle
import struct
import zipfile
from pathlib import Path

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError, ScenarioError, ScenarioRunnerError, UnsupportedError, UsageError
from scenario_runner.ml.vgf_file import read_vgf
from tests.left_out import VGF_LIBRARY, needs
from tests.program import Program
from tests.scenes import error_of

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = CHECKOUT / "tests" / "ml" / "programs"
X = numpy.arange(8, dtype="f4").reshape(2, 4)
H = numpy.full((2, 4), 10, "f4")
# In sorted.pte: the kinds of the three instructions, and the values 2 and 7 of the second call of a model.
_SORT_KIND, _SECOND_CALL = 927, struct.pack("<Iii", 2, 2, 7)
_FREE_CALL = 5


@needs(VGF_LIBRARY)
def test_a_program_runs_as_its_model(program: Program, tmp_path: Path) -> None:
    """The VGF model in a program takes its inputs from the command line."""
    numpy.save(tmp_path / "x.npy", X)
    numpy.save(tmp_path / "h.npy", H)
    program.succeed("--strict", PROGRAMS / "difference.pte", "--input", "0=x.npy", "--input", "input_1=h.npy")
    assert (numpy.load(tmp_path / "output_0.npy") == X * 2 + H).all()
    assert (numpy.load(tmp_path / "output_1.npy") == X - H).all()


@needs(VGF_LIBRARY)
def test_extract_writes_the_model(program: Program, tmp_path: Path) -> None:
    """`vgf extract` writes the models of a program to files, numbered if there are several."""
    ended = program("vgf", "extract", PROGRAMS / "difference.pte")
    assert (ended.code, ended.out, ended.err) == (0, "difference.vgf\n", "")
    content = (tmp_path / "difference.vgf").read_bytes()
    assert content.startswith(b"VGF1")
    assert content in (PROGRAMS / "difference.pte").read_bytes()
    assert program("vgf", "show", "difference.vgf").code == 0
    ended = program("vgf", "extract", PROGRAMS / "sorted.pte", "-o", "part.vgf")
    assert (ended.code, ended.out) == (0, "part_1.vgf\npart_2.vgf\n")
    ended = program("vgf", "extract", "part_1.vgf")
    assert (ended.code, ended.err) == (FileError.exit_code, "error: part_1.vgf: is not an ExecuTorch program\n")


def test_models_with_operators_between_them(program: Program) -> None:
    """A program with operators between its models cannot run as a whole. The error names these operators and the next
    step."""
    path = PROGRAMS / "sorted.pte"
    ended = program(path, "--input", "0=x.npy", exit_code=UnsupportedError.exit_code)
    assert ended.err == (
        f"error: {path}: between its 2 VGF models the ExecuTorch program runs other operators: aten::sort\n"
        "  help: scenario-runner vgf extract writes the models, to be run one by one\n"
    )
    with Runner() as runner, pytest.raises(UnsupportedError, match=f"^{path}: between its 2 VGF models"):
        runner.run(path, X)


@needs(VGF_LIBRARY)
def test_models_that_follow_each_other(program: Program, tmp_path: Path) -> None:
    """Models of one program run in its order, the outputs of one being the inputs of the next."""
    content = bytearray((PROGRAMS / "sorted.pte").read_bytes())
    assert content.count(_SECOND_CALL) == 1
    content[_SORT_KIND] = _FREE_CALL
    (tmp_path / "both.pte").write_bytes(content.replace(_SECOND_CALL, struct.pack("<Iii", 2, 1, 7)))
    assert program("vgf", "extract", "both.pte").code == 0
    x = numpy.linspace(-1, 1, 64, dtype="f4").reshape(4, 16)
    with Runner(timeout_s=60) as runner:
        between = runner.run(tmp_path / "both_1.vgf", x)["output_0"]
        expected = runner.run(tmp_path / "both_2.vgf", between)["output_0"]
        result = runner.run(tmp_path / "both.pte", x)
    assert list(result) == ["output_0"]
    assert (result["output_0"] == expected).all()
    assert not (between == expected).all()


@needs(VGF_LIBRARY)
def test_inputs_and_outputs_are_those_of_the_program() -> None:
    """Inputs and outputs keep the order and the numbers of the program, also around quantization. A VGF file has the
    order of its operators."""
    with Runner(timeout_s=60) as runner:
        prepared = runner.prepare(PROGRAMS / "swapped.pte", X - 4, H - 12)
        assert (prepared.run()["output_0"] == 4 - X).all()
        assert (prepared.run({"input_1": X, "input_0": H})["output_0"] == X - H).all()
    shapes = {}
    for path in (CHECKOUT / "scenarios" / "ml" / "pytorch").glob("*.[pv][tg][ef]"):
        vgf = read_vgf(path)
        shapes[path.name] = {port.name: vgf.resources[port.resource_index].shape for port in vgf.output_ports}
    assert len(shapes) == 6
    for name, of_outputs in shapes.items():
        first, second = ((1, 10), (1, 16)) if name.endswith(".pte") else ((1, 16), (1, 10))
        assert of_outputs == {"output_0": first, "output_1": second}, name


@pytest.mark.parametrize("name", ["model.pt2", "model.pt", "checkpoint.vgf", "model.tflite"])
def test_files_of_frameworks_have_to_be_lowered(program: Program, tmp_path: Path, name: str) -> None:
    """Every command refuses the file of a framework, names the kind of file and explains how to lower it."""
    path, help = tmp_path / name, "lower it with the VGF backend of ExecuTorch, and run the .pte file"
    if name == "model.tflite":
        path.write_bytes(struct.pack("<I4s", 28, b"TFL3") + bytes(200))
        help = "tosa-converter-for-tflite converts it to TOSA, and scenario-runner convert to VGF"
    elif name == "model.pt":
        path.write_bytes(pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2) + bytes(200))  # PyTorch before 1.6
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model/data.pkl", bytes(200))
    for command in ([], ["validate"], ["vgf", "show"], ["vgf", "extract"], ["convert", "-o", "x.vgf"]):
        ended = program(*command, name)
        assert ended.code in (FileError.exit_code, ScenarioError.exit_code)
        assert (
            "a TFLite model" if name == "model.tflite" else "a file of torch.save or torch.export.save"
        ) in ended.err
        assert ended.err.endswith(f"\n  help: {help} (docs/pytorch.md)\n")
        assert list(tmp_path.iterdir()) == [path]


def test_a_model_in_memory_has_to_be_lowered() -> None:
    """A PyTorch object instead of a path is refused with an explanation, and so is any other object."""
    module = type("Linear", (), {"__module__": "torch.nn.modules.linear"})
    classifier = type("Classifier", (module,), {})
    message = "expected a path, a Scenario or a mapping, got an object of type "
    with Runner() as runner:
        error = error_of(UsageError, runner.run, classifier(), X)
        assert str(error) == f"{message}Classifier: a model of PyTorch has to be lowered to VGF first"
        assert error.problems[0].help is not None
        with pytest.raises(UsageError, match=f"{message}int$"):
            runner.run(5)


def test_damaged_programs(tmp_path: Path) -> None:
    """A program with a damaged byte or a missing end runs, or raises an error of this program."""
    content = (PROGRAMS / "difference.pte").read_bytes()
    for size_bytes in (12, 40, 400, 3000):
        (tmp_path / "cut.pte").write_bytes(content[:size_bytes])
        with pytest.raises(FileError, match=r"cut\.pte: is a"):
            read_vgf(tmp_path / "cut.pte")
    for at in range(0, 1480, 3):
        (tmp_path / "damaged.pte").write_bytes(content[:at] + bytes([content[at] ^ 0xA5]) + content[at + 1 :])
        try:
            read_vgf(tmp_path / "damaged.pte")
        except ScenarioRunnerError:
            continue


def test_a_tosa_model_has_to_be_converted(program: Program, tmp_path: Path) -> None:
    """A FlatBuffer with a TOSA model is refused with a hint to convert it."""
    (tmp_path / "model.tosa").write_bytes(struct.pack("<I4s", 8, b"TOSA") + bytes(200))
    ended = program("model.tosa", "--input", "x=x.npy", exit_code=FileError.exit_code)
    assert ended.err == (
        "error: model.tosa: /header: this is a TOSA model, which has to be converted to VGF first\n"
        "  help: scenario-runner convert model.tosa -o MODEL.vgf\n"
    )
