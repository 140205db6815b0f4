"""Reports for CI systems: CTRF (JSON) and JUnit (XML)."""

from __future__ import annotations

import json
import math
import mimetypes
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from scenario_runner.files.output import OutputFile
from scenario_runner.suite.records import BAD, NOT_RUN, Outcome, OutputCheck, Result
from scenario_runner.suite.reports.text import FULL_TEXT_MAX, INCOMPLETE, SuiteInfo, full_text, kind_of, shortened
from scenario_runner.text import one_line, visible

SPECIFICATION_VERSION: Final = "0.0.0"


def write_ctrf(path: str, results: Iterable[Result], info: SuiteInfo) -> list[str]:
    """Write ``path``, one test a line, and return the files; the counts come last.

    It appears complete or not at all. Raises FileError.
    """
    head = {
        "reportFormat": "CTRF",
        "specVersion": SPECIFICATION_VERSION,
        "generatedBy": "scenario-runner",
    }
    counts = dict.fromkeys(("tests", "passed", "failed", "skipped", "pending", "other", "flaky"), 0)
    with OutputFile(path) as file:
        start = _text(head)[:-1] + ',"results":{"tool":' + _text({"name": "scenario-runner", "version": info.version})
        file.write(f'{start},\n"environment":{_text(_environment(info))},\n"tests":['.encode())
        for test in _tests(results, info):
            file.write((",\n" if counts["tests"] else "\n").encode() + _text(test).encode())
            counts["tests"] += 1
            counts[test["status"]] += 1
            counts["flaky"] += test.get("flaky", False)
        times = {
            "start": int(info.started * 1000),
            "stop": int((info.started + info.seconds) * 1000),
            "duration": int(info.seconds * 1000),
        }
        file.write(f'\n],\n"summary":{_text({**counts, **times})}}}}}\n'.encode())
    return [path]


def _environment(info: SuiteInfo) -> dict[str, Any]:
    extra = {
        "host": visible(info.host),
        "command": [visible(argument) for argument in info.command[:1000]],
        "devices": [{"uuid": uuid, "name": visible(name)} for uuid, name in info.devices],
        "drivers": [visible(driver) for driver in info.drivers],
    }
    return {"reportName": one_line(info.title), "osPlatform": sys.platform, "extra": extra}


def _tests(results: Iterable[Result], info: SuiteInfo) -> Iterator[dict[str, Any]]:
    yield from (_test(result, info) for result in results)
    if info.incomplete:
        message = visible(info.incomplete)
        yield {"name": INCOMPLETE, "status": "failed", "duration": 0, "rawStatus": "Incomplete", "message": message}


def _test(result: Result, info: SuiteInfo) -> dict[str, Any]:
    last, kind = result.last, kind_of(result)
    name = one_line(result.item.id, 4096) or "?"
    earlier = result.attempts[:-1]
    test: dict[str, Any] = {
        "name": name,
        "status": "other" if kind == "tolerated" else kind,
        "duration": round(result.seconds * 1000),
        "rawStatus": result.verdict,
        "filePath": visible(info.shown_path(result.item.path)),
        "suite": [part for part in os.path.dirname(name).split("/") if part],
        "device": visible(result.device),
        "labels": {"driver": visible(result.driver)} if result.driver else {},
        "retries": len(earlier),
        "retryAttempts": [_attempt(at, each, info) for at, each in enumerate(earlier, 1)],
        "flaky": result.verdict == "Flake",
    }
    if last is not None and result.verdict != "Pass":
        test |= _about(last, info)
        if kind != "skipped":
            test["trace"] = full_text(result, info)
            test["extra"] = {
                "command": visible(info.repeat_command(result)),
                "exitCode": last.exit_code,
                "diagnostics": [_visible(diagnostic) for diagnostic in last.diagnostics[:100]],
                "outputs": [_output(output) for output in last.outputs if output.status != "Pass"][:100],
            }
    return _given(test)


def _attempt(number: int, attempt: Outcome, info: SuiteInfo) -> dict[str, Any]:
    attempted = {
        "attempt": number,
        "status": "failed" if attempt.status in BAD else "skipped" if attempt.status in NOT_RUN else "passed",
        "duration": round(attempt.seconds * 1000),
        "extra": {"rawStatus": attempt.status},
        "trace": visible(shortened(attempt.stack, FULL_TEXT_MAX)),
    }
    return _given(attempted | _about(attempt, info))


def _about(outcome: Outcome, info: SuiteInfo) -> dict[str, Any]:
    """The reason, the end of standard error and the files of one run."""
    kinds = ((name, path, mimetypes.guess_type(path)[0]) for name, path in _files(outcome, info))
    return {
        "message": visible(outcome.reason),
        "stderr": visible(shortened(outcome.output, FULL_TEXT_MAX)).splitlines(),
        "attachments": [
            {"name": visible(name), "contentType": kind or "application/octet-stream", "path": visible(path)}
            for name, path, kind in kinds
        ],
    }


def _given(test: dict[str, Any]) -> dict[str, Any]:
    """The keys that say something."""
    return {name: value for name, value in test.items() if value or name == "duration"}


def _files(outcome: Outcome, info: SuiteInfo) -> Iterator[tuple[str, str]]:
    """The title and the path of each file about an output that is wrong."""
    for output in () if info.is_temporary else outcome.outputs:
        if output.status != "Pass":
            for what, path in info.files_of(output).items():
                yield f"{output.name}: {what}", info.shown_path(path)


def _output(output: OutputCheck) -> dict[str, Any]:
    return {
        "name": visible(output.name),
        "status": output.status,
        "message": visible(output.message),
        "metrics": {name: value if math.isfinite(value) else str(value) for name, value in output.metrics.items()},
        "worst": [
            dict(zip(("index", "expected", "actual"), map(visible, element), strict=True)) for element in output.worst
        ],
    }


def _visible(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: visible(value) if isinstance(value, str) else value for name, value in fields.items()}


def _text(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


FILE_SIZE_MAX: Final = 30_000_000
"""GitLab reads no larger file (bytes)."""

_HEAD_SIZE: Final = 256 << 10  # room for the elements around the cases
_ATTEMPTS_MAX: Final = 10
_ATTACHMENTS_MAX: Final = 100


def write_junit(path: str, results: Iterable[Result], info: SuiteInfo, *, size_max: int = FILE_SIZE_MAX) -> list[str]:
    """Write ``path`` and return the files: further ones, such as 'junit-2.xml' after 'junit.xml', hold what would make
    it larger than ``size_max`` bytes. Those of a longer report before are removed.

    Each file appears complete or not at all. Raises FileError.
    """
    written: list[str] = []
    for number, cases in enumerate(_parts(_unique_cases(results, info), size_max - _HEAD_SIZE), 1):
        written.append(_numbered(path, number))
        _write_part(written[-1], number, cases, info)
    _remove_further(path, len(written) + 1)
    return written


def _parts(cases: Iterable[tuple[bytes, str]], size_max: int) -> Iterator[list[tuple[bytes, str]]]:
    """The cases of each file, at least one file."""
    part: list[tuple[bytes, str]] = []
    size = 0
    for case in cases:
        if part and size + len(case[0]) > size_max:
            yield part
            part, size = [], 0
        part.append(case)
        size += len(case[0])
    yield part


def _numbered(path: str, number: int) -> str:
    """The path of a file of the report, which are numbered from 1."""
    stem, extension = os.path.splitext(path)
    return path if number == 1 else f"{stem}-{number}{extension}"


def _remove_further(path: str, first: int) -> None:
    """Remove what an earlier report has left: numbered files that say which part of it they are."""
    with suppress(OSError):
        for number in count(first):
            further = _numbered(path, number)
            with open(further, "rb") as file:
                if _part_property(number).encode() not in file.read(_HEAD_SIZE):
                    return
            os.remove(further)


def _part_property(number: int) -> str:
    return f"<property{_attributes(name='part', value=str(number))}/>"


def _write_part(path: str, number: int, cases: Sequence[tuple[bytes, str]], info: SuiteInfo) -> None:
    outcomes = Counter(outcome for _, outcome in cases)
    counts = _attributes(
        name=info.title,
        tests=str(len(cases)),
        failures=str(outcomes["failure"]),
        errors=str(outcomes["error"]),
        time=f"{info.seconds:.3f}",
    )
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(info.started))
    more = _attributes(skipped=str(outcomes["skipped"]), timestamp=stamp, hostname=info.host)
    head = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{counts}>",
        f"<testsuite{counts}{more}>",
        "<properties>",
        _part_property(number),
        *(f"<property{_attributes(name=name, value=value)}/>" for name, value in _properties(info)),
        "</properties>\n",
    ]
    with OutputFile(path) as file:
        file.write("\n".join(head).encode())
        for text, _ in cases:
            file.write(text)
        file.write(b"</testsuite>\n</testsuites>\n")


def _properties(info: SuiteInfo) -> Iterator[tuple[str, str]]:
    yield "version", info.version
    yield "command", shortened(" ".join(info.command), 4096)
    yield from (("device", f"{name} ({uuid})") for uuid, name in info.devices[:100])
    yield from (("driver", driver) for driver in info.drivers[:100])


def _unique_cases(results: Iterable[Result], info: SuiteInfo) -> Iterator[tuple[bytes, str]]:
    """The text of each case, and the element that says how it ended ('' where it passed).

    A name that was there already gets a number: GitLab would drop the case.
    """
    seen: dict[str, int] = {}
    for result in results:
        name = one_line(result.item.id, 4096)
        count = seen[name] = seen.get(name, 0) + 1
        while count > 1 and f"{name} ({count})" in seen:
            count += 1
        if count > 1:
            name = f"{name} ({count})"
            seen[name] = 1
        yield _case(name, result, info)
    if info.incomplete:
        error = _element("error", "Incomplete", info.incomplete, info.incomplete)
        case = f"<testcase{_attributes(classname='suite', name=INCOMPLETE)}>\n{error}\n</testcase>\n"
        yield case.encode(), "error"


def _case(name: str, result: Result, info: SuiteInfo) -> tuple[bytes, str]:
    attributes = _attributes(
        classname=_class_name(result.item.id),
        name=name,
        time=f"{result.seconds:.3f}",
    )
    outcome, inside = _inside(result, info)
    if not inside:
        return f"<testcase{attributes}/>\n".encode(), outcome
    text = "\n".join([f"<testcase{attributes}>", *inside, "</testcase>\n"])
    return text.encode(), outcome


def _inside(result: Result, info: SuiteInfo) -> tuple[str, list[str]]:
    """The element that says how the case ended, and the lines within the case."""
    kind = kind_of(result)
    last = result.last
    reason = last.reason if last is not None else ""
    lines: list[str] = []
    outcome = ""
    if kind == "failed":
        outcome = "error" if result.verdict in BAD - {"Fail"} else "failure"
        lines.append(_element(outcome, result.verdict, reason, full_text(result, info)))
        lines += _attempts("rerunFailure", result)
    elif kind in ("skipped", "tolerated"):
        outcome = "skipped"
        message = f"{result.verdict}: {reason}" if reason else result.verdict
        lines.append(f"<skipped{_attributes(message=one_line(message))}/>")
    elif result.verdict == "Flake":
        lines += _attempts("flakyFailure", result)
    is_told = kind == "tolerated" or result.verdict in ("Warn", "Flake")
    shown = full_text(result, info) + "\n" if is_told else ""
    attachments = "" if kind == "skipped" else _junit_attachments(result, info)
    if shown or attachments:
        lines.append(f"<system-out>{escape(shown + attachments)}</system-out>")
    if last is not None and last.output and kind == "failed":
        lines.append(f"<system-err>{escape(visible(shortened(last.output, FULL_TEXT_MAX)))}</system-err>")
    return outcome, lines


def _attempts(tag: str, result: Result) -> Iterator[str]:
    """The attempts before the last one, as Surefire writes tests that were repeated."""
    for attempt in result.attempts[:-1][-_ATTEMPTS_MAX:]:
        if attempt.status in BAD:
            attributes = _attributes(message=one_line(attempt.reason), type=attempt.status)
            inside = f"<stackTrace>{escape(visible(shortened(attempt.stack or attempt.reason, 8192)))}</stackTrace>"
            if attempt.output:
                inside += f"<system-err>{escape(visible(shortened(attempt.output, 8192)))}</system-err>"
            yield f"<{tag}{attributes}>{inside}</{tag}>"


def _junit_attachments(result: Result, info: SuiteInfo) -> str:
    """A line for each file, as GitLab and Jenkins want it."""
    paths = () if result.last is None else (path for _, path in _files(result.last, info))
    usable = [path for path in paths if path.isprintable() and "]]" not in path]
    return "".join(f"\n[[ATTACHMENT|{path}]]\n" for path in usable[:_ATTACHMENTS_MAX])


def _class_name(id: str) -> str:
    """The folder, with the points between its parts that Jenkins takes for packages."""
    folder = os.path.dirname(one_line(id, 4096)).strip("/")
    return folder.replace(".", "_").replace("/", ".") or "suite"


def _element(tag: str, kind: str, message: str, text: str) -> str:
    first = one_line(message.partition("\n")[0])
    return f"<{tag}{_attributes(message=first, type=kind)}>{escape(text)}</{tag}>"


def _attributes(**values: str) -> str:
    return "".join(f" {name}={quoteattr(visible(value))}" for name, value in values.items())
