"""Models that run without a scenario, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError, ScenarioRunnerError, UsageError

MODELS = Path(__file__).parent / "vgf" / "models"
FIXTURES = Path(__file__).parent / "vgf" / "fixtures"


@pytest.fixture(scope="module")
def runner(shader_cache: Path) -> Any:
    with Runner(timeout_s=60) as runner:
        yield runner


@pytest.mark.parametrize("name", ["classifier", "classifier_int8", "upscaler_fp16"])
def test_inputs_and_outputs_go_by_name(
    runner: Runner, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model takes arrays by the names of its inputs and gives them by the names of its outputs, without files."""
    monkeypatch.chdir(tmp_path)
    result = runner.run(MODELS / name / "model.vgf", {"picture": numpy.load(MODELS / name / "picture.npy")})
    expected = {path.name.split(".")[0]: numpy.load(path) for path in (MODELS / name).glob("*.expected.npy")}
    assert sorted(result) == sorted(expected)
    for uid, array in expected.items():
        numpy.testing.assert_allclose(result[uid].astype("f4"), array.astype("f4"), rtol=1e-2, atol=1e-3)
    assert list(tmp_path.iterdir()) == []


def test_binding_numbers_and_files(runner: Runner, tmp_path: Path) -> None:
    """An input may go by its binding number; with output_dir the outputs are files as well."""
    model = MODELS / "classifier"
    result = runner.run(str(model / "model.vgf"), {"0": numpy.load(model / "picture.npy")}, output_dir=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["probabilities.npy"]
    assert (numpy.load(tmp_path / "probabilities.npy") == result["probabilities"]).all()


def test_inputs_that_are_not_right(runner: Runner) -> None:
    """Missing, unknown, doubled and misshapen inputs are errors that name the input and the model."""
    path = str(MODELS / "classifier" / "model.vgf")
    picture = numpy.load(MODELS / "classifier" / "picture.npy")
    with pytest.raises(UsageError, match=r"model\.vgf: no array is given for the input 'picture'$"):
        runner.run(path)
    with pytest.raises(FileError, match=r"the model has no 'pictur' here; it has: 'picture' \(binding 0\)"):
        runner.run(path, {"pictur": picture})
    with pytest.raises(UsageError, match=r"inputs: 'picture' \(binding 0\) is given twice"):
        runner.run(path, {"picture": picture, "0": picture})
    with pytest.raises(UsageError, match=r"model\.vgf: .*has the shape \[1, 16, 16, 3\], but the array given"):
        runner.run(path, {"picture": picture[0]})


def test_every_model_runs_or_says_why_not(runner: Runner) -> None:
    """What a model needs beyond its inputs is an error of ours."""
    for path in FIXTURES.glob("*.vgf"):
        with pytest.raises(ScenarioRunnerError):
            runner.run(path)


def test_missing_model(runner: Runner, tmp_path: Path) -> None:
    """A model that does not exist is Python's FileNotFoundError too."""
    with pytest.raises(FileNotFoundError) as caught:
        runner.run(tmp_path / "none.vgf")
    assert caught.value.filename == str(tmp_path / "none.vgf")
