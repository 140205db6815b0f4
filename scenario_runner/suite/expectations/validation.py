"""Bind expectations to the outputs of a scenario, and report all that does not fit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scenario_runner.diagnostics import Diagnostic, escape
from scenario_runner.errors import ExpectationError, FileError, ScenarioRunnerError, error_of
from scenario_runner.files.codec import all_codecs, is_known
from scenario_runner.plan.plan import ResourcePlan
from scenario_runner.plan.records import Source
from scenario_runner.plan.sources import ArraySource
from scenario_runner.scenario import load as load_scenario
from scenario_runner.scenario.model_base import close_match, listed
from scenario_runner.suite.expectations.model import SOURCES
from scenario_runner.suite.expectations.model import Output as Expected
from scenario_runner.suite.expectations.outputs import (
    MOST_CAPTURES,
    Output,
    Outputs,
    element_of_source,
    encoded,
    outputs_of_scenario,
    source_of,
)
from scenario_runner.suite.expectations.reading import Expectations, expected_files, load
from scenario_runner.suite.records import Item
from scenario_runner.suite.tolerance.elements import Rule
from scenario_runner.suite.tolerance.metrics import METRICS
from scenario_runner.suite.tolerance.planes import Plane, blocks_of, ignored_elements, planes_of
from scenario_runner.viewing.content import ELEMENTS, Array, Element, element_of_format
from scenario_runner.viewing.reading import has_numbers

_PLAIN = Expected()
_MISFITS = ("SR-FILE-002", "SR-FILE-004")
_BY_VALUE = frozenset({*Rule._fields, "metrics"})  # keys that compare numbers, not bytes


class Bound(NamedTuple):
    """One output and what it must hold, or the ``misfits`` of the two.

    ``source`` has the expected content, of the file ``path`` or of values. Both are None where it is given by its
    SHA-256, or not checked. ``element`` is what a buffer or a tensor holds.
    """

    expectations: Expectations
    output: Output
    path: str | None = None
    source: Source | None = None
    element: Element = ELEMENTS["uint8"]
    misfits: tuple[Diagnostic, ...] = ()

    @property
    def expected(self) -> Expected:
        """The keys of the output."""
        return self.expectations.check.outputs.get(self.output.name, _PLAIN)

    @property
    def resource(self) -> ResourcePlan:
        """The resource, once a plan tells what it is like."""
        assert self.output.resource is not None
        return self.output.resource

    @property
    def rule(self) -> Rule:
        """The rule for single elements."""
        fields = self.expected.model_fields_set.intersection(Rule._fields)
        values = {name: getattr(self.expected, name) for name in fields}
        return Rule(**{"nan": "equal", **values}) if fields else Rule()

    def expected_bytes(self) -> memoryview:
        """All of the expected content. Raises FileError."""
        assert self.source is not None
        data = memoryview(bytearray(self.output.size_bytes))
        self.source.read_into(data)
        return data

    @property
    def planes(self) -> tuple[Plane, ...]:
        """The planes into which its bytes are split as elements."""
        return planes_of(self.resource, self.output.size_bytes, self.element)

    @property
    def compared_planes(self) -> tuple[Plane, ...]:
        """The planes that are compared: where every byte must be equal, blocks are not decoded."""
        resource = self.resource
        if self.needs_numbers or resource.kind != "image" or not resource.format.is_compressed:
            return self.planes
        return blocks_of(resource, self.output.size_bytes)

    @property
    def needs_numbers(self) -> bool:
        """Return whether a key selects elements, or allows errors of them."""
        return bool(self.expected.model_fields_set - {"file", "values"})

    def ignored(self) -> Array | None:
        """A flag for each element that does not count; None where all count. Raises FileError and ValueError."""
        mask, border = self.expected.mask, self.expected.border
        if mask is None and not border:
            return None
        return ignored_elements(self.planes, None if mask is None else self.expectations.path_to(mask), border or 0)

    def problem(self, code: str, key: str, message: str, help: str | None = None) -> Diagnostic:
        """An error at a key ("/file") of the output, or at the whole of it ("")."""
        if self.expectations.text is None and not key:
            message = f"{self.output.name!r}: {message}"
        return self.expectations.problem(code, f"/outputs/{escape(self.output.name)}{key}", message, help)

    def error(self, code: str, key: str, message: str, help: str | None = None) -> ExpectationError:
        """The same as an error to raise."""
        return ExpectationError(self.problem(code, key, message, help))


def bind(
    expectations: Expectations,
    outputs: Outputs,
    files: dict[str, list[str]] | None = None,
    *,
    with_misfits: bool = False,
) -> dict[str, Bound]:
    """Bind the expectations of every output, by name; empty where nothing is expected of any.

    Raises ExpectationError with every problem. With ``with_misfits`` those of single outputs are left in them, for an
    update: a missing expectation is one, so that each output that must have one is there.
    """
    check = expectations.check
    problems: list[Diagnostic] = []
    bounds: dict[str, Bound] = {}
    if expectations.expects_failure:
        return bounds
    files = expected_files(expectations.expected_folder) if files is None else files
    if not check.outputs and not files and not with_misfits:
        return bounds
    stored = _stored(expectations, files, outputs, problems)
    for name in check.outputs:
        if name not in outputs and not outputs.leaves_out(name):
            problems.append(_unknown(expectations, name, outputs))
    if any(map(outputs.leaves_out, (*files, *check.outputs))):
        problems.append(_left_out(expectations, outputs))
    frames_count = any(outputs[name].is_frame for name in (*stored, *check.outputs) if name in outputs)
    for name, output in outputs.items():
        if name in stored and (doubtful := _doubtful(name, stored[name], expectations)) is not None:
            problems.append(doubtful)
            continue
        if name in check.outputs or name in stored:
            bound = bind_output(expectations, output, stored[name][0] if name in stored else None)
        elif not output.is_frame or frames_count:
            bound = Bound(expectations, output, misfits=(_missing(expectations, output),))
        else:
            continue
        bounds[name] = bound
        problems += () if with_misfits else bound.misfits
    if problems:
        raise error_of(problems)
    return bounds


def _stored(
    expectations: Expectations, files: Mapping[str, list[str]], outputs: Outputs, problems: list[Diagnostic]
) -> dict[str, list[str]]:
    """The files in the folder of the expected ones that no key names, by the outputs that they are of."""
    check = expectations.written
    by_file = {output.file_name: output.name for output in outputs.values()}
    entries = [*check.outputs.values(), *(entry for when in check.when for entry in when.outputs.values())]
    named = {expectations.path_to(name) for entry in entries for name in (entry.file, entry.mask) if name is not None}
    stored: dict[str, list[str]] = {}
    for stem, paths in files.items():
        name = by_file.get(stem)
        unnamed = [path for path in paths if path not in named and (name is not None or is_known(path))]
        if unnamed and name is not None:
            stored[name] = unnamed
        elif unnamed and not outputs.leaves_out(stem):
            problems.append(_stray(unnamed[0], stem, by_file))
    return stored


def _unknown(expectations: Expectations, name: str, outputs: Mapping[str, Output]) -> Diagnostic:
    names = [output for output in outputs if ("/" in output) == ("/" in name)] or list(outputs)
    there = f"the outputs: {listed(names[:20])}" if names else "the scenario has no resource with a dst"
    help = f"{there}; a resource is one where it has a 'dst'"
    message = f"{name!r:.100} is no output of the scenario{close_match(name, outputs)}"
    return expectations.problem("SR-EXPECT-004", f"/outputs/{escape(name)}", message, help)


def _left_out(expectations: Expectations, outputs: Outputs) -> Diagnostic:
    message = f"the iterations capture {outputs.left_out:,} resources, and no more than {MOST_CAPTURES:,} are compared"
    help = "repeat it less often, or let the last iteration write what matters to an output with a 'dst'"
    return expectations.problem("SR-EXPECT-004", "/repeat", message, help)


def _stray(path: str, stem: str, by_file: Mapping[str, str]) -> Diagnostic:
    message = f"is the expectation of {stem!r:.100}, which is no output of the scenario{close_match(stem, by_file)}"
    help = "a resource is an output where it has a 'dst'; captured frames are in folders such as 'frame_0'"
    return Diagnostic("SR-EXPECT-004", "error", None, message, help, path=path)


def _doubtful(name: str, paths: list[str], expectations: Expectations) -> Diagnostic | None:
    """The problem of the files of an output in the folder: expected is one, and no key with other content."""
    path, *others = paths
    expected = expectations.written.outputs.get(name, _PLAIN)
    keys = [key for key in SOURCES if getattr(expected, key) is not None]
    unknown = next((path for path in paths if not is_known(path)), None)
    if unknown is not None:
        known = ", ".join(codec.extension for codec in all_codecs())
        message = f"is named like the output {name!r}, but is none of the files that can be compared: {known}"
        return Diagnostic("SR-EXPECT-008", "error", None, message, "convert it, or move it elsewhere", path=unknown)
    if others or keys:
        other = repr(os.path.basename(others[0])) if others else f"the key {keys[0]!r}"
        message = f"and {other} are both the expectation of {name!r}"
        return Diagnostic("SR-EXPECT-006", "error", None, message, "keep one of the two", path=path)
    return None


def _missing(expectations: Expectations, output: Output) -> Diagnostic:
    message = f"nothing is said about the output {output.name!r:.100}"
    expected = os.path.join(os.path.basename(expectations.expected_folder), f"{output.file_name}.npy")
    help = f"make {expected!r} (--update does), or give it an entry in 'outputs': {{ \"unchecked\": true }}"
    return expectations.problem("SR-EXPECT-005", "/outputs", message, help)


def bind_output(
    expectations: Expectations,
    output: Output,
    stored: str | None = None,
    source: Source | None = None,
    element: Element | None = None,
) -> Bound:
    """Bind one output to the file ``stored`` in the folder, or to what its keys name; ``source`` replaces both, and
    ``element`` is what it holds where nothing else says so."""
    bound = Bound(expectations, output, stored, source)
    if bound.expected.file is not None:
        bound = bound._replace(path=expectations.path_to(bound.expected.file))
    try:
        return _completed(bound, element)
    except ExpectationError as error:
        return bound._replace(misfits=error.problems)


def _completed(bound: Bound, source_element: Element | None) -> Bound:
    """The binding with its source and element. Raises ExpectationError with its misfits."""
    output, expected = bound.output, bound.expected
    if expected.sha256 is not None and expected.model_fields_set - {"sha256"}:  # an entry of 'when' has made it so
        others = ", ".join(sorted(map(repr, expected.model_fields_set - {"sha256"})))
        message = f"a digest says only that bytes are equal, so that {others} cannot count"
        raise bound.error("SR-EXPECT-006", "/sha256", message)
    if expected.unchecked or expected.sha256 is not None:
        return bound
    if bound.path is None and expected.values is None and bound.source is None:
        message = "has neither 'file', 'values' nor 'sha256', and no file in 'expected'"
        raise bound.error("SR-EXPECT-005", "", message)
    if output.resource is None:
        return bound
    element = _declared_element(bound)
    source = bound.source or _source(bound)
    if element is None and output.resource.kind == "buffer":
        element = source_element or element_of_source(source)
        _check_element(bound, element)
    bound = bound._replace(source=source, element=element or ELEMENTS["uint8"])
    misfits = [*_misfits_of_ignored(bound), *_misfits_of_numbers(bound)]
    if misfits:
        raise ExpectationError(misfits)
    return bound


def _element_of_output(output: Output, expected: Expected) -> Element | None:
    """The element type of an output, where it or its expectation says so."""
    resource = output.resource
    if resource is None or resource.kind == "buffer":
        return None if expected.dtype is None else ELEMENTS[expected.dtype]
    if resource.kind == "tensor":
        return element_of_format(resource.format)
    planes = planes_of(resource, output.size_bytes, ELEMENTS["uint8"])
    return planes[0].element if len(planes) == 1 else None


def _declared_element(bound: Bound) -> Element | None:
    """The type of the bytes, as far as the output or ``dtype`` say so; a misfit of the two is an error."""
    resource, dtype = bound.resource, bound.expected.dtype
    element = _element_of_output(bound.output, bound.expected)
    if dtype is None:
        return None if resource.kind == "image" else element
    message = ""
    if resource.kind == "buffer" and bound.output.size_bytes % ELEMENTS[dtype].size_bytes:
        message = f"the output has {bound.output.size_bytes} bytes, no whole number of {dtype}"
    elif resource.kind == "tensor" and element is not None and element.name != dtype:
        message = f"is {dtype!r}, but the tensor is {element.name!r}"
    elif resource.kind == "image":
        message = f"an image has the type of its format, {resource.format.name}"
    if message:
        raise bound.error("SR-EXPECT-008", "/dtype", message)
    return element


def _source(bound: Bound) -> Source:
    """The content of the file, or of the values in the expectations themselves."""
    if bound.expected.values is None and bound.path is not None:
        try:
            return source_of(bound.path, bound.resource, bound.output.size_bytes)
        except FileError as error:
            raise ExpectationError(_file_problems(bound, error, "/file")) from None
    element = element_of_values(bound)
    try:
        data = encoded(bound.expected.values, element, bound.output.size_bytes // element.size_bytes)
    except ValueError as error:
        raise bound.error("SR-EXPECT-008", "/values", str(error)) from None
    return ArraySource(data, bound.output.name)


def element_of_values(bound: Bound) -> Element:
    """The type of values in the expectations. Raises ExpectationError where nothing gives one."""
    element = _element_of_output(bound.output, bound.expected)
    if element is None and bound.resource.kind == "image":
        message = f"values of {bound.resource.format.name} cannot be written as numbers"
        raise bound.error("SR-EXPECT-008", "/values", message, "give a 'file'")
    if element is None:
        raise bound.error("SR-EXPECT-003", "/values", "say nothing of their type", "give 'dtype', such as 'float32'")
    return element


def _file_problems(bound: Bound, error: FileError, key: str) -> Iterator[Diagnostic]:
    for problem in error.problems:
        code = "SR-EXPECT-008" if problem.code in _MISFITS else "SR-EXPECT-007"
        if getattr(bound.expected, key[1:]) is None:  # the file in the folder, which nothing names
            yield problem._replace(code=code)
        else:
            yield bound.problem(code, key, f"{problem.path}: {problem.message}", problem.help)


def _check_element(bound: Bound, element: Element | None) -> None:
    """Refuse a file of a buffer without ``dtype`` whose elements its keys cannot be applied to."""
    expected = bound.expected
    if element is None and expected.model_fields_set - {"file"}:
        message, help = "has elements that are no numbers", "'dtype' says what they are"
        raise bound.error("SR-EXPECT-008", "", message, help)
    keys = sorted(map(repr, expected.model_fields_set & _BY_VALUE))
    if element is not None and element.name == "int8" and keys:
        message = f"has elements of one byte (int8), as every file of a buffer that a run writes; {keys[0]}"
        help = "'dtype' says what the elements are: 'float32' for instance, or 'int8' where they are that"
        raise bound.error("SR-EXPECT-008", "", f"{message} would be taken of single bytes", help)


def _misfits_of_ignored(bound: Bound) -> Iterator[Diagnostic]:
    """Problems of the mask and the border."""
    try:
        bound.ignored()
    except FileError as error:
        yield from _file_problems(bound, error, "/mask")
    except ValueError as error:
        key = "/border" if bound.expected.mask is None else "/mask"
        yield bound.problem("SR-EXPECT-008", key, str(error))


def _misfits_of_numbers(bound: Bound) -> Iterator[Diagnostic]:
    """Keys that need other numbers than the output has, and metrics that cannot be computed of it."""
    resource, fields = bound.resource, bound.expected.model_fields_set
    if bound.needs_numbers and resource.kind == "image" and not has_numbers(resource.format):
        keys = ", ".join(repr(key) for key in Expected.model_fields if key in fields)
        message = f"blocks of {resource.format.name} are not decoded to numbers, which {keys} would need"
        yield bound.problem("SR-EXPECT-009", "", message, "let a shader copy them into an uncompressed image")
    if bound.expected.metrics is not None:
        for name in bound.expected.metrics.model_fields_set:
            for code, message, help in METRICS[name].misfits(bound.planes):
                yield bound.problem(code, f"/metrics/{name}", message, help)


def check(item: Item) -> list[Diagnostic]:
    """All problems of the expectations of an item, in themselves and against its scenario.

    Of expected files the headers are read. Problems of the scenario itself are left to its run.
    """
    try:
        expectations = load(item)
        if expectations.expects_failure:
            return []
        files = expected_files(expectations.expected_folder)
    except ScenarioRunnerError as error:
        return list(error.problems)
    written = expectations.written
    if not files and not written.outputs and not written.when:
        return []
    try:
        outputs = outputs_of_scenario(load_scenario(item.path), written.repeat)
    except ScenarioRunnerError:
        return []
    problems: dict[tuple[str, str], Diagnostic] = {}
    for condition in (None, *range(len(written.when))):
        try:
            bind(expectations.with_condition(condition), outputs, files)
        except ScenarioRunnerError as error:
            for problem in error.problems:
                problems.setdefault((problem.code, problem.message), problem)
    return list(problems.values())
