"""Results as a single HTML page without network access or other files. The folder page/ has style, script and frame.

The page begins with a row for each result, so a browser shows the list early. Details follow, with pictures as data
URIs. Pictures beyond the size limits are links to files.
"""

import base64
import json
import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import quote

from scenario_runner.errors.text import Json, one_line, visible
from scenario_runner.files.input import PNG_SIGNATURE
from scenario_runner.files.output import OutputFile
from scenario_runner.suite.outcomes import Outcome, OutputCheck, Result
from scenario_runner.suite.reports.summary import (
    UNCOMPARED,
    SuiteInfo,
    attempt_groups,
    cause_of,
    is_same,
    printable,
    reason_for,
    seconds_text,
    shortened,
)

# Limits in bytes, so that browsers can open a page: one picture, all pictures, all details.
PICTURE_MAX, PICTURES_MAX, DETAILS_MAX = 2 << 20, 32 << 20, 64 << 20
_COMMAND: Final = "scenario-runner test"
_REASON_MAX: Final = 500
_ENTRIES_MAX, _ATTEMPTS_MAX = 200, 20


def write_html(path: str, results: Iterable[Result], info: SuiteInfo) -> list[str]:
    """Write a page, and return the paths of files. The page appears only when it is complete. Raises FileError."""
    page = _Page(info, os.path.dirname(os.path.abspath(path)))
    for result in results:
        page.add(result)
    parts = {
        "TITLE": escape(visible(info.title)),
        "STYLE": _page_file("report.css"),
        "DATA": page.data(),
        "SCRIPT": _page_file("report.js"),
        "DETAILS": "".join(page.details),
    }
    with OutputFile(path) as file:
        file.write(re.sub("@([A-Z]+)@", lambda mark: parts[mark[1]], _page_file("report.html")).encode())
    return [path]


class _Page:
    """The content of a page: rows and details as JSON texts."""

    def __init__(self, info: SuiteInfo, folder: str) -> None:
        self.details: list[str] = []
        self._info = info
        self._folder = folder
        self._rows: list[str] = []
        self._verdicts: dict[str, int] = {}
        self._devices: dict[str, int] = {}
        self._causes: dict[str, int] = {}
        self._names = dict(info.devices)
        self._pictures_size = self._details_size = 0

    def add(self, result: Result) -> None:
        last = result.last
        has_detail = last is not None and bool(result.verdict != "Pass" or last.diagnostics or last.outputs)
        id = one_line(result.item.id, 4096)
        command = visible(self._info.repeat_command(result))
        row = [
            id,
            self._verdicts.setdefault(result.verdict, len(self._verdicts)),
            round(result.seconds * 1000, 1),
            self._devices.setdefault(self._names.get(result.device, result.device), len(self._devices)),
            shortened(visible((last.reason if last else "") or reason_for(result)), _REASON_MAX),
            int(has_detail),
            "" if command == f"{_COMMAND} {id}" else command,
        ]
        if result.verdict == "NotSupported" and last is not None:
            row.append(self._causes.setdefault(cause_of(last), len(self._causes)))
        elif result.is_uncompared:
            row[4] = UNCOMPARED
        if has_detail and self._details_size < DETAILS_MAX:
            text = f'<script type="application/json" id="d{len(self._rows)}">{_json(self._detail(result))}</script>\n'
            self._details_size += len(text)
            self.details.append(text)
        self._rows.append(_json(row))

    def data(self) -> str:
        """Return everything but the details as JSON."""
        info = self._info
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(info.started)) if info.started else ""
        about = ", ".join(filter(None, (when, seconds_text(info.seconds) if info.seconds else "", info.host)))
        environment = [
            ("Command", shortened(shlex.join(info.command), 4096)),
            ("Folder", info.folder),
            ("Results", "" if info.is_temporary else info.results),
            *(("Device", f"{name} ({uuid})") for uuid, name in info.devices),
            *(("Driver", driver) for driver in info.drivers),
            ("Host", info.host),
            ("scenario-runner", info.version),
        ]
        head = {
            "title": visible(info.title),
            "about": visible(about),
            "incomplete": visible(info.incomplete),
            "environment": [[name, visible(value)] for name, value in environment if value],
            "verdicts": list(self._verdicts),
            "devices": [visible(name) for name in self._devices],
            "causes": [shortened(cause, _REASON_MAX) for cause in self._causes],
            "command": _COMMAND,
        }
        return _json(head)[:-1] + ',"rows":[' + ",\n".join(self._rows) + "]}"

    def _detail(self, result: Result) -> dict[str, object]:
        count = len(result.attempts)
        attempts = []
        for first, number, attempt in list(attempt_groups(result.attempts))[-_ATTEMPTS_MAX:]:
            fields: dict[str, object] = {"status": attempt.status, "seconds": attempt.seconds, "same": True}
            if number == count or not is_same(attempt, result.attempts[-1]):
                fields = self._attempt(attempt)
            attempts.append({"numbers": [first, number], **fields})
        return {"attempts": attempts, "count": count, "driver": visible(result.driver)}

    def _attempt(self, attempt: Outcome) -> dict[str, object]:
        fields = printable(attempt._replace(outputs=()).as_json(), _ENTRIES_MAX)
        if attempt.before:
            fields["before_count"] = max(attempt.before_count, len(attempt.before))
        if attempt.outputs:
            fields["outputs"] = [self._output(output) for output in attempt.outputs[:_ENTRIES_MAX]]
        return {"seconds": 0.0, **fields}

    def _output(self, output: OutputCheck) -> dict[str, object]:
        fields = printable(output._replace(files={})._asdict(), _ENTRIES_MAX)
        if output.status != "Pass":
            fields["files"] = list(self._files(output))
        return {name: value for name, value in fields.items() if value}

    def _files(self, output: OutputCheck) -> Iterator[dict[str, str]]:
        for what, path in self._info.files_of(output).items():
            link = "" if self._info.is_temporary else _link(path, self._folder)
            picture = (self._embedded(path) or link) if path.lower().endswith(".png") else ""
            fields = {"what": visible(what), "link": link, "picture": picture}
            yield {name: value for name, value in fields.items() if value}

    def _embedded(self, path: str) -> str | None:
        """Return a PNG file as a data URI, or None if the file is missing or too large for the page."""
        size_max = min(PICTURE_MAX, PICTURES_MAX - self._pictures_size)
        try:
            with open(path, "rb") as file:
                data = file.read(size_max + 1)
        except (OSError, ValueError):
            return None
        if len(data) > size_max or not data.startswith(PNG_SIGNATURE):
            return None
        self._pictures_size += len(data)
        return "data:image/png;base64," + base64.b64encode(data).decode()


def _link(path: str, folder: str) -> str:
    """Return the address of a file relative to the page."""
    with suppress(ValueError):  # of a path on another drive
        path = os.path.relpath(path, folder)
    address = quote(os.fsencode(path.replace(os.sep, "/")))
    return address if address.startswith(("/", "../")) else f"./{address}"


def _page_file(name: str) -> str:
    return (Path(__file__).parent / "page" / name).read_text(encoding="utf-8").rstrip()


def _json(value: Json) -> str:
    """Return JSON that is safe inside of a script element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
