"""Results as HTML pages for people: one suite in a page, and the verdicts of a suite on several devices.

The page of a suite needs no network access or other files. The folder page/ has style, script and frame.
The page begins with a row for each result, so a browser shows the list early. Details follow, with pictures as data
URIs. Pictures beyond the size limits are links to files.

The matrix of devices has a column for each device, and different rows first. It is also a CSV file.
"""

import base64
import csv
import io
import json
import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from scenario_runner.errors.text import Json, counted, one_line, visible
from scenario_runner.files.input import PNG_SIGNATURE
from scenario_runner.files.output import OutputFile
from scenario_runner.suite.outcomes import Outcome, OutputCheck, Result
from scenario_runner.suite.reports.summary import (
    UNCOMPARED,
    SuiteInfo,
    attempt_groups,
    cause_of,
    is_same,
    kind_of,
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


MATRIX_NAME: Final = "matrix.csv"
NO_RESULT: Final = "-"
"""The cell of an item without a result on a device."""
_MATRIX_STYLE: Final = """body{font:14px sans-serif;margin:2em}td,th{padding:2px 10px;text-align:left}
td{border-top:1px solid #ccc}a{color:inherit}.failed{background:#fbb}.passed{background:#dfd}.tolerated{background:#def}
.skipped{color:#777}"""


class Column(NamedTuple):
    """The results of a suite on one device, by id.

    ``name`` is the device in names of files. ``page`` is the path of the device's HTML page, if any.
    """

    label: str
    name: str
    results: Mapping[str, Result]
    info: SuiteInfo
    page: str = ""

    @property
    def bad(self) -> int:
        """The number of unexpected failures."""
        return sum(result.is_bad for result in self.results.values())

    def summary(self) -> str:
        """Return the counts of verdicts, and the reason if verdicts are missing."""
        counts = Counter(result.verdict for result in self.results.values()).most_common()
        parts = [", ".join(f"{count} {verdict}" for verdict, count in counts), self.info.incomplete.partition("\n")[0]]
        return "; ".join(filter(None, parts))

    def test_suite(self) -> tuple[Collection[Result], SuiteInfo]:
        """Return results and suite for a JUnit report about all devices."""
        return self.results.values(), self.info._replace(title=self.label, package=self.name.replace(".", "_"))


class Matrix:
    """The verdicts on each item, in the order of the columns."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns
        ids = sorted({id for column in columns for id in column.results})
        verdicts = [{id: result.verdict for id, result in column.results.items()} for column in columns]
        rows = {id: tuple(column.get(id, NO_RESULT) for column in verdicts) for id in ids}
        self.different = {id: verdicts for id, verdicts in rows.items() if len({*verdicts}) > 1}
        self.alike = {id: verdicts for id, verdicts in rows.items() if id not in self.different}

    def summary(self) -> str:
        """Return a sentence about the number of different items."""
        count, devices = len(self.different), counted(len(self.columns), "device")
        if len(self.columns) == 1:
            return "there is only one device, so nothing is compared"
        items = counted(count + len(self.alike), "item")
        return f"{count or 'none'} of {items} {'differs' if count < 2 else 'differ'} between {devices}"

    def write_csv(self, folder: str) -> None:
        """Write ``matrix.csv`` into a folder, with a line for each item, different items first. Raises FileError."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["test", *(column.label for column in self.columns)])
        writer.writerows([id, *verdicts] for id, verdicts in (self.different | self.alike).items())
        with OutputFile(os.path.join(folder, MATRIX_NAME)) as file:
            file.write(text.getvalue().encode())

    def write_html(self, path: str) -> None:
        """Write a page with the table. Verdicts are links to the pages of devices. Raises FileError."""
        folder = os.path.dirname(os.path.abspath(path))
        with OutputFile(path) as file:
            file.write("\n".join(self._page(folder)).encode())

    def _page(self, folder: str) -> Iterator[str]:
        yield f"<!DOCTYPE html><meta charset=utf-8><title>Devices</title><style>{_MATRIX_STYLE}</style>"
        yield f"<h1>{escape(self.summary())}</h1><table><tr><th>device<th>UUID<th>driver<th>results"
        headings = [_page_link(column.label, column.page, folder) for column in self.columns]
        for heading, column in zip(headings, self.columns, strict=True):
            uuids, drivers = ", ".join(uuid for uuid, _ in column.info.devices), ", ".join(column.info.drivers)
            cells = [heading, *map(_text, (uuids, drivers, column.summary()))]
            kind = "failed" if column.bad or column.info.incomplete else "passed"
            yield f"<tr class={kind}><td>" + "<td>".join(cells)
        yield "</table>"
        for title, rows in (("different", self.different), ("alike", self.alike)):
            yield f"<h2>{len(rows)} {title}</h2><table><tr><th>item<th>" + "<th>".join(headings)
            for id in rows:
                yield f"<tr><td>{_text(id)}" + "".join(self._cell(column, id, folder) for column in self.columns)
            yield "</table>"

    def _cell(self, column: Column, id: str, folder: str) -> str:
        result = column.results.get(id)
        if result is None:
            return f"<td>{NO_RESULT}"
        reason = one_line(result.last.reason, 500) if result.last is not None else ""
        link = _page_link(result.verdict, column.page, folder, f"#{quote(one_line(id, 4096), safe='')}")
        return f'<td class={kind_of(result)} title="{_text(reason)}">{link}'


def _text(text: str) -> str:
    return escape(visible(text))


def _page_link(text: str, page: str, folder: str, place: str = "") -> str:
    if not page:
        return _text(text)
    return f'<a href="{quote(os.path.relpath(page, folder))}{place}">{_text(text)}</a>'
