"""Pages in a real browser: a page with a script that reports to the test, or a tab under the test's control."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, BinaryIO

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
BROWSER = next(filter(None, map(shutil.which, PROGRAMS)), None)

needs_browser = pytest.mark.skipif(BROWSER is None, reason=f"no browser is installed ({', '.join(PROGRAMS)})")

OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu")


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

    command = [str(BROWSER), *OPTIONS, "--window-size=1500,1000"]
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.timeout = 60
        command += [f"--user-data-dir={page.with_name('profile')}", f"{page.as_uri()}?{server.server_port}"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as browser:
            server.handle_request()
            os.killpg(browser.pid, signal.SIGKILL)
    return answers[0] if answers else None


class Tab:
    """A tab, driven over the browser's debugging pipe (Chrome DevTools Protocol): JSON that ends with a null byte."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self._commands, self._answers = commands, answers
        self._last_id = 0
        self._session: dict[str, str] = {}
        self._loads = 0
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Network"):
            self.call(f"{domain}.enable")

    def _next(self) -> dict[str, Any]:
        """Read a message. Events of loading are counted."""
        text = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser ended"
            text += byte
        message: dict[str, Any] = json.loads(text)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        self._loads += message.get("method") == "Page.loadEventFired"
        return message

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
        self._last_id += 1
        command = {"id": self._last_id, "method": method, "params": parameters, **self._session}
        self._commands.write(json.dumps(command).encode() + b"\0")
        while (message := self._next()).get("id") != self._last_id:
            pass
        assert "error" not in message, f"{method}: {message['error']}"
        result: dict[str, Any] = message["result"]
        return result

    def open(self, address: str, width: int, *features: tuple[str, str]) -> None:
        """Load a page in a window of this width, with these media features, such as prefers-color-scheme."""
        self.resize(width)
        self.call("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features])
        before = self._loads
        if "loaderId" in self.call("Page.navigate", url=address):  # else the page is there already
            self._wait_for_load(before)

    def resize(self, width: int) -> None:
        """Give the window another width."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def follow(self, link: str) -> None:
        """Click on the element that a CSS selector names, and wait for the page that it leads to."""
        before = self._loads
        self.value(f"document.querySelector({json.dumps(link)}).click()")
        self._wait_for_load(before)

    def _wait_for_load(self, loads_before: int) -> None:
        while self._loads == loads_before:
            self._next()

    def wait_for(self, expression: str) -> Any:
        """Return the value of a JavaScript expression as soon as the value is true."""
        look = f"const look = () => {{ const value = {expression}; value ? done(value) : setTimeout(look, 20); }}"
        return self.value(f"new Promise((done) => {{ {look}; look(); }})")

    def value(self, expression: str) -> Any:
        """Evaluate JavaScript as an action of the user, and await a promise."""
        options = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        done = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")


@contextmanager
def open_tab(profile: Path) -> Iterator[Tab]:
    """Start a browser without a network, which keeps its files in ``profile``."""
    (commands_in, commands), (answers, answers_out) = os.pipe(), os.pipe()
    options = [*OPTIONS, "--remote-debugging-pipe", "--host-resolver-rules=MAP * ~NOTFOUND"]
    # The browser expects its pipes at these numbers.
    start = f'exec timeout -s KILL 120 "$0" "$@" 3<&{commands_in} 4>&{answers_out}'
    with (
        open(commands, "wb", buffering=0) as commands_file,
        open(answers, "rb") as answers_file,
        subprocess.Popen(
            ["bash", "-c", start, str(BROWSER), *options, f"--user-data-dir={profile}"],
            pass_fds=(commands_in, answers_out),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as browser,
    ):
        os.close(commands_in)
        os.close(answers_out)
        try:
            yield Tab(commands_file, answers_file)
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
