"""A page in a real browser, which sends what its script found out."""

import json
import os
import shutil
import signal
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
BROWSER = next(filter(None, map(shutil.which, PROGRAMS)), None)

needs_browser = pytest.mark.skipif(BROWSER is None, reason=f"no browser is installed ({', '.join(PROGRAMS)})")


def answer_of(page: Path) -> Any:
    """The JSON that a page sends to the port of 127.0.0.1 that its address ends with; None where it sends nothing."""
    answers = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    command = [str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1500,1000"]
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.timeout = 60
        command += [f"--user-data-dir={page.with_name('profile')}", f"{page.as_uri()}?{server.server_port}"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as browser:
            server.handle_request()
            os.killpg(browser.pid, signal.SIGKILL)
    return answers[0] if answers else None
