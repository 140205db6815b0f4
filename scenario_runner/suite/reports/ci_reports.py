"""Results for CI systems, as JUnit XML and as CTRF JSON."""

from __future__ import annotations

import json
import mimetypes
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from scenario_runner.errors.text import Json, one_line, visible
from scenario_runner.files.output import OutputFile
from scenario_runner.suite.outcomes import BAD, NOT_RUN, Outcome, OutputCheck, Result
from scenario_runner.suite.reports.summary import (
    FULL_TEXT_MAX,
    INCOMPLETE,
    UNCOMPARED,
    SuiteInfo,
    attached_files,
    causes_of,
    full_text,
    kind_of,
    printable,
    shortened,
    shown_path,
)

FILE_SIZE_MAX: Final = 30_000_000
"""GitLab reads no larger file (bytes)."""

_HEAD_SIZE: Final = 256 << 10  # room for other elements than cases
_ATTEMPTS_MAX: Final = 10
_ATTACHMENTS_MAX: Final = 100

_TestSuite = tuple[SuiteInfo, list[tuple[str, str]]]
"""A suite, and the text and the outcome of each case."""


def write_junit(
    path: str,
    results: Iterable[Result],
    info: SuiteInfo,
    *others: tuple[Iterable[Result], SuiteInfo],
    size_max: int = FILE_SIZE_MAX,
) -> list[str]:
    """Write a file with a testsuite for the results, and for each of ``others``. Return the paths of files.

    Files have at most ``size_max`` bytes: other cases go into 'junit-2.xml' after 'junit.xml', and so on. Further files
    of an earlier report are removed. A file appears only when it is complete. Raises FileError.
    """
    written: list[str] = []
    part: list[_TestSuite] = []
    size = 0
    for suite_results, suite in ((results, info), *others):
        part.append((suite, []))
        for text, outcome in _cases(suite_results, suite):
            if size and size + len(text.encode()) > size_max - _HEAD_SIZE * len(part):
                written.append(_write_part(path, len(written) + 1, part if part[-1][1] else part[:-1]))
                part, size = [(suite, [])], 0
            part[-1][1].append((text, outcome))
            size += len(text.encode())
    written.append(_write_part(path, len(written) + 1, part))
    with suppress(OSError):  # numbered files of an earlier report contain their number
        for number in count(len(written) + 1):
            with open(_numbered(path, number), "rb") as file:
                if _part_property(number).encode() not in file.read(_HEAD_SIZE):
                    break
            os.remove(_numbered(path, number))
    return written


def _numbered(path: str, number: int) -> str:
    """Return the path of a file of the report. The first file has the number 1."""
    stem, extension = os.path.splitext(path)
    return path if number == 1 else f"{stem}-{number}{extension}"


def _part_property(number: int) -> str:
    return _element("property", name="part", value=str(number))


def _write_part(path: str, number: int, part: Sequence[_TestSuite]) -> str:
    path = _numbered(path, number)
    suites = "".join(f"{_test_suite(number, cases, info)}\n" for info, cases in part)
    counts = _counts([case for _, cases in part for case in cases], *(info for info, _ in part))
    with OutputFile(path) as file:
        text = _element("testsuites", f"\n{suites}", **counts)
        file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode())
    return path


def _counts(cases: Sequence[tuple[str, str]], *infos: SuiteInfo) -> dict[str, str]:
    """Return the common attributes of the elements testsuites and testsuite."""
    outcomes = Counter(outcome for _, outcome in cases)
    counts = {"name": ", ".join(info.title for info in infos), "tests": str(len(cases))}
    counts |= {"failures": str(outcomes["failure"]), "errors": str(outcomes["error"])}
    return counts | {"time": f"{sum(info.seconds for info in infos):.3f}"}


def _test_suite(number: int, cases: Sequence[tuple[str, str]], info: SuiteInfo) -> str:
    """Return the element testsuite in a numbered file."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(info.started))
    properties = [
        ("version", info.version),
        ("command", shortened(" ".join(info.command), 4096)),
        *(("device", f"{name} ({uuid})") for uuid, name in info.devices[:100]),
        *(("driver", driver) for driver in info.drivers[:100]),
    ]
    uncompared = sum(outcome == UNCOMPARED for _, outcome in cases)
    properties += [(UNCOMPARED, str(uncompared))] if uncompared else []
    elements = [_part_property(number), *(_element("property", name=name, value=value) for name, value in properties)]
    content = _element("properties", "\n".join(["", *elements, ""])) + "\n" + "".join(text for text, _ in cases)
    skipped = sum(outcome == "skipped" for _, outcome in cases)
    more = {"skipped": str(skipped), "timestamp": stamp, "hostname": info.host}
    return _element("testsuite", f"\n{content}", **_counts(cases, info), **more)


def _cases(results: Iterable[Result], info: SuiteInfo) -> Iterator[tuple[str, str]]:
    """Yield the text of each case, and the outcome: the name of an element, `UNCOMPARED`, or '' for a passed case.

    Repeated names get a number, since GitLab would drop the case.
    """
    seen: set[str] = set()
    for result in results:
        name = plain = one_line(result.item.id, 4096)
        numbers = count(2)
        while name in seen:
            name = f"{plain} ({next(numbers)})"
        seen.add(name)
        outcome, inside = _inside(result, info)
        # Jenkins takes a folder with points for a package
        folder = os.path.dirname(one_line(result.item.id.removesuffix(result.item.variant), 4096))
        folder = folder.strip("/").replace(".", "_").replace("/", ".")
        folder = ".".join(filter(None, (info.package, folder))) or "suite"
        place = {"classname": folder, "name": name, "time": f"{result.seconds:.3f}"}
        yield _element("testcase", "\n".join(["", *inside, ""]) if inside else "", **place) + "\n", outcome
    if info.incomplete:
        error = _element("error", escape(info.incomplete), message=_first_line(info.incomplete), type="Incomplete")
        yield _element("testcase", f"\n{error}\n", classname=info.package or "suite", name=INCOMPLETE) + "\n", "error"


def _inside(result: Result, info: SuiteInfo) -> tuple[str, list[str]]:
    """Return the outcome, as in `_cases`, and the lines in the case."""
    kind, last, verdict = kind_of(result), result.last, result.verdict
    reason = last.reason if last is not None else ""
    lines: list[str] = []
    outcome = ""
    if kind == "failed":
        outcome = "error" if verdict in BAD - {"Fail"} else "failure"
        lines.append(_element(outcome, escape(full_text(result, info)), message=_first_line(reason), type=verdict))
        lines += _attempts("rerunFailure", result)
    elif kind in ("skipped", "tolerated"):
        outcome = "skipped"
        lines.append(_element("skipped", message=one_line(f"{verdict}: {reason}" if reason else verdict)))
    elif verdict == "Flake":
        lines += _attempts("flakyFailure", result)
    is_told = kind == "tolerated" or verdict in ("Warn", "Flake")
    shown = full_text(result, info) + "\n" if is_told else ""
    if result.is_uncompared:
        outcome, shown = UNCOMPARED, f"{UNCOMPARED}: the scenario has outputs and no expectations\n"
    attachments = "" if kind == "skipped" else _attachments(result, info)
    if shown or attachments:
        lines.append(_element("system-out", escape(shown + attachments)))
    if last is not None and last.output and kind == "failed":
        lines.append(_element("system-err", _content(last.output, FULL_TEXT_MAX)))
    return outcome, lines


def _attempts(tag: str, result: Result) -> Iterator[str]:
    """Yield elements for failed attempts before the last one, like Surefire."""
    for attempt in result.attempts[:-1][-_ATTEMPTS_MAX:]:
        if attempt.status in BAD:
            inside = _element("stackTrace", _content(attempt.stack or attempt.reason, 8192))
            if attempt.output:
                inside += _element("system-err", _content(attempt.output, 8192))
            yield _element(tag, inside, message=one_line(attempt.reason), type=attempt.status)


def _attachments(result: Result, info: SuiteInfo) -> str:
    """Return a line for each file, in the format of GitLab and Jenkins."""
    paths = () if result.last is None else (path for _, path in attached_files(result.last, info))
    usable = [path for path in paths if path.isprintable() and "]]" not in path]
    return "".join(f"\n[[ATTACHMENT|{path}]]\n" for path in usable[:_ATTACHMENTS_MAX])


def _first_line(text: str) -> str:
    return one_line(text.partition("\n")[0])


def _content(text: str, longest: int) -> str:
    return escape(visible(shortened(text, longest)))


def _element(tag: str, content: str = "", **attributes: str) -> str:
    """Return an XML element. ``content`` is XML."""
    start = tag + "".join(f" {name}={quoteattr(visible(value))}" for name, value in attributes.items())
    return f"<{start}>{content}</{tag}>" if content else f"<{start}/>"


SPECIFICATION_VERSION: Final = "0.0.0"


def write_ctrf(path: str, results: Iterable[Result], info: SuiteInfo) -> list[str]:
    """Write a file with a line for each test, and the counts at the end. Return the paths of files.

    The file appears only when it is complete. Raises FileError.
    """
    devices = [{"uuid": uuid, "name": name} for uuid, name in info.devices]
    extra = {"host": info.host, "command": info.command[:1000], "devices": devices, "drivers": info.drivers}
    environment = {"reportName": one_line(info.title), "osPlatform": sys.platform, "extra": extra}
    head = {"reportFormat": "CTRF", "specVersion": SPECIFICATION_VERSION, "generatedBy": "scenario-runner"}
    unsupported: list[Result] = []

    def noted() -> Iterator[Result]:
        for result in results:
            unsupported.extend([result] if result.verdict == "NotSupported" else [])
            yield result

    counts = dict.fromkeys(("tests", "passed", "failed", "skipped", "pending", "other", "flaky"), 0)
    with OutputFile(path) as file:
        start = _text(head)[:-1] + ',"results":{"tool":' + _text({"name": "scenario-runner", "version": info.version})
        file.write(f'{start},\n"environment":{_text(environment)},\n"tests":['.encode())
        incomplete = {"name": INCOMPLETE, "status": "failed", "duration": 0, "rawStatus": "Incomplete"}
        further = [{**incomplete, "message": info.incomplete}] if info.incomplete else []
        for test in chain((_test(result, info) for result in noted()), further):
            file.write((",\n" if counts["tests"] else "\n").encode() + _text(test).encode())
            counts["tests"] += 1
            counts[test["status"]] += 1
            counts["flaky"] += test.get("flaky", False)
        times = {"start": info.started, "stop": info.started + info.seconds, "duration": info.seconds}
        counts |= {name: int(second * 1000) for name, second in times.items()}
        groups = {"notSupported": causes_of(unsupported)}
        file.write(f'\n],\n"summary":{_text(counts)},"extra":{_text(groups)}}}}}\n'.encode())
    return [path]


def _test(result: Result, info: SuiteInfo) -> dict[str, Json]:
    last, kind = result.last, kind_of(result)
    name = one_line(result.item.id, 4096) or "?"
    earlier = result.attempts[:-1]
    test: dict[str, Json] = {
        "name": name,
        "status": "other" if kind == "tolerated" else kind,
        "duration": round(result.seconds * 1000),
        "rawStatus": result.verdict,
        "filePath": shown_path(result.item.path, info.folder),
        "suite": [part for part in os.path.dirname(name).split("/") if part],
        "device": result.device,
        "labels": _without_empty({"driver": result.driver, "compared": "nothing" if result.is_uncompared else ""}),
        "retries": len(earlier),
        "retryAttempts": [_attempt(number, attempt, info) for number, attempt in enumerate(earlier, 1)],
        "flaky": result.verdict == "Flake",
    }
    if last is not None and result.verdict != "Pass":
        test |= _about(last, info)
        if kind != "skipped":
            test["trace"] = full_text(result, info)
            test["extra"] = {
                "command": info.repeat_command(result),
                "exitCode": last.exit_code,
                "diagnostics": last.diagnostics[:100],
                "outputs": [_output(output) for output in last.outputs if output.status != "Pass"][:100],
            }
    return _without_empty(test)


def _attempt(number: int, attempt: Outcome, info: SuiteInfo) -> dict[str, object]:
    fields = {
        "attempt": number,
        "status": "failed" if attempt.status in BAD else "skipped" if attempt.status in NOT_RUN else "passed",
        "duration": round(attempt.seconds * 1000),
        "extra": {"rawStatus": attempt.status},
        "trace": attempt.stack,
    }
    return _without_empty(fields | _about(attempt, info))


def _about(outcome: Outcome, info: SuiteInfo) -> dict[str, object]:
    """Return the reason, the end of standard error, and the files of an attempt."""
    attachments = [
        {"name": name, "contentType": mimetypes.guess_type(path)[0] or "application/octet-stream", "path": path}
        for name, path in attached_files(outcome, info)
    ]
    stderr = visible(shortened(outcome.output, FULL_TEXT_MAX)).splitlines()
    return {"message": outcome.reason, "stderr": stderr, "attachments": attachments}


def _without_empty(test: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in test.items() if value or name == "duration"}


def _output(output: OutputCheck) -> dict[str, object]:
    worst = [dict(zip(("index", "expected", "actual"), element, strict=True)) for element in output.worst]
    fields = {"name": output.name, "status": output.status, "message": output.message, "metrics": output.metrics}
    return {**fields, "worst": worst}


def _text(value: object) -> str:
    return json.dumps(printable(value), allow_nan=False, separators=(",", ":"))
