"""The HTML page in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scenario_runner.suite.records import Item, Outcome, Result
from scenario_runner.suite.reports.html import write_html
from tests.suite.reports.browser import PROGRAMS, Browser, browser_program
from tests.suite.reports.results import DEVICES, every_verdict, info

pytestmark = pytest.mark.skipif(browser_program() is None, reason=f"no browser is installed ({', '.join(PROGRAMS)})")

NAMES = "[...document.querySelectorAll('.row .name')].map(each => each.textContent)"
COUNT = "document.getElementById('count').textContent"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every verdict, and 10,000 results that passed."""
    folder = tmp_path_factory.mktemp("page")
    many = (
        Result(Item(f"many/{at:05}/scenario.json", "/m"), "Pass", (Outcome("Pass", at / 1e4),), DEVICES[at % 2][0])
        for at in range(10_000)
    )
    path = folder / "report.html"
    write_html(str(path), [*every_verdict(folder), *many], info(folder))
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(str(browser_program()), tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def opened(browser: Browser, page: Path) -> Iterator[Browser]:
    """The page, at the size of a desktop; its console must stay empty."""
    browser.call("Page.navigate", url="about:blank")
    browser.open(page)
    yield browser
    assert browser.complaints == []


def fill(browser: Browser, name: str, value: str) -> None:
    browser.value(f"{name}.value = {value!r}; {name}.dispatchEvent(new Event('input')); 1")
    browser.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_list_has_only_the_rows_in_sight(opened: Browser) -> None:
    """All results are in the list, failures first, but few are elements; scrolling brings the others."""
    assert opened.value(COUNT) == "10015 results"
    names = opened.value(NAMES)
    assert names[0] == "crash/scenario.json"
    assert len(names) < 100
    opened.value("list.focus(); 1")
    opened.key("End")
    assert opened.value(NAMES)[-1] == "skipped/scenario.json"


def test_filters(opened: Browser) -> None:
    """Text, verdicts, device and time restrict the list; together they restrict it further."""
    fill(opened, "search", "sigSEGV crash/")
    assert opened.value(NAMES) == ["crash/scenario.json"]
    fill(opened, "search", "")
    fill(opened, "slower", "0.9995")
    assert opened.value(COUNT) == "6 of 10015 results"
    fill(opened, "device", opened.value("[...device.options].find(each => each.text === 'fast device').value"))
    slow = ("many/09995", "many/09997", "many/09999", "timeout")
    assert set(opened.value(NAMES)) == {f"{name}/scenario.json" for name in slow}
    for verdict in ("Pass", "Timeout"):
        opened.value(
            f"[...document.querySelectorAll('.chip')].find(each => each.innerText.startsWith('{verdict}')).click()"
        )
    assert opened.value("!document.getElementById('nothing').hidden")
    opened.value("reset.click(); 1")
    assert opened.value(COUNT) == "10015 results"


def test_keys_work_from_the_start(opened: Browser) -> None:
    """Arrow keys and Enter move in the list and open a result before anything was clicked, and in the search field."""
    chosen = "document.querySelector('.chosen')?.dataset.place"
    opened.wait(f"{chosen} === '0'")
    opened.key("ArrowDown")
    opened.wait(f"{chosen} === '1'")
    opened.key("Enter")
    opened.wait("!document.getElementById('detail').hidden")
    opened.key("Escape")
    opened.wait("document.getElementById('detail').hidden")
    opened.key("/")
    opened.wait("document.activeElement.id === 'search'")
    opened.type("0")
    opened.wait(f"{chosen} === '0'")
    opened.key("ArrowDown")
    opened.key("ArrowDown")
    opened.wait(f"{chosen} === '2'")
    opened.key("Home")
    assert opened.value("document.activeElement.id") == "search"
    opened.wait(f"{chosen} === '2'")
    name = opened.value("document.querySelector('.chosen .name').textContent")
    opened.key("Enter")
    opened.wait("!document.getElementById('detail').hidden")
    assert opened.value("document.querySelector('#detail h2').textContent").endswith(name)


def test_sort_and_groups(opened: Browser) -> None:
    """The slowest come first when asked for; folders gather what lies in them, and open with the keyboard."""
    fill(opened, "sort", "slowest")
    assert opened.value(NAMES)[:2] == ["timeout/scenario.json", "many/09999/scenario.json"]
    opened.value("group.click(); 1")
    opened.wait("document.querySelectorAll('.row.folder').length > 0")
    folders = opened.value(NAMES)
    assert [folders[at] for at in (0, 2, 3)] == [".", "images.2d", "many"]
    opened.value("list.focus(); 1")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        opened.key(key)
    opened.wait("document.querySelectorAll('.row').length === 5")
    assert opened.value(NAMES) == [*folders[:3], "fail/scenario.json", "many"]


def test_a_failure_is_shown_in_full(opened: Browser) -> None:
    """With the keyboard alone: pictures side by side, worst elements, metrics, and the command that repeats it."""
    fill(opened, "search", "images.2d/fail")
    opened.value("list.focus(); 1")
    opened.key("Enter")
    opened.wait("[...document.querySelectorAll('#content img')].filter(each => each.naturalWidth === 4).length === 3")
    assert opened.value("getComputedStyle(document.querySelector('#content img')).imageRendering") == "pixelated"
    tops = opened.value("[...document.querySelectorAll('figure')].map(each => each.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    text = opened.value("document.getElementById('content').innerText")
    repeat = "scenario-runner test suite/images.2d/fail"
    for part in ("3 of 48 elements differ", "[0, 1, 2]\t0\t255", "rmse\t0.25", repeat):
        assert part in text
    opened.key("Escape")
    opened.wait("document.getElementById('detail').hidden && document.activeElement.id === 'list'")


def test_a_crash_has_attempts_and_its_address(opened: Browser) -> None:
    """The address of the page leads to a result; hostile text in it is text."""
    opened.value("location.hash = encodeURIComponent('crash/scenario.json'); 1")
    opened.wait("!document.getElementById('detail').hidden")
    text = opened.value(
        "document.querySelectorAll('details.part').forEach(each => each.open = true), content.innerText"
    )
    last_words = "last words </script><script>alert(1)"
    for part in ("Attempt 1 of 2: Crash, 500 ms", "line 3 in execute", last_words, "pass/scenario.json"):
        assert part in text


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_shows_one_thing_at_a_time(browser: Browser, page: Path, theme: str) -> None:
    """At the width of a phone nothing is wider than the screen, and a result covers the list."""
    media = [{"name": "prefers-color-scheme", "value": theme}]
    browser.call("Emulation.setEmulatedMedia", features=media)
    browser.call("Page.navigate", url="about:blank")
    browser.open(page, width=390, height=844)
    back = browser.value("getComputedStyle(document.body).backgroundColor")
    assert back == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 29)"}[theme]
    assert browser.value("document.documentElement.scrollWidth") == 390
    browser.value("document.querySelector('.row').click(); 1")
    box = browser.value("JSON.stringify(document.getElementById('detail').getBoundingClientRect())")
    assert '"width":390,"height":844' in box
    assert browser.value("document.getElementById('detail').scrollWidth") <= 390
    browser.value("document.getElementById('close').click(); 1")
    browser.wait("document.getElementById('detail').hidden")
    assert browser.complaints == []


def test_a_suite_without_all_results_says_so(opened: Browser, tmp_path: Path) -> None:
    """Above its results; the page of a complete one says nothing."""
    assert opened.value("document.getElementById('incomplete').hidden")
    page = tmp_path / "report.html"
    write_html(str(page), every_verdict(tmp_path), info(tmp_path)._replace(incomplete="killed <b>"))
    opened.open(page)
    assert opened.value("document.getElementById('incomplete').innerText") == "killed <b>"
