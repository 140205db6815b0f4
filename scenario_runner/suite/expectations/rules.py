"""A rule for an output: the region of the output, the expected content, and the check."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy

from scenario_runner.compare.metrics import pairs_of, verdict
from scenario_runner.compare.planes import (
    Plane,
    Region,
    channels_of_level,
    ignored_elements,
    planes_of,
    region_of_bytes,
    region_of_texels,
)
from scenario_runner.compare.tosa_rules import TosaRule, judge
from scenario_runner.compare.wrong_elements import BITWISE, Mismatch, Rule, compare
from scenario_runner.errors import ExpectationError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json, counted, distinct, share_of
from scenario_runner.files.elements import ELEMENTS, Array, Element, encoded, read_array
from scenario_runner.files.vk_formats import Format
from scenario_runner.plan.image_records import ImagePlan
from scenario_runner.plan.plan import ResourcePlan
from scenario_runner.plan.records import BufferPlan, Source
from scenario_runner.plan.sources import ArraySource
from scenario_runner.scenario.inline_contents import flattened
from scenario_runner.suite.discovery import SUITE_FILE
from scenario_runner.suite.expectations.format import METRICS, TEXEL_KEYS, rules_in
from scenario_runner.suite.expectations.format import Output as Expected
from scenario_runner.suite.expectations.outputs import Output
from scenario_runner.suite.expectations.reading import Expectations
from scenario_runner.suite.outcomes import OutputCheck
from scenario_runner.view.contents import has_numbers


class Bound(NamedTuple):
    """An output with a rule. ``misfits`` are errors about a rule that does not fit.

    ``number`` counts the rules in an array; it is None for an output with a single rule. ``region`` is the part of the
    output that the rule is about, None for all of it. ``source`` is the expected content: a file ``path`` or another
    output with the content of the whole output, or values of the region. It is None for a SHA-256, a rule of TOSA, an
    unchecked output, and before the other output is there. ``element`` is the type in a buffer or tensor, ``rule`` the
    rule for single elements. ``data_type`` is TOSA's name of the type, for a rule of TOSA.
    """

    expectations: Expectations
    output: Output
    expected: Expected
    number: int | None = None
    path: str | None = None
    source: Source | None = None
    element: Element = ELEMENTS["uint8"]
    rule: Rule = Rule()
    misfits: tuple[Diagnostic, ...] = ()
    data_type: str = ""
    region: Region | None = None

    @property
    def resource(self) -> ResourcePlan:
        """The resource, after planning."""
        assert self.output.resource is not None
        return self.output.resource

    def expected_bytes(self) -> memoryview:
        """Return the expected content of the region. Results of the reference model are rounded. Raises FileError."""
        if self.expected.tosa is not None:
            array = self.tosa_rule().expected
            return memoryview(
                self.element.encoded(array.reshape(-1).tolist()) if self.element.is_float else array.tobytes()
            )
        assert self.source is not None
        has_values = self.region is not None and self.expected.values is not None
        size = sum(plane.size_bytes for plane in self.planes) if has_values else self.output.size_bytes
        data = memoryview(bytearray(size))
        self.source.read_into(data)
        return data if has_values else self.cut(data)

    def cut(self, data: memoryview) -> memoryview:
        """Return the region's bytes from the bytes of the output."""
        return data if self.region is None else self.region.cut(data)

    def with_contents(self, contents: Mapping[str, bytes]) -> Bound:
        """Expect the content of another output of the run, if the rule names one."""
        name = self.expected.equals
        return self if name is None else self._replace(source=ArraySource(contents[name], name))

    def tosa_rule(self) -> TosaRule:
        """Read the files of the rule of TOSA, and return the rule. Raises FileError."""
        tosa = self.expected.tosa
        assert tosa is not None
        expected = read_array(self.expectations.path_to(tosa.expected))
        bounds = None if tosa.bounds is None else read_array(self.expectations.path_to(tosa.bounds))
        return TosaRule(tosa.mode, self.data_type, expected, bounds, tosa.parameters)

    def ignored(self) -> Array | None:
        """Return flags of ignored elements, or None if all elements count. Raises FileError and ValueError.

        Outputs may be large and many, so each call reads the mask again.
        """
        mask, border = self.expected.mask, self.expected.border or 0
        if mask is None and not border:
            return None
        return ignored_elements(self.planes, None if mask is None else self.expectations.path_to(mask), border)

    @property
    def planes(self) -> tuple[Plane, ...]:
        """The planes of elements in the region."""
        if self.region is not None:
            return self.region.planes
        return planes_of(self.resource, self.output.size_bytes, self.element)

    @property
    def compared_planes(self) -> tuple[Plane, ...]:
        """The planes to compare. If all bytes must be equal, compressed blocks are not decoded."""
        if self.region is not None or self.needs_numbers:
            return self.planes
        return planes_of(self.resource, self.output.size_bytes, self.element, with_blocks=True)

    @property
    def needs_numbers(self) -> bool:
        """Return whether a key selects elements, or allows errors of them."""
        return bool(self.expected.model_fields_set - {"file", "values", "equals"})

    @property
    def needs_region(self) -> bool:
        """Return whether the rule is about a part of the output, or about normalized values."""
        expected = self.expected
        return expected.at is not None or any(getattr(expected, key) not in (None, False) for key in TEXEL_KEYS)

    def pointer(self, key: str = "") -> str:
        """Return the JSON pointer to the rule or to a key, such as "/file"."""
        return self.expectations.pointer_to(self.output.name, key, self.number)

    def error(self, code: str, key: str, message: str, help: str | None = None) -> ExpectationError:
        """Make an error at a key of the rule, such as "/file", or at the rule ("")."""
        if self.expectations.text is None and not key:
            message = f"{self.output.name!r}: {message}"
        return ExpectationError(self.expectations.problem(code, self.pointer(key), message, help))


# Keys about single elements, even beside metrics. There, `nan` selects the elements for metrics.
_ELEMENT_KEYS = frozenset({*Rule._fields, "allowed_count", "allowed_share"} - {"nan"})


# The greatest error of larger outputs is not measured, since that takes as long as the check.
_MEASURED_BYTES_MAX: Final = 1 << 20


def check_rules(bounds: Sequence[Bound], actual: memoryview) -> tuple[OutputCheck, Bound]:
    """Check an output by its rules. The first failure, or else the first warning, describes the output."""
    checks = [check_output(bound, actual) for bound in bounds]
    broken = [number for number, check in enumerate(checks) if check.status != "Pass"]
    number = min(broken, key=lambda number: checks[number].status, default=0)  # Fail comes before Warn
    check, bound = checks[number], bounds[number]
    if broken and bound.number is not None:
        more = f" (and {counted(len(broken) - 1, 'more rule')})" if len(broken) > 1 else ""
        check = check._replace(message=f"rule {number + 1} of {len(bounds)}: {check.message}{more}")
    if broken and bound.expected.note:
        check = check._replace(message=f"{check.message}; {bound.expected.note}")
    return check, bound


def check_output(bound: Bound, actual: memoryview) -> OutputCheck:
    """Compare the bytes of an output with a rule. Raises FileError if expected content is unreadable."""
    expected, name = bound.expected, bound.output.name
    if expected.unchecked:
        return OutputCheck(name, "Pass")
    if expected.sha256 is not None:
        digest = hashlib.sha256(actual).hexdigest()
        if digest in expected.sha256:
            return OutputCheck(name, "Pass")
        count = len(expected.sha256)
        accepted = "the expected one" if count == 1 else f"one of the {count} expected ones"
        return OutputCheck(name, "Fail", f"the content has the SHA-256 {digest}, not {accepted}")
    if expected.tosa is not None:
        (plane,) = bound.planes
        array = numpy.frombuffer(actual, bound.element.dtype).reshape(plane.shape)
        judgement = judge(array, bound.tosa_rule())
        return OutputCheck(name, "Pass" if judgement.passed else "Fail", judgement.message, worst=judgement.worst)
    assert bound.source is not None
    source = bound.source if bound.region is None else ArraySource(bound.expected_bytes(), name)
    actual = bound.cut(actual)
    ignored = bound.ignored()
    metrics: dict[str, float] = {}
    failures: list[tuple[str, str]] = []  # statuses and their reasons
    worst: tuple[tuple[str, str, str], ...] = ()
    measures = bound.rule != BITWISE and len(actual) <= _MEASURED_BYTES_MAX
    by_element = expected.metrics is None or bool(expected.model_fields_set & _ELEMENT_KEYS)
    if measures or by_element:
        mismatch = compare(actual, source, bound.compared_planes, bound.rule, ignored, measures=measures)
    if by_element:
        allowed = expected.allowed_count or 0
        if expected.allowed_share is not None:
            # 0.29 of 100 elements must be 29 elements: as a binary fraction, 0.29 is less
            allowed = math.floor(Fraction(repr(expected.allowed_share)) * (mismatch.total - mismatch.ignored))
        if allowed:
            metrics["wrong_elements"] = float(mismatch.wrong)
        if mismatch.wrong > allowed:
            failures.append(("Fail", _sentence(bound, mismatch, allowed)))
            worst = mismatch.worst
    if expected.metrics is not None:
        failures += _failed_metrics(bound, actual, ignored, metrics)
    if not failures:
        if measures and math.isfinite(mismatch.measured_error):
            metrics["greatest_error"] = mismatch.measured_error
        return OutputCheck(name, "Pass", "", metrics, allowed=_allowed(bound))
    if not worst:  # only metrics have failed
        worst = compare(actual, source, bound.planes, Rule(), ignored).worst
    is_failure = any(status == "Fail" for status, _ in failures)
    message = "; ".join(reason for _, reason in failures)
    return OutputCheck(name, "Fail" if is_failure else "Warn", message, metrics, worst)


def _sentence(bound: Bound, mismatch: Mismatch, allowed: int) -> str:
    """Return a sentence about an output's wrong elements."""
    count = mismatch.total - mismatch.ignored
    noun = "compared element" if mismatch.ignored else "element"
    text = f"{share_of(mismatch.wrong, count, noun)} wrong"
    if allowed:
        key = "allowed_count" if bound.expected.allowed_share is None else "allowed_share"
        text += f", {allowed} may be{_origin(bound, key)}"
    if not mismatch.worst:
        return text
    index, expected, got = mismatch.worst[0]
    if bound.rule == BITWISE:
        return f"{text} at {index}: {got}, expected {expected}"
    error, _ = distinct(mismatch.error, bound.rule.atol)
    bounds = _allowed(bound)
    text += f", the greatest error is {error} at {index}: {got}, expected {expected}"
    return f"{text}; allowed: {bounds}" if bounds else text


def _allowed(bound: Bound) -> str:
    """Return the bounds for single elements as text."""
    names = [name for name in Rule._fields if name in bound.expected.model_fields_set]
    return ", ".join(f"{name} {getattr(bound.expected, name)}{_origin(bound, name)}" for name in names)


def _origin(bound: Bound, key: str) -> str:
    """Return where a key was set, in parentheses: in an entry of 'when' or in suite.json; otherwise ""."""
    own = rules_in(bound.expectations.check.outputs, bound.output.name)[bound.number or 0]
    if key not in own.model_fields_set:
        return f" ({SUITE_FILE})"
    return f" (when[{bound.expectations.condition}])" if bound.pointer(f"/{key}").startswith("/when/") else ""


def _failed_metrics(
    bound: Bound, actual: memoryview, ignored: Array | None, metrics: dict[str, float]
) -> Iterator[tuple[str, str]]:
    """Yield status and reason of each metric beyond a bound. Add all values to ``metrics``."""
    pairs = pairs_of(bound.planes, actual, bound.expected_bytes(), ignored, bound.expected.nan == "any")
    for name, metric in METRICS.items():
        bounds = getattr(bound.expected.metrics, name)
        if bounds is None:
            continue
        try:
            value = metric.value(pairs)
        except ValueError as error:
            status, message = "Fail", f"{name} cannot be computed: {error}"
        else:
            status, message = verdict(metric, bounds, value)
            if math.isfinite(value):  # JSON has no other numbers
                metrics[name] = value
        if status != "Pass":
            yield status, message + _origin(bound, "metrics")


def with_region(bound: Bound) -> Bound:
    """Add the region of a rule, and values in it, to a binding. Raises ExpectationError for a misfit."""
    expected, resource = bound.expected, bound.resource
    if expected.at is not None:
        if not isinstance(resource, BufferPlan):
            raise bound.error("SR-EXPECT-008", "/at", f"is for buffers, but the output is of kind {resource.kind}")
        return _with_bytes(bound, expected.at)
    if not isinstance(resource, ImagePlan):
        key = next(key for key in TEXEL_KEYS if key in expected.model_fields_set)
        raise bound.error("SR-EXPECT-008", f"/{key}", f"is for images, but the output is of kind {resource.kind}")
    if not has_numbers(resource.format):
        return bound  # another check reports blocks that cannot be decoded
    return _with_texels(bound, resource)


def _with_bytes(bound: Bound, start: int) -> Bound:
    element, values, total = bound.element, bound.expected.values, bound.output.size_bytes
    size = element.size_bytes
    if start % size:
        raise bound.error("SR-EXPECT-008", "/at", f"is {start}, not a multiple of the {size} bytes of {element.name}")
    entries = flattened(values)[1] if isinstance(values, list) else [values]
    count = (total - start) // size if values is None else len(entries)
    end = start + max(count, 1) * size
    if end > total:
        message = f"bytes {start} to {end} lie outside of the output, which has {total} bytes"
        raise bound.error("SR-EXPECT-008", "/at", message)
    bound = bound._replace(region=region_of_bytes(start, count * size, element))
    return bound if values is None else _with_values(bound, lambda: encoded(entries, element, count))


def _with_values(bound: Bound, encode: Callable[[], bytes | memoryview]) -> Bound:
    """Add encoded values as expected content. Raises ExpectationError for values that do not fit."""
    try:
        return bound._replace(source=ArraySource(encode(), bound.output.name))
    except ValueError as error:
        raise bound.error("SR-EXPECT-008", "/values", str(error)) from None


def _with_texels(bound: Bound, image: ImagePlan) -> Bound:
    expected, format = bound.expected, image.format
    planes = planes_of(image, bound.output.size_bytes, bound.element)
    level = tuple(plane for plane in planes if plane.part is not None and plane.part.level == (expected.lod or 0))
    if not level:
        raise bound.error("SR-EXPECT-008", "/lod", f"is {expected.lod}, but the output has fewer mip levels")
    if expected.rect is None and expected.lod is None and len(level) < len(planes):
        raise bound.error("SR-EXPECT-008", "", "is about one mip level, but the output has several", "give 'lod'")
    height, width = level[0].shape[:2]
    rect = expected.rect or (0, 0, width, height)
    if 0 in rect[2:] or rect[0] + rect[2] > width or rect[1] + rect[3] > height:
        message = f"{list(rect)} (x, y, width, height) is not a part of the {width}x{height} texels"
        raise bound.error("SR-EXPECT-008", "/rect", message)
    elements = _elements_of(level, image)
    if expected.normalized:
        elements = dict.fromkeys(elements, ELEMENTS["float64"])
    letters = expected.channels or (format.channels if level[0].element is not None else "".join(elements))
    lacking = [letter for letter in letters if letter not in elements]
    if lacking:
        raise bound.error("SR-EXPECT-008", "/channels", f"{format.name} has no channel {' or '.join(lacking)}")
    if expected.normalized:
        _check_normalized(bound, format, letters)
    region = region_of_texels(level, rect, letters, elements, expected.normalized)
    bound = bound._replace(region=region)
    values = expected.values
    return bound if values is None else _with_values(bound, lambda: _texels_of(values, region, letters, elements))


def _elements_of(level: Sequence[Plane], image: ImagePlan) -> dict[str, Element]:
    """Return the types of channels by letter, from a texel of zeros."""
    block_width, _ = image.format.block_extent
    texels = []
    for plane in level:
        assert plane.part is not None
        size = plane.part.row_size_bytes // -(-plane.part.width // block_width)
        part = plane.part._replace(width=1, height=1)
        texels.append(plane._replace(offset_bytes=0, size_bytes=size, part=part))
    channels = channels_of_level(texels, memoryview(bytes(image.format.block_size_bytes)))
    return {letter: channel.element for letter, channel in channels.items()}


def _check_normalized(bound: Bound, format: Format, letters: str) -> None:
    """Raise ExpectationError for channels that are not normalized, and for tolerances that need stored numbers."""
    if not format.is_normalized or "S" in letters:
        message = f"needs channels of UNORM, SNORM or SRGB, but the output is {format.name}"
        raise bound.error("SR-EXPECT-009", "/normalized", message)
    for key in sorted({"ulp", "denormals"} & bound.expected.model_fields_set):
        raise bound.error("SR-EXPECT-009", f"/{key}", "compares stored numbers, but 'normalized' converts them")


def _texels_of(values: Json, region: Region, letters: str, elements: Mapping[str, Element]) -> memoryview:
    """Encode values of a region: one for all, one for each channel, or all. Raises ValueError."""
    array = numpy.array(values, object)
    _, _, width, height = region.rect
    shape = (height, width, len(letters))
    if array.shape not in ((), shape[2:], shape):
        message = f"expected a number, {counted(len(letters), 'number')} (one a channel), or the shape {shape}"
        raise ValueError(f"have the shape {array.shape}, {message}")
    channels = {}
    for number, letter in enumerate(letters):
        numbers = array[..., number] if array.ndim else array
        flat = numbers.reshape(-1).tolist() if numbers.ndim else numbers.item()
        element = elements[letter]
        data = encoded(flat, element, width * height)
        channels[letter] = numpy.frombuffer(data, element.dtype).reshape(height, width)
    return region.joined(channels)
