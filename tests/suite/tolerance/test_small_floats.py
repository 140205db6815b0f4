"""Floats of 8 and 16 bits that are compared by their bits, against double precision and ml_dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from scenario_runner.plan.records import BufferPlan
from scenario_runner.suite.expectations.outputs import held_content
from scenario_runner.suite.tolerance.elements import Rule, compare, wrong_elements
from scenario_runner.suite.tolerance.planes import planes_of
from scenario_runner.viewing.content import ELEMENTS
from tests.suite.tolerance.test_elements import TYPES as ALL_TYPES

TYPES = {name: ALL_TYPES[name] for name in ("float8_e4m3", "float8_e5m2", "float16", "bfloat16")}
ATOLS = (
    1e-30,
    1e-6,
    0.0009765625,
    0.01,
    0.6,
    3.0,
    358.0,
    1000.0,
    5e4,
    1e30,
    2.7e38,
    1e300,
)  # 0.8 of the greatest values, too
RTOLS = (1e-4, 0.0078125, 0.05, 0.3, 1.0, 7.0)
RULES = [
    *(Rule(atol) for atol in ATOLS),
    *(Rule(0, rtol) for rtol in RTOLS),
    *(Rule(atol, rtol) for atol, rtol in ((1e-6, 0.3), (0.01, 0.01), (0.6, 0.05), (1e-30, 1.0))),
]


def bits(name: str) -> Any:
    """All values of a type, as bits."""
    size = ELEMENTS[name].size_bytes
    return np.arange(1 << (8 * size), dtype=f"<u{size}")


def right(name: str, actual: Any, expected: Any, rule: Rule) -> Any:
    """Whether each element is right, in double precision, which holds all these values."""
    a, e = (numbers(name)[values] for values in (actual, expected))
    with np.errstate(all="ignore"):
        near = np.isfinite(a) & np.isfinite(e) & (np.abs(a - e) <= rule.atol + rule.rtol * np.abs(e))
        return near | (a == e) | (np.isnan(a) & np.isnan(e))


@cache
def numbers(name: str) -> Any:
    """The number of each value of a type, by its bits."""
    with np.errstate(all="ignore"):
        return bits(name).view(TYPES[name]).astype("f8")


def check(name: str, actual: Any, expected: Any, rule: Rule) -> Any:
    """The comparison finds as many wrong elements as there are; returns whether each is."""
    element = ELEMENTS[name]
    wrong = ~right(name, actual, expected, rule)
    planes = planes_of(BufferPlan("x", "", actual.nbytes), actual.nbytes, element)
    found = compare(memoryview(actual).cast("B"), held_content(expected.tobytes(), element), planes, rule)
    assert found.wrong == wrong.sum()
    return wrong


def neighbours(name: str) -> Iterator[tuple[Any, Any]]:
    """Every value with others: some steps away, of the other sign, zeros, infinities and NaN."""
    expected = bits(name)
    one = expected.dtype.type(1)
    sign = one << (8 * expected.itemsize - 1)
    for distance in (1, 2, 3, 7, 40, 127, 255):
        yield expected + one * distance, expected
        yield expected - one * distance, expected
        yield (expected + one * distance) ^ sign, expected
    for value in (0, int(sign), int(sign) - 1, (1 << (8 * expected.itemsize)) - 1):
        yield np.full_like(expected, value), expected
        yield expected, np.full_like(expected, value)


@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e5m2"])
@pytest.mark.parametrize("rule", RULES)
def test_all_pairs_of_bytes(name: str, rule: Rule) -> None:
    """Of every two values."""
    actual, expected = np.repeat(bits(name), 256), np.tile(bits(name), 256)
    check(name, actual, expected, rule)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("rule", RULES)
def test_all_values_of_two_bytes(name: str, rule: Rule) -> None:
    """Of every value and many others, and of pieces of them whose values have about the same magnitude."""
    for actual, expected in neighbours(name):
        wrong = check(name, actual, expected, rule)
        for start in range(0, actual.size, 64 * 61):
            part = slice(start, start + 64)
            pieces = (each[part].view(ELEMENTS[name].dtype) for each in (actual, expected))
            found = wrong_elements(*pieces, ELEMENTS[name], rule)
            assert found.tolist() == np.flatnonzero(wrong[part]).tolist()
