"""Options that running a model shares with running a scenario."""

import json
from pathlib import Path

import numpy
import pytest

from scenario_runner.errors import NoDeviceError, ScenarioError
from tests.cli.test_vgf import FIXTURES, model_of_buffers
from tests.program import Program


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """A model that adds up its input, and a folder for the output."""
    numpy.save(tmp_path / "x.npy", numpy.arange(10, dtype="f4"))
    model = model_of_buffers(tmp_path / "model.vgf", [1])
    return [str(model), "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", str(tmp_path / "out")]


def test_times_and_dumps_of_a_model(program: Program, given: list[str], tmp_path: Path) -> None:
    """What a run of a scenario writes about itself, that of a model writes, too; --sandbox lets it have its files."""
    trace, profile, dumps = tmp_path / "trace.json", tmp_path / "profile.json", tmp_path / "dumps"
    options = ["--trace", str(trace), "--profiling-dump-path", str(profile), "--repeat", "2"]
    ended = program(*given, *options, "--sandbox")
    assert ended.code == 0, ended.err
    assert ": ok: 1 dispatch x 2, y.npy, " in ended.out
    assert json.loads(trace.read_text())["traceEvents"]
    assert json.loads(profile.read_text())
    ended = program(*given, "--dump-all", str(dumps))
    assert ended.code == 0, ended.err
    assert any(path.name.endswith("y.npy") for path in dumps.rglob("*"))


def test_a_dry_run_of_a_model(program: Program, given: list[str], tmp_path: Path) -> None:
    """Nothing is written."""
    ended = program(*given, "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    assert f"{given[0]}: checked (dry run): 1 dispatch, 0 outputs, " in ended.out
    assert not (tmp_path / "out").exists()


def test_old_outputs_of_a_model(program: Program, given: list[str], tmp_path: Path) -> None:
    """Where a run fails, a note names the outputs of the one before; --clean removes them first."""
    assert program(*given).code == 0
    absent = ["--device", "no such device"]
    ended = program(*given, *absent)
    assert ended.code == NoDeviceError.exit_code
    assert f"note: {given[0]}: these outputs are from an earlier run: {tmp_path / 'out' / 'y.npy'}" in ended.err
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
    ended = program(*arguments, "--strict")
    assert ended.code == ScenarioError.exit_code
    assert ended.err.startswith(f"error: {model}: segment 'compute_segment_0' of graph 'graph': buffer ")
    assert not (tmp_path / "sum.npy").exists()
    ended = program(*arguments)
    assert ended.code == 0
    assert ended.err.startswith("warning: ")
    assert (tmp_path / "sum.npy").exists()


@pytest.mark.parametrize("before", [["--strict"], ["run", "--device", "0"], ["--quiet", "--scenario"]])
def test_options_before_a_model(program: Program, given: list[str], tmp_path: Path, before: list[str]) -> None:
    """A model runs wherever it stands among the options."""
    model, *inputs = given
    ended = program(*before, model, *inputs)
    assert (ended.code, ended.err) == (0, "")
    assert numpy.load(tmp_path / "out" / "y.npy").view("f4").tolist() == [45.0]
    assert program(*before[:1], *inputs, model).code == 0


def test_one_model_at_a_time(program: Program, given: list[str]) -> None:
    """A model that an option without a value has taken is refused with both names."""
    for other in ("other.vgf", "other.pte", "other.tosa"):
        ended = program(*given, "--capture-frame", other)
        assert (ended.code, ended.out) == (2, "")
        assert f"{other} and {given[0]} are given" in ended.err


def test_a_model_where_a_scenario_is_expected(program: Program) -> None:
    """A command that takes scenarios says what can be done with a model."""
    ended = program("bench", FIXTURES / "conv.vgf")
    assert ended.code == 3
    assert "the file is a model, expected a scenario" in ended.err
    assert "help: scenario-runner vgf scenario makes a scenario of a model" in ended.err
