"""The HTML page in a real browser."""

import json
from pathlib import Path

from scenario_runner.suite.outcomes import Item, Outcome, Result
from scenario_runner.suite.reports.html import write_html
from tests.browser import answer_of, needs_browser
from tests.suite.reports.results import DEVICES, every_verdict, info


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
