"""Results as CTRF, a JSON format of CI systems."""

import json
import mimetypes
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from scenario_runner.errors.text import Json, one_line, visible
from scenario_runner.files.output import OutputFile
from scenario_runner.suite.outcomes import BAD, NOT_RUN, Outcome, OutputCheck, Result
from scenario_runner.suite.reports.summary import (
    FULL_TEXT_MAX,
    INCOMPLETE,
    SuiteInfo,
    attached_files,
    causes_of,
    full_text,
    kind_of,
    printable,
    shortened,
    shown_path,
)

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
