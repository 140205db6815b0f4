"""Whether one output is what is expected of it."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from scenario_runner.suite.records import OutputCheck
from scenario_runner.suite.tolerance.compare import Mismatch, compare
from scenario_runner.suite.tolerance.elements import Rule
from scenario_runner.visible import counted, distinct

if TYPE_CHECKING:
    from scenario_runner.suite.expectations.binding import Bound
    from scenario_runner.suite.expectations.content import Content

_BOUNDS = ("atol", "rtol", "ulp", "zero", "denormals", "nan")
# With metrics, what elements must be one by one; `nan` then tells which NaN the metrics leave out.
_ELEMENT_KEYS = frozenset({*_BOUNDS, "allowed_count", "allowed_share"} - {"nan"})


def check_output(bound: Bound, actual: memoryview) -> OutputCheck:
    """Compare the bytes of an output with what it must hold. Raises FileError where that cannot be read any more."""
    expected, name = bound.expected, bound.output.name
    if expected.unchecked:
        return OutputCheck(name, "Pass")
    if expected.sha256 is not None:
        digest = hashlib.sha256(actual).hexdigest()
        if digest in expected.sha256:
            return OutputCheck(name, "Pass")
        count = len(expected.sha256)
        accepted = "the one that is" if count == 1 else f"one of the {count} that are"
        return OutputCheck(name, "Fail", f"the content has the SHA-256 {digest}, not {accepted} expected")
    with bound.opened() as content:
        return _checked(bound, content, actual)


def _checked(bound: Bound, content: Content, actual: memoryview) -> OutputCheck:
    expected, rule = bound.expected, bound.rule
    by_elements = expected.metrics is None or bool(expected.model_fields_set & _ELEMENT_KEYS)
    ignored = bound.ignored()
    metrics: dict[str, float] = {}
    status, messages = "Pass", []
    worst: tuple[tuple[str, str, str], ...] = ()
    if by_elements:
        mismatch = compare(actual, content, bound.compared_planes, rule, ignored)
        allowed = _allowed(bound, mismatch)
        if allowed:
            metrics["wrong_elements"] = float(mismatch.wrong)
        if mismatch.wrong > allowed:
            status, messages, worst = "Fail", [_sentence(bound, mismatch, allowed)], mismatch.worst
    if expected.metrics is not None:
        status, more = _measured(bound, content, actual, ignored, metrics, status)
        messages += more
    if status != "Pass" and not worst:  # a metric is what is wrong
        worst = compare(actual, content, bound.planes, Rule(), ignored).worst
    return OutputCheck(bound.output.name, status, "; ".join(messages), metrics, worst)  # type: ignore[arg-type]


def _allowed(bound: Bound, mismatch: Mismatch) -> int:
    """How many elements may be wrong."""
    expected = bound.expected
    if expected.allowed_share is not None:
        # of the decimal number that was written: 0.29 of 100 elements are 29, in binary less
        return math.floor(Fraction(repr(expected.allowed_share)) * (mismatch.total - mismatch.ignored))
    return expected.allowed_count or 0


def _sentence(bound: Bound, mismatch: Mismatch, allowed: int) -> str:
    """What is wrong with the elements of an output."""
    count = mismatch.total - mismatch.ignored
    which = (" that counts" if count == 1 else " that count") if mismatch.ignored else ""
    text = f"{mismatch.wrong} of {counted(count, 'element')}{which} ({100 * mismatch.wrong / count:.3g} %) are wrong"
    if allowed:
        key = "allowed_count" if bound.expected.allowed_share is None else "allowed_share"
        text += f", {allowed} may be{_origin(bound, key)}"
    if not mismatch.worst:
        return text
    index, wanted, got = mismatch.worst[0]
    if bound.rule.is_bitwise:
        return f"{text} at {index}: {got}, expected {wanted}"
    error, _ = distinct(mismatch.error, bound.rule.atol)
    return f"{text}, the greatest error is {error} at {index}: {got}, expected {wanted}{_allowed_error(bound)}"


def _allowed_error(bound: Bound) -> str:
    """The bounds in force, each with the entry of 'when' that has set it."""
    given = [name for name in _BOUNDS if name in bound.expected.model_fields_set]
    bounds = ", ".join(f"{name} {getattr(bound.expected, name)}{_origin(bound, name)}" for name in given)
    return f"; allowed: {bounds}" if bounds else ""


def _origin(bound: Bound, key: str) -> str:
    return f" ({bound.origins[key]})" if key in bound.origins else ""


def _measured(
    bound: Bound, content: Content, actual: memoryview, ignored: Any, metrics: dict[str, float], status: str
) -> tuple[str, list[str]]:
    """The verdict on all metrics, joined with the one before; their values go into ``metrics``."""
    from scenario_runner.suite.metrics.pairs import pairs_of
    from scenario_runner.suite.metrics.table import METRICS, verdict

    held = memoryview(bytearray(bound.output.size_bytes))
    content.read_into(held, 0)
    pairs = pairs_of(bound.planes, actual, held, ignored, without_nan=bound.expected.nan == "any")
    messages = []
    assert bound.expected.metrics is not None
    for name in METRICS:
        bounds = getattr(bound.expected.metrics, name)
        if bounds is None:
            continue
        try:
            value = METRICS[name].value(pairs)
        except ValueError as error:
            found, message = "Fail", f"{name} cannot be computed: {error}"
        else:
            found, message = verdict(METRICS[name], bounds, value)
            if math.isfinite(value):  # JSON has no other numbers
                metrics[name] = value
        if message:
            messages.append(message + _origin(bound, "metrics"))
        if found == "Fail" or status == "Pass":
            status = found
    return status, messages
