"""Metrics of pictures and the differences that messages list."""

import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenario_runner.compare.differences import Difference, compare, error_map
from scenario_runner.compare.metrics import Pair, pairs_of, verdict
from scenario_runner.suite.expectations.format import METRICS, Least, Most
from scenario_runner.view.contents import Content, read_content
from tests.image_files import image_planes
from tests.left_out import FLIP_EVALUATOR, needs
from tests.tables import cases

RANDOM = np.random.default_rng(13)


def values(*arrays: Any) -> list[Pair]:
    """One channel of numbers: actual, expected."""
    actual, expected = (np.asarray(array, "f8") for array in arrays)
    return [Pair("", actual, expected, 1.0, actual.shape)]


def picture(actual: Any, expected: Any) -> list[Pair]:
    """Channels of two arrays (height, width, channels) of bytes."""
    height, width = actual.shape[:2]
    return [
        Pair(str(c), actual[..., c].reshape(-1), expected[..., c].reshape(-1), 255.0, (height, width))
        for c in range(actual.shape[2])
    ]


def metric(name: str, pairs: list[Pair]) -> float:
    return METRICS[name].value(pairs)


def noisy(height: int = 14, width: int = 17) -> tuple[Any, Any]:
    expected = RANDOM.integers(0, 256, (height, width, 3), "u1")
    noise = RANDOM.integers(-20, 21, expected.shape)
    return np.clip(expected.astype(int) + noise, 0, 255).astype("u1"), expected


def test_rmse_and_psnr() -> None:
    """Over all elements of all channels; PSNR relative to the greatest value of the type."""
    actual, expected = noisy()
    squares = [(int(a) - int(e)) ** 2 for a, e in zip(actual.flat, expected.flat, strict=True)]
    mean = sum(squares) / len(squares)
    assert metric("rmse", picture(actual, expected)) == pytest.approx(math.sqrt(mean))
    assert metric("psnr", picture(actual, expected)) == pytest.approx(10 * math.log10(255**2 / mean))
    assert metric("rmse", values([3.0, 0.0], [0.0, 4.0])) == pytest.approx(math.sqrt(12.5))
    assert metric("psnr", values([1.0], [1.0])) == math.inf
    assert metric("psnr", picture(np.zeros((1, 1, 1), "u1"), np.full((1, 1, 1), 255, "u1"))) == 0
    assert math.isnan(metric("rmse", values([math.nan], [0.0])))


@pytest.mark.parametrize("format, peaks", cases(__file__, "formats.txt", "PEAKS"))
def test_the_peak_is_that_of_the_format(format: str, peaks: str) -> None:
    """The peak is the greatest value that the bits of a channel hold."""
    plan, planes = image_planes(format, 1, 1)
    data = memoryview(bytes(plan.size_bytes))
    assert [pair.peak for pair in pairs_of(planes, data, data, None)] == json.loads(peaks)


def test_many_elements_are_summed_in_pieces() -> None:
    """Summing in pieces gives the same result as summing at once."""
    actual, expected = RANDOM.normal(size=200_001), RANDOM.normal(size=200_001)
    assert metric("rmse", values(actual, expected)) == pytest.approx(math.sqrt(((actual - expected) ** 2).mean()))
    assert metric("rel_l2", values(actual, expected)) == pytest.approx(
        np.linalg.norm(actual - expected) / np.linalg.norm(expected)
    )


def ssim_directly(x: Any, y: Any, peak: float) -> float:
    """The mean over all windows of 11x11, each computed alone from the definition."""
    weights = [[math.exp(-((i - 5) ** 2 + (j - 5) ** 2) / (2 * 1.5**2)) for j in range(11)] for i in range(11)]
    total = sum(map(sum, weights))
    w = np.array(weights) / total
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    found = []
    for top in range(x.shape[0] - 10):
        for left in range(x.shape[1] - 10):
            a, b = (array[top : top + 11, left : left + 11].astype("f8") for array in (x, y))
            ma, mb = (w * a).sum(), (w * b).sum()
            va, vb = (w * (a - ma) ** 2).sum(), (w * (b - mb) ** 2).sum()
            cov = (w * (a - ma) * (b - mb)).sum()
            found.append((2 * ma * mb + c1) * (2 * cov + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2)))
    return float(np.mean(found))


def test_ssim() -> None:
    """SSIM follows its definition, as a mean over channels, with 1 for equal pictures."""
    actual, expected = noisy(13, 15)
    wanted = np.mean([ssim_directly(actual[..., c], expected[..., c], 255) for c in range(3)])
    assert metric("ssim", picture(actual, expected)) == pytest.approx(wanted, abs=1e-12)
    assert metric("ssim", picture(expected, expected)) == pytest.approx(1)
    flat = [np.full((11, 11, 1), value, "u1") for value in (100, 120)]
    luminance = (2 * 100 * 120 + 2.55**2) / (100**2 + 120**2 + 2.55**2)  # of flat pictures nothing else differs
    assert metric("ssim", picture(*flat)) == pytest.approx(luminance)


def test_ssim_of_tall_pictures() -> None:
    """Rows of windows are computed some at a time, each exactly once."""
    actual, expected = noisy(300, 12)
    wanted = np.mean([ssim_directly(actual[..., c], expected[..., c], 255) for c in range(3)])
    assert metric("ssim", picture(actual, expected)) == pytest.approx(wanted, abs=1e-12)
    black = np.zeros((789, 11, 1), "u1")
    assert metric("ssim", picture(black, black)) == 1


def emd_directly(actual: Any, expected: Any) -> float:
    """The work of moving sorted values of 256 bins onto each other: in one dimension the order stays."""
    moved = np.abs(np.sort(actual.reshape(-1).astype(int)) - np.sort(expected.reshape(-1).astype(int)))
    return float(moved.mean()) / 255


def test_histogram_emd() -> None:
    """The histogram EMD is the work of moving one histogram into the other, for the worst channel."""
    actual, expected = noisy()
    wanted = max(emd_directly(actual[..., c], expected[..., c]) for c in range(3))
    assert metric("histogram_emd", picture(actual, expected)) == pytest.approx(wanted)
    black, white = np.zeros((2, 2, 1), "u1"), np.full((2, 2, 1), 255, "u1")
    assert metric("histogram_emd", picture(black, white)) == 1
    assert metric("histogram_emd", picture(expected[::-1], expected)) == 0
    assert metric("histogram_emd", values([0.0, 1.0, 2.0], [0.0, 1.0, 1.0])) == 0  # beyond the range
    assert metric("histogram_emd", values([0.25], [0.75])) == pytest.approx(128 / 255)
    signed = Pair("", np.array([-128], "i1"), np.array([127], "i1"), 127.0, (1,))
    assert metric("histogram_emd", [signed]) == 1
    assert math.isnan(metric("histogram_emd", values([math.nan], [0.0])))


def test_metrics_of_numbers() -> None:
    """Arm's five, from their formulas."""
    expected = RANDOM.normal(size=5000)
    actual = 1.001 * expected + RANDOM.normal(size=5000) * 1e-3
    pairs = values(actual, expected)
    a, e = actual.tolist(), expected.tolist()
    product, squares = math.fsum(x * y for x, y in zip(a, e, strict=True)), math.fsum(y * y for y in e)
    norm = math.sqrt(math.fsum(x * x for x in a))
    error = math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, e, strict=True)))
    assert metric("rel_l2", pairs) == pytest.approx(error / math.sqrt(squares))
    assert metric("cosine", pairs) == pytest.approx(product / norm / math.sqrt(squares))
    assert metric("scale_error", pairs) == pytest.approx(abs(product / squares - 1))
    moved = math.fsum(abs(x - y) for x, y in zip(sorted(a), sorted(e), strict=True))
    assert metric("wasserstein_rel", pairs) == pytest.approx(moved / math.fsum(map(abs, e)))
    errors = sorted(abs(x - y) for x, y in zip(a, e, strict=True))
    position = 0.999 * 4999
    low, share = int(position), position - int(position)
    assert metric("atol_p999", pairs) == pytest.approx(errors[low] + share * (errors[low + 1] - errors[low]))


@pytest.mark.parametrize("name, both_zero, one_zero", cases(__file__, "formats.txt", "ZEROS"))
def test_metrics_of_zeros(name: str, both_zero: str, one_zero: str) -> None:
    """Metrics of zeros divide nothing by zero."""
    assert metric(name, values([0.0, 0.0], [0.0, 0.0])) == float(both_zero)
    assert metric(name, values([1.0, 1.0], [0.0, 0.0])) == float(one_zero)
    assert metric(name, values([], [])) == (float(both_zero) if name != "cosine" else 1)


@pytest.mark.parametrize("name", ["rel_l2", "cosine", "scale_error", "wasserstein_rel", "atol_p999"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_errors(name: str, value: float) -> None:
    """On either side."""
    with pytest.raises(ValueError, match="the output has values that are not finite"):
        metric(name, values([value], [1.0]))
    with pytest.raises(ValueError, match="the expected content has values that are not finite"):
        metric(name, values([1.0], [value]))


@pytest.mark.parametrize("name", ["rmse", "psnr", "rel_l2", "cosine", "scale_error", "histogram_emd"])
def test_memory_for_a_large_output(name: str) -> None:
    """No copies of all values in double precision are made."""
    actual, expected = np.ones(1 << 21, "f4"), np.full(1 << 21, 0.5, "f4")
    tracemalloc.start()
    value = metric(name, [Pair("", actual, expected, 1.0, actual.shape)])
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert value == pytest.approx(metric(name, [Pair("", actual[:1], expected[:1], 1.0, (1,))]))
    assert most_bytes < expected.nbytes


@needs(FLIP_EVALUATOR)
def test_flip() -> None:
    """FLIP equals NVIDIA's package: 0 for equal pictures, and more for black against white than for noise."""
    actual, expected = noisy(16, 16)
    black, white = np.zeros((16, 16, 3), "u1"), np.full((16, 16, 3), 255, "u1")
    assert metric("flip", picture(expected, expected)) == 0
    assert 0 < metric("flip", picture(actual, expected)) < metric("flip", picture(white, black)) <= 1
    assert metric("flip", picture(white, black)) == pytest.approx(0.967, abs=0.01)
    bright = [Pair(c, np.full(256, 8, "f4"), np.full(256, 4, "f4"), 1.0, (16, 16)) for c in "RGB"]
    assert 0 < metric("flip", bright) <= 1


@needs(FLIP_EVALUATOR)
@pytest.mark.parametrize("black", [0.0, 1e-8, -1.0])
def test_flip_of_floats_against_black(black: float) -> None:
    """The package has no exposure for it, and would end the process."""
    against_black = [Pair(c, np.full(256, 8, "f4"), np.full(256, black, "f4"), 1.0, (16, 16)) for c in "RGB"]
    with pytest.raises(ValueError, match=r"the expected picture is black at every exposure: choose another metric"):
        metric("flip", against_black)
    assert metric("flip", [pair._replace(actual=pair.expected) for pair in against_black]) == 0
    dim = [pair._replace(expected=np.full(256, 1e-6, "f4")) for pair in against_black]
    assert 0 < metric("flip", dim) <= 1


def test_bounds_give_the_verdict() -> None:
    """Errors have a greatest value, likenesses a least one; a NaN is within no bound."""
    rmse, psnr = METRICS["rmse"], METRICS["psnr"]
    assert verdict(rmse, Most(warn=1, max=2), 1) == ("Pass", "")
    assert verdict(rmse, Most(warn=1, max=2), 1.5) == ("Warn", "rmse is 1.5, expected at most 1")
    assert verdict(rmse, Most(warn=1, max=2), 2.5) == ("Fail", "rmse is 2.5, expected at most 2")
    assert verdict(rmse, Most(warn=1), 2.5)[0] == "Warn"
    assert verdict(rmse, Most(max=1), math.nan)[0] == "Fail"
    assert verdict(psnr, Least(warn=40, min=30), math.inf) == ("Pass", "")
    assert verdict(psnr, Least(warn=40, min=30), 35) == ("Warn", "psnr is 35, expected at least 40")
    assert verdict(psnr, Least(warn=40, min=30), 25) == ("Fail", "psnr is 25, expected at least 30")


@pytest.mark.parametrize("name, green, yellow, red", cases(__file__, "formats.txt", "DEFAULTS"))
def test_default_bounds(name: str, green: str, yellow: str, red: str) -> None:
    """Green passes, yellow is a warning, red a failure."""
    bounds = Least() if name == "cosine" else Most()
    assert [verdict(METRICS[name], bounds, float(value))[0] for value in (green, yellow, red)] == [
        "Pass",
        "Warn",
        "Fail",
    ]


def test_channels_of_an_image_that_do_not_count() -> None:
    """Metrics pass over masked elements, wherever the format has its channels."""
    _, planes = image_planes("VK_FORMAT_B8G8R8A8_UNORM", 2, 2)
    expected = np.zeros((2, 2, 4), "u1")
    actual = expected.copy()
    actual[0, 0] = [10, 20, 30, 40]  # B, G, R, A
    ignored = np.zeros((2, 2, 4), bool)
    ignored[0, 0, [0, 1, 3]] = True
    pairs = pairs_of(planes, memoryview(actual).cast("B"), memoryview(expected).cast("B"), ignored.reshape(-1))
    assert [pair.name for pair in pairs] == ["R", "G", "B", "A"]
    assert [int(pair.actual.max()) for pair in pairs] == [30, 0, 0, 0]
    assert [actual.size for pair in pairs for actual, _ in pair.pieces()] == [4, 3, 3, 3]
    assert metric("rmse", pairs) == pytest.approx(math.sqrt(30**2 / 13))


def content(folder: Path, name: str, array: Any) -> Content:
    numpy.save(folder / f"{name}.npy", array)
    return read_content(str(folder / f"{name}.npy"))


def compared(folder: Path, one: Any, other: Any) -> Difference:
    return compare(content(folder, "a", one), content(folder, "b", other))


@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 30), dtype=st.sampled_from(["f2", "f4", "f8", "u1", "i4", "i8", "u8"]))
def test_counts_errors_and_places(tmp_path: Path, seed: int, dtype: str) -> None:
    """Count, first index, worst error and bounding box equal NumPy's for every type."""
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
