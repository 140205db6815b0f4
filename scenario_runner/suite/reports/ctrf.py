"""Results as CTRF JSON, the Common Test Report Format."""

from __future__ import annotations

import json
import math
import mimetypes
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from scenario_runner.files.output import OutputFile
from scenario_runner.suite.records import BAD, NOT_RUN, Outcome, OutputCheck, Result
from scenario_runner.suite.reports.suite_info import INCOMPLETE, SuiteInfo, kind_of
from scenario_runner.suite.reports.text import FULL_TEXT_MAX, full_text, shortened
from scenario_runner.visible import one_line, visible

SPECIFICATION_VERSION: Final = "0.0.0"

_STATUS: Final = {"passed": "passed", "failed": "failed", "skipped": "skipped", "tolerated": "other"}


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
        "command": [visible(each) for each in info.command[:1000]],
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
    last = result.last
    name = one_line(result.item.id, 4096) or "?"
    test: dict[str, Any] = {
        "name": name,
        "status": _STATUS[kind_of(result)],
        "duration": round(result.seconds * 1000),
        "rawStatus": result.verdict,
        "filePath": visible(info.shown_path(result.item.path)),
    }
    folders = [part for part in os.path.dirname(name).split("/") if part]
    if folders:
        test["suite"] = folders
    if result.device:
        test["device"] = visible(result.device)
    if result.driver:
        test["labels"] = {"driver": visible(result.driver)}
    if len(result.attempts) > 1:
        test["retries"] = len(result.attempts) - 1
        test["retryAttempts"] = [_attempt(at, each, info) for at, each in enumerate(result.attempts[:-1], 1)]
    if result.verdict == "Flake":
        test["flaky"] = True
    if last is None or result.verdict == "Pass":
        return test
    if last.reason:
        test["message"] = visible(last.reason)
    if kind_of(result) != "skipped":
        test["trace"] = full_text(result, info)
        test["extra"] = {
            "command": visible(info.repeat_command(result)),
            "exitCode": last.exit_code,
            "diagnostics": [_visible(each) for each in last.diagnostics[:100]],
            "outputs": [_output(output) for output in last.outputs if output.status != "Pass"][:100],
        }
    if last.output:
        test["stderr"] = _lines(last.output)
    attachments = list(_attachments(last, info))
    if attachments:
        test["attachments"] = attachments
    return test


def _attempt(number: int, attempt: Outcome, info: SuiteInfo) -> dict[str, Any]:
    status = "failed" if attempt.status in BAD else "skipped" if attempt.status in NOT_RUN else "passed"
    given: dict[str, Any] = {
        "attempt": number,
        "status": status,
        "duration": round(attempt.seconds * 1000),
        "extra": {"rawStatus": attempt.status},
    }
    if attempt.reason:
        given["message"] = visible(attempt.reason)
    if attempt.stack:
        given["trace"] = visible(shortened(attempt.stack, FULL_TEXT_MAX))
    if attempt.output:
        given["stderr"] = _lines(attempt.output)
    attachments = list(_attachments(attempt, info))
    if attachments:
        given["attachments"] = attachments
    return given


def _attachments(outcome: Outcome, info: SuiteInfo) -> Iterator[dict[str, str]]:
    for output in () if info.is_temporary else outcome.outputs:
        if output.status != "Pass":
            for what, path in info.files_of(output).items():
                kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
                name = f"{visible(output.name)}: {visible(what)}"
                yield {"name": name, "contentType": kind, "path": visible(info.shown_path(path))}


def _output(output: OutputCheck) -> dict[str, Any]:
    return {
        "name": visible(output.name),
        "status": output.status,
        "message": visible(output.message),
        "metrics": {name: value if math.isfinite(value) else str(value) for name, value in output.metrics.items()},
        "worst": [dict(zip(("index", "expected", "actual"), map(visible, each), strict=True)) for each in output.worst],
    }


def _lines(text: str) -> list[str]:
    return visible(shortened(text, FULL_TEXT_MAX)).splitlines()


def _visible(given: dict[str, Any]) -> dict[str, Any]:
    return {name: visible(value) if isinstance(value, str) else value for name, value in given.items()}


def _text(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
