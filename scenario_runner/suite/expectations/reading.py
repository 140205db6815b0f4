"""Reading of expectations: a ``check.json``, or ``expect`` in a scenario, and the folder of expected files."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pydantic import ValidationError

from scenario_runner.compare.tosa_rules import rule_problems
from scenario_runner.errors import ExpectationError, ScenarioError, ScenarioRunnerError, error_class
from scenario_runner.errors.diagnostic import Diagnostic, escape
from scenario_runner.errors.text import Json
from scenario_runner.files.input import MAX_SCENARIO_BYTES, SourceFile, is_model
from scenario_runner.files.json_text import LimitError, has_null, parse, places_of, scan
from scenario_runner.files.parameters import replaced, unset, with_parameters
from scenario_runner.files.sandbox import around
from scenario_runner.scenario.entries import built
from scenario_runner.scenario.json_model import findings
from scenario_runner.scenario.scenario import MAX_PROBLEMS, limited
from scenario_runner.suite.combinations import problems_of
from scenario_runner.suite.discovery import MODEL_KEYS, SUITE_FILE, expected_folder
from scenario_runner.suite.expectations.format import (
    METRICS,
    SOURCES,
    TEXEL_KEYS,
    Check,
    Condition,
    Output,
    Rules,
    Suite,
    Tolerances,
    all_rules,
    rules_in,
)
from scenario_runner.suite.outcomes import Item

if TYPE_CHECKING:
    from scenario_runner.vulkan.physical_device import PhysicalDevice

# Keys of an output that exclude all other keys, with the reason.
ALONE = {"sha256": "a digest says only that bytes are equal", "tosa": "the mode says which elements are right"}
_KEY = "expect"  # of expectations in a scenario
_POINTER = f"/{_KEY}"
_DEFAULT = built(Check)()
_NO_DEFAULTS: Final[Mapping[str, Json]] = {}
# An output with only these keys takes the tolerances of the suite.
_COMPARED: Final = frozenset({"file", "values", "equals", "dtype", "at", *TEXEL_KEYS, "mask", "border"})
_Parsed = TypeVar("_Parsed", Check, Suite)

_MOST_KNOWN: Final = 64
_LARGEST_KNOWN: Final = 16 << 10
_known: Final[dict[tuple[str, str], Check | Suite]] = {}
"""Expectations by text and JSON pointer: the items of a suite often have equal expectations."""

_VERSION = re.compile(r"\d+(?:\.\d+)+")
_SIGNS = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}


def driver_version(physical: PhysicalDevice) -> tuple[int, ...]:
    """Return the first version in the driver's text, or the driver's version as Vulkan packs it."""
    match = _VERSION.search(physical.driver)
    if match is not None:
        return tuple(map(int, match.group().split(".")))
    version = int(physical.properties.driverVersion)
    return version >> 22, version >> 12 & 0x3FF, version & 0xFFF  # 10 bits of major, 10 of minor, 12 of patch


def matches(condition: Condition, physical: PhysicalDevice) -> bool:
    """Return whether a device meets all keys of a condition."""
    patterns = ((condition.device, physical.name), (condition.driver, physical.driver))
    return (
        all(pattern is None or fnmatchcase(name.lower(), pattern.lower()) for pattern, name in patterns)
        and condition.type in (None, physical.type)
        and condition.vendor in (None, int(physical.properties.vendorID))
        and all(_holds(sign, driver_version(physical), bound) for sign, bound in condition.driver_version or ())
    )


def _holds(sign: str, version: tuple[int, ...], bound: tuple[int, ...]) -> bool:
    length = max(len(version), len(bound))
    padded, padded_bound = (numbers + (0,) * (length - len(numbers)) for numbers in (version, bound))
    return bool(_SIGNS[sign](padded, padded_bound))


# Keys that an entry of ``when`` may change, besides outputs.
_CHANGED_KEYS: Final = ("timeout", "not_supported", "expected_fail")
# A key of a group replaces all others of the group.
_ALTERNATIVES = (frozenset(SOURCES), frozenset({"allowed_count", "allowed_share"}))


def merged(check: Check, condition: Condition) -> Check:
    """Apply an entry of ``when`` to expectations."""
    outputs = dict(check.outputs)
    for name, changed in condition.outputs.items():
        base = outputs.get(name)
        if isinstance(changed, tuple):
            outputs[name] = changed
        elif isinstance(base, tuple):
            outputs[name] = tuple(_changed(rule, changed) for rule in base)
        else:
            outputs[name] = _changed(base, changed)
    given = ((key, getattr(condition, key)) for key in _CHANGED_KEYS)
    return check.model_copy(update={"outputs": outputs, **{key: value for key, value in given if value is not None}})


def _changed(rule: Output | None, changed: Output) -> Output:
    """Return a rule with other keys."""
    keys = changed.model_fields_set
    base = None if changed.unchecked or keys & ALONE.keys() else rule
    replaced = keys.union(*(group for group in _ALTERNATIVES if keys & group), {"unchecked"})
    kept = {} if base is None else {key: getattr(base, key) for key in base.model_fields_set - replaced}
    return Output.model_construct(**kept, **{key: getattr(changed, key) for key in keys})


class Expectations(NamedTuple):
    """The expectations of a scenario or a model.

    ``written`` are the expectations in the file. ``check`` are the expectations that count: an entry of ``when``, with
    the index ``condition``, may change them. ``defaults`` has the keys and tolerances from a ``suite.json``. Relative
    paths start from ``folder``; ``expected_folder`` has expected files without a key. The expectations stand in the
    file ``path`` with the content ``text``, at the JSON pointer ``pointer``; ``path`` and ``text`` are None without
    written expectations. ``parameters`` are replaced in the checks, not in the text. ``named_files`` has the paths of
    all files that keys of outputs name, on any device.
    """

    check: Check
    written: Check
    folder: str
    expected_folder: str
    path: str | None = None
    text: str | None = None
    pointer: str = ""
    parameters: Mapping[str, object] = _NO_DEFAULTS
    condition: int | None = None
    defaults: Mapping[str, Json] = _NO_DEFAULTS
    named_files: Mapping[str, None] = _NO_DEFAULTS

    def with_defaults(self, defaults: Mapping[str, object]) -> Expectations:
        """Add values for missing keys."""
        if not defaults:
            return self
        values = {key: value for key, value in defaults.items() if key not in self.written.model_fields_set}
        written = self.written.model_copy(update={key: values[key] for key in values.keys() - {"tolerances"}})
        return self._replace(check=written, written=written, defaults=values)

    def rules_with_defaults(self, name: str, number: int | None = None) -> Iterator[Output]:
        """Yield a rule of an output: first with the tolerances of the suite, if possible, then without."""
        expected = rules_in(self.check.outputs, name)[number or 0]
        tolerances: Tolerances | None = self.defaults.get("tolerances")
        if tolerances is not None and expected.model_fields_set <= _COMPARED:
            yield expected.model_copy(update={key: getattr(tolerances, key) for key in tolerances.model_fields_set})
        yield expected

    def with_condition(self, index: int | None) -> Expectations:
        """Apply the entry of ``when`` with an index. None applies no entry."""
        check = self.written if index is None else merged(self.written, self.written.when[index])
        return self._replace(check=check, condition=index)

    def for_device(self, physical: PhysicalDevice) -> Expectations:
        """Apply the first entry of ``when`` that matches a device."""
        conditions = enumerate(self.written.when)
        return self.with_condition(next((at for at, condition in conditions if matches(condition, physical)), None))

    @property
    def timeout(self) -> tuple[float | None, str]:
        """A run's time limit in seconds, if any, and the key's place."""
        file = os.path.basename(self.path or "")
        if self.condition is not None and self.written.when[self.condition].timeout is not None:
            file = f"when[{self.condition}] of {file}"
        elif "timeout" in self.defaults:
            file = SUITE_FILE
        return self.check.timeout, f"'timeout' in {file}"

    def pointer_to(self, name: str, key: str = "", number: int | None = None) -> str:
        """Return the JSON pointer to an output, or to a key of it such as "/file".

        The rule with a ``number`` is in an array, and the key may be in an entry of ``when``.
        """
        changed = None if self.condition is None else self.written.when[self.condition].outputs.get(name)
        is_changed = changed is not None
        if isinstance(changed, Output):  # it changes keys of all rules
            is_changed = not key or key.split("/")[1] in changed.model_fields_set
            number = None if is_changed else number
        rule = "" if number is None else f"/{number}"
        return f"{f'/when/{self.condition}' if is_changed else ''}/outputs/{escape(name)}{rule}{key}"

    def path_to(self, name: str) -> str:
        """Return the path of a file that a key names."""
        return os.path.normpath(os.path.join(self.folder, name))

    @property
    def expects_failure(self) -> bool:
        """Return whether the run must end with an error."""
        return self.check.expects_failure

    def problem(self, code: str, pointer: str, message: str, help: str | None = None) -> Diagnostic:
        """Make an error at a place in the expectations."""
        if self.text is None or self.path is None:
            return Diagnostic(code, "error", None, message, help, path=self.expected_folder)
        problem = with_parameters(Diagnostic(code, "error", pointer, message, help), self.parameters)
        return places_of(self.text).placed(problem, self.path, self.pointer)


def load(item: Item) -> Expectations:
    """Read the expectations of an item, with the defaults of the suite. The scenario and expected files stay unread.

    Raises ExpectationError with all problems of a text, FileError for an unreadable file, and SandboxError.
    """
    defaults: dict[str, object] = {}
    with around(item.path, *item.defaults):
        for path in item.defaults:
            suite = _parsed(Suite, _text(path), path, "", item.parameters)
            for key in suite.model_fields_set - {"version"}:
                defaults.setdefault(key, getattr(suite, key))
        expectations = _load(item)
    for key in MODEL_KEYS if not is_model(item.path) else ():
        if key in expectations.check.model_fields_set:
            message = "is only for models: a scenario names its files itself"
            raise ExpectationError(expectations.problem("SR-EXPECT-006", f"/{key}", message, "remove it"))
    return expectations.with_defaults(defaults)


def _load(item: Item) -> Expectations:
    folder, expected = os.path.dirname(item.path), expected_folder(item.path)
    inside = None if is_model(item.path) else _inside(item.path)
    if item.expectations is None:
        if inside is None:
            return Expectations(_DEFAULT, _DEFAULT, folder, expected)
        expectations = of_text(inside, item.path, folder, expected, _POINTER, item.parameters)
        if expectations.check.parameters:
            message, help = "are not possible in a scenario", "write them in a check.json or suite.json"
            raise ExpectationError(expectations.problem("SR-EXPECT-006", "/parameters", message, help))
        return expectations
    if inside is not None:
        message, help = "the scenario has other expectations under the key 'expect'", "keep one of the two"
        raise ExpectationError(Diagnostic("SR-EXPECT-006", "error", None, message, help, path=item.expectations))
    text = _text(item.expectations)
    if item.parameters and (missing := list(unset(text, item.expectations, item.parameters))):
        help = f"use {', '.join(item.parameters)}, or write $${{name}} for the text ${{name}}"
        raise ScenarioError(limited([problem._replace(help=help) for problem in missing]))
    return of_text(text, item.expectations, folder, expected, "", item.parameters)


def of_text(
    text: str,
    path: str,
    folder: str,
    expected: str,
    pointer: str = "",
    parameters: Mapping[str, Json] = _NO_DEFAULTS,
) -> Expectations:
    """Read expectations from the text of a file, or from "expect" in a scenario.

    Raises ExpectationError with all problems.
    """
    check = _parsed(Check, text, path, pointer, parameters)
    expectations = Expectations(check, check, folder, expected, path, text, pointer, parameters)
    conditions = (check.outputs, *(when.outputs for when in check.when))
    entries = [rule for outputs in conditions for rule in all_rules(outputs)]
    names = [name for entry in entries for name in (entry.file, entry.mask)]
    names += [name for entry in entries if entry.tosa for name in (entry.tosa.expected, entry.tosa.bounds)]
    named = dict.fromkeys(expectations.path_to(name) for name in names if name is not None)
    return expectations._replace(named_files=named)


def _parsed(model: type[_Parsed], text: str, path: str, pointer: str, parameters: Mapping[str, object]) -> _Parsed:
    """Parse a text, or the part at a JSON pointer. Raises ExpectationError with all problems."""
    try:
        complete = replaced(text, parameters)
        known = _known.get((complete, pointer))
        if isinstance(known, model):
            return known
        tree = parse(complete)
        if "null" in complete and has_null(tree, in_arrays=False):
            raise ValueError("no key of expectations takes null")
    except ValueError as error:
        faults = [
            fault._replace(code="SR-EXPECT-001", help=fault.help if text.strip() else "expected an object")
            for fault in scan(text, path)[0]
            if (fault.pointer or "").startswith(pointer)
        ]
        if not faults and isinstance(error, LimitError):
            limit = Diagnostic("SR-EXPECT-001", "error", None, f"the text has {error}", path=path)
            faults = [with_parameters(limit, parameters)]
        if faults or not pointer:
            raise ExpectationError(limited(faults)) from None
        tree = parse(complete, is_lenient=True)  # the error is elsewhere in the scenario
    tree = tree[_KEY] if pointer else tree
    if isinstance(tree, dict) and isinstance(tree.get("$schema"), str):  # for editors
        del tree["$schema"]
    try:
        parsed = built(model).model_validate(tree)
        problems = list(islice(_contradictions(parsed), MAX_PROBLEMS + 1))
    except ValidationError as error:
        problems = [
            finding._replace(code="SR-EXPECT-002" if finding.code == "SR-JSON-003" else "SR-EXPECT-003")
            for finding in islice(findings(model, error), MAX_PROBLEMS + 1)
        ]
    if problems:
        places = places_of(text)
        placed = (places.placed(with_parameters(problem, parameters), path, pointer) for problem in problems)
        raise ExpectationError(limited(sorted(placed, key=lambda problem: (problem.line or 0, problem.column or 0))))
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    if len(complete) <= _LARGEST_KNOWN:
        _known[complete, pointer] = parsed
    return parsed


def _inside(path: str) -> str | None:
    """Return the text of a scenario with expectations, else None. The run reports a wrong scenario."""
    with suppress(ScenarioRunnerError, ValueError):
        text = _text(path)
        if f'"{_KEY}"' in text or "\\u" in text:  # an escape hides letters
            tree = parse(text, is_lenient=True)
            return text if isinstance(tree, dict) and _KEY in tree else None
    return None


def _text(path: str) -> str:
    with SourceFile(path) as file:
        content = file.read(MAX_SCENARIO_BYTES + 1).removeprefix(BOM_UTF8)
    message, help = f"is larger than {MAX_SCENARIO_BYTES >> 20} MiB", "keep data in files of their own"
    if len(content) <= MAX_SCENARIO_BYTES:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            message, help = f"is not UTF-8: byte {error.start} is {content[error.start]:#04x}", "save it as UTF-8"
    raise ExpectationError(Diagnostic("SR-EXPECT-001", "error", None, message, help, path=path))


def _contradictions(parsed: Check | Suite) -> Iterator[Diagnostic]:
    """Yield errors about contradicting keys. Pointers start at the object."""
    yield from problems_of(parsed.parameters, parsed.exclude)
    if isinstance(parsed, Check):
        yield from _of_check(parsed)
    elif parsed.tolerances is not None:
        for problem in _of_tolerances(parsed.tolerances):
            yield problem._replace(pointer=f"/tolerances{problem.pointer}")


def _of_check(check: Check) -> Iterator[Diagnostic]:
    exit_codes = sorted({error_class(code).exit_code for code in check.codes or ()})
    if check.exit_code is not None and exit_codes and check.exit_code not in exit_codes:
        ends = " or ".join(map(str, exit_codes))
        yield _contradiction("/exit_code", f"is {check.exit_code}, but runs with these codes end with {ends}")
    if check.codes == () and check.exit_code:
        yield _contradiction("/codes", f"is empty, but a run that ends with {check.exit_code} has a code")
    if check.expects_failure and check.outputs:
        yield _contradiction("/outputs", "a run that ends with an error has no outputs")
    yield from _of_outputs(check.outputs, "/outputs")
    for index, condition in enumerate(check.when):
        if condition.model_fields_set <= {"outputs", *_CHANGED_KEYS}:
            help = "give device, driver, driver_version, type or vendor"
            yield _contradiction(f"/when/{index}", "matches every device", help)
        yield from _of_outputs(condition.outputs, f"/when/{index}/outputs")


def _of_outputs(outputs: Mapping[str, Rules], here: str) -> Iterator[Diagnostic]:
    for name, written in outputs.items():
        for number, rule in enumerate(rules_in(outputs, name)):
            place = f"{here}/{escape(name)}" + (f"/{number}" if isinstance(written, tuple) else "")
            for problem in _of_output(rule):
                yield problem._replace(pointer=f"{place}{problem.pointer}")
            if rule.equals == name:
                yield _contradiction(f"{place}/equals", "each output equals itself")


def _of_output(output: Output) -> Iterator[Diagnostic]:
    keys = {key: repr(key) for key in Output.model_fields if key in output.model_fields_set}
    sources = [keys[key] for key in SOURCES if key in keys]
    if len(sources) > 1:
        yield _contradiction("", f"{' and '.join(sources)} are given, but an output has only one of them")
    for key, is_alone, reason in (
        *((key, keys.keys() <= set(SOURCES), reason) for key, reason in ALONE.items()),
        ("unchecked", not output.unchecked or len(keys) == 1, "any content is right"),
    ):
        if key in keys and not is_alone:
            others = ", ".join(shown for other, shown in keys.items() if other != key)
            yield _contradiction(f"/{key}", f"{reason}, so {others} cannot be checked")
    images = [keys[key] for key in TEXEL_KEYS if key in keys]
    if "at" in keys and images:
        yield _contradiction("/at", f"is about bytes of a buffer, but {', '.join(images)} about texels of an image")
    if output.rect is not None and output.border is not None:
        yield _contradiction("/border", "is given beside 'rect'", "let 'rect' leave out the border")
    if output.channels is not None and len({*output.channels}) < len(output.channels):
        yield _contradiction("/channels", "names a channel twice")
    yield from _of_tolerances(output)
    if output.tosa is not None:
        yield from rule_problems(output.tosa.mode, output.tosa.parameters, has_bounds=output.tosa.bounds is not None)


def _of_tolerances(output: Tolerances) -> Iterator[Diagnostic]:
    if output.allowed_count is not None and output.allowed_share is not None:
        yield _contradiction("/allowed_share", "is given beside 'allowed_count'", "keep one of the two")
    for name in output.metrics.model_fields_set if output.metrics is not None else ():
        metric, bounds = METRICS[name], getattr(output.metrics, name)
        warn, limit = bounds.warn, getattr(bounds, metric.limit)
        if warn is None and limit is None and metric.defaults is None:
            message = f"expected 'warn', {metric.limit!r} or both"
            yield Diagnostic("SR-EXPECT-003", "error", f"/metrics/{name}", message)
        if warn is not None and limit is not None and not metric.is_within(warn, limit):
            message = f"lies beyond {metric.limit!r} ({limit}), so there is never a warning"
            yield _contradiction(f"/metrics/{name}/warn", message)


def _contradiction(pointer: str, message: str, help: str | None = None) -> Diagnostic:
    return Diagnostic("SR-EXPECT-006", "error", pointer, message, help)
