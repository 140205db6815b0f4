"""CTRF JSON: its rules, restated here from the published schema, and what it says."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import ConfigDict, Field, create_model

from scenario_runner.suite.reports.ctrf import write_ctrf
from tests.suite.reports.results import every_verdict, info

Status = Literal["passed", "failed", "skipped", "pending", "other"]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]


def strict(**fields: Any) -> Any:
    """An object without other keys, whose values are of exactly these types; a pair has the default, too."""
    given = {name: field if isinstance(field, tuple) else (field, ...) for name, field in fields.items()}
    return create_model("Strict", __config__=ConfigDict(extra="forbid", strict=True), **given)


Attachment = strict(name=str, contentType=str, path=str)
SAID = {"message": (str, ""), "trace": (str, ""), "stderr": (list[str], []), "attachments": (list[Attachment], [])}
Attempt = strict(attempt=Annotated[int, Field(ge=1)], status=Status, duration=Count, extra=dict[str, Any], **SAID)
Retries = Annotated[list[Attempt], Field(min_length=1)]
Case = strict(
    **{"name": Text, "status": Status, "duration": int, "rawStatus": str, "filePath": str, **SAID},
    suite=Annotated[list[str], Field(min_length=1)],
    device=(str, ""),
    labels=(dict[str, str], {}),
    extra=(dict[str, Any], {}),
    retries=(Count, 0),
    retryAttempts=(Retries | None, None),
    flaky=(bool, False),
)
COUNTS = "tests passed failed skipped pending other flaky start stop duration"
Report = strict(
    reportFormat=Literal["CTRF"],
    specVersion=Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")],
    generatedBy=str,
    results=strict(
        tool=dict[Literal["name", "version"], Text],
        summary=strict(**dict.fromkeys(COUNTS.split(), int)),
        tests=list[Case],
        environment=strict(reportName=str, osPlatform=str, extra=dict[str, Any]),
    ),
)


@pytest.fixture
def results(tmp_path: Path) -> Any:
    """The results of a report with every verdict."""
    path = tmp_path / "ctrf.json"
    write_ctrf(str(path), every_verdict(tmp_path), info(tmp_path))

    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    text = path.read_text(encoding="ascii")
    json.loads(text, parse_constant=refuse)  # no NaN, which JSON does not have
    return Report.model_validate_json(text).results


def test_the_counts_are_those_of_the_tests(results: Any) -> None:
    """The summary counts what the tests say."""
    statuses = [each.status for each in results.tests]
    assert results.summary.model_dump() == {
        "tests": len(statuses),
        **{name: statuses.count(name) for name in ("passed", "failed", "skipped", "pending", "other")},
        "flaky": 1,
        "start": 1_700_000_000_000,
        "stop": 1_700_000_012_500,
        "duration": 12_500,
    }
    assert (results.summary.passed, results.summary.failed, results.summary.other) == (4, 7, 2)


def test_a_failure_has_its_trace_and_files(results: Any) -> None:
    """A failed test has the worst elements, its device and its pictures."""
    failed = next(each for each in results.tests if each.name == "images.2d/fail/scenario.json")
    assert failed.suite == ["images.2d", "fail"]
    assert failed.device == "uuid-0"
    assert failed.message == "image: 3 of 48 elements differ"
    assert "[0, 1, 2]: expected 0, got 255" in failed.trace
    assert failed.extra["outputs"][0]["metrics"] == {"rmse": 0.25, "psnr": "inf"}
    assert failed.extra["command"] == "scenario-runner test suite/images.2d/fail/scenario.json"
    assert [(each.contentType, each.path) for each in failed.attachments] == [
        ("image/png", f"results/fail/{what}.png") for what in ("expected", "actual", "error")
    ]


def test_retries_and_flakes(results: Any) -> None:
    """The attempts before the last one are listed, and a test that passed after them is flaky."""
    tests = {each.name.split("/")[0]: each for each in results.tests}
    flake, crash = tests["flake"], tests["crash"]
    assert (flake.status, flake.flaky, flake.retries) == ("passed", True, 1)
    assert crash.flaky is False
    (attempt,) = crash.retryAttempts or []
    assert (attempt.attempt, attempt.status, attempt.message) == (1, "failed", "ended by SIGSEGV")
    assert attempt.stderr[0].startswith(r"last words </script>")
