"""Write expectations from a run: ``--update``."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from scenario_runner.diagnostics import Diagnostic, escape
from scenario_runner.errors import ExpectationError, MissingToolError, ScenarioRunnerError, UnsupportedError, error_of
from scenario_runner.files.output import OutputSet, check_destination
from scenario_runner.plan.plan import Plan
from scenario_runner.plan.sources import ArraySource
from scenario_runner.scenario.syntax import Places
from scenario_runner.suite.evaluation import check_output
from scenario_runner.suite.expectations.devices import refusal
from scenario_runner.suite.expectations.model import shape_of
from scenario_runner.suite.expectations.outputs import (
    Output,
    ResultsSink,
    can_hold,
    decoded,
    extension_of,
    outputs_of_plan,
    write_output,
)
from scenario_runner.suite.expectations.reading import load
from scenario_runner.suite.expectations.validation import (
    Bound,
    bind,
    bind_output,
    element_of_values,
)
from scenario_runner.suite.hashes import inputs_of
from scenario_runner.suite.records import Item, Outcome, OutputCheck, Status
from scenario_runner.suite.running.worker import Runners
from scenario_runner.suite.tolerance.planes import planes_of
from scenario_runner.viewing.content import ELEMENTS, Element


class Change(NamedTuple):
    """The change of one expectation: of an ``output``, in the file ``path``; ``message`` tells what was wrong.

    ``digest`` is the SHA-256 of the content that the run wrote, with its shape where it has one; "" where the file has
    more in it. A "kept" one stays as it is, since the output is right.
    """

    path: str
    output: str
    kind: Literal["new", "changed", "kept"]
    message: str
    digest: str = ""


def update(item: Item, runners: Runners, *, write: bool = True) -> list[Change]:
    """Run an item and replace the expectations that its results do not meet; returns the changes.

    Content within its tolerances stays. Expected files, values, digests, exit codes and codes change in place; new
    files go into the folder of expected files. Files appear together, when the run has ended well; without ``write``
    none does.

    Raises ExpectationError for problems that no run can solve (unknown keys, names of no output), for files that the
    item reads, and for content that would not pass; and whatever the run raises where no error is expected.
    """
    return [change for change in update_or_keep(item, runners, write=write) if change.kind != "kept"]


def update_or_keep(item: Item, runners: Runners, *, write: bool = True) -> list[Change]:
    """Like `update`, with the expected files that are kept: another item may change them."""
    with OutputSet() as files:
        work = _Update(item, runners, files if write else None)
        work.run()
    return work.changes


class _RefusedError(UnsupportedError):
    """The device lacks what the item needs, which is not an error that its run is expected to end with."""


class _Update:
    """One update; ``files`` get what changes, None where nothing is written."""

    def __init__(self, item: Item, runners: Runners, files: OutputSet | None) -> None:
        expectations = load(item)
        robustness = expectations.check.robustness or None
        self._runner = runners.runner(*expectations.timeout, robustness=robustness)
        self._item = item
        self._expectations = expectations.for_device(self._runner.physical_device)
        self._check = self._expectations.check
        self._files = files
        self._bound: dict[str, Bound] = {}
        self._values: dict[str, Any] = {}  # by pointers into the text of the expectations
        self._by_path: dict[str, list[Change]] = {}  # those with a digest
        self.changes: list[Change] = []

    def run(self) -> None:
        """Run the item, and note and write what changes."""
        check, expects_failure = self._check, self._expectations.expects_failure
        try:
            self._runner.run_into(self._item.path, self._sink, repeat=check.repeat, keep_state=check.keep_state)
        except ScenarioRunnerError as error:
            is_unexpected = isinstance(error, MissingToolError) and error.problems[0].code not in (check.codes or ())
            if is_unexpected or isinstance(error, ExpectationError | _RefusedError) or not expects_failure:
                raise
            self._fail(error)
        else:
            if expects_failure:
                message = "the run ended well: remove 'exit_code' and 'codes' to expect that"
                raise ExpectationError(self._expectations.problem("SR-EXPECT-006", "", message))
        self._write_text()

    def _sink(self, plan: Plan) -> ResultsSink:
        """The receiver of the results. Raises ExpectationError for names of no output."""
        status, reason = refusal(self._check, plan, self._runner.physical_device) or ("Pass", "")
        if status == "Fail":
            raise ExpectationError(self._expectations.problem("SR-EXPECT-006", "/needs", reason))
        if status == "NotSupported":
            raise _RefusedError(reason)
        self._bound = bind(self._expectations, outputs_of_plan(plan, self._check.repeat), with_misfits=True)
        outputs = (bound.output for bound in self._bound.values())
        return ResultsSink(plan, self._check.repeat, self._take, outputs)

    def _fail(self, error: ScenarioRunnerError) -> None:
        """Expect the error that the run ended with."""
        check = self._check
        if check.exit_code not in (None, error.exit_code):
            self._set("/exit_code", "", error.exit_code, f"{check.exit_code} becomes {error.exit_code}")
        codes = sorted({problem.code for problem in error.problems if problem.severity == "error"})
        if check.codes is not None and set(codes) != set(check.codes):
            self._set("/codes", "", codes, f"{', '.join(check.codes)} becomes {', '.join(codes)}")

    def _write_text(self) -> None:
        """Write the file of the expectations, where values in it change."""
        if not self._values or self._files is None:
            return

        path = self._expectations.path
        assert self._expectations.text is not None
        assert path is not None
        with open(path, "rb") as before:  # the text has no byte order mark
            mark = codecs.BOM_UTF8 if before.read(3) == codecs.BOM_UTF8 else b""
        text = mark + with_values(self._expectations.text, self._values).encode()
        with self._files.create(path, len(text)) as file:
            file.write(text)

    def _take(self, name: str, view: memoryview) -> None:
        bound = self._bound.get(name)
        if bound is None:
            return
        expected, actual = bound.expected, view[: bound.output.size_bytes]
        element = ELEMENTS["int8"]  # of a buffer whose type nothing gives, as in the file of its ``dst``
        message = "; ".join(problem.message for problem in bound.misfits)
        if not bound.misfits:
            check = check_output(bound, actual)
            if check.status != "Fail":
                if bound.path is not None and expected.values is None:
                    self._add(bound.path, bound.output, "kept", "", actual)
                return
            element, message = bound.element, check.message
        rebound = self._rebound(bound, element, actual)
        if expected.sha256 is not None:
            self._set(self._pointer(name, "sha256"), name, hashlib.sha256(actual).hexdigest(), message)
        elif expected.values is not None:
            values = decoded(actual, element_of_values(rebound), shape_of(expected.values))
            self._set(self._pointer(name, "values"), name, values, message)
        else:
            self._write(rebound, actual, message)

    def _rebound(self, bound: Bound, element: Element, actual: memoryview) -> Bound:
        """Bind an output to its own content. Refuse content that would not pass once it is expected."""
        rebound = bind_output(
            self._expectations, bound.output, bound.path, ArraySource(actual, bound.output.name), element
        )
        if rebound.misfits:
            raise error_of(rebound.misfits)
        if rebound.expected.sha256 is None and (check := check_output(rebound, actual)).status == "Fail":
            message = f"this run would not pass even with its own content expected: {check.message}"
            help = "correct these keys of the expectation, or the scenario"
            raise rebound.error("SR-EXPECT-012", "", message, help)
        return rebound

    def _pointer(self, name: str, key: str) -> str:
        """The place of a key of an output: in the entry of ``when`` that counts, if it is there."""
        if key in self._expectations.origins(name):
            return f"/when/{self._expectations.condition}/outputs/{escape(name)}/{key}"
        return f"/outputs/{escape(name)}/{key}"

    def _set(self, pointer: str, name: str, value: Any, message: str) -> None:
        path = self._expectations.path
        assert path is not None
        self._values[self._expectations.pointer + pointer] = value
        self.changes.append(Change(path, name, "changed", message))

    def _write(self, bound: Bound, actual: memoryview, message: str) -> None:
        output, folder = bound.output, self._expectations.expected_folder
        path = bound.path or os.path.join(folder, *output.file_name.split("/")) + extension_of(output)
        if not can_hold(path, output):
            message = f"cannot hold the output {output.name!r:.100}: its format, or all of its levels"
            help = f"expect a {extension_of(output)} file: remove this one, or name another"
            raise ExpectationError(Diagnostic("SR-EXPECT-008", "error", None, message, help, path=path))
        if os.path.realpath(path) in map(os.path.realpath, inputs_of(self._item)):
            raise ExpectationError(_overwritten(path, self._item.id))
        check_destination(path)  # so that a dry run refuses the same
        is_written = any(change.kind != "kept" for change in self._by_path.get(path, ()))
        self._add(path, output, "changed" if os.path.lexists(path) else "new", message, actual)
        if self._files is not None and not is_written:
            write_output(path, output, bound.element, actual, self._files.create)

    def _add(
        self, path: str, output: Output, kind: Literal["new", "changed", "kept"], message: str, actual: memoryview
    ) -> None:
        """Note what a file must hold. Raises ExpectationError where another output must give it another content."""
        change = Change(path, output.name, kind, message, _digest(output, actual))
        others = self._by_path.setdefault(path, [])
        for other in others:
            if other.digest != change.digest and not other.kind == kind == "kept":
                message = f"is what {other.output!r} and {output.name!r} must give, but they differ"
                help = "expect different files of them"
                raise ExpectationError(Diagnostic("SR-EXPECT-006", "error", None, message, help, path=path))
        others.append(change)
        self.changes.append(change)


def _digest(output: Output, actual: memoryview) -> str:
    digest = hashlib.sha256(actual)
    resource = output.resource
    if resource is not None and resource.kind != "buffer":
        shapes = [plane.shape for plane in planes_of(resource, output.size_bytes, ELEMENTS["uint8"])]
        digest.update(f"{resource.format.name} {shapes}".encode())
    return digest.hexdigest()


def _overwritten(path: str, reader: str) -> Diagnostic:
    message = f"is an input of {reader!r:.200}, and would be overwritten"
    return Diagnostic("SR-EXPECT-011", "error", None, message, "expect a file of its own", path=path)


def refused(updates: Iterable[tuple[Item, Outcome]]) -> tuple[list[Diagnostic], set[str]]:
    """The reasons why updates must not be written, and the ids of their items: a file is an input of another item, or
    other items would give it another content. The updates are the outcomes of `update_item`."""
    inputs: dict[str, str] = {}
    contents: dict[str, list[tuple[Item, OutputCheck]]] = {}
    for item, outcome in updates:
        for path in inputs_of(item):
            inputs.setdefault(os.path.realpath(path), item.id)
        for output in outcome.outputs:
            contents.setdefault(os.path.realpath(output.files[FILE]), []).append((item, output))
    problems, ids = [], set[str]()
    for path, users in contents.items():
        writers = {item.id for item, output in users if output.status != "Pass"}
        (first, output), *others = users
        other = next((item for item, user in others if user.files[DIGEST] != output.files[DIGEST]), None)
        if writers and path in inputs:
            problems.append(_overwritten(os.path.relpath(path), inputs[path]))
        elif writers and other is not None:
            message = f"is what both {first.id!r:.200} and {other.id!r:.200} must give, but they differ"
            help = "expect different files of them"
            problems.append(Diagnostic("SR-EXPECT-006", "error", None, message, help, path=os.path.relpath(path)))
        else:
            continue
        ids |= writers
    return problems, ids


FILE = "file"
"""Where the expectation of an output stands."""

DIGEST = "digest"
"""Beside the file of an output: the SHA-256 of what it gives, "" where the file has more in it."""

TASK = "scenario_runner.suite.update:update_item"


def update_item(item: Item, runners: Runners, write: bool) -> Outcome:
    """Update the expectations of an item in a worker. The outcome Pass has a Warn for every expectation that changes,
    and a Pass for every file that is kept; Missing has the reason why there is nothing to expect."""
    start = time.perf_counter()
    try:
        changes = update_or_keep(item, runners, write=write)
    except ScenarioRunnerError as error:
        status: Status = "NotSupported" if isinstance(error, UnsupportedError) else "Missing"
        if isinstance(error, MissingToolError):
            status = "MissingTool"
        problems = tuple(problem.as_json() for problem in error.problems)
        return Outcome(status, time.perf_counter() - start, str(error.problems[0]), error.exit_code, problems)
    outputs = []
    for change in changes:
        status, message = ("Pass", "") if change.kind == "kept" else ("Warn", f"{change.kind}: {change.message}")
        files = {FILE: change.path, DIGEST: change.digest}
        outputs.append(OutputCheck(change.output, status, message, files=files))
    return Outcome("Pass", time.perf_counter() - start, outputs=tuple(outputs))


def with_values(text: str, values: Mapping[str, Any]) -> str:
    """The text with other values at the JSON pointers, which must lead to values."""
    places, decoder = Places(text), json.JSONDecoder()
    starts = {place[1]: value for pointer, value in values.items() if (place := places.offsets(pointer))}
    for start in sorted(starts, reverse=True):
        _, end = decoder.raw_decode(text, start)
        text = text[:start] + json.dumps(starts[start]) + text[end:]
    return text
