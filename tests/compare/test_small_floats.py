"""Floats of 8 and 16 bits, for which tables and single precision are used, against double precision and ml_dtypes."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenario_runner.compare.wrong_elements import Rule, wrong_elements
from scenario_runner.files.elements import ELEMENTS
from tests.compare.test_wrong_elements import TYPES as ALL_TYPES

TYPES = {name: ALL_TYPES[name] for name in ("float8_e4m3", "float8_e5m2", "float16", "bfloat16")}
RULES = [
    *(Rule(atol) for atol in (1e-30, 0.0009765625, 0.6, 1000.0, 1e300)),
    *(Rule(0, rtol) for rtol in (0.0078125, 0.3, 1.0, 7.0)),
    *(Rule(atol, rtol) for atol, rtol in ((1e-6, 0.3), (0.6, 0.05), (1e-30, 1.0))),
]


def bits(name: str) -> Any:
    """All values of a type, as bits."""
    size = ELEMENTS[name].size_bytes
    return np.arange(1 << (8 * size), dtype=f"<u{size}")


@cache
def numbers(name: str) -> Any:
    """The number of each value of a type, by its bits."""
    with np.errstate(all="ignore"):
        return bits(name).view(TYPES[name]).astype("f8")


def check(name: str, actual: Any, expected: Any, rule: Rule) -> None:
    """The wrong elements are those of double precision, which holds all these values."""
    a, e = (numbers(name)[values] for values in (actual, expected))
    with np.errstate(all="ignore"):
        near = np.isfinite(a) & np.isfinite(e) & (np.abs(a - e) <= rule.atol + rule.rtol * np.abs(e))
        right = near | (a == e) | (np.isnan(a) & np.isnan(e))
    raw = (values.view(ELEMENTS[name].dtype) for values in (actual, expected))
    np.testing.assert_array_equal(wrong_elements(*raw, ELEMENTS[name], rule), np.flatnonzero(~right))


def neighbours(name: str) -> Iterator[tuple[Any, Any]]:
    """Every value with others: some steps away, of the other sign, zeros, infinities and NaN."""
    expected = bits(name)
    one = expected.dtype.type(1)
    sign = one << (8 * expected.itemsize - 1)
    for distance in (1, 3, 40, 255):
        yield expected + one * distance, expected
        yield (expected - one * distance) ^ sign, expected
    for value in (0, int(sign), int(sign) - 1, (1 << (8 * expected.itemsize)) - 1):
        yield np.full_like(expected, value), expected
        yield expected, np.full_like(expected, value)


@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e5m2"])
@pytest.mark.parametrize("rule", RULES)
def test_all_pairs_of_bytes(name: str, rule: Rule) -> None:
    """Of every two values."""
    actual, expected = np.repeat(bits(name), 256), np.tile(bits(name), 256)
    check(name, actual, expected, rule)
    check(name, actual[:20_000], expected[:20_000], rule)  # too few for a table


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("rule", RULES)
def test_all_values_of_two_bytes(name: str, rule: Rule) -> None:
    """Of every value and many others."""
    for actual, expected in neighbours(name):
        check(name, actual, expected, rule)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(TYPES)),
    st.integers(0, 2**32),
    st.floats(-20, 20),
    st.floats(-12, 3),
    st.tuples(st.floats(-30, 20), st.floats(-12, 3), st.sampled_from(["both", "atol", "rtol"])),
)
def test_noise(name: str, seed: int, scale: float, noise: float, bounds: tuple[float, float, str]) -> None:
    """Values of some magnitude, and zeros, with errors of another one."""
    random = np.random.default_rng(seed)
    values = random.normal(size=500) * 2.0**scale * (random.random(500) < 0.7)
    with np.errstate(over="ignore"):
        expected, actual = (
            numbers.astype(TYPES[name]).view(f"u{ELEMENTS[name].size_bytes}")
            for numbers in (values, values + random.normal(size=500) * 2.0 ** (scale + noise))
        )
    atol, rtol, keys = bounds
    check(name, actual, expected, Rule(2.0**atol * (keys != "rtol"), 2.0**rtol * (keys != "atol")))


@pytest.mark.parametrize("name", TYPES)
def test_the_greatest_values(name: str) -> None:
    """Next to them by their bits lies what is not finite, and not far from them the zero of the other sign."""
    greatest = np.array([ml_dtypes.finfo(TYPES[name]).max], TYPES[name]).view(bits(name).dtype)
    one, sign = greatest.dtype.type(1), greatest.dtype.type(1 << (8 * greatest.itemsize - 1))
    rule = Rule(0.8 * float(ml_dtypes.finfo(TYPES[name]).max))
    for actual, expected in ((greatest, greatest * 0 + sign), (greatest + one, greatest), (greatest, greatest + one)):
        check(name, actual, expected, rule)
        check(name, actual ^ sign, expected ^ sign, rule)
