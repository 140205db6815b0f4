"""The documentation site in a real browser, from files and without a network."""

import subprocess
from pathlib import Path

import pytest

from tests.browser import Tab, needs_browser, open_tab

CHECKOUT = Path(__file__).resolve().parents[2]
DARK, LIGHT = (("prefers-color-scheme", scheme) for scheme in ("dark", "light"))


@needs_browser
@pytest.mark.heavy
def test_the_site_in_a_browser(tmp_path: Path) -> None:
    """Navigation, search, pictures, copied code, themes and two widths work from files, without any other request."""
    site = tmp_path / "site"
    built = subprocess.run([CHECKOUT / "tools" / "site", site], capture_output=True, text=True, check=False)
    assert (built.returncode, built.stdout) == (0, f"{site}/index.html\n"), built.stdout + built.stderr
    with open_tab(tmp_path / "profile") as tab:
        tab.open((site / "index.html").as_uri(), 1400, LIGHT)
        navigation(tab)
        search(tab)
        copied_code(tab)
        assert tab.value("document.querySelector('article img').src").endswith("/images/report.png")
        for page in ("index", "format", "codes", "command_line", "python_reference"):
            widths(tab, (site / f"{page}.html").as_uri())
        assert [address for address in tab.requests if not address.startswith(("file:///", "data:image/"))] == []


def navigation(tab: Tab) -> None:
    """Each tab leads to its first page, with a column of links to the others."""
    tab.follow(".md-tabs__link[href='suites.html']")
    tab.follow(".md-nav__link[href='expectations.html']")
    title = (CHECKOUT / "docs" / "expectations.md").read_text(encoding="utf-8").partition("\n")[0]
    assert tab.value("document.querySelector('h1').firstChild.data") == title.removeprefix("# ")
    assert tab.value("document.querySelector('a.md-nav__link--active').href") == tab.value("location.href")


def search(tab: Tab) -> None:
    """Words that are typed find a heading; its link leads to it."""
    tab.value("document.querySelector('.md-search__input').focus()")
    tab.call("Input.insertText", text="SR-BIND-003")
    tab.call("Input.dispatchKeyEvent", type="keyUp")  # which starts the search
    heading = ".md-search-result__link[href*='#']"
    assert tab.wait_for(f'document.querySelector("{heading}")?.href').endswith("#sr-bind-003")
    tab.follow(heading)
    assert tab.value("location.pathname").endswith("/codes.html")
    assert tab.value("document.getElementById(location.hash.slice(1)).innerText").startswith("SR-BIND-003")


def copied_code(tab: Tab) -> None:
    """The button of a block of code, which appears with the block, copies its text."""
    tab.follow(".md-logo")
    text = tab.value("document.querySelector('.language-json code').textContent")
    assert text in (CHECKOUT / "README.md").read_text(encoding="utf-8")
    tab.value("document.querySelector('.language-json').scrollIntoView()")
    tab.wait_for("document.querySelector('.language-json [data-md-type=copy]') !== null")
    tab.value("document.querySelector('.language-json [data-md-type=copy]').click()")
    tab.value("document.body.appendChild(document.createElement('textarea')).focus()")
    tab.call("Input.dispatchKeyEvent", type="keyDown", commands=["paste"])
    assert tab.wait_for("document.activeElement.value") == text.removesuffix("\n")


def widths(tab: Tab, address: str) -> None:
    """A page fits a wide and a narrow window, in both themes, and shows its pictures."""
    for width, scheme, is_dark in ((1400, LIGHT, False), (390, DARK, True)):
        tab.open(address, width, scheme)
        assert tab.value("document.documentElement.scrollWidth <= innerWidth")
        brightness = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((value) => value < 64)"
        assert tab.value(brightness) == is_dark
    broken = "[...document.images].filter((image) => !image.naturalWidth).map((image) => image.src)"
    assert tab.value(broken) == []
