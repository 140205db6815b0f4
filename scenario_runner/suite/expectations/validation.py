"""Validate expectations against the outputs of a scenario: what is compared with what, and all that does not fit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from scenario_runner.diagnostics import Diagnostic, escape
from scenario_runner.errors import ExpectationError, FileError, ScenarioRunnerError
from scenario_runner.files.codec import all_codecs, is_known
from scenario_runner.scenario import load as load_scenario
from scenario_runner.scenario.model_base import close_match, listed
from scenario_runner.suite.expectations.model import Output as Expected
from scenario_runner.suite.expectations.outputs import (
    MOST_CAPTURES,
    Content,
    Output,
    Outputs,
    element_of_tensor,
    encoded,
    extension_of,
    held_content,
    open_content,
    outputs_of_scenario,
)
from scenario_runner.suite.expectations.reading import Expectations, expected_files, load
from scenario_runner.suite.records import Item
from scenario_runner.suite.tolerance.elements import Rule
from scenario_runner.suite.tolerance.metrics import METRICS
from scenario_runner.suite.tolerance.planes import Plane, blocks_of, ignored_elements, planes_of
from scenario_runner.text import close_files_help
from scenario_runner.viewing.content import ELEMENTS, Array, Element
from scenario_runner.viewing.reading import has_numbers

_PLAIN = Expected()
_MISFITS = ("SR-FILE-002", "SR-FILE-004")
_REPLACED = ("SR-EXPECT-005", "SR-EXPECT-007", "SR-EXPECT-008")
_BY_VALUE = frozenset({"atol", "rtol", "ulp", "zero", "denormals", "nan", "metrics"})  # what numbers decide, not bytes
_NOT_REPLACED = ("/dtype", "/mask", "/border")  # keys with misfits of these codes that no other content puts right


class Bound(NamedTuple):
    """One output and what it must hold.

    ``path`` is the expected file; ``content`` is held where there is none. Both are None where it is told by its
    SHA-256, or not checked. ``element`` is what a buffer or a tensor holds.
    """

    output: Output
    expected: Expected
    path: str | None = None
    content: Content | None = None
    element: Element = ELEMENTS["uint8"]
    rule: Rule = Rule()
    mask: str | None = None
    origins: Mapping[str, str] = {}  # the entry of 'when' that has set a key

    def opened(self) -> Content:
        """The expected content, open. Raises FileError."""
        if self.content is not None:
            return self.content
        assert self.path is not None
        assert self.output.resource is not None
        return open_content(self.path, self.output.resource, self.output.size_bytes)

    @property
    def planes(self) -> tuple[Plane, ...]:
        """The planes into which its bytes are split as elements."""
        assert self.output.resource is not None
        return planes_of(self.output.resource, self.output.size_bytes, self.element)

    @property
    def compared_planes(self) -> tuple[Plane, ...]:
        """The same for a comparison: where every byte must be equal, blocks are not decoded."""
        resource = self.output.resource
        if self.needs_numbers or resource is None or resource.kind != "image" or not resource.format.is_compressed:
            return self.planes
        return blocks_of(resource, self.output.size_bytes)

    @property
    def needs_numbers(self) -> bool:
        """Return whether a key says which elements count, how far they may be from the expected ones, or how many."""
        return bool(self.expected.model_fields_set - {"file", "values"})

    def ignored(self) -> Array | None:
        """A flag for each element that does not count; None where all count. Raises FileError and ValueError."""
        if self.mask is None and not self.expected.border:
            return None

        return ignored_elements(self.planes, self.mask, self.expected.border or 0)


class Replaced(NamedTuple):
    """Expected content that a run gives anew: the file of the folder that it is in, where there is one, and what is
    wrong with it."""

    path: str | None
    misfits: list[Diagnostic]


def bind(
    expectations: Expectations,
    outputs: Outputs,
    files: dict[str, list[str]] | None = None,
    *,
    replaced: dict[str, Replaced] | None = None,
) -> dict[str, Bound]:
    """Bind the expectations of every output, by name; empty where nothing is expected of any.

    Raises ExpectationError with every misfit. Where ``replaced`` is given, it gets those that new content puts right,
    by the name of the output.
    """
    check = expectations.check
    problems: list[Diagnostic] = []
    found: dict[str, Bound] = {}
    if expectations.expects_failure:
        return found
    files = expected_files(expectations.expected_folder) if files is None else files

    if not check.outputs and not files and replaced is None:
        return found
    stored = _stored(expectations, files, outputs, problems)
    for name in check.outputs:
        if name not in outputs and not outputs.leaves_out(name):
            problems.append(_unknown(expectations, name, outputs))
    if any(map(outputs.leaves_out, (*files, *check.outputs))):
        problems.append(_left_out(expectations, outputs))
    frames_count = any(outputs[name].is_frame for name in (*stored, *check.outputs) if name in outputs)
    for name, output in outputs.items():
        expected = check.outputs.get(name)
        misfits: list[Diagnostic] = []
        if name in stored and (doubtful := _doubtful(name, stored[name], expectations)) is not None:
            problems.append(doubtful)
        elif expected is not None or name in stored:
            path = stored[name][0] if name in stored else None
            bound = _Binder(expectations, output, expected or _PLAIN, path, misfits).bound()
            if bound is not None:
                found[name] = bound._replace(origins=expectations.origins(name))
            if replaced is not None and misfits and all(map(_is_replaced, misfits)):
                replaced[name] = Replaced(path, misfits)
            else:
                problems += misfits
        elif not output.is_frame or frames_count:
            misfits = [_missing(expectations, output)]
            if replaced is None:
                problems += misfits
            else:
                replaced[name] = Replaced(None, misfits)
    if problems:
        raise ExpectationError(problems)
    return found


def _stored(
    expectations: Expectations, files: Mapping[str, list[str]], outputs: Outputs, problems: list[Diagnostic]
) -> dict[str, list[str]]:
    """The files in the folder of the expected ones that no key names, by the outputs that they are of."""
    check = expectations.written
    by_file = {output.file_name: output.name for output in outputs.values()}
    every = [*check.outputs.values(), *(each for condition in check.when for each in condition.outputs.values())]
    named = {_path(expectations, name) for each in every for name in (each.file, each.mask) if name is not None}
    stored: dict[str, list[str]] = {}
    for stem, paths in files.items():
        name = by_file.get(stem)
        unnamed = [path for path in paths if path not in named and (name is not None or is_known(path))]
        if unnamed and name is not None:
            stored[name] = unnamed
        elif unnamed and not outputs.leaves_out(stem):
            problems.append(_stray(unnamed[0], stem, by_file))
    return stored


def bind_content(expectations: Expectations, expected: Expected | None, output: Output, content: Content) -> Bound:
    """An output with this content in the place of what is expected. Raises ExpectationError with every misfit."""
    problems: list[Diagnostic] = []
    bound = _Binder(expectations, output, expected or _PLAIN, None, problems, content).bound()
    if bound is None:
        raise ExpectationError(problems)
    return bound


def _is_replaced(misfit: Diagnostic) -> bool:
    return misfit.code in _REPLACED and not (misfit.pointer or "").endswith(_NOT_REPLACED)


def path_of(expectations: Expectations, expected: Expected | None, output: Output) -> str:
    """The file that the expected content of an output is, or would be, in."""
    if expected is not None and expected.file is not None:
        return _path(expectations, expected.file)

    return os.path.join(expectations.expected_folder, *output.file_name.split("/")) + extension_of(output)


def element_of_output(output: Output, expected: Expected | None) -> Element | None:
    """The element type of an output, where it or its expectation says so."""
    resource = output.resource
    if resource is None or resource.kind == "buffer":
        return None if expected is None or expected.dtype is None else ELEMENTS[expected.dtype]
    if resource.kind == "tensor":
        return element_of_tensor(resource)
    return planes_of(resource, output.size_bytes, ELEMENTS["uint8"])[0].element


def _path(expectations: Expectations, name: str) -> str:
    return os.path.normpath(os.path.join(expectations.folder, name))


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
    """Report problems of the files of an output in the folder. There is one file, where no key says what it holds."""

    path, *others = paths
    output = expectations.written.outputs.get(name, _PLAIN)
    keys = [key for key in ("file", "values", "sha256") if getattr(output, key) is not None]
    unknown = next((each for each in paths if not is_known(each)), None)
    if unknown is not None:
        expected = ", ".join(codec.extension for codec in all_codecs())
        message = f"is named like the output {name!r}, but is none of the files that can be compared: {expected}"
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


class _Binder:
    """Binds one output; what is wrong goes into ``problems``."""

    def __init__(
        self,
        expectations: Expectations,
        output: Output,
        expected: Expected,
        stored: str | None,
        problems: list[Diagnostic],
        content: Content | None = None,
    ) -> None:
        self._expectations = expectations
        self._output = output
        self._expected = expected
        self._stored = stored
        self._problems = problems
        self._content = content  # in the place of what is expected
        self._pointer = f"/outputs/{escape(output.name)}"

    def bound(self) -> Bound | None:
        """The output with what it must hold; None where something is wrong, or unknown before a run."""
        output, expected = self._output, self._expected
        if expected.sha256 is not None and expected.model_fields_set - {"sha256"}:  # an entry of 'when' has made it so
            others = ", ".join(sorted(map(repr, expected.model_fields_set - {"sha256"})))
            self._add(
                "SR-EXPECT-006", "/sha256", f"a digest says only that bytes are equal, so that {others} cannot count"
            )
            return None
        if expected.unchecked or expected.sha256 is not None:
            return Bound(output, expected)
        element = None if output.resource is None else self._element()
        if output.resource is not None and element is None and expected.dtype is not None:
            return None
        path = self._stored if expected.file is None else _path(self._expectations, expected.file)
        if path is None and expected.values is None and self._content is None:
            self._add("SR-EXPECT-005", "", "has neither 'file', 'values' nor 'sha256', and no file in 'expected'")
            return None
        if output.resource is None:
            if expected.values is None and path is not None and not os.path.isfile(path):
                self._add("SR-EXPECT-007", "/file", f"{path}: does not exist", close_files_help(path))
            return None
        is_held = self._content is not None or path is None or expected.values is not None
        content = self._content or (self._held(element) if is_held else self._opened(path or ""))
        if content is None:
            return None
        if element is None and output.resource.kind == "buffer":
            element = content.element
            if element is None and expected.model_fields_set - {"file"}:
                self._add("SR-EXPECT-008", "", "has elements that are no numbers", "'dtype' says what they are")
                return None
            by_value = sorted(map(repr, expected.model_fields_set & _BY_VALUE))
            if element is not None and element.name == "int8" and by_value:
                message = f"has elements of one byte (int8), as every file of a buffer that a run writes; {by_value[0]}"
                help = "'dtype' says what the elements are: 'float32' for instance, or 'int8' where they are that"
                self._add("SR-EXPECT-008", "", f"{message} would be taken of single bytes", help)
                return None
        rule = Rule(
            expected.atol or 0.0,
            expected.rtol or 0.0,
            expected.ulp or 0,
            expected.zero or 0.0,
            expected.denormals or "exact",
            expected.nan or ("equal" if expected.model_fields_set & _BY_VALUE - {"metrics"} else None),
        )
        mask = None if expected.mask is None else _path(self._expectations, expected.mask)
        bound = Bound(output, expected, path, content if is_held else None, element or ELEMENTS["uint8"], rule, mask)
        return bound if self._is_complete(bound) else None

    def _element(self) -> Element | None:
        """The type of the bytes, as far as the output or ``dtype`` say so; a misfit of the two is a problem."""
        resource, dtype = self._output.resource, self._expected.dtype
        assert resource is not None
        element = None if dtype is None else ELEMENTS[dtype]
        if resource.kind == "buffer":
            if element is not None and self._output.size_bytes % element.size_bytes:
                size = self._output.size_bytes
                self._add("SR-EXPECT-008", "/dtype", f"the output has {size} bytes, no whole number of {dtype}")
                return None
            return element
        if resource.kind == "tensor":
            known = element_of_tensor(resource)
            if element not in (None, known):
                self._add("SR-EXPECT-008", "/dtype", f"is {dtype!r}, but the tensor is {known.name!r}")
                return None
            return known
        if element is not None:
            self._add("SR-EXPECT-008", "/dtype", f"an image has the type of its format, {resource.format.name}")
        return None

    def _held(self, element: Element | None) -> Content | None:
        """The content that stands in the expectations themselves."""
        resource = self._output.resource
        assert resource is not None
        if resource.kind == "image":
            planes = planes_of(resource, self._output.size_bytes, ELEMENTS["uint8"])
            if len(planes) > 1 or planes[0].element is None:
                message = f"values of {resource.format.name} cannot be written as numbers"
                self._add("SR-EXPECT-008", "/values", message, "give a 'file'")
                return None
            element = planes[0].element
        if element is None:
            self._add("SR-EXPECT-003", "/values", "say nothing of their type", "give 'dtype', such as 'float32'")
            return None
        try:
            data = encoded(self._expected.values, element, self._output.size_bytes // element.size_bytes)
        except ValueError as error:
            self._add("SR-EXPECT-008", "/values", str(error))
            return None
        return held_content(data, element)

    def _opened(self, path: str) -> Content | None:
        assert self._output.resource is not None
        try:
            with open_content(path, self._output.resource, self._output.size_bytes) as content:
                return content
        except FileError as error:
            self._file_problems(error, "/file")
            return None

    def _file_problems(self, error: FileError, key: str) -> None:
        for problem in error.problems:
            code = "SR-EXPECT-008" if problem.code in _MISFITS else "SR-EXPECT-007"
            if getattr(self._expected, key[1:]) is None:  # the file in the folder, which nothing names
                self._problems.append(problem._replace(code=code))
            else:
                self._add(code, key, f"{problem.path}: {problem.message}", problem.help)

    def _is_complete(self, bound: Bound) -> bool:
        """Return whether mask, border and metrics fit the output."""
        count = len(self._problems)
        if bound.mask is not None or bound.expected.border:
            try:
                bound.ignored()
            except FileError as error:
                self._file_problems(error, "/mask")
            except ValueError as error:
                self._add("SR-EXPECT-008", "/mask" if bound.mask is not None else "/border", str(error))
        resource = bound.output.resource
        image = resource if resource is not None and resource.kind == "image" else None
        if bound.needs_numbers and image is not None and not has_numbers(image.format):
            keys = ", ".join(repr(key) for key in Expected.model_fields if key in bound.expected.model_fields_set)
            message = f"blocks of {image.format.name} are not decoded to numbers, which {keys} would need"
            self._add("SR-EXPECT-009", "", message, "let a shader copy them into an uncompressed image")
        if bound.expected.metrics is not None:
            for name in bound.expected.metrics.model_fields_set:
                for code, message, help in METRICS[name].misfits(bound.planes):
                    self._add(code, f"/metrics/{name}", message, help)
        return len(self._problems) == count

    def _add(self, code: str, pointer: str, message: str, help: str | None = None) -> None:
        if self._expectations.text is None and not pointer:
            message = f"{self._output.name!r}: {message}"
        self._problems.append(self._expectations.problem(code, self._pointer + pointer, message, help))


def check(item: Item) -> list[Diagnostic]:
    """All problems of the expectations of an item, in themselves and against its scenario; none where there are none.

    Headers of expected files are read. What is wrong with the scenario itself is not said: a run does.
    """
    try:
        expectations = load(item)
    except ScenarioRunnerError as error:
        return list(error.problems)
    if expectations.expects_failure:
        return []
    try:
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
