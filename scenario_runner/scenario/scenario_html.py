"""A scenario as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

import numpy

from scenario_runner.errors.text import counted, one_line
from scenario_runner.scenario.entries import Entry
from scenario_runner.scenario.json_model import ModelBase

MOST_ARRAYS, MOST_LINES, MOST_CHANNELS, FIRST_VALUES = 24, 10, 8, 8

MOST_BYTES: Final = 100_000


def scenario_html(path: str | None, warnings: Sequence[object], lists: Mapping[str, Sequence[Entry]]) -> str:
    """Return the warnings of a scenario, and a table for each list of entries."""
    parts = [f"<b>{cell_text(f'Scenario {path}' if path else 'Scenario')}</b>"]
    parts += listing("warnings", warnings)
    for what, entries in lists.items():
        rows: list[str] = []
        for index, entry in enumerate(entries):
            rows.append(row_of((str(index), entry.kind, _fields(entry))))
            if sum(map(len, rows)) > MOST_BYTES // 3:
                break
        parts.append(joined([table_of(("", what, ""), rows)], len(entries) - len(rows), what))
    return joined(parts)


def _fields(entry: ModelBase) -> str:
    """Format the given keys of an entry or an entry's part."""
    fields = type(entry).model_fields
    given = [(fields[name].alias or name, value) for name, value in entry if name in entry.model_fields_set]
    return ", ".join(f"{key}: {_brief(value)}" for key, value in given)


def _brief(value: object) -> str:
    """Format a value in a few words."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_brief, value[:FIRST_VALUES]))}{', …' if len(value) > FIRST_VALUES else ''}]"
    if isinstance(value, numpy.ndarray):
        return f"{value.dtype} {value.shape}"
    text = f"{{{_fields(value)}}}" if isinstance(value, ModelBase) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def cell_text(text: str, longest: int = 300) -> str:
    """Return a text as a single line of ASCII HTML."""
    return escape(one_line(text, longest)).encode("ascii", "xmlcharrefreplace").decode()


def joined(parts: Sequence[str], left: int = 0, what: str = "") -> str:
    more = f"&hellip; and {counted(left, f'more {what}')}" if left else ""
    return f"<div>{''.join(parts)}{more}</div>"


def listing(title: str, lines: Sequence[object]) -> list[str]:
    items = [f"<li>{cell_text(str(line))}</li>" for line in lines[:MOST_LINES]]
    return [f"<div>{title}:</div><ul>{joined(items, len(lines) - len(items), 'line')}</ul>"] if lines else []


def row_of(texts: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<td>{cell_text(text)}</td>' for text in texts)}</tr>"


def table_of(heading: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{text}</th>" for text in heading)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
