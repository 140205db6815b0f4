"""Expectations written from a run: ``--update``."""

import codecs
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from scenario_runner.compare.planes import planes_of
from scenario_runner.errors import ExpectationError, MissingToolError, ScenarioRunnerError, UnsupportedError, error_of
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json
from scenario_runner.files.elements import ELEMENTS, Element, decoded
from scenario_runner.files.json_text import Places
from scenario_runner.files.output import OutputSet, check_destination
from scenario_runner.files.sandbox import open_file
from scenario_runner.plan.records import BufferPlan
from scenario_runner.plan.sources import ArraySource
from scenario_runner.suite.evaluation import ItemRun, Refused, error_codes, of_error
from scenario_runner.suite.expectations.outputs import Output, can_hold, extension_of, write_output
from scenario_runner.suite.expectations.reading import load
from scenario_runner.suite.expectations.rules import Bound, check_output
from scenario_runner.suite.expectations.validation import bind_output
from scenario_runner.suite.hashes import inputs_of
from scenario_runner.suite.outcomes import Item, Outcome, OutputCheck
from scenario_runner.suite.worker_task import Runners


class Change(NamedTuple):
    """A changed expectation for an ``output`` in the file ``path``. ``message`` tells how the output was wrong.

    ``digest`` is the SHA-256 of the output's content and shape, or "" if the file holds more. A "kept" expectation
    stays, since the output is right.
    """

    path: str
    output: str
    kind: Literal["new", "changed", "kept"]
    message: str
    digest: str = ""

    @property
    def is_written(self) -> bool:
        """Return whether the file gets new content."""
        return self.kind != "kept"


def update(
    item: Item, runners: Runners, *, write: bool = True, with_kept: bool = False, with_types: bool = False
) -> list[Change]:
    """Run an item, replace broken expectations, and return the changes.

    Expected files, values, digests, exit codes and codes change in place; new files go into the folder of expected
    files. All files appear together after the run, and only with ``write``. ``with_kept`` adds expected files that are
    kept, since another item may change them. ``with_types`` takes the types of buffers from shaders.

    Raises ExpectationError for problems that no run can solve, such as unknown keys, for files that the item reads, and
    for content that would not pass. Raises the errors of the run if no error is expected.
    """
    with OutputSet() as files:
        work = _Update(item, runners, files if write else None, with_types)
        work.run()
    return [change for change in work.changes if with_kept or change.is_written]


class _Update(ItemRun):
    """An update. ``files`` gets the changed files, or is None to write nothing."""

    with_misfits = True

    def __init__(self, item: Item, runners: Runners, files: OutputSet | None, with_types: bool) -> None:
        super().__init__(item, load(item), runners)
        self._files = files
        self._with_types = with_types
        self._values: dict[str, object] = {}  # by JSON pointers into the expectations
        self.changes: list[Change] = []

    def run(self) -> None:
        """Run the item, and write the changes."""
        try:
            self.execute()
        except Refused as refusal:
            status, reason = refusal.args
            if status == "Fail":
                raise ExpectationError(self.expectations.problem("SR-EXPECT-006", "/needs", reason)) from None
            raise UnsupportedError(reason) from None
        except ScenarioRunnerError as error:
            codes = self.expectations.check.codes or ()
            is_unexpected = isinstance(error, MissingToolError) and error.problems[0].code not in codes
            if is_unexpected or isinstance(error, ExpectationError) or not self.expectations.expects_failure:
                raise
            self._expect(error)
        else:
            if self.expectations.expects_failure:
                message = "the run ended without an error: remove 'exit_code', 'codes' and 'any_error' to expect that"
                raise ExpectationError(self.expectations.problem("SR-EXPECT-006", "", message))
        self._write_text()
        problems, _ = refused([(self.item, self.changes)])
        if problems:
            raise ExpectationError(problems)

    def _expect(self, error: ScenarioRunnerError) -> None:
        """Expect the error of the run from now on."""
        check, codes = self.expectations.check, error_codes(error)
        if check.exit_code not in (None, error.exit_code):
            self._set("/exit_code", "", error.exit_code, f"{check.exit_code} becomes {error.exit_code}")
        if check.codes is not None and set(codes) != set(check.codes):
            self._set("/codes", "", codes, f"{', '.join(check.codes)} becomes {', '.join(codes)}")

    def _write_text(self) -> None:
        """Write the expectations if values in them change."""
        if not self._values or self._files is None:
            return
        path = self.expectations.path
        assert self.expectations.text is not None
        assert path is not None
        with open(open_file(path), "rb") as before:  # the text has no byte order mark
            mark = codecs.BOM_UTF8 if before.read(3) == codecs.BOM_UTF8 else b""
        text = mark + with_values(self.expectations.text, self._values).encode()
        with self._files.create(path, len(text)) as file:
            file.write(text)

    def compare(self, bounds: Sequence[Bound], actual: memoryview) -> None:
        """Note the changes of rules if an output is wrong."""
        for bound in bounds:
            self._update(bound, actual)

    def _update(self, bound: Bound, actual: memoryview) -> None:
        name, expected = bound.output.name, bound.expected
        element = self._default_element(bound.output)
        message = "; ".join(problem.message for problem in bound.misfits)
        if not bound.misfits:
            check = check_output(bound, actual)
            if check.status != "Fail" or self.expectations.check.expected_fail is not None:
                if bound.path is not None and expected.values is None:
                    self.changes.append(Change(bound.path, name, "kept", "", _digest(bound.output, actual)))
                return
            element, message = bound.element, check.message
        if expected.tosa is not None:
            help = "compute them with TOSA's reference model again, or expect a 'file' of this output"
            message = f"an update does not write results of the reference model: {message}"
            raise bound.error("SR-EXPECT-012", "/tosa", message, help)
        if expected.equals is not None or bound.needs_region:
            help = "correct the rule, the scenario or the other output"
            message = f"an update writes no rule with 'equals', 'at', 'rect' or other regions: {message}"
            raise bound.error("SR-EXPECT-012", "", message, help)
        rebound = self._rebound(bound, element, actual)
        if expected.sha256 is not None:
            self._set(bound.pointer("/sha256"), name, hashlib.sha256(actual).hexdigest(), message)
        elif expected.values is not None:
            values = decoded(actual, rebound.element, expected.values)
            self._set(bound.pointer("/values"), name, values, message)
        else:
            self._write(rebound, actual, message)

    def _default_element(self, output: Output) -> Element:
        """Return the default type of an output: bytes, or for a buffer the type that shaders use."""
        element = output.shader_element if self._with_types else None
        return element or ELEMENTS["int8"]

    def _rebound(self, bound: Bound, element: Element, actual: memoryview) -> Bound:
        """Expect the content of this run. Raises ExpectationError if this content would not pass."""
        content = ArraySource(actual, bound.output.name), element
        rebound = bind_output(self.expectations, bound.output, bound.path, bound.number, content)
        if rebound.misfits:
            raise error_of(rebound.misfits)
        if rebound.expected.sha256 is None and (check := check_output(rebound, actual)).status == "Fail":
            message = f"this run fails even if its own content is expected: {check.message}"
            help = "correct these keys of the expectation, or the scenario"
            raise rebound.error("SR-EXPECT-012", "", message, help)
        return rebound

    def _set(self, pointer: str, name: str, value: Json, message: str) -> None:
        path = self.expectations.path
        assert path is not None
        if self.item.parameters:
            message = "an update does not change values that other combinations of parameters share"
            help = "expect a 'file' with a parameter in its name"
            raise ExpectationError(self.expectations.problem("SR-EXPECT-012", pointer, message, help))
        self._values[self.expectations.pointer + pointer] = value
        self.changes.append(Change(path, name, "changed", message))

    def _write(self, bound: Bound, actual: memoryview, message: str) -> None:
        output, folder = bound.output, self.expectations.expected_folder
        path = bound.path or os.path.join(folder, *output.file_name.split("/")) + extension_of(output)
        if not can_hold(path, output):
            message = f"cannot hold the output {output.name!r:.100}: its format, or all of its levels"
            help = f"expect a {extension_of(output)} file: remove this one, or name another"
            raise ExpectationError(Diagnostic("SR-EXPECT-008", "error", None, message, help, path=path))
        check_destination(path)  # so that a dry run refuses the same
        is_written = any(change.path == path and change.is_written for change in self.changes)
        kind: Literal["new", "changed"] = "changed" if os.path.lexists(path) else "new"
        self.changes.append(Change(path, output.name, kind, message, _digest(output, actual)))
        if self._files is not None and not is_written:
            write_output(path, output, bound.element, actual, self._files.create)


def _digest(output: Output, actual: memoryview) -> str:
    digest = hashlib.sha256(actual)
    resource = output.resource
    if resource is not None and not isinstance(resource, BufferPlan):
        shapes = [plane.shape for plane in planes_of(resource, output.size_bytes, ELEMENTS["uint8"])]
        digest.update(f"{resource.format.name} {shapes}".encode())
    return digest.hexdigest()


def refused(updates: Iterable[tuple[Item, Iterable[Change]]]) -> tuple[list[Diagnostic], set[str]]:
    """Return errors about updates that must not be written, and the ids of the items.

    An update is refused if its file is an input of an item, or if another item wants other content in the file.
    """
    inputs: dict[str, str] = {}
    users: dict[str, list[tuple[Item, Change]]] = {}
    for item, changes in updates:
        for path in inputs_of(item):
            inputs.setdefault(os.path.realpath(path), item.id)
        for change in changes:
            users.setdefault(os.path.realpath(change.path), []).append((item, change))
    problems, ids = [], set[str]()
    for path, changes_of_path in users.items():
        writers = {item.id for item, change in changes_of_path if change.is_written}
        names = {change.digest: f"{change.output!r:.100} of {item.id!r:.200}" for item, change in changes_of_path}
        if not writers or (path not in inputs and len(names) == 1):
            continue
        code, message = "SR-EXPECT-011", f"is an input of {inputs.get(path)!r:.200}, and would be overwritten"
        if path not in inputs:
            code, message = "SR-EXPECT-006", f"is expected by {' and '.join(names.values())}, but their results differ"
        help = "give each output an expected file that no item reads as input"
        problems.append(Diagnostic(code, "error", None, message, help, path=changes_of_path[0][1].path))
        ids |= writers
    return problems, ids


TASK = "scenario_runner.suite.update:update_item"


def update_item(item: Item, runners: Runners, write: bool, with_types: bool = False) -> Outcome:
    """Update the expectations of an item in a worker. The outcome has the changes (`changes_of`), or an error."""
    start = time.perf_counter()
    try:
        changes = update(item, runners, write=write, with_kept=True, with_types=with_types)
    except ScenarioRunnerError as error:
        return of_error(error)._replace(seconds=time.perf_counter() - start)
    outputs = tuple(OutputCheck(change.output, "Pass", files=change._asdict()) for change in changes)
    return Outcome("Pass", time.perf_counter() - start, outputs=outputs)


def changes_of(outcome: Outcome) -> list[Change]:
    """Return the changes and kept files in an outcome of `update_item`."""
    return [Change(**check.files) for check in outcome.outputs]  # type: ignore[arg-type]


def with_values(text: str, values: Mapping[str, Json]) -> str:
    """Replace the values at JSON pointers in a text."""
    places, decoder = Places(text), json.JSONDecoder()
    starts = {place[1]: value for pointer, value in values.items() if (place := places.offsets(pointer))}
    for start in sorted(starts, reverse=True):
        _, end = decoder.raw_decode(text, start)
        text = text[:start] + json.dumps(starts[start]) + text[end:]
    return text
