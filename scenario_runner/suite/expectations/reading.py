"""Reading of a ``check.json``, or the ``expect`` of a scenario, as `Expectations`, and of the folder beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from scenario_runner.diagnostics import Diagnostic, escape
from scenario_runner.errors import ExpectationError, ScenarioRunnerError, error_class
from scenario_runner.files.codec import is_known
from scenario_runner.files.source import MAX_SCENARIO_BYTES, SourceFile, reason_of
from scenario_runner.scenario.model_base import close_match, findings, shown
from scenario_runner.scenario.scenario import MAX_PROBLEMS, limited
from scenario_runner.scenario.syntax import Places, problems_of, scan
from scenario_runner.suite.discovery import expected_folder
from scenario_runner.suite.expectations.devices import Device, comparisons, matching, merged, vendor_id
from scenario_runner.suite.expectations.model import SOURCES, VENDORS, Check, Least, Most, Output
from scenario_runner.suite.records import Item
from scenario_runner.suite.tolerance.metrics import METRICS

if TYPE_CHECKING:
    from scenario_runner.vulkan.physical_device import PhysicalDevice

_KEY = "expect"  # of the expectations in a scenario
_POINTER = f"/{_KEY}"
_ABOUT_KEYS = ("SR-EXPECT-002",)
_DEFAULT = Check()


class Expectations(NamedTuple):
    """The expectations of a scenario.

    ``check`` is what counts: what was ``written``, with what the entry of ``when`` changes whose index is
    ``condition``. Relative paths in it start from ``folder``; files that nothing names are in ``expected_folder``.
    ``path`` is the file that it stands in, at the JSON pointer ``pointer``, and ``text`` the text of that file, for
    places; both are None where nothing was written.
    """

    check: Check
    written: Check
    folder: str
    expected_folder: str
    path: str | None = None
    text: str | None = None
    pointer: str = ""
    condition: int | None = None

    def with_condition(self, index: int | None) -> Expectations:
        """The expectations where an entry of ``when`` counts; None: none does."""
        check = self.written if index is None else merged(self.written, self.written.when[index])
        return self._replace(check=check, condition=index)

    def for_device(self, physical: PhysicalDevice) -> Expectations:
        """The expectations on a device."""
        return self.with_condition(matching(self.written, Device.of(physical))) if self.written.when else self

    @property
    def timeout(self) -> tuple[float | None, str]:
        """Seconds that a run may take, where they are given, and the place where they are."""
        file = os.path.basename(self.path or "")
        if self.condition is not None and self.written.when[self.condition].timeout is not None:
            file = f"when[{self.condition}] of {file}"
        return self.check.timeout, f"'timeout' in {file}"

    def origins(self, name: str) -> Mapping[str, str]:
        """The keys of an output that the entry of ``when`` has set, each with the name of that entry."""
        if self.condition is None or name not in (changed := self.written.when[self.condition].outputs):
            return {}
        return dict.fromkeys(changed[name].model_fields_set, f"when[{self.condition}]")

    def path_to(self, name: str) -> str:
        """The path of a file that a key names."""
        return os.path.normpath(os.path.join(self.folder, name))

    @property
    def expects_failure(self) -> bool:
        """Return whether the run must end with an error."""
        return bool(self.check.exit_code or self.check.codes)

    def problem(self, code: str, pointer: str, message: str, help: str | None = None) -> Diagnostic:
        """An error at a place of the expectations."""
        if self.text is None or self.path is None:
            return Diagnostic(code, "error", None, message, help, path=self.expected_folder)
        if self.condition is not None:
            _, _, name, key, *_ = [*pointer.split("/"), "", "", ""]
            output = self.written.when[self.condition].outputs.get(name.replace("~1", "/").replace("~0", "~"))
            if output is not None and (not key or key in output.model_fields_set):
                pointer = f"/when/{self.condition}{pointer}"
        problem = Diagnostic(code, "error", pointer, message, help)
        return _placed(problem, self.path, self.pointer, Places(self.text))


def load(item: Item) -> Expectations:
    """The expectations of an item; neither the scenario nor the files that they name are checked.

    Raises ExpectationError with every problem of the text, and FileError where it cannot be read.
    """
    folder, expected = os.path.dirname(item.path), expected_folder(item.path)
    inside = _inside(item.path)
    if item.expectations is not None:
        text = _text(item.expectations)
        if inside is not None:
            message = "the scenario has expectations of its own under the key 'expect'"
            help = "keep one of the two"
            raise ExpectationError(Diagnostic("SR-EXPECT-006", "error", None, message, help, path=item.expectations))
        return of_text(text, item.expectations, folder, expected)
    if inside is None:
        return Expectations(_DEFAULT, _DEFAULT, folder, expected)
    return of_text(inside, item.path, folder, expected, _POINTER)


def of_text(text: str, path: str, folder: str, expected: str, pointer: str = "") -> Expectations:
    """The expectations that a file would have with this text at a pointer. Raises ExpectationError."""
    check = _parsed(text, path, pointer)
    return Expectations(check, check, folder, expected, path, text, pointer)


def _inside(path: str) -> str | None:
    """The text of a scenario that has expectations; None for one that is wrong or too large, which its run reports."""
    try:
        content = _content(path)
        # an escape hides letters
        if len(content) > MAX_SCENARIO_BYTES or (b'"expect"' not in content and b"\\u" not in content):
            return None
        text = content.decode("utf-8-sig")
        tree = json.loads(text)
    except (ScenarioRunnerError, ValueError, RecursionError):
        return None
    return text if isinstance(tree, dict) and _KEY in tree else None


def _content(path: str) -> bytes:
    """The bytes of a file, or more than ``MAX_SCENARIO_BYTES`` of them. Raises FileError."""
    with SourceFile(path) as file:
        return file.read(MAX_SCENARIO_BYTES + 1)


def _text(path: str) -> str:
    content, help = _content(path), None
    try:
        if len(content) <= MAX_SCENARIO_BYTES:
            return content.decode("utf-8-sig")
        message, help = f"is larger than {MAX_SCENARIO_BYTES >> 20} MiB", "keep data in files of their own"
    except UnicodeDecodeError as error:
        message = f"is not UTF-8: byte {error.start} is {content[error.start]:#04x}"
    raise ExpectationError(Diagnostic("SR-EXPECT-001", "error", None, message, help, path=path))


def expected_files(folder: str) -> dict[str, list[str]]:
    """The files below a folder by their names without extension, in lists.

    They include files with other extensions than those of expected content, which may be meant for an output.

    Raises ExpectationError where a folder cannot be searched.
    """
    files: dict[str, list[str]] = {}
    folders, searched = [("", folder)], {os.path.realpath(folder)}  # links may lead in a circle
    for prefix, path in folders:
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)  # so that problems have one order
        except OSError as error:
            if not os.path.lexists(path):
                continue  # there need not be one
            message = f"cannot be searched for expected files: {reason_of(error)}"
            raise ExpectationError(Diagnostic("SR-EXPECT-007", "error", None, message, path=path)) from error
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if is_known(entry.name) or not entry.is_dir():
                files.setdefault(prefix + os.path.splitext(entry.name)[0], []).append(entry.path)
            elif (target := os.path.realpath(entry.path)) not in searched:
                searched.add(target)
                folders.append((f"{prefix}{entry.name}/", entry.path))
    return files


def _parsed(text: str, path: str, pointer: str) -> Check:
    """The model of what stands at a pointer of a text: of all of it, or of "expect" in a scenario."""
    try:
        tree = json.loads(text, object_pairs_hook=_unique, parse_constant=_not_json)
    except (ValueError, RecursionError):
        faults = [
            fault._replace(code="SR-EXPECT-001", help=fault.help if text.strip() else "expected an object")
            for fault in scan(text)
            if fault.pointer.startswith(pointer)
        ]
        if faults or not pointer:
            raise ExpectationError(limited(problems_of(faults, text, path))) from None
        tree = json.loads(text)  # what is wrong is elsewhere in the scenario
    check, problems = _checked(tree[_KEY] if pointer else tree)
    if check is None or problems:
        places = Places(text)
        placed = [_placed(problem, path, pointer, places) for problem in problems]
        raise ExpectationError(limited(sorted(placed, key=lambda problem: (problem.line or 0, problem.column or 0))))
    return check


def _checked(tree: Any) -> tuple[Check | None, list[Diagnostic]]:
    """The model of expectations, and their problems; pointers start at the expectations."""
    if not isinstance(tree, dict):
        return None, [Diagnostic("SR-EXPECT-003", "error", "", f"expected an object, got {shown(tree)}")]
    if isinstance(tree.get("$schema"), str):  # for editors
        del tree["$schema"]
    try:
        check = Check.model_validate(tree)
    except ValidationError as error:
        codes = {"SR-JSON-003": "SR-EXPECT-002"}
        return None, [
            finding._replace(code=codes.get(finding.code, "SR-EXPECT-003"))
            for finding in islice(findings(Check, error), MAX_PROBLEMS + 1)
        ]
    return check, list(_contradictions(check))


def _placed(problem: Diagnostic, path: str, pointer: str, places: Places) -> Diagnostic:
    """The problem at its place, which is below ``pointer``."""
    pointer += problem.pointer or ""
    line, column = places.find(pointer, key=problem.code in _ABOUT_KEYS)
    return problem._replace(path=path, pointer=pointer, line=line, column=column)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs) or None in mapping.values():
        raise ValueError
    return mapping


def _not_json(word: str) -> Any:
    raise ValueError(word)


def _contradictions(check: Check) -> Iterator[Diagnostic]:
    """Keys that contradict each other; pointers start at the expectations."""
    if check.codes is not None:
        from scenario_runner.codes import CODES

        for index, code in enumerate(check.codes):
            if code not in CODES:
                message = f"no error has the code {code!r:.60}{close_match(code, CODES)}"
                yield Diagnostic("SR-EXPECT-003", "error", f"/codes/{index}", message, "docs/codes.md lists them")
        exit_codes = {error_class(code).exit_code for code in check.codes}
        if check.exit_code is not None and check.codes and check.exit_code not in exit_codes:
            ends = " or ".join(map(str, sorted(exit_codes)))
            yield _contradiction("/exit_code", f"is {check.exit_code}, but runs with these codes end with {ends}")
        if not check.codes and check.exit_code:
            yield _contradiction("/codes", f"is empty, but a run that ends with {check.exit_code} has a code")
    if (check.exit_code or check.codes) and check.outputs:
        yield _contradiction("/outputs", "a run that ends with an error has no outputs")
    if check.needs is not None and check.needs.features:
        yield from _unknown_features(check.needs.features)
    yield from _of_outputs(check.outputs, "/outputs")
    for index, condition in enumerate(check.when):
        here = f"/when/{index}"
        if not condition.model_fields_set & {"device", "driver", "driver_version", "type", "vendor"}:
            yield _contradiction(here, "matches every device", "give device, driver, driver_version, type or vendor")
        yield from _wrong_condition(condition, here)
        yield from _of_outputs(condition.outputs, f"{here}/outputs")


def _unknown_features(names: Iterable[str]) -> Iterator[Diagnostic]:
    """Report unknown features, which would make the result NotSupported on every device."""
    from scenario_runner.vulkan.requirements import known_features

    known = known_features()
    for name in names:
        if name not in known:
            message = f"no feature of Vulkan is called {name!r:.100}{close_match(name, known)}"
            yield Diagnostic("SR-EXPECT-003", "error", "/needs/features", message)


def _wrong_condition(condition: Any, here: str) -> Iterator[Diagnostic]:
    if condition.driver_version is not None and comparisons(condition.driver_version) is None:
        message = "expected comparisons such as '>=24.1 <25'"
        yield Diagnostic("SR-EXPECT-003", "error", f"{here}/driver_version", message)
    if condition.vendor is not None and vendor_id(condition.vendor) is None:
        message = f"no vendor is called {condition.vendor!r:.60}{close_match(condition.vendor, VENDORS)}"
        help = f"an id such as 0x10de, or one of {', '.join(VENDORS)}"
        yield Diagnostic("SR-EXPECT-003", "error", f"{here}/vendor", message, help)


def _of_outputs(outputs: Mapping[str, Output], here: str) -> Iterator[Diagnostic]:
    for name, output in outputs.items():
        for problem in _of_output(output):
            yield problem._replace(pointer=f"{here}/{escape(name)}{problem.pointer}")


def _of_output(output: Output) -> Iterator[Diagnostic]:
    fields = output.model_fields_set
    sources = [key for key in SOURCES if key in fields]
    if len(sources) > 1:
        keys = " and ".join(map(repr, sources))
        yield _contradiction("", f"{keys} are given; one output has one of them")
    others = fields - {"sha256"}
    if "sha256" in fields and others - set(SOURCES):
        keys = ", ".join(repr(key) for key in Output.model_fields if key in others)
        yield _contradiction("/sha256", f"a digest says only that bytes are equal, so that {keys} cannot be checked")
    if output.unchecked and fields - {"unchecked"}:
        keys = ", ".join(repr(key) for key in Output.model_fields if key in fields - {"unchecked"})
        yield _contradiction("/unchecked", f"is true, so that {keys} would have no effect")
    if output.allowed_count is not None and output.allowed_share is not None:
        yield _contradiction("/allowed_share", "is given beside 'allowed_count'", "keep one of the two")
    if output.metrics is not None:
        yield from _of_metrics(output.metrics)


def _of_metrics(metrics: Any) -> Iterator[Diagnostic]:
    for name in metrics.model_fields_set:
        bounds: Most | Least = getattr(metrics, name)
        here = f"/metrics/{name}"
        limit, key = (bounds.max, "max") if isinstance(bounds, Most) else (bounds.min, "min")
        if bounds.warn is None and limit is None and METRICS[name].defaults is None:
            yield Diagnostic("SR-EXPECT-003", "error", here, f"expected 'warn', {key!r} or both")
        if bounds.warn is not None and limit is not None:
            is_beyond = bounds.warn > limit if isinstance(bounds, Most) else bounds.warn < limit
            if is_beyond:
                yield _contradiction(f"{here}/warn", f"lies beyond {key!r} ({limit}), so that nothing is a warning")


def _contradiction(pointer: str, message: str, help: str | None = None) -> Diagnostic:
    return Diagnostic("SR-EXPECT-006", "error", pointer, message, help)
