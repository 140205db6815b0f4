"""Models that run without a scenario, from Python."""

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError, ScenarioRunnerError, UsageError
from scenario_runner.files.input import array_of
from tests.gpu.ml_scenes import MODELS
from tests.ml.vgf_samples import model_of_two_inputs
from tests.scenes import error_of

FIXTURES = Path(__file__).parent / "fixtures"


def test_inputs_and_outputs_go_by_name(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model takes arrays by the names of its inputs, or by their binding numbers, and gives them by the names of its
    outputs; without output_dir it writes no files."""
    monkeypatch.chdir(tmp_path)
    model = MODELS / "upscaler_fp16"
    picture = numpy.load(model / "picture.npy")
    result = runner.run(model / "model.vgf", {"picture": picture})
    expected = {path.stem: numpy.load(path) for path in (model / "expected").glob("*.npy")}
    assert sorted(result) == sorted(expected)
    for uid, array in expected.items():
        numpy.testing.assert_allclose(result[uid].astype("f4"), array.astype("f4"), rtol=1e-2, atol=1e-3)
    assert list(tmp_path.iterdir()) == []
    result = runner.run(str(model / "model.vgf"), {"0": picture}, output_dir=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {f"{uid}.npy" for uid in expected}
    for uid in expected:
        assert (numpy.load(tmp_path / f"{uid}.npy") == result[uid]).all()


def test_inputs_that_are_not_right(runner: Runner) -> None:
    """Missing, unknown, doubled and misshapen inputs are errors that name the input and the model."""
    path = str(MODELS / "classifier" / "model.vgf")
    picture = numpy.load(MODELS / "classifier" / "picture.npy")
    with pytest.raises(UsageError, match=r"model\.vgf: no array is given for the input 'picture'$"):
        runner.run(path)
    with pytest.raises(FileError, match=r"the model has no input 'pictur'; its inputs: 'picture' \(binding 0\)"):
        runner.run(path, {"pictur": picture})
    with pytest.raises(UsageError, match=r"inputs: 'picture' \(binding 0\) is given twice"):
        runner.run(path, {"picture": picture, "0": picture})
    with pytest.raises(UsageError, match=r"model\.vgf: .*has the shape \[1, 16, 16, 3\], but the array given"):
        runner.run(path, {"picture": picture[0]})


class _Tensor:
    """A tensor of another library, which NumPy knows by its protocols alone."""

    def __init__(self, array: numpy.ndarray[Any, Any]) -> None:
        self._array = array


class _WithArray(_Tensor):
    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray[Any, Any]:
        return self._array


class _WithDlpack(_Tensor):
    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class _OfPyTorch(_Tensor):
    """A tensor with the methods of PyTorch's: it gives no array before it is detached and on the host, nor one of a
    type that NumPy lacks."""

    def __init__(self, array: numpy.ndarray[Any, Any], type_name: str, steps: tuple[str, ...] = ()) -> None:
        super().__init__(array)
        self.dtype, self._steps = type("dtype", (), {"__str__": lambda _: f"torch.{type_name}"})(), steps

    def _after(self, step: str) -> "_OfPyTorch":
        return _OfPyTorch(self._array, str(self.dtype).removeprefix("torch."), (*self._steps, step))

    def detach(self) -> "_OfPyTorch":
        return self._after("detach")

    def cpu(self) -> "_OfPyTorch":
        return self._after("cpu")

    def float(self) -> "_OfPyTorch":
        return _OfPyTorch(self._array.astype("f4"), "float32", self._steps)

    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray[Any, Any]:
        return self.numpy()

    def numpy(self) -> Any:
        assert set(self._steps) == {"detach", "cpu"}
        if str(self.dtype).startswith(("torch.bfloat16", "torch.float8")):
            raise TypeError(f"Got unsupported ScalarType {self.dtype}")
        return self._array


class _OnAnotherDevice(_Tensor):
    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray[Any, Any]:
        raise TypeError("copy it to the host first")


X, H = numpy.float32([1, 2, 3, 4]), numpy.float32([10, 20, 30, 40])


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the inputs 'x' and 'h', and the output 'y' = x - h."""
    return model_of_two_inputs(tmp_path_factory.mktemp("two") / "model.vgf")


@pytest.mark.parametrize(
    "inputs",
    [
        (X, H),
        ({"h": H, "x": X},),
        ({0: X, 1: H},),
        ({"0": X, "h": H},),
        (_WithArray(X), _WithDlpack(H)),
        ({"x": X.tobytes(), 1: memoryview(H)},),
        ((X, H),),
        (_OfPyTorch(X, "float32"), H),
    ],
)
def test_inputs_go_by_position_name_and_number(runner: Runner, two: Path, inputs: tuple[Any, ...]) -> None:
    """Inputs by position, name and number mean the same for a run, for prepared inputs and for later ones."""
    expected = (X - H).tolist()
    assert runner.run(two, *inputs).array("y", "f4").tolist() == expected
    assert runner.prepare(two, *inputs).run().array("y", "f4").tolist() == expected
    prepared = runner.prepare(two, H, H)
    assert prepared.run(*inputs).array("y", "f4").tolist() == expected
    assert prepared.run(X).array("y", "f4").tolist() == expected
    assert prepared.run({1: X}).array("y", "f4").tolist() == (H - X).tolist()


@pytest.mark.parametrize("type_name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_tensors_of_types_that_numpy_lacks(type_name: str) -> None:
    """A tensor of PyTorch becomes an array of ml_dtypes' type with the same values."""
    values = numpy.array([1, -2, 0.25, float("inf"), float("nan")][: 3 if "fn" in type_name else 5])
    expected = values.astype(getattr(ml_dtypes, type_name))
    array = array_of(_OfPyTorch(expected, type_name), "x")
    assert (array.dtype, array.tobytes()) == (expected.dtype, expected.tobytes())


def test_a_tensor_of_a_type_that_vulkan_lacks() -> None:
    """A float8 type with other values for the same bits is refused, not taken for one of Vulkan's."""
    with pytest.raises(UsageError, match=r"input .x. is a _OfPyTorch that gives no array: .*e4m3fnuz"):
        array_of(_OfPyTorch(X, "float8_e4m3fnuz"), "x")


@pytest.mark.parametrize(
    "inputs, message",
    [
        (
            ([1.0, 2.0], H),
            "input 'x' is a list, expected a NumPy array, an object with __array__ or __dlpack__ (tensors of PyTorch"
            " and JAX), or bytes",
        ),
        ((_OnAnotherDevice(X), H), "input 'x' is a _OnAnotherDevice that gives no array: copy it to the host first"),
        ((X, H, X), "3 inputs are given by position; the model has: 'x' (binding 0), 'h' (binding 1)"),
        (({"x": X}, H), "inputs are given both by name and by position, expected one mapping, or arrays"),
    ],
)
def test_inputs_that_are_not_taken(runner: Runner, two: Path, inputs: tuple[Any, ...], message: str) -> None:
    """A run and a prepared model refuse unknown inputs and list their own."""
    prepared = runner.prepare(two, X, H)
    for run in (lambda: runner.run(two, *inputs), lambda: prepared.run(*inputs)):
        assert str(error_of(UsageError, run)) == f"{two}: {message}"


def test_only_models_have_positions(runner: Runner) -> None:
    """The inputs of a scenario have no order."""
    with pytest.raises(UsageError, match="only the inputs of models have positions"):
        runner.run({"resources": [], "commands": []}, X)


def test_a_model_by_its_entry_in_a_folder(runner: Runner, two: Path) -> None:
    """A model may be any path-like object, such as an entry of os.scandir."""
    with os.scandir(two.parent) as entries:
        (entry,) = (entry for entry in entries if entry.name == two.name)
    assert runner.run(entry, X, H).array("y", "f4").tolist() == (X - H).tolist()


def test_a_runner_releases_what_it_keeps(two: Path, shader_cache: Path) -> None:
    """`release` frees everything on the device, and a prepared model runs again."""
    with Runner(timeout_s=60) as runner:
        runner.release()
        prepared = runner.prepare(two, X, H)
        prepared.run()
        assert any(runner.live_objects.values())
        runner.release()
        assert not any(runner.live_objects.values())
        assert prepared.run().array("y", "f4").tolist() == (X - H).tolist()


def test_every_model_runs_or_says_why_not(runner: Runner) -> None:
    """A model that needs more than inputs is refused with an error of this program."""
    for path in FIXTURES.glob("*.vgf"):
        with pytest.raises(ScenarioRunnerError):
            runner.run(path)


def test_missing_model(runner: Runner, tmp_path: Path) -> None:
    """A model that does not exist is Python's FileNotFoundError too."""
    assert error_of(FileNotFoundError, runner.run, tmp_path / "none.vgf").filename == str(tmp_path / "none.vgf")
