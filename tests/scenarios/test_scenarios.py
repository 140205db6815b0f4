"""Every example under scenarios/ runs on the real driver and gives NumPy's results."""

import re
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from scenario_runner.errors import UnsupportedError
from scenario_runner.suite.discovery import expectations_file
from scenario_runner.suite.evaluation import EvaluationOptions, run_item
from scenario_runner.suite.expectations.reading import load
from scenario_runner.suite.expectations.validation import check
from scenario_runner.suite.outcomes import Item
from scenario_runner.suite.worker_task import Runners
from scenarios.generate import HERE, cases, compute_expected, make_inputs, read_inputs
from tests.left_out import DXC_LIBRARY, VGF_LIBRARY, examples_with, needs

Array = NDArray[Any]

each_case = pytest.mark.parametrize("case", cases(), ids=lambda case: case.relative_to(HERE).as_posix())


def arrays_in(folder: Path) -> dict[str, Array]:
    """All .npy files under `folder`, by their path without the extension."""
    return {
        path.relative_to(folder).with_suffix("").as_posix(): np.load(path) for path in sorted(folder.rglob("*.npy"))
    }


@pytest.fixture(scope="module")
def runners() -> Iterator[Runners]:
    runners = Runners({}, 600)
    yield runners
    runners.close()


@pytest.fixture(scope="module")
def copying() -> Iterator[Runners]:
    """A Runner that copies like a device with its own memory, and stops at errors of the validation layer."""
    runners = Runners({"staging": True, "validation": True}, 600)
    yield runners
    runners.close()


@needs(DXC_LIBRARY, *examples_with("HLSL"))
@needs(VGF_LIBRARY, *examples_with(".vgf"))
@each_case
def test_a_run_gives_what_numpy_computed(case: Path, runners: Runners, tmp_path: Path) -> None:
    """Every output and every captured frame is as the committed expectation says, and there are no others."""
    assert arrays_in(case / "expected"), f"{case} has no expected results: see scenarios/README.md"
    path = str(case / "scenario.json")
    item = Item(case.relative_to(HERE).as_posix(), path, expectations_file(path))
    assert check(item) == []
    outcome = run_item(item, runners, EvaluationOptions(str(tmp_path)))
    if outcome.status == "NotSupported":
        needs, device = load(item).check.needs, runners.runner().physical_device
        if device.type == "cpu" and needs is None:
            pytest.fail(outcome.reason)  # the software driver is able to run all that name nothing
        pytest.skip(outcome.reason)
    assert (outcome.status, outcome.reason) == ("Pass", "")
    assert outcome.diagnostics == ()
    assert {output.name for output in outcome.outputs} == arrays_in(case / "expected").keys()


@needs(DXC_LIBRARY, *examples_with("HLSL"))
@needs(VGF_LIBRARY, *examples_with(".vgf"))
@each_case
def test_the_files_of_a_run_hold_the_same(case: Path, copying: Runners, tmp_path: Path) -> None:
    """A run that copies writes the bytes of the committed expectation, or its values within the tolerances."""
    path = str(case / "scenario.json")
    given = load(Item("item", path, expectations_file(path))).check
    runner, frames = copying.runner(robustness=given.robustness), tmp_path / "frames"
    options: dict[str, Any] = {"repeat": given.repeat, "keep_state": given.keep_state}
    try:
        result = runner.run(path, output_dir=tmp_path, capture_dir=frames, **options)
    except UnsupportedError as error:
        pytest.skip(str(error))
    expected, got = arrays_in(case / "expected"), arrays_in(tmp_path / "out") | arrays_in(frames)
    assert set(got) == set(expected)
    for name, array in got.items():
        assert array.nbytes == expected[name].nbytes, name
        if name in given.outputs:
            atol, rtol = given.outputs[name].atol or 0, given.outputs[name].rtol or 0
            values = array.view(expected[name].dtype).reshape(expected[name].shape).astype("f8")
            np.testing.assert_allclose(values, expected[name].astype("f8"), rtol, atol, err_msg=name)
        else:
            assert array.tobytes() == expected[name].tobytes(), name
        if name in result:  # a result has the file's bytes; an image's shape lacks the leading one
            assert result[name].tobytes() == array.tobytes(), name


@each_case
def test_expectations_are_what_numpy_says(case: Path) -> None:
    """Computing the expected results again from the committed inputs gives the committed files."""
    committed = arrays_in(case / "expected")
    computed = compute_expected(case)
    assert set(committed) == set(computed)
    for name, array in committed.items():
        assert_same(computed[name], array, name)


@each_case
def test_inputs_are_what_their_script_makes(case: Path) -> None:
    """Making the input files again gives the committed ones, with their byte order and memory order."""
    committed, made = read_inputs(case), make_inputs(case)
    assert set(committed) == set(made)
    for name, array in committed.items():
        assert_same(made[name], array, name)
        assert made[name].flags.c_contiguous == array.flags.c_contiguous, name


def assert_same(computed: Array, committed: Array, name: str) -> None:
    """Equal to the bit, save for the last bit of a sine or a sum that another machine's NumPy may round differently."""
    assert computed.dtype == committed.dtype, name
    assert computed.shape == committed.shape, name
    if committed.dtype.kind == "f":
        np.testing.assert_array_max_ulp(computed, committed, maxulp=1)
    else:
        np.testing.assert_array_equal(computed, committed, name)


def test_the_readme_lists_every_scenario() -> None:
    """scenarios/README.md links each example, and only these."""
    rows = re.findall(r"^\| \[`([\w/]+)`\]\(([\w/.]+)\) \|", (HERE / "README.md").read_text(encoding="utf-8"), re.M)
    folders = sorted({path.parent for path in HERE.glob("*/*/*.json")})
    assert [name for name, _ in rows] == [folder.relative_to(HERE).as_posix() for folder in folders]
    assert [path for name, path in rows if not ((HERE / path).is_file() and path.startswith(f"{name}/"))] == []


EXAMPLES = sorted(path.parent for path in (HERE / "custom_shaders").glob("*/build.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
@needs(VGF_LIBRARY)
def test_the_script(example: Path, tmp_path: Path, shader_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The script builds, converts, runs and compares. Only files from Arm's converter may differ from the committed
    ones."""
    copy = tmp_path / example.name
    shutil.copytree(example, copy, ignore=shutil.ignore_patterns("model.*", "out", "expected"))
    runpy.run_path(str(copy / "build.py"), run_name="__main__")
    assert "largest difference from NumPy" in capsys.readouterr().out
    for name in ("model.mlir", "model.vgf") if example.name == "shaders_only" else ("model.mlir",):
        assert (copy / name).read_bytes() == (example / name).read_bytes(), name
