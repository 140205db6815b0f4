"""TOSA's compliance modes: limits and verdicts equal the official verifier's."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from scenario_runner.compare.tosa_rules import DATA_TYPES, MODES, TosaRule, _verify, judge, judges, limits
from scenario_runner.files.elements import ELEMENTS, Element
from tests.left_out import TOSA_TOOLS, needs

pytestmark = needs(TOSA_TOOLS)

FLOATS = ("FP32", "FP16", "BF16")
SMALL = ("FP8E4M3", "FP8E5M2")
PARAMETERS: list[tuple[str, tuple[str, ...], dict[str, float]]] = [
    ("EXACT", FLOATS + SMALL, {}),
    ("ULP", FLOATS + SMALL, {"ulp": 0.5, "ulp_lower": 1.0}),
    ("ULP", FLOATS, {"ulp": 5}),
    ("ABS_ERROR", FLOATS, {}),
    ("ABS_ERROR", FLOATS, {"base_bound": 3}),
    ("ABS_ERROR", FLOATS, {"lower_bound": 0.5, "base_bound": 4}),
    ("ABS_ERROR", FLOATS, {"base_bound": 2.0, "bound_as_magnitude": True, "normal_divisor": 2, "max_compare": 1e-4}),
    ("REDUCE_PRODUCT", FLOATS, {"n": 4}),
    ("MAX_RELATIVE", FLOATS, {"max": 7.5, "scale": 0.006, "ulp_bound": 20.0}),
    ("PRECOMPUTED", FLOATS, {}),
    ("DOT_PRODUCT", FLOATS, {"s": 0, "ksb": 9, "abs_bound": 7, "variance_error_bound": 1e30}),
    ("DOT_PRODUCT", FLOATS, {"s": 0, "ksb": 9, "variance_error_bound": 1e30}),
]


RULES = [
    pytest.param(mode, data_type, parameters, id=f"{mode}-{data_type}-{'-'.join(parameters)}")
    for mode, data_types, parameters in PARAMETERS
    for data_type in data_types
]


def values(element: Element) -> Any:
    """Expected values of all magnitudes, also denormal ones and those beyond the type, and bounds."""
    random = np.random.default_rng(7)
    least, greatest = float(element.limits.smallest_normal), float(element.limits.max)
    special = [0.0, least, -least, least * 0.75, -least * 0.75, greatest, -greatest, greatest * 1.01, np.inf, np.nan]
    expected = np.concatenate([special, random.normal(size=14) * 4.0 ** random.integers(-3, 4, 14)])
    return expected.reshape(4, 6), np.abs(random.normal(size=(4, 6))) * np.where(random.random((4, 6)) < 0.1, 0, 1)


def rounded(values: Any, element: Element) -> Any:
    """Return values rounded to a type, infinite (NaN) beyond its range."""
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(element.type)


def beyond(limit: float, side: float, element: Element) -> Any:
    """The last value of a type within a limit, and the first one beyond it that is no zero."""
    end = rounded(side * float(element.limits.max), element)
    within = rounded(limit, element)
    if (float(within) - limit) * side > 0:
        within = np.nextafter(within, -end)
    outside = np.nextafter(within, end)
    return within, np.nextafter(outside, end) if outside == 0 else outside


@pytest.mark.parametrize("mode, data_type, parameters", RULES)
def test_limits_are_those_of_the_verifier(mode: str, data_type: str, parameters: dict[str, float]) -> None:
    """An element at its limit passes, and the next value beyond fails with a reason that names it."""
    element = ELEMENTS[DATA_TYPES[data_type][1]]
    expected, bounds = values(element)
    if mode == "DOT_PRODUCT":  # whose data never overflow
        expected = np.where((np.abs(expected) <= float(element.limits.max)) & (bounds > 0), expected, 0.0)
    right = rounded(expected, element)
    expected = right.astype("f8")
    rule = TosaRule(mode, data_type, expected, bounds if MODES[mode].has_bounds else None, parameters)
    assert judge(right, rule).passed
    _, low, high, over = limits(right.reshape(-1).view(element.dtype), element, rule)
    assert not over.any()
    checked = 0
    for at in range(expected.size):
        for limit, side in ((low[at], -1.0), (high[at], 1.0)):
            if not np.isfinite(limit) or abs(limit) == float(element.limits.max):
                continue
            within, outside = beyond(limit, side, element)
            actual = right.copy()
            actual.reshape(-1)[at] = within
            assert judge(actual, rule).passed, (at, limit)
            actual.reshape(-1)[at] = outside
            judgement = judge(actual, rule)
            place = str([int(index) for index in np.unravel_index(at, expected.shape)])
            assert not judgement.passed, (at, limit)
            assert [index for index, _, _ in judgement.worst] == [place]
            assert judgement.message.startswith(
                f"1 of 24 elements (4.17 %) is wrong by TOSA's mode {mode}, the worst at "
            )
            checked += 1
        for damage in (np.nan, -expected.reshape(-1)[at] * 2 - 1):
            actual = right.copy()
            actual.reshape(-1)[at] = rounded(damage, element)
            raw = actual.reshape(-1).view(element.dtype)
            assert judge(actual, rule).passed == (not limits(raw, element, rule)[3].any()), (at, damage)
    assert checked > 20


@pytest.mark.parametrize("data_type", [name for name in DATA_TYPES if name[:2] in ("BO", "IN")])
def test_integers(data_type: str) -> None:
    """Each bit of an integer counts, and the worst elements come first."""
    dtype = ELEMENTS[DATA_TYPES[data_type][1]].dtype
    expected = (np.arange(6) % (2 if data_type == "BOOL" else 7)).astype(dtype).reshape(2, 3)
    rule = TosaRule("EXACT", data_type, expected)
    assert judge(expected.copy(), rule).passed
    actual = expected.copy()
    actual[1, 2] = 0
    actual[0, 1] = 0
    judgement = judge(actual, rule)
    assert not judgement.passed
    assert [index for index, _, _ in judgement.worst] == (
        ["[0, 1]", "[1, 2]"] if data_type == "BOOL" else ["[1, 2]", "[0, 1]"]
    )


@pytest.mark.parametrize("unsigned", [False, True])
def test_inexact_rescaling(unsigned: bool) -> None:
    """Every number between the two expected files is right."""
    expected, bounds = np.int8([5, -100, 100]), np.int8([6, -98, 100])
    rule = TosaRule("RESCALE_INEXACT", "INT8", expected, bounds, {"unsigned_data": unsigned})
    assert judge(np.int8([6, -99, 100]), rule).passed
    judgement = judge(np.int8([4, -99, -100]), rule)
    got, error = ("156 (0x9c)", 56) if unsigned else ("-100 (0x9c)", 200)
    assert judgement.message == (
        "2 of 3 elements (66.7 %) are wrong by TOSA's mode RESCALE_INEXACT, the worst at [2]: "
        f"{got}, expected 100; allowed: 100 to 100, exceeded by {error}"
    )


def test_special_values() -> None:
    """FP_SPECIAL looks at NaN, infinity and signs only."""
    expected = np.array([np.nan, np.inf, 1.0, -1.0])
    rule = TosaRule("FP_SPECIAL", "FP32", expected, np.ones(4))
    assert judge(np.float32([np.nan, np.inf, 3e38, -1e-30]), rule).passed
    for at, value in ((0, 1), (1, np.nan), (1, -np.inf), (2, np.inf), (2, -1), (3, 1)):
        actual = expected.astype("f4")
        actual[at] = value
        judgement = judge(actual, rule)
        assert not judgement.passed
        assert [index for index, _, _ in judgement.worst] == [f"[{at}]"]


def test_errors_of_a_whole_test_set(capfd: pytest.CaptureFixture[str]) -> None:
    """A set error without a wrong element has the verifier's own reason, which is not printed."""
    expected = np.linspace(1, 2, 1000)
    rule = TosaRule(
        "DOT_PRODUCT", "FP32", expected, expected, {"s": 3, "ksb": 2, "abs_bound": 4, "variance_error_bound": 10}
    )
    assert judge(expected.astype("f4"), rule).passed
    judgement = judge(np.float32(expected * (1 + 2.5 * 2.0**-24)), rule)
    assert judgement.worst == ()
    assert judgement.message.startswith("wrong by TOSA's mode DOT_PRODUCT: Bias magnitude (abs(")
    assert judge(
        np.float32(expected * (1 + 2.5 * 2.0**-24)), rule._replace(parameters={**rule.parameters, "s": 0})
    ).passed
    assert capfd.readouterr() == ("", "")


def test_a_scalar() -> None:
    """Outputs of rank 0 have an index without places."""
    assert judge(np.float32(1), TosaRule("EXACT", "FP32", np.array(1.0))).passed
    assert judge(np.float32(2), TosaRule("EXACT", "FP32", np.array(1.0))).worst == (("[]", "1", "2.0 (0x40000000)"),)


def test_arrays_that_do_not_fit() -> None:
    """The library would read beyond their ends."""
    rule = TosaRule("PRECOMPUTED", "FP32", np.ones(4), np.ones(4))
    for actual, wrong in (
        (np.ones(3, "f4"), rule),
        (np.ones(4, "f4"), rule._replace(bounds=np.ones(3))),
        (np.ones(4, "f4"), rule._replace(expected=np.ones(3))),
    ):
        with pytest.raises(ValueError, match="is not FP32 of shape"):
            judge(actual, wrong)


def test_threads_share_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    """Standard error has nothing of the verifier, and is as before, after several threads have judged at a time."""
    rule = TosaRule("EXACT", "FP32", np.arange(1000.0))

    def wrong() -> None:
        for _ in range(50):
            assert not judge(np.ones(1000, "f4"), rule).passed

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(wrong) for _ in range(4)]:
            future.result()
    os.write(2, b"still here")
    assert capfd.readouterr().err == "still here"


def test_rules_that_are_none() -> None:
    """A wrong rule is an error, since parameters of another type would end the process."""
    ones = np.ones(2)
    for rule, message in (
        (TosaRule("ULP", "FP32", ones, None, {"ulp": "1"}), "expected a finite number, got '1'"),  # type: ignore[dict-item]
        (TosaRule("REDUCE_PRODUCT", "FP32", ones), "REDUCE_PRODUCT needs the parameter 'n'"),
        (TosaRule("PRECOMPUTED", "FP32", ones), "PRECOMPUTED needs 'bounds'"),
        (TosaRule("EXACT", "FP32", ones.astype("f4")), r"float32 is not float64 \(precise mode\)"),
        (TosaRule("EXACT", "INT32", ones.astype("f4")), "float32 is not int32"),
    ):
        with pytest.raises(ValueError, match=message):
            judge(np.ones(2, "f4"), rule)


def test_byte_order() -> None:
    """The byte order of expected values does not count."""
    rule = TosaRule("EXACT", "INT48", np.array([1, -2], ">i8"))
    assert judge(np.int64([1, -2]), rule).passed
    assert not judge(np.int64([1 << 56, -2]), rule).passed


@pytest.mark.parametrize("mode", MODES)
def test_types_of_modes(mode: str) -> None:
    """Rules with outputs that the verifier accepts."""
    values = {"ulp": 1, "n": 1, "max": 1, "scale": 1, "ulp_bound": 1, "unsigned_data": False, "s": 0, "ksb": 1}
    for data_type, (_, name) in DATA_TYPES.items():
        element = ELEMENTS[name]
        right = np.ones(4, element.type if element.is_float else element.dtype).view(element.dtype)
        expected = np.ones(4) if element.is_float else right
        parameters = {name: values[name] for name in MODES[mode].required}
        passed, _ = _verify(right, TosaRule(mode, data_type, expected, expected, parameters))
        assert judges(mode, data_type) == passed
