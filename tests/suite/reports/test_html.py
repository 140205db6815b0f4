"""The HTML page stands alone and has bounds; a browser tries its controls."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.suite.outcomes import Item, Outcome, OutputCheck, Result
from scenario_runner.suite.reports import html
from scenario_runner.suite.reports.ctrf import write_ctrf
from scenario_runner.suite.reports.html import write_html
from scenario_runner.suite.reports.junit import write_junit
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
    assert scripts.json("d3")["attempts"][0] == {"status": "Fail", "seconds": 0.25, "same": True}
    (attempt,) = scripts.json("d1")["attempts"]
    wrong = attempt["outputs"][0]
    assert wrong["metrics"] == {"rmse": 0.25, "psnr": "inf"}
    assert [each["link"] for each in wrong["files"]] == [
        f"./results/fail/{each}.png" for each in ("expected", "actual", "error")
    ]
    for each in wrong["files"]:
        data_uri = each["picture"].removeprefix("data:image/png;base64,")
        assert base64.b64decode(data_uri) == (tmp_path / each["link"]).read_bytes()


def test_pictures_beyond_the_limits_are_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture that is too large, or comes when the page has enough, stays a file."""
    files = pictures(tmp_path, "fail", size=64)
    sizes = [(tmp_path / "results" / path).stat().st_size for path in files.values()]
    page = tmp_path / "report.html"
    monkeypatch.setattr(html, "PICTURES_MAX", sum(sizes))
    write_html(str(page), [failure(files), failure(files, "b")], info(tmp_path))
    embedded = [each["picture"][:5] for number in (0, 1) for each in files_of(page, number)]
    assert embedded == ["data:"] * 3 + ["./res"] * 3
    monkeypatch.setattr(html, "PICTURE_MAX", min(sizes) - 1)
    write_html(str(page), [failure(files)], info(tmp_path))
    assert files_of(page)[0]["picture"] == "./results/fail/expected.png"


def test_details_beyond_the_limit_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the page has enough details, further results have a row alone."""
    page = tmp_path / "report.html"
    results = (failure({}, str(number)) for number in range(100))
    monkeypatch.setattr(html, "DETAILS_MAX", 1000)
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
