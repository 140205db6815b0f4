"""What is said of samples, compared with NumPy, and the rule for a change."""

from typing import Any

import numpy
import pytest

from scenario_runner.cli.bench import MIN_SAMPLES, compare, summary

GENERATOR = numpy.random.default_rng(7)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
def test_summary(count: int) -> None:
    """Minimum, median, 95th percentile and MAD are those of NumPy."""
    samples = GENERATOR.gamma(2.0, 1e5, count)
    found = summary(samples.tolist())
    median = numpy.median(samples)
    assert found.number == count
    assert found.min == samples.min()
    assert found.median == pytest.approx(median)
    assert found.p95 == pytest.approx(numpy.percentile(samples, 95))
    assert found.mad == pytest.approx(numpy.median(numpy.abs(samples - median)))


def verdict(before: list[float], after: list[float], threshold_percent: float = 2.0, resolution_ns: float = 0) -> str:
    bounds = {"threshold_percent": threshold_percent, "resolution_ns": resolution_ns}
    return compare(summary(before), summary(after), **bounds)[0]


def test_a_change_beyond_noise() -> None:
    """A tenth more is seen where samples spread little, in both directions, and not where they spread much."""
    narrow = GENERATOR.normal(1000, 10, 50)
    wide = GENERATOR.normal(1000, 500, 50)
    assert verdict(narrow.tolist(), (narrow * 1.1).tolist()) == "slower"
    assert verdict((narrow * 1.1).tolist(), narrow.tolist()) == "faster"
    assert verdict(wide.tolist(), (wide * 1.1).tolist()) == "same"


def test_outliers_decide_nothing() -> None:
    """A few samples that are a hundred times as long do not hide a change, nor make one."""
    samples = GENERATOR.normal(1000, 10, 50)
    disturbed = samples.copy()
    disturbed[:5] *= 100
    assert verdict(samples.tolist(), disturbed.tolist()) == "same"
    assert verdict(disturbed.tolist(), (samples * 1.2).tolist()) == "slower"


@pytest.mark.parametrize("counts", [(5, 5), (5, 100), (10, 10), (20, 20), (30, 30)])
@pytest.mark.parametrize("draw", [GENERATOR.standard_normal, GENERATOR.standard_exponential])
def test_chance_alone(counts: tuple[int, int], draw: Any) -> None:
    """Samples of one distribution differ by more than noise in about one of 300 comparisons, also where there are few
    samples."""
    verdicts = []
    for _ in range(600):
        one, other = (1000 + 100 * draw(count) for count in counts)
        verdicts.append(verdict(one.tolist(), other.tolist(), threshold_percent=0))
    assert sum(each != "same" for each in verdicts) <= 9  # more by chance alone in one of 10,000 runs


def test_bounds_of_a_change() -> None:
    """Equal samples change by less than the threshold or the resolution, and too few say nothing."""
    assert verdict([1000.0] * 10, [1019.0] * 10) == "same"
    assert verdict([1000.0] * 10, [1021.0] * 10) == "slower"
    assert verdict([1000.0] * 10, [1021.0] * 10, resolution_ns=50) == "same"
    assert verdict([1000.0] * (MIN_SAMPLES - 1), [9000.0] * 10) == "unknown"
    assert verdict([0.0] * 10, [0.0] * 10) == "same"
