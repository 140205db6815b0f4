"""``scenario-runner vgf``, and models that run from the command line without a scenario."""

import json
import re
from pathlib import Path

import numpy
import pytest

from scenario_runner.errors import FileError, NoDeviceError, ScenarioError, UnsupportedError, UsageError
from scenario_runner.ml.vgf_file import read_vgf
from scenario_runner.ml.vgf_model import describe
from tests.gpu.ml_scenes import MODELS
from tests.ml.vgf_samples import model_of_two_inputs, one_segment, row
from tests.program import Program

FIXTURES = Path(__file__).resolve().parents[1] / "ml" / "fixtures"

CONV = """\
conv.vgf: VGF 0.5.0, 1 segment, 1 constant (288 bytes)

inputs
  binding  name  kind    format      shape
  0        x     tensor  R32_SFLOAT  1x8x8x2

outputs
  binding  name  kind    format      shape
  1        y     tensor  R32_SFLOAT  1x8x8x4

segments
  #  name             type   module             reads  writes  workgroups  constants
  0  graph_segment_0  graph  graph_partition_0  0      1       -           0

modules
  #  name               type   code             entry point
  0  graph_partition_0  graph  SPIR-V, 1.2 KiB  graph_partition_0

constants
  #  format      shape    bytes  sparse
  0  R32_SFLOAT  4x3x3x2  288    -
"""


program = Program(FIXTURES)


def test_show_prints_tables() -> None:
    """Inputs, outputs, segments, modules and constants, each as a table."""
    ended = program.succeed("vgf", "show", "conv.vgf")
    assert ended.out == CONV


def test_show_as_json() -> None:
    """--json describes the whole model."""
    ended = program.succeed("vgf", "show", "mixed.vgf", "--json")
    assert json.loads(ended.out) == describe(read_vgf(FIXTURES / "mixed.vgf"))


def test_a_scenario_is_ready_to_run(tmp_path: Path) -> None:
    """The output of ``vgf scenario`` runs as soon as the input exists, from any folder."""
    path = tmp_path / "folder" / "scenario.json"
    ended = program("vgf", "scenario", "conv.vgf", "--output", str(path))
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    numpy.save(path.parent / "x.npy", numpy.ones((1, 8, 8, 2), "f4"))
    program(str(path), exit_code=0)
    assert numpy.load(path.parent / "y.npy").shape == (1, 8, 8, 4)


def test_a_scenario_on_standard_output() -> None:
    """Without a file to write, the JSON is printed, naming the model relative to the current folder."""
    ended = program("vgf", "scenario", "conv.vgf")
    assert json.loads(ended.out)["resources"][0] == {"graph": {"uid": "graph", "src": "conv.vgf"}}


def test_a_model_runs_by_itself(tmp_path: Path) -> None:
    """A model with a named input gives NumPy's result under the names of its outputs."""
    folder = MODELS / "mixed"
    ended = program(
        str(folder / "model.vgf"), "--input", f"picture={folder / 'picture.npy'}", "--output-dir", str(tmp_path / "out")
    )
    assert ended.code == 0, ended.err
    assert ended.out.startswith(f"{folder / 'model.vgf'}: ok: 5 dispatches, features.npy, scores.npy, ")
    scores = numpy.load(tmp_path / "out" / "scores.npy")
    assert numpy.abs(scores - numpy.load(folder / "expected" / "scores.npy")).max() < 1e-6


def test_inputs_by_number(tmp_path: Path) -> None:
    """An input may be named by its binding, beside one that is named as in the model."""
    model_of_two_inputs(tmp_path / "net.vgf")
    x, h = numpy.float32([1, 2, 3, 4]), numpy.float32([10, 20, 30, 40])
    for name, array in (("x", x), ("h", h)):
        numpy.save(tmp_path / f"{name}.npy", array)
    ended = Program(tmp_path)("net.vgf", "--input", "h=h.npy", "--input", "0=x.npy")
    assert ended.code == 0, ended.err
    assert (numpy.load(tmp_path / "y.npy").view("f4") == x - h).all()


@pytest.mark.parametrize("name", ["graph_partition_1", "compute_segment_0"])
def test_a_model_runs_with_a_shader_of_the_users(tmp_path: Path, name: str) -> None:
    """A placeholder gets its shader from the command line, by the name of the module or of the operation."""
    x = numpy.arange(64, dtype="f4").reshape(4, 16)
    numpy.save(tmp_path / "x.npy", x)
    (tmp_path / "negate.comp").write_text(
        "#version 450\nlayout(local_size_x = 16) in;\n"
        "layout(set = 0, binding = 0) readonly buffer A { float a[]; };\n"
        "layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };\n"
        "void main() { y[gl_GlobalInvocationID.x] = -a[gl_GlobalInvocationID.x]; }\n"
    )
    model = str(FIXTURES / "placeholder.vgf")
    ended = Program(tmp_path)(model, "--input", "x=x.npy", "--shader", f"{name}=negate.comp")
    assert ended.code == 0, ended.err
    assert (numpy.load(tmp_path / "sum.npy") == -x).all()


@pytest.mark.parametrize(
    "arguments, error",
    [
        ((), "error: placeholder.vgf: no file is given for the input 'x' (binding 0)\n  help: --input x=FILE.npy\n"),
        (
            ("--input", "x"),
            "error: argument --input: 'x': expected NAME=FILE\n  help: scenario-runner run --help shows all options\n",
        ),
        (
            ("--input", "x=x.npy"),
            "error: placeholder.vgf: the model has no code for the shader 'graph_partition_1'\n"
            "  help: --shader graph_partition_1=FILE\n",
        ),
        (("--input", "x=x.npy", "--input", "0=x.npy"), "error: --input: 'x' (binding 0) is given twice\n"),
    ],
)
def test_what_is_missing_is_said(arguments: tuple[str, ...], error: str) -> None:
    """An input, a shader, a file: with the option that gives it."""
    ended = program("placeholder.vgf", *arguments)
    assert (ended.code, ended.out, ended.err) == (UsageError.exit_code, "", error)


SUM_OF_ALL = """#version 450
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
    float sum = 0;
    for (int i = 0; i < x.length(); i++) sum += x[i];
    y[0] = sum;
}
"""


def model_of_buffers(path: Path, output_shape: list[int]) -> Path:
    """A model that adds up a buffer of any size."""
    rows = [row("input", -1, type=7), row("output", *output_shape, type=7)]
    path.write_bytes(one_segment(rows, [0, 1], {0: 0}, {1: 1}, code=SUM_OF_ALL))
    return path


def test_an_output_of_any_size_is_refused(tmp_path: Path) -> None:
    """A buffer written by a shader alone has no known size, and is refused."""
    model = model_of_buffers(tmp_path / "model.vgf", [-1])
    numpy.save(tmp_path / "x.npy", numpy.arange(10, dtype="f4"))
    ended = program(str(model), "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", str(tmp_path))
    assert ended.code == UnsupportedError.exit_code
    assert "the size of the output 'y' (binding 1) is unknown: it is a buffer of the shape [-1] and the" in ended.err
    assert not (tmp_path / "y.npy").exists()


def test_a_file_that_does_not_fit_is_named_by_its_option(tmp_path: Path) -> None:
    """Nobody sees the scenario that a model runs in, so its lines and JSON pointers are not places."""
    numpy.save(tmp_path / "x.npy", numpy.zeros((4, 16), "i4"))
    model, file = FIXTURES / "conv.vgf", tmp_path / "x.npy"
    ended = program(str(model), "--input", f"x={file}", "--output-dir", str(tmp_path / "out"))
    assert ended.code == FileError.exit_code
    problems = [line for line in ended.err.splitlines() if line.startswith("error")]
    assert problems == [
        f"error: {model}: --input x: tensor 'x' has the format VK_FORMAT_R32_SFLOAT (float32), but"
        f" '{file}' holds int32 [SR-FILE-002]",
        f"error: {model}: --input x: tensor 'x' has the shape [1, 8, 8, 2], but '{file}' has the shape [4, 16]"
        " [SR-FILE-002]",
    ]
    assert not (tmp_path / "out").exists()


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """A model that adds up its input, and a folder for the output."""
    numpy.save(tmp_path / "x.npy", numpy.arange(10, dtype="f4"))
    model = model_of_buffers(tmp_path / "model.vgf", [1])
    return [str(model), "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", str(tmp_path / "out")]


def test_times_and_dumps_of_a_model(program: Program, given: list[str], tmp_path: Path) -> None:
    """A run of a model writes profiles and dumps like a run of a scenario, and may do so with --sandbox."""
    trace, profile, dumps = tmp_path / "trace.json", tmp_path / "profile.json", tmp_path / "dumps"
    options = ["--trace", str(trace), "--profiling-dump-path", str(profile), "--repeat", "2"]
    ended = program(*given, *options, "--sandbox", exit_code=0)
    assert ": ok: 1 dispatch x 2, y.npy, " in ended.out
    assert json.loads(trace.read_text())["traceEvents"]
    assert json.loads(profile.read_text())
    program(*given, "--dump-all", str(dumps), exit_code=0)
    assert any(path.name.endswith("y.npy") for path in dumps.rglob("*"))


def test_a_dry_run_of_a_model(program: Program, given: list[str], tmp_path: Path) -> None:
    """A dry run writes no file."""
    ended = program.succeed(*given, "--dry-run")
    assert f"{given[0]}: checked (dry run): 1 dispatch, 0 outputs, " in ended.out
    assert not (tmp_path / "out").exists()


def test_old_outputs_of_a_model(program: Program, given: list[str], tmp_path: Path) -> None:
    """A failed run names the outputs of the earlier run in a note, and --clean removes them first."""
    assert program(*given).code == 0
    absent = ["--device", "no such device"]
    ended = program(*given, *absent, exit_code=NoDeviceError.exit_code)
    assert "note: from an earlier run (--clean removes such outputs): " in ended.err
    assert program(*given, *absent, "--clean").code == NoDeviceError.exit_code
    assert list((tmp_path / "out").iterdir()) == []


def test_warnings_about_a_model_are_errors(program: Program, tmp_path: Path) -> None:
    """With --strict a model does not run where something is a warning: here a block that is larger than its buffer."""
    numpy.save(tmp_path / "x.npy", numpy.zeros((4, 16), "f4"))
    (tmp_path / "negate.comp").write_text(
        "#version 450\nlayout(local_size_x = 16) in;\n"
        "layout(set = 0, binding = 0) readonly buffer A { float a[]; };\n"
        "layout(set = 0, binding = 1) writeonly buffer Y { float y[1000]; };\n"
        "void main() { y[gl_GlobalInvocationID.x] = -a[gl_GlobalInvocationID.x]; }\n"
    )
    model = FIXTURES / "placeholder.vgf"
    arguments = [model, "--input", "x=x.npy", "--shader", "graph_partition_1=negate.comp"]
    ended = program(*arguments, "--strict", exit_code=ScenarioError.exit_code)
    assert ended.err.startswith(f"error: {model}: segment 'compute_segment_0' of graph 'graph': buffer ")
    assert not (tmp_path / "sum.npy").exists()
    ended = program(*arguments, exit_code=0)
    assert ended.err.startswith("warning: ")
    assert (tmp_path / "sum.npy").exists()


@pytest.mark.parametrize("before", [["--strict"], ["run", "--device", "0"], ["--quiet", "--scenario"]])
def test_options_before_a_model(program: Program, given: list[str], tmp_path: Path, before: list[str]) -> None:
    """A model runs wherever it stands among the options."""
    model, *inputs = given
    program.succeed(*before, model, *inputs)
    assert numpy.load(tmp_path / "out" / "y.npy").view("f4").tolist() == [45.0]
    assert program(*before[:1], *inputs, model).code == 0


def test_one_model_at_a_time(program: Program, given: list[str]) -> None:
    """A model that an option without a value has taken is refused with both names."""
    for other in ("other.vgf", "other.pte", "other.tosa"):
        ended = program.fail(2, *given, "--capture-frame", other)
        assert f"{other} and {given[0]} are given" in ended.err


def test_a_model_where_a_scenario_is_expected(program: Program) -> None:
    """A command for scenarios refuses a model and names the commands for models."""
    ended = program("bench", FIXTURES / "conv.vgf", exit_code=3)
    assert "the file is a VGF model, expected a scenario" in ended.err
    assert re.search(r"help: scenario-runner vgf scenario \S+conv.vgf writes a scenario for it", ended.err)
