"""Every folder under scenarios/ runs on the real driver and gives what NumPy says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from scenarios.generate import HERE, cases, compute_expected, make_inputs, read_inputs

Array = NDArray[Any]

each_case = pytest.mark.parametrize("case", cases(), ids=lambda case: case.relative_to(HERE).as_posix())


@dataclass(frozen=True)
class Tolerance:
    """Equal where |got - expected| <= atol + rtol |expected|; both zero means equal bytes."""

    rtol: float = 0.0
    atol: float = 0.0

    def difference(self, got: Array, expected: Array) -> str:
        """What is wrong with `got`, the bytes of an array like `expected`; empty when nothing is."""
        if got.nbytes != expected.nbytes:
            return f"{got.nbytes} bytes instead of {expected.nbytes}"
        if not self.rtol and not self.atol:
            wrong = got.reshape(-1).view("u1") != np.ascontiguousarray(expected).reshape(-1).view("u1")
            count, first = int(wrong.sum()), int(wrong.argmax())
            return f"{count} of {wrong.size} bytes differ, the first at {first}" if count else ""
        values: Any = got.reshape(-1).view(expected.dtype).reshape(expected.shape)
        close = np.isclose(values, np.asarray(expected, np.float64), rtol=self.rtol, atol=self.atol)
        if close.all():
            return ""
        first = int(np.argmin(close))
        return (
            f"{int((~close).sum())} of {close.size} values differ, first item {first}:"
            f" {values.flat[first].item()} instead of {expected.flat[first].item()}"
        )


@dataclass(frozen=True)
class Check:
    """The case's check.json: how to run it, how exact the outputs are, and what not every device has.

    A device that lacks ``needs`` must say so by this name; any other refusal is an error on the software driver.
    """

    repeat: int
    keep_state: bool
    tolerances: dict[str, Tolerance]
    robustness: bool = False
    needs: str | None = None

    @classmethod
    def of(cls, case: Path) -> Check:
        path = case / "check.json"
        given = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        unknown = set(given) - {"repeat", "keep_state", "outputs", "robustness", "needs"}
        assert not unknown, f"{path}: unknown keys {unknown}"
        tolerances = {name: Tolerance(**values) for name, values in given.get("outputs", {}).items()}
        robustness, needs = given.get("robustness", False), given.get("needs")
        return cls(given.get("repeat", 1), given.get("keep_state", False), tolerances, robustness, needs)


def arrays_in(folder: Path) -> dict[str, Array]:
    """All .npy files under `folder`, by their path without the extension."""
    return {
        path.relative_to(folder).with_suffix("").as_posix(): np.load(path) for path in sorted(folder.rglob("*.npy"))
    }


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def robust_runner() -> Iterator[Runner]:
    with Runner(robustness=True) as runner:
        yield runner


@each_case
def test_a_run_gives_what_numpy_computed(case: Path, runner: Runner, robust_runner: Runner, tmp_path: Path) -> None:
    """Every output file and every captured frame equals the committed expectation, and there are no others."""
    expected = arrays_in(case / "expected")
    assert expected, f"{case} has no expected results: see scenarios/README.md"
    check = Check.of(case)
    assert set(check.tolerances) <= set(expected)
    frames = tmp_path / "frames"
    if check.robustness:
        runner = robust_runner
    try:
        result = runner.run(
            case / "scenario.json",
            output_dir=tmp_path,
            capture_dir=frames,
            repeat=check.repeat,
            keep_state=check.keep_state,
        )
    except UnsupportedError as error:
        sentence = f"needs the capability {check.needs}; {runner.physical_device.name!r} lacks "
        if runner.physical_device.type == "cpu" and sentence not in str(error):
            raise  # the software driver is able to run all others
        pytest.skip(str(error))
    assert not result.warnings
    got = arrays_in(tmp_path / "out") | arrays_in(frames)
    assert set(got) == set(expected)
    wrong = {name: check.tolerances.get(name, Tolerance()).difference(got[name], expected[name]) for name in expected}
    assert not {name: text for name, text in wrong.items() if text}
    # a result has the file's bytes; an image's shape lacks the leading one
    assert all(result[name].tobytes() == array.tobytes() for name, array in got.items() if name in result)


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
    """scenarios/README.md has one row for each case, and none for one that is gone."""
    lines = (HERE / "README.md").read_text(encoding="utf-8").splitlines()
    listed = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert listed == [case.relative_to(HERE).as_posix() for case in cases()]


@pytest.mark.parametrize(
    "tolerance, got, difference",
    [
        (Tolerance(), [1.0, 3.0], ""),
        (Tolerance(), [1.0, 2.0], "1 of 8 bytes differ, the first at 6"),
        (Tolerance(), [1.0], "4 bytes instead of 8"),
        (Tolerance(rtol=1e-3), [1.0, 3.0029296875], ""),
        (Tolerance(rtol=1e-3), [1.0, 3.00390625], "1 of 2 values differ, first item 1: 3.00390625 instead of 3.0"),
        (Tolerance(atol=1e-3), [float("nan"), 4.0], "2 of 2 values differ, first item 0: nan instead of 1.0"),
        (Tolerance(rtol=1.0), [1.0], "4 bytes instead of 8"),
    ],
)
def test_the_comparison_sees_differences(tolerance: Tolerance, got: list[float], difference: str) -> None:
    """Bytes are compared exactly unless a tolerance is given, and then values within it pass."""
    expected: Array = np.array([1.0, 3.0], np.float32)
    assert tolerance.difference(np.array(got, np.float32), expected) == difference
