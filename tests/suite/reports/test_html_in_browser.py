"""The HTML page in a real browser."""

import json
import os
import shutil
import signal
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from scenario_runner.suite.records import Item, Outcome, Result
from scenario_runner.suite.reports.html import write_html
from tests.suite.reports.results import DEVICES, every_verdict, info

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
BROWSER = next(filter(None, map(shutil.which, PROGRAMS)), None)
FAILURES: list[str] = ["the browser did not answer"]


class Answer(BaseHTTPRequestHandler):
    """Takes the failures that the page sends."""

    def do_POST(self) -> None:
        """Keep them."""
        FAILURES[:] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.skipif(BROWSER is None, reason=f"no browser is installed ({', '.join(PROGRAMS)})")
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
    command = [str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1500,1000"]
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.timeout = 60
        address = f"{test.as_uri()}?{server.server_port}"
        command += [f"--user-data-dir={tmp_path / 'profile'}", address]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as browser:
            server.handle_request()
            os.killpg(browser.pid, signal.SIGKILL)
    assert FAILURES == []
