"""Wrong elements, compared with ml_dtypes and with exact fractions; floats of 8 and 16 bits exhaustively."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenario_runner.compare.wrong_elements import Rule, element_errors, wrong_elements
from scenario_runner.files.elements import ELEMENTS

TYPES: dict[str, Any] = {
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}


def raw(name: str, *values: float) -> Any:
    """Values in the bits that an element is kept in."""
    with np.errstate(over="ignore"):
        return np.array(values, TYPES.get(name, name)).view(ELEMENTS[name].dtype)


def wrong(name: str, actual: Any, expected: Any, **rule: Any) -> list[int]:
    return wrong_elements(actual, expected, ELEMENTS[name], Rule(**rule)).tolist()


@pytest.mark.parametrize("name", TYPES)
def test_bits_are_compared_unless_a_rule_is_given(name: str) -> None:
    """Without a rule bits are compared: both zeros differ, and a NaN equals itself."""
    actual, expected = raw(name, 0.0, 1.0, math.nan, 2.0), raw(name, -0.0, 1.0, math.nan, 3.0)
    assert wrong(name, actual, expected) == [0, 3]
    assert wrong(name, actual, expected, atol=1e-30) == [3]


@pytest.mark.parametrize("name", TYPES)
def test_ulp_counts_representable_values(name: str) -> None:
    """Across zero too; infinity is no neighbour of the greatest number."""
    type = TYPES[name]
    one, least = np.array(1, type), np.nextafter(np.array(0, type), np.array(1, type))
    next_one = np.nextafter(one, np.array(2, type))
    actual = np.array([next_one, least, -least, next_one], type).view(ELEMENTS[name].dtype)
    expected = np.array([one, -least, least, np.nextafter(next_one, np.array(2, type))], type).view(actual.dtype)
    assert wrong(name, actual, expected, ulp=1) == [1, 2]
    assert wrong(name, actual, expected, ulp=2) == []
    if name != "float8_e4m3":  # which has no infinity
        greatest = np.array([ml_dtypes.finfo(type).max, np.inf], type).view(actual.dtype)
        assert wrong(name, greatest, greatest[::-1], ulp=5, rtol=1e9) == [0, 1]


def test_zero_replaces_ulp_near_zero() -> None:
    """Near zero the tolerance is absolute: ULP count for nothing there, and everywhere else."""
    expected, actual = raw("float32", 0.0, 1e-6, 1e-6, 1.0), raw("float32", 5e-7, 1.9e-6, 2.1e-6, 1.0000001)
    assert wrong("float32", actual, expected, ulp=1) == [0, 1, 2]
    assert wrong("float32", actual, expected, ulp=1, zero=1e-6) == [2]
    near = raw("float32", 1e-3)
    assert wrong("float32", np.nextafter(near.view("f4"), np.float32(1)), near, ulp=1, zero=1e-9) == []
    assert wrong("float32", actual, expected, ulp=1 << 24) == [0]
    assert wrong("float32", actual, expected, ulp=1 << 24, zero=1e-6) == [2]


def test_denormals_may_be_flushed() -> None:
    """A zero stands for a denormal value of its own sign, on either side, and for nothing else."""
    denormal, normal = 1e-40, 1.2e-38
    expected = raw("float32", denormal, denormal, 0.0, -denormal, normal, denormal)
    actual = raw("float32", 0.0, -0.0, denormal, -0.0, 0.0, 2e-40)
    assert wrong("float32", actual, expected, denormals="any") == [1, 4, 5]
    assert wrong("float32", actual, expected, nan="equal") == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("policy, expected", [("equal", [1, 2]), ("any", [1]), ("error", [0, 1, 2])])
def test_nan_policies(policy: str, expected: list[int]) -> None:
    """NaN equals NaN, excuses everything, or is an error."""
    actual, wanted = raw("float32", math.nan, math.nan, 1.0, 2.0), raw("float32", math.nan, 1.0, math.nan, 2.0)
    assert wrong("float32", actual, wanted, nan=policy) == expected


def exact_verdict(a: float, e: float, atol: float, rtol: float) -> bool:
    """Whether it is right, in exact arithmetic."""
    if not (math.isfinite(a) and math.isfinite(e)):
        return a == e or (math.isnan(a) and math.isnan(e))
    return a == e or abs(Fraction(a) - Fraction(e)) <= Fraction(atol) + Fraction(rtol) * abs(Fraction(e))


singles = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0, 1e-40, 3.4e38])
bounds = st.sampled_from([0.0, 1e-6, 1e-3, 0.5])


@given(st.lists(st.tuples(singles, singles), min_size=1, max_size=20), bounds, bounds)
def test_bounds_are_those_of_exact_arithmetic(pairs: list[tuple[float, float]], atol: float, rtol: float) -> None:
    """The verdict on each element equals exact arithmetic."""
    pairs += [(e * (1 + atol), e) for _, e in pairs if math.isfinite(e) and abs(e) < 1e37]
    actual, expected = (raw("float32", *(float(np.float32(pair[side])) for pair in pairs)) for side in (0, 1))
    if not atol and not rtol:
        return
    every = wrong("float32", actual, expected, atol=atol, rtol=rtol)
    for at in range(actual.size):
        a, e = float(actual.view("f4")[at]), float(expected.view("f4")[at])
        if at in every:
            assert not exact_verdict(a, e, atol * (1 - 1e-12), rtol * (1 - 1e-12))
        else:
            assert exact_verdict(a, e, atol * (1 + 1e-12), rtol * (1 + 1e-12))


def test_errors_are_those_of_numbers() -> None:
    """The error is infinite where only one side is a finite number."""
    actual, expected = raw("bfloat16", 1.5, math.nan, math.inf, math.nan), raw("bfloat16", 1.0, 1.0, 1.0, math.nan)
    assert element_errors(actual, expected, ELEMENTS["bfloat16"]).tolist() == [0.5, math.inf, math.inf, 0.0]


def test_large_integers_are_compared_exactly() -> None:
    """Integers beyond the exact range of doubles are exact: 2^53 is allowed, 2^53 + 1 is not."""
    actual, expected = raw("int64", 0, 0), np.array([2**53, 2**53 + 1])
    assert wrong("int64", actual, expected, atol=2.0**53) == [1]


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_ulp_of_integers_counts_their_values(name: str) -> None:
    """A ULP of an integer is 1, exact over the whole range; near zero the bound is `zero`."""
    limits = (0, 1) if name == "bool" else (np.iinfo(name).min, np.iinfo(name).max)
    expected = np.array([limits[0], limits[1], 1, 0], ELEMENTS[name].dtype)
    actual = np.array([limits[1], limits[0], 0, 1], ELEMENTS[name].dtype)
    assert wrong(name, actual, expected, ulp=1) == ([] if name == "bool" else [0, 1])
    assert 3 in wrong(name, actual, expected, ulp=1, zero=0.5)
    if name != "bool":
        five = np.array([5, 5, 5], ELEMENTS[name].dtype)
        assert wrong(name, np.array([7, 8, 3], five.dtype), five, ulp=2) == [1]


@pytest.mark.parametrize("name", TYPES)
def test_bounds_beyond_single_precision(name: str) -> None:
    """Infinity is beyond a bound that is greater than all numbers, and a denormal value beyond a smaller one."""
    for actual, expected, atol in ((math.inf, 1.0, 1e300), (2.0**-149, 0.0, 1.4e-45)):
        pair = raw(name, actual), raw(name, expected)
        every = wrong(name, *pair, atol=atol)
        assert every == ([] if float(pair[0].view(TYPES[name])[0]) == expected else [0])


@pytest.mark.parametrize("name", ["bfloat16", "float32"])
def test_rtol_of_denormal_values(name: str) -> None:
    """One step from 2 exceeds a factor of 0.3, and one step from 4 does not: products are not rounded to whole
    steps."""
    steps = np.array([[3, 2], [5, 4], [0, 0]], f"<u{ELEMENTS[name].size_bytes}").T
    actual, expected = np.ascontiguousarray(steps).view(ELEMENTS[name].dtype)
    assert wrong(name, actual, expected, rtol=0.3) == [0]


@pytest.mark.parametrize(
    "actual, expected, atol, rtol",
    [
        (1.0, 2.0**-149, 0.0, 1e39),
        (-9.2e33, 6.3e-22, 1.0, 4e38),
        ((385945 + 292268) * 2.0**-149, 385945 * 2.0**-149, 5.395013100635189e-44, 0.7571791255276246),
    ],
)
def test_bounds_that_single_precision_rounds(actual: float, expected: float, atol: float, rtol: float) -> None:
    """No bound becomes infinite, or greater by one of the least values."""
    pair = raw("float32", actual), raw("float32", expected)
    assert not exact_verdict(*(float(side.view("f4")[0]) for side in pair), atol, rtol)
    assert wrong("float32", *pair, atol=atol, rtol=rtol) == [0]


SMALL_TYPES = {name: TYPES[name] for name in ("float8_e4m3", "float8_e5m2", "float16", "bfloat16")}
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
        return bits(name).view(SMALL_TYPES[name]).astype("f8")


def check(name: str, actual: Any, expected: Any, rule: Rule) -> None:
    """Check that the wrong elements equal double precision, which holds all these values."""
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
    """All pairs of bytes are compared like doubles."""
    actual, expected = np.repeat(bits(name), 256), np.tile(bits(name), 256)
    check(name, actual, expected, rule)
    check(name, actual[:20_000], expected[:20_000], rule)  # too few for a table


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("rule", RULES)
def test_all_values_of_two_bytes(name: str, rule: Rule) -> None:
    """All values of two bytes are compared with many others like doubles."""
    for actual, expected in neighbours(name):
        check(name, actual, expected, rule)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(SMALL_TYPES)),
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
            numbers.astype(SMALL_TYPES[name]).view(f"u{ELEMENTS[name].size_bytes}")
            for numbers in (values, values + random.normal(size=500) * 2.0 ** (scale + noise))
        )
    atol, rtol, keys = bounds
    check(name, actual, expected, Rule(2.0**atol * (keys != "rtol"), 2.0**rtol * (keys != "atol")))


@pytest.mark.parametrize("name", SMALL_TYPES)
def test_the_greatest_values(name: str) -> None:
    """The neighbours of the greatest values are not finite, or are zeros of the other sign, by their bits."""
    greatest = np.array([ml_dtypes.finfo(SMALL_TYPES[name]).max], SMALL_TYPES[name]).view(bits(name).dtype)
    one, sign = greatest.dtype.type(1), greatest.dtype.type(1 << (8 * greatest.itemsize - 1))
    rule = Rule(0.8 * float(ml_dtypes.finfo(SMALL_TYPES[name]).max))
    for actual, expected in ((greatest, greatest * 0 + sign), (greatest + one, greatest), (greatest, greatest + one)):
        check(name, actual, expected, rule)
        check(name, actual ^ sign, expected ^ sign, rule)
