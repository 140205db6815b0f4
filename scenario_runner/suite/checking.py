"""Whether one output is what is expected of it."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from scenario_runner.suite.records import OutputCheck
from scenario_runner.suite.tolerance.compare import Found, compare, details, equal_bytes
from scenario_runner.suite.tolerance.rule import Rule
from scenario_runner.visible import counted

if TYPE_CHECKING:
    from scenario_runner.suite.expectations.binding import Bound
    from scenario_runner.suite.expectations.content import Content

_ELEMENT_KEYS = frozenset({"atol", "rtol", "ulp", "zero", "denormals", "nan", "allowed_count", "allowed_share"})


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
    is_equal = rule.nan != "error" and equal_bytes(actual, content)
    if is_equal and expected.metrics is None:
        return OutputCheck(bound.output.name, "Pass")
    ignored = bound.ignored()
    metrics: dict[str, float] = {}
    status, messages = "Pass", []
    found: Found | None = None
    if by_elements and not is_equal:
        found = compare(actual, content, bound.compared_planes, rule, ignored)
        allowed = _allowed(bound, found)
        if allowed:
            metrics["wrong_elements"] = float(found.wrong)
        if found.wrong > allowed:
            found = details(actual, content, bound.compared_planes, rule, found, ignored)
            status, messages = "Fail", [_sentence(bound, found, allowed)]
    if expected.metrics is not None:
        status, more = _measured(bound, content, actual, ignored, metrics, status)
        messages += more
    if status != "Pass" and not is_equal and (found is None or not found.worst):  # a metric is what is wrong
        found = details(actual, content, bound.planes, Rule(), Found(0, 0), ignored)
    worst = found.worst if found is not None and status != "Pass" else ()
    return OutputCheck(bound.output.name, status, "; ".join(messages), metrics, worst)  # type: ignore[arg-type]


def _allowed(bound: Bound, found: Found) -> int:
    """How many elements may be wrong."""
    expected = bound.expected
    if expected.allowed_share is not None:
        # of the decimal number that was written: 0.29 of 100 elements are 29, in binary less
        return math.floor(Fraction(repr(expected.allowed_share)) * (found.total - found.ignored))
    return expected.allowed_count or 0


def _sentence(bound: Bound, found: Found, allowed: int) -> str:
    """What is wrong with the elements of an output."""
    count = found.total - found.ignored
    which = (" that counts" if count == 1 else " that count") if found.ignored else ""
    text = f"{found.wrong} of {counted(count, 'element')}{which} ({100 * found.wrong / count:.3g} %) are wrong"
    if allowed:
        text += f", {allowed} may be"
    if not found.worst:
        return text
    index, wanted, got = found.worst[0]
    least = "" if bound.rule.is_bitwise else f", the greatest error is {found.error:.6g}"
    return f"{text}{least} at {index}: {got}, expected {wanted}"


def _measured(
    bound: Bound, content: Content, actual: memoryview, ignored: Any, metrics: dict[str, float], status: str
) -> tuple[str, list[str]]:
    """The verdict on all metrics, joined with the one before; their values go into ``metrics``."""
    from scenario_runner.suite.metrics.pairs import pairs_of
    from scenario_runner.suite.metrics.table import METRICS, verdict

    held = memoryview(bytearray(bound.output.size_bytes))
    content.read_into(held, 0)
    pairs = pairs_of(bound.planes, actual, held, ignored)
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
            messages.append(message)
        if found == "Fail" or status == "Pass":
            status = found
    return status, messages
