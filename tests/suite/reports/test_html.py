"""The HTML page: that it stands alone and is bounded. What it does in a browser: test_html_in_browser.py."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import imageio.v3
import numpy
import pytest

from scenario_runner.suite.records import Item, Outcome, OutputCheck, Result
from scenario_runner.suite.reports.html import Limits, write_html
from scenario_runner.suite.reports.pictures import pictures_of
from scenario_runner.suite.reports.suite_info import SuiteInfo
from tests.suite.reports.results import every_verdict, info, pictures


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


def detail_of(page: Path, number: int = 0) -> Any:
    return Scripts(page).json(f"d{number}")


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
    assert data["devices"] == ["software device", "fast device", ""] or "fast device" in data["devices"]
    assert [data["verdicts"][row[1]] for row in data["rows"]][:3] == ["Pass", "Fail", "Crash"]
    assert scripts.tags.count("script") == 2 + sum(row[5] for row in data["rows"])
    (attempt,) = scripts.json("d1")["attempts"]
    wrong = attempt["outputs"][0]
    assert wrong["metrics"] == {"rmse": 0.25, "psnr": "inf"}
    assert [each["link"] for each in wrong["files"]] == [
        f"./results/fail/{each}.png" for each in ("expected", "actual", "error")
    ]
    for each in wrong["files"]:
        data_uri = each["picture"].removeprefix("data:image/png;base64,")
        assert base64.b64decode(data_uri) == (tmp_path / each["link"]).read_bytes()


def test_pictures_beyond_the_limits_are_links(tmp_path: Path) -> None:
    """A picture that is too large, or comes when the page has enough, stays a file."""
    files = pictures(tmp_path, "fail", size=64)
    sizes = [(tmp_path / "results" / path).stat().st_size for path in files.values()]
    page = tmp_path / "report.html"
    write_html(str(page), [failure(files), failure(files, "b")], info(tmp_path), Limits(pictures=sum(sizes)))
    embedded = [
        each["picture"][:5]
        for number in (0, 1)
        for each in detail_of(page, number)["attempts"][0]["outputs"][0]["files"]
    ]
    assert embedded == ["data:"] * 3 + ["./res"] * 3
    write_html(str(page), [failure(files)], info(tmp_path), Limits(picture=min(sizes) - 1))
    assert detail_of(page)["attempts"][0]["outputs"][0]["files"][0]["picture"] == "./results/fail/expected.png"


def test_details_beyond_the_limit_are_left_out(tmp_path: Path) -> None:
    """When the page has enough details, further results have a row alone."""
    page = tmp_path / "report.html"
    results = (failure({}, str(number)) for number in range(100))
    write_html(str(page), results, SuiteInfo(), Limits(details=1000))
    scripts = Scripts(page)
    assert len(scripts.json("data")["rows"]) == 100
    assert len(scripts.texts) < 20


@pytest.mark.parametrize("shape", [(16,), (1, 16)])
def test_a_row_of_numbers_is_no_picture(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """An array with one axis that counts has no picture, and a file that is damaged or missing has none either."""
    numpy.save(tmp_path / "a.npy", numpy.zeros(shape, "f4"))
    (tmp_path / "b.npy").write_bytes(b"\x93NUMPY")
    files = {
        "expected": str(tmp_path / "a.npy"),
        "actual": str(tmp_path / "b.npy"),
        "error": str(tmp_path / "none.png"),
    }
    assert pictures_of(files, 1 << 20) == {}


def test_arrays_with_two_axes_become_pictures(tmp_path: Path) -> None:
    """Of arrays, pictures with the same black and white are made, and one of their differences."""
    expected = numpy.float32([[0, 1], [2, 4]])
    actual = numpy.float32([[0, 1], [2, 2]])
    numpy.save(tmp_path / "e.npy", expected)
    numpy.save(tmp_path / "a.npy", actual)
    found = pictures_of({"expected": str(tmp_path / "e.npy"), "actual": str(tmp_path / "a.npy")}, 1 << 20)
    shown = {what: imageio.v3.imread(picture.data) for what, picture in found.items()}
    assert set(shown) == {"expected", "actual", "error"}
    assert shown["expected"][..., 0].tolist() == [[0, 64], [128, 255]]
    assert shown["actual"][..., 0].tolist() == [[0, 64], [128, 128]]
    assert (shown["error"].max(axis=-1) > 0).tolist() == [[False, False], [False, True]]
