"""Reports for CI systems: CTRF (JSON) and JUnit (XML)."""

from __future__ import annotations

import json
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
from scenario_runner.suite.reports.text import (
    FULL_TEXT_MAX,
    INCOMPLETE,
    SuiteInfo,
    full_text,
    kind_of,
    printable,
    shortened,
    shown_path,
)
from scenario_runner.text import one_line, visible

SPECIFICATION_VERSION: Final = "0.0.0"


def write_ctrf(path: str, results: Iterable[Result], info: SuiteInfo) -> list[str]:
    """Write ``path``, one test a line, and return the files; the counts come last.

    It appears complete or not at all. Raises FileError.
    """
    head = {"reportFormat": "CTRF", "specVersion": SPECIFICATION_VERSION, "generatedBy": "scenario-runner"}
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
        "host": info.host,
        "command": info.command[:1000],
        "devices": [{"uuid": uuid, "name": name} for uuid, name in info.devices],
        "drivers": info.drivers,
    }
    return {"reportName": one_line(info.title), "osPlatform": sys.platform, "extra": extra}


def _tests(results: Iterable[Result], info: SuiteInfo) -> Iterator[dict[str, Any]]:
    yield from (_test(result, info) for result in results)
    if info.incomplete:
        error = {"rawStatus": "Incomplete", "message": info.incomplete}
        yield {"name": INCOMPLETE, "status": "failed", "duration": 0, **error}


def _test(result: Result, info: SuiteInfo) -> dict[str, Any]:
    last, kind = result.last, kind_of(result)
    name = one_line(result.item.id, 4096) or "?"
    earlier = result.attempts[:-1]
    test: dict[str, Any] = {
        "name": name,
        "status": "other" if kind == "tolerated" else kind,
        "duration": round(result.seconds * 1000),
        "rawStatus": result.verdict,
        "filePath": shown_path(result.item.path, info.folder),
        "suite": [part for part in os.path.dirname(name).split("/") if part],
        "device": result.device,
        "labels": {"driver": result.driver} if result.driver else {},
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


def _attempt(number: int, attempt: Outcome, info: SuiteInfo) -> dict[str, Any]:
    fields = {
        "attempt": number,
        "status": "failed" if attempt.status in BAD else "skipped" if attempt.status in NOT_RUN else "passed",
        "duration": round(attempt.seconds * 1000),
        "extra": {"rawStatus": attempt.status},
        "trace": attempt.stack,
    }
    return _without_empty(fields | _about(attempt, info))


def _about(outcome: Outcome, info: SuiteInfo) -> dict[str, Any]:
    """The reason, the end of standard error and the files of one run."""
    attachments = [
        {"name": name, "contentType": mimetypes.guess_type(path)[0] or "application/octet-stream", "path": path}
        for name, path in _files(outcome, info)
    ]
    stderr = visible(shortened(outcome.output, FULL_TEXT_MAX)).splitlines()
    return {"message": outcome.reason, "stderr": stderr, "attachments": attachments}


def _without_empty(test: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in test.items() if value or name == "duration"}


def _files(outcome: Outcome, info: SuiteInfo) -> Iterator[tuple[str, str]]:
    """The title and the path of each file about an output that is wrong."""
    for output in () if info.is_temporary else outcome.outputs:
        if output.status != "Pass":
            for what, path in info.files_of(output).items():
                yield f"{output.name}: {what}", shown_path(path, info.folder)


def _output(output: OutputCheck) -> dict[str, Any]:
    worst = [dict(zip(("index", "expected", "actual"), element, strict=True)) for element in output.worst]
    fields = {"name": output.name, "status": output.status, "message": output.message, "metrics": output.metrics}
    return {**fields, "worst": worst}


def _text(value: Any) -> str:
    return json.dumps(printable(value), allow_nan=False, separators=(",", ":"))


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
    return _element("property", name="part", value=str(number))


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
        *(_element("property", name=name, value=value) for name, value in _properties(info)),
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
        error = _element("error", escape(info.incomplete), message=_first_line(info.incomplete), type="Incomplete")
        case = _element("testcase", f"\n{error}\n", classname="suite", name=INCOMPLETE)
        yield f"{case}\n".encode(), "error"


def _case(name: str, result: Result, info: SuiteInfo) -> tuple[bytes, str]:
    outcome, inside = _inside(result, info)
    content = "\n".join(["", *inside, ""]) if inside else ""
    place = {"classname": _class_name(result.item.id), "name": name, "time": f"{result.seconds:.3f}"}
    return f"{_element('testcase', content, **place)}\n".encode(), outcome


def _inside(result: Result, info: SuiteInfo) -> tuple[str, list[str]]:
    """The element that says how the case ended, and the lines within the case."""
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
    attachments = "" if kind == "skipped" else _attachments(result, info)
    if shown or attachments:
        lines.append(_element("system-out", escape(shown + attachments)))
    if last is not None and last.output and kind == "failed":
        lines.append(_element("system-err", _content(last.output, FULL_TEXT_MAX)))
    return outcome, lines


def _attempts(tag: str, result: Result) -> Iterator[str]:
    """The attempts before the last one, as Surefire writes tests that were repeated."""
    for attempt in result.attempts[:-1][-_ATTEMPTS_MAX:]:
        if attempt.status in BAD:
            inside = _element("stackTrace", _content(attempt.stack or attempt.reason, 8192))
            if attempt.output:
                inside += _element("system-err", _content(attempt.output, 8192))
            yield _element(tag, inside, message=one_line(attempt.reason), type=attempt.status)


def _attachments(result: Result, info: SuiteInfo) -> str:
    """A line for each file, as GitLab and Jenkins want it."""
    paths = () if result.last is None else (path for _, path in _files(result.last, info))
    usable = [path for path in paths if path.isprintable() and "]]" not in path]
    return "".join(f"\n[[ATTACHMENT|{path}]]\n" for path in usable[:_ATTACHMENTS_MAX])


def _class_name(id: str) -> str:
    """The folder, with the points between its parts that Jenkins takes for packages."""
    folder = os.path.dirname(one_line(id, 4096)).strip("/")
    return folder.replace(".", "_").replace("/", ".") or "suite"


def _first_line(text: str) -> str:
    return one_line(text.partition("\n")[0])


def _content(text: str, longest: int) -> str:
    return escape(visible(shortened(text, longest)))


def _element(tag: str, content: str = "", **attributes: str) -> str:
    """An XML element; ``content`` is XML."""
    start = f"{tag}{_attributes(**attributes)}"
    return f"<{start}>{content}</{tag}>" if content else f"<{start}/>"


def _attributes(**values: str) -> str:
    return "".join(f" {name}={quoteattr(visible(value))}" for name, value in values.items())
