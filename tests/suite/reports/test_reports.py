"""Reports: the HTML page in files and in a browser, and CTRF and JUnit for CI systems."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated, Any, Literal
from xml.etree import ElementTree

import pytest
from pydantic import ConfigDict, Field, create_model

from scenario_runner.errors import FileError
from scenario_runner.suite.outcomes import Item, Outcome, OutputCheck, Result
from scenario_runner.suite.reports import pages
from scenario_runner.suite.reports.ci_reports import write_ctrf, write_junit
from scenario_runner.suite.reports.pages import write_html
from scenario_runner.suite.reports.summary import SuiteInfo
from tests.browser import answer_of, needs_browser
from tests.suite.reports.results import DEVICES, every_verdict, info, pictures


class Scripts(HTMLParser):
    """The JSON texts of a page by the id of their elements, and all addresses and tags in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self._id = ""
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.addresses += [str(given[name]) for name in ("src", "href") if name in given]
        self._id = given.get("id") or "" if tag == "script" else ""

    def handle_data(self, data: str) -> None:
        if self._id:
            self.texts[self._id] = self.texts.get(self._id, "") + data

    def json(self, name: str) -> Any:
        return json.loads(self.texts[name])


def files_of(page: Path, number: int = 0) -> Any:
    """Return the files of the only output of a result."""
    return Scripts(page).json(f"d{number}")["attempts"][0]["outputs"][0]["files"]


def failure(files: dict[str, str], id: str = "a") -> Result:
    return Result(
        Item(id, f"/{id}"), "Fail", (Outcome("Fail", 0.1, "bad", outputs=(OutputCheck("o", "Fail", files=files),)),)
    )


def test_the_page_stands_alone(tmp_path: Path) -> None:
    """Style, script and pictures are inside; no text of others becomes a tag; rows and details hold the results."""
    page = tmp_path / "report.html"
    write_html(str(page), every_verdict(tmp_path), info(tmp_path))
    scripts = Scripts(page)
    assert scripts.addresses == ["data:,"]
    assert not re.search(r"https?://", page.read_text(encoding="utf-8"))
    data = scripts.json("data")
    assert data["title"] == "a suite <1>"
    assert sorted(data["devices"]) == ["", "fast device", "software device"]
    assert [data["verdicts"][row[1]] for row in data["rows"]][:3] == ["Pass", "Fail", "Crash"]
    assert scripts.tags.count("script") == 2 + sum(row[5] for row in data["rows"])
    assert scripts.json("d3")["attempts"][0] == {
        "numbers": [1, 1],
        "status": "Fail",
        "seconds": 0.25,
        "same": True,
    }
    assert data["rows"][4][4] == "attempt 1 of 2: Crash: ended by SIGSEGV"  # a flake that passed in the end
    (attempt,) = scripts.json("d1")["attempts"]
    wrong = attempt["outputs"][0]
    assert wrong["metrics"] == {"rmse": 0.25, "psnr": "inf"}
    assert [each["link"] for each in wrong["files"]] == [
        f"./results/fail/{each}.png" for each in ("expected", "actual", "error")
    ]
    for each in wrong["files"]:
        data_uri = each["picture"].removeprefix("data:image/png;base64,")
        assert base64.b64decode(data_uri) == (tmp_path / each["link"]).read_bytes()


def test_many_attempts_keep_their_numbers(tmp_path: Path) -> None:
    """Equal attempts in a row are one entry with the numbers of all, in the page and in texts."""
    crash, fail = Outcome("Crash", 1.0, "ended by SIGSEGV", 12), Outcome("Fail", 2.0, "x: wrong")
    result = Result(Item("a", "/a"), "Crash", (crash,) * 30 + (fail,) * 2 + (crash,) * 9)
    page, junit = tmp_path / "report.html", tmp_path / "junit.xml"
    write_html(str(page), [result], info(tmp_path))
    detail = Scripts(page).json("d0")
    assert detail["count"] == 41
    assert [(*each["numbers"], each["status"], each.get("same", False)) for each in detail["attempts"]] == [
        (1, 30, "Crash", True),
        (31, 32, "Fail", False),
        (33, 40, "Crash", True),
        (41, 41, "Crash", False),
    ]
    write_junit(str(junit), [result], info(tmp_path))
    text = ElementTree.parse(junit).findtext(".//error") or ""
    for line in ("attempts 1 to 30 of 41: Crash after 1.00 s, like the last one", "attempts 31 to 32 of 41: Fail"):
        assert line in text
    assert text.count("like the last one") == 2


def test_pictures_beyond_the_limits_are_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture that is too large, or comes when the page has enough, stays a file."""
    files = pictures(tmp_path, "fail", size=64)
    sizes = [(tmp_path / "results" / path).stat().st_size for path in files.values()]
    page = tmp_path / "report.html"
    monkeypatch.setattr(pages, "PICTURES_MAX", sum(sizes))
    write_html(str(page), [failure(files), failure(files, "b")], info(tmp_path))
    embedded = [each["picture"][:5] for number in (0, 1) for each in files_of(page, number)]
    assert embedded == ["data:"] * 3 + ["./res"] * 3
    monkeypatch.setattr(pages, "PICTURE_MAX", min(sizes) - 1)
    write_html(str(page), [failure(files)], info(tmp_path))
    assert files_of(page)[0]["picture"] == "./results/fail/expected.png"


def test_details_beyond_the_limit_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the page has enough details, further results have a row alone."""
    page = tmp_path / "report.html"
    results = (failure({}, str(number)) for number in range(100))
    monkeypatch.setattr(pages, "DETAILS_MAX", 1000)
    write_html(str(page), results, SuiteInfo())
    scripts = Scripts(page)
    assert len(scripts.json("data")["rows"]) == 100
    assert len(scripts.texts) < 20


def test_files_of_a_temporary_folder_are_not_named(tmp_path: Path) -> None:
    """Results in a temporary folder have pictures in the page, and no report links to their files."""
    given = info(tmp_path)._replace(is_temporary=True)
    result = failure({**pictures(tmp_path, "fail"), "expected_array": "e.npy"})
    page, junit, ctrf = (tmp_path / name for name in ("report.html", "junit.xml", "ctrf.json"))
    write_html(str(page), [result], given)
    files = files_of(page)
    assert [set(each) for each in files] == [{"what", "picture"}] * 3 + [{"what"}]
    write_junit(str(junit), [result], given)
    write_ctrf(str(ctrf), [result], given)
    assert not any("results/" in each.read_text(encoding="utf-8") for each in (page, junit, ctrf))


def test_files_that_are_no_pictures_are_links(tmp_path: Path) -> None:
    """Arrays, and pictures that are damaged or gone, are only named."""
    (tmp_path / "damaged.png").write_bytes(b"no picture")
    page = tmp_path / "report.html"
    files = {name: str(tmp_path / name) for name in ("a b.npy", "damaged.png", "gone.png")}
    write_html(str(page), [failure(files)], info(tmp_path))
    assert files_of(page) == [
        {"what": "a b.npy", "link": "./a%20b.npy"},
        {"what": "damaged.png", "link": "./damaged.png", "picture": "./damaged.png"},
        {"what": "gone.png", "link": "./gone.png", "picture": "./gone.png"},
    ]


@needs_browser
def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """List, search, filters, keys, groups, details, themes and a phone: in_browser.js goes through all of them."""
    many = (
        Result(Item(f"many/{at:05}/scenario.json", "/m"), "Pass", (Outcome("Pass", at / 1e4),), DEVICES[at % 2][0])
        for at in range(10_000)
    )
    page, test = tmp_path / "report.html", tmp_path / "test.html"
    write_html(str(page), [*every_verdict(tmp_path), *many], info(tmp_path))
    source = json.dumps(page.read_text(encoding="utf-8")).replace("<", "\\u003c")
    script = Path(__file__).with_name("in_browser.js").read_text(encoding="utf-8")
    test.write_text(f"<!DOCTYPE html><body><script>const page = {source};\n{script}</script>", encoding="utf-8")
    assert answer_of(test) == []


Status = Literal["passed", "failed", "skipped", "pending", "other"]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]


def strict(**fields: Any) -> Any:
    """Return a schema of an object with exactly these keys and types; a pair also has a default."""
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
        extra=strict(notSupported=dict[str, list[str]]),
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
    """The summary counts equal the tests."""
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


@pytest.fixture
def cases(tmp_path: Path) -> dict[str, ElementTree.Element]:
    """The cases of a report with every verdict, by name."""
    path = tmp_path / "junit.xml"
    assert write_junit(str(path), every_verdict(tmp_path), info(tmp_path)) == [str(path)]
    suites = ElementTree.parse(path).getroot()
    (suite,) = suites
    counts = {"name": "a suite <1>", "tests": "15", "failures": "4", "errors": "3", "time": "12.500"}
    assert suites.attrib == counts
    assert suite.attrib == {**counts, "skipped": "4", "timestamp": "2023-11-14T22:13:20", "hostname": "host"}
    properties = [(each.get("name"), each.get("value")) for each in suite.iter("property")]
    assert ("device", "fast device (uuid-1)") in properties
    found = {str(each.get("name")): each for each in suite.iter("testcase")}
    assert len(found) == 15
    return found


def test_a_failure_says_everything(cases: dict[str, ElementTree.Element]) -> None:
    """A failure has its place, the difference, the command that repeats it, and pictures as attachments."""
    case = cases["images.2d/fail/scenario.json"]
    assert case.attrib == {"classname": "images_2d.fail", "name": "images.2d/fail/scenario.json", "time": "0.250"}
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("type") == "Fail"
    assert failure.get("message") == "image: 3 of 48 elements differ"
    text = failure.text or ""
    assert "  [0, 1, 2]: expected 0, got 255\n" in text
    assert "rmse 0.25, psnr inf" in text
    assert text.endswith("repeat: scenario-runner test suite/images.2d/fail/scenario.json")
    attached = [line for line in (case.findtext("system-out") or "").splitlines() if line]
    assert attached == [f"[[ATTACHMENT|results/fail/{what}.png]]" for what in ("expected", "actual", "error")]


def test_other_verdicts_have_their_elements(cases: dict[str, ElementTree.Element]) -> None:
    """Crashes are errors, lists' expectations and missing features are skipped, flakes pass with Surefire's element.
    A repeated name gets a number, since GitLab drops a second case of a name."""
    assert {"pass/scenario.json", "pass/scenario.json (2)"} <= set(cases)
    elements = {name.split("/")[0]: [each.tag for each in case] for name, case in cases.items()}
    assert elements["pass"] == []
    assert elements["crash"] == ["error", "rerunFailure", "system-err"]
    assert elements["flake"] == ["flakyFailure", "system-out"]
    assert elements["known-flake"] == elements["expected-fail"] == ["skipped", "system-out"]
    assert elements["improved"] == ["failure"]
    assert elements["timeout"] == elements["missing"] == ["error"]
    assert elements["warn"] == ["system-out"]
    assert elements["unsupported"] == elements["skipped"] == ["skipped"]
    skipped = cases["unsupported/scenario.json"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "NotSupported: no VK_ARM_tensors"
    missing = cases["missing/scenario.json"].findtext("error") or ""
    assert "error[SR-REF-001]: scenario.json:3:4: /commands/0: no resource has the uid 'x'\n  help: write y" in missing


def test_a_crash_tells_how_it_came(cases: dict[str, ElementTree.Element]) -> None:
    """A crash has the Python stack, the driver's last words and the earlier items, without characters that XML
    forbids."""
    text = cases["crash/scenario.json"].findtext("error") or ""
    for part in ("line 3 in execute", "attempt 2 of 2", "  pass/scenario.json"):
        assert part in text
    assert r"last words </script><script>alert(1)</script>\x1b[31m\x00 \ud800 & \u202e" in text


def test_attempts_that_gave_the_same_are_described_once(cases: dict[str, ElementTree.Element]) -> None:
    """A failure that came twice is written once, with the times of both."""
    text = cases["twice/scenario.json"].findtext("failure") or ""
    assert "attempt 1 of 2: Fail after 250 ms, like the last one\n\nattempt 2 of 2: Fail after 500 ms\n" in text
    assert text.count("[0, 1, 2]: expected 0, got 255") == 1


def test_what_is_too_large_goes_on_in_further_files(tmp_path: Path) -> None:
    """No file is larger than the limit; each is complete, and together they have all cases. A shorter report removes
    the further files, and a file of such a name that is no part of a report stays."""
    outcome = Outcome("Fail", 0.0, "x" * 1000)
    results = [Result(Item(f"{number}", f"/{number}"), "Fail", (outcome,)) for number in range(400)]
    size_max = 600_000
    files = write_junit(str(tmp_path / "j.xml"), results, SuiteInfo(), size_max=size_max)
    assert files == [str(tmp_path / name) for name in ("j.xml", "j-2.xml", "j-3.xml")]
    assert max(Path(path).stat().st_size for path in files) <= size_max
    suites = [ElementTree.parse(path).getroot()[0] for path in files]
    assert [suite.get("tests") for suite in suites] == [str(len(suite.findall("testcase"))) for suite in suites]
    names = [case.get("name") for suite in suites for case in suite.iter("testcase")]
    assert names == [str(number) for number in range(400)]
    assert write_junit(str(tmp_path / "j.xml"), results[:1], SuiteInfo(), size_max=size_max) == files[:1]
    write_junit(str(tmp_path / "k-2.xml"), results[:1], SuiteInfo())
    write_junit(str(tmp_path / "k.xml"), results[:1], SuiteInfo())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["j.xml", "k-2.xml", "k.xml"]


def test_a_suite_begins_in_the_file_of_its_first_case(tmp_path: Path) -> None:
    """A suite begins in the file of its first case, and not at the end of a full file."""
    results = [[Result(Item(f"{n}", f"/{n}"), "Fail", (Outcome("Fail", 0.0, "x" * 60_000),))] * 5 for n in range(2)]
    others = (results[1], SuiteInfo("second")), ((), SuiteInfo("none"))
    files = write_junit(str(tmp_path / "j.xml"), results[0], SuiteInfo("first"), *others, size_max=870_000)
    suites = [[suite.attrib for suite in ElementTree.parse(path).getroot()] for path in files]
    assert [[(suite["name"], suite["tests"]) for suite in part] for part in suites] == [
        [("first", "5")],
        [("second", "5"), ("none", "0")],
    ]


def test_elements_are_those_of_the_schema(cases: dict[str, ElementTree.Element]) -> None:
    """The attributes and children that junit-10.xsd of the xUnit plugin allows."""
    attempt = ({"message", "type"}, {"stackTrace", "system-out", "system-err"})
    schema = {
        "testcase": (
            {"name", "time", "classname", "group"},
            {"skipped", "error", "failure", "rerunFailure", "flakyFailure", "system-out", "system-err"},
        ),
        "rerunFailure": attempt,
        "flakyFailure": attempt,
        **dict.fromkeys(("failure", "error", "skipped"), ({"message", "type"}, set())),
        **dict.fromkeys(("stackTrace", "system-out", "system-err"), (set(), set())),
    }
    for case in cases.values():
        assert re.fullmatch(r"[0-9]+\.[0-9]{3}", case.get("time", ""))
        for element in case.iter():
            attributes, children = schema[element.tag]
            assert set(element.attrib) <= attributes
            assert {child.tag for child in element} <= children
            assert element.tag not in ("rerunFailure", "flakyFailure") or element.get("type")


def test_a_report_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    """After an error of the results or of the write, no new report exists and an old report stays."""
    path = tmp_path / "junit.xml"
    path.write_text("old")

    def broken() -> object:
        yield from every_verdict(tmp_path)
        raise KeyError("journal")

    with pytest.raises(KeyError):
        write_junit(str(path), broken(), info(tmp_path))  # type: ignore[arg-type]
    assert path.read_text() == "old"
    with pytest.raises(FileError, match="is a folder"):
        write_junit(str(tmp_path), [], info(tmp_path))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["junit.xml", "results"]
