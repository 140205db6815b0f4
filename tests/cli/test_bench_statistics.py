"""Summaries of samples, compared with NumPy, and the test for a change between medians of processes."""

from itertools import product

import numpy
import pytest

from scenario_runner.cli.bench.changes import Change, chances, changes
from scenario_runner.cli.bench.samples import Row, ScenarioSamples, summary

GENERATOR = numpy.random.default_rng(7)
MOST_CHANCE = 0.01


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
def test_summary(count: int) -> None:
    """Minimum, median, 95th percentile and MAD equal NumPy's."""
    samples = GENERATOR.gamma(2.0, 1e5, count)
    found = summary(samples.tolist())
    median = numpy.median(samples)
    assert found.min == samples.min()
    assert found.median == pytest.approx(median)
    assert found.p95 == pytest.approx(numpy.percentile(samples, 95))
    assert found.mad == pytest.approx(numpy.median(numpy.abs(samples - median)))


def change(before: list[float], after: list[float], threshold_percent: float = 2.0, period_ns: float = 0) -> Change:
    """Compare one row with one sample for each process."""
    sides = [
        ScenarioSamples("s", "d", period_ns, len(times), [1] * len(times), rows=[Row("device", "x", 0, times)])
        for times in (before, after)
    ]
    (found,) = changes(*sides, threshold_percent=threshold_percent, most_chance=MOST_CHANCE)
    return found


def test_all_signs_are_counted() -> None:
    """The chance of a single row is the share of sign patterns with an equal or larger sum of signed ranks."""
    row = GENERATOR.normal(0.5, 1, 9)
    ranks = numpy.abs(row).argsort().argsort() + 1
    total = abs(sum(numpy.sign(row) * ranks))
    sums = [
        abs(sum(rank * sign for rank, sign in zip(ranks, signs, strict=True))) for signs in product((1, -1), repeat=9)
    ]
    assert chances([row.tolist()]) == [sum(each >= total for each in sums) / 2**9]
    assert chances([[1.0] * 9, [0.0] * 9]) == [2 / 2**9, 1]


@pytest.mark.parametrize("pairs", [8, 12, 20])
def test_chance_alone(pairs: int) -> None:
    """Rows of unchanged code that rise and fall together are called changed in one of 100 comparisons."""
    found = 0
    for _ in range(300):
        load = GENERATOR.standard_exponential(pairs) - GENERATOR.standard_exponential(pairs)
        rows = load + 0.3 * GENERATOR.standard_normal((10, pairs))
        found += min(chances(rows.tolist())) <= MOST_CHANCE
    assert found <= 11  # more by chance alone in one of 10,000 runs


def test_a_tenth_more() -> None:
    """A tenth more is found among 10 unchanged rows where pairs spread by 6 percent, and not where they spread much."""
    found = []
    for _ in range(100):
        rows = 0.06 * GENERATOR.standard_normal((11, 20))
        rows[3] += numpy.log(1.1)
        found.append(chances(rows.tolist())[3] <= MOST_CHANCE)
    assert sum(found) >= 90
    wide = GENERATOR.lognormal(0, 0.5, (2, 20)) * 1000
    assert change(wide[0].tolist(), (wide[1] * 1.1).tolist()).verdict == "same"


def test_what_both_sides_share_decides_nothing() -> None:
    """A load that comes and goes for both processes of a pair hides no change, nor does a disturbed process."""
    load = GENERATOR.uniform(1000, 5000, 20)
    before, after = (load * GENERATOR.normal(factor, 0.01, 20) for factor in (1.0, 1.1))
    assert change(before.tolist(), after.tolist()).verdict == "slower"
    assert change(after.tolist(), before.tolist()).verdict == "faster"
    after[0] /= 100
    assert change(before.tolist(), after.tolist()).verdict == "slower"
    before[2:4] /= 100
    assert change(before.tolist(), before.tolist()) == (
        Row("device", "x", 0, before.tolist()),
        *[numpy.median(before)] * 2,
        1,
        1,
        "same",
    )


def test_bounds_of_a_change() -> None:
    """A change is more than the threshold and two ticks of the clock; eight processes show one, seven none."""
    few = [1000.0] * 8
    assert change(few, [1019.0] * 8).verdict == "same"
    assert change(few, [1021.0] * 8).verdict == "slower"
    assert change(few, [1021.0] * 8, period_ns=25).verdict == "same"
    assert change(few, [9000.0] * 7).verdict == "unknown"
    assert change([0.0] * 8, [0.0] * 8).verdict == "same"
