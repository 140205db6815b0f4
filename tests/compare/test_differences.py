"""Differences between arrays, against NumPy."""

from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenario_runner.compare.differences import Difference, compare, error_map
from scenario_runner.view.contents import Content, read_content


def content(folder: Path, name: str, array: Any) -> Content:
    numpy.save(folder / f"{name}.npy", array)
    return read_content(str(folder / f"{name}.npy"))


def compared(folder: Path, one: Any, other: Any) -> Difference:
    return compare(content(folder, "a", one), content(folder, "b", other))


@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 30), dtype=st.sampled_from(["f2", "f4", "f8", "u1", "i4", "i8", "u8"]))
def test_counts_errors_and_places(tmp_path: Path, seed: int, dtype: str) -> None:
    """Count, first index, worst error and bounding box are those that NumPy finds, for every type."""
    random = numpy.random.default_rng(seed)
    one = (random.random((1, 6, 7, 3)) * 100).astype(dtype)
    other = one.copy()
    for _ in range(int(random.integers(0, 5))):
        other[0, random.integers(6), random.integers(7), random.integers(3)] += numpy.dtype(dtype).type(1)
    found = compared(tmp_path, one, other)
    places = numpy.argwhere(one != other)
    assert (found.count, found.total) == (len(places), one.size)
    assert found.is_equal == (not len(places))
    if not len(places):
        return
    errors = numpy.abs(one.astype("f8") - other.astype("f8"))
    assert found.first is not None
    assert found.first[0] == tuple(places[0])
    assert found.first[1].startswith(f"{one[tuple(places[0])]!s} (0x")
    assert found.errors["absolute"].value == errors.max()
    assert errors[found.errors["absolute"].index] == errors.max()
    with numpy.errstate(all="ignore"):
        relative = numpy.where(errors == 0, 0, errors / abs(one.astype("f8")))
    assert found.errors["relative"].value == pytest.approx(relative.max())
    assert found.box == (*places[:, 1:3].min(axis=0), *places[:, 1:3].max(axis=0))
    assert ("ulp" not in found.errors) == (one.dtype.kind != "f")
    heat = error_map(content(tmp_path, "a", one), content(tmp_path, "b", other))
    assert (heat == errors[0].max(axis=-1)).all()


def test_nan_and_zero(tmp_path: Path) -> None:
    """NaN equals NaN and nothing else, both zeros are equal, and infinities are infinitely far from numbers."""
    one = numpy.array([numpy.nan, numpy.nan, 1, 0.0, numpy.inf, numpy.inf], "f4")
    one.view("u4")[0] = 0x7F800001  # a NaN that signals
    other = numpy.array([numpy.nan, 2, numpy.nan, -0.0, numpy.inf, 3], "f4")
    found = compared(tmp_path, one, other)
    assert (found.count, found.nan_counts) == (3, (1, 1, 1))
    assert found.first == ((1,), "nan (0x7fc00000)", "2.0 (0x40000000)")
    assert (found.errors["absolute"].value, found.errors["absolute"].index) == (numpy.inf, (5,))
    assert found.box is None


def test_large_integers_are_compared_exactly(tmp_path: Path) -> None:
    """64-bit integers that are one float apart differ, also when one side has a sign."""
    one = numpy.array([2**63 - 1, 5], "i8")
    found = compared(tmp_path, one, numpy.array([2**63, 5], "u8"))
    assert found.count == 1
    found = compared(tmp_path, one, numpy.array([2**63 - 2, -(2**62)], "i8"))
    assert found.errors["absolute"].value == 5 + 2**62


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_large_integers_are_compared_exactly_with_floats(tmp_path: Path, dtype: str) -> None:
    """A 64-bit integer equals the float of its very value alone, whichever file has it."""
    most = 2 ** (63 if dtype == "i8" else 64) - 1
    one = numpy.array([2**53 + 1, 2**62, most, most, 3, 5, 7], dtype)
    other = numpy.array([2.0**53, 2.0**62, float(most), numpy.inf, 3.5, numpy.nan, 7])
    for first, second in ((one, other), (other, one)):
        found = compared(tmp_path, first, second)
        assert (found.count, sum(found.nan_counts)) == (5, 1)
        assert found.first is not None
        assert found.first[0] == (0,)
