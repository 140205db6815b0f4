"""A suite's verdicts on several devices: a table with a column for each device and different rows first."""

import csv
import io
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple
from urllib.parse import quote

from scenario_runner.errors.text import counted, one_line, visible
from scenario_runner.files.output import OutputFile
from scenario_runner.suite.outcomes import Result
from scenario_runner.suite.reports.summary import SuiteInfo, kind_of

MATRIX_NAME: Final = "matrix.csv"
NO_RESULT: Final = "-"
"""The cell of an item without a result on a device."""
_STYLE: Final = """body{font:14px sans-serif;margin:2em}td,th{padding:2px 10px;text-align:left}
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
        yield f"<!DOCTYPE html><meta charset=utf-8><title>Devices</title><style>{_STYLE}</style>"
        yield f"<h1>{escape(self.summary())}</h1><table><tr><th>device<th>UUID<th>driver<th>results"
        headings = [_link(column.label, column.page, folder) for column in self.columns]
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
        link = _link(result.verdict, column.page, folder, f"#{quote(one_line(id, 4096), safe='')}")
        return f'<td class={kind_of(result)} title="{_text(reason)}">{link}'


def _text(text: str) -> str:
    return escape(visible(text))


def _link(text: str, page: str, folder: str, place: str = "") -> str:
    if not page:
        return _text(text)
    return f'<a href="{quote(os.path.relpath(page, folder))}{place}">{_text(text)}</a>'
