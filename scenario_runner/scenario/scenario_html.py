"""A scenario as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

import numpy

from scenario_runner.errors.text import counted, one_line
from scenario_runner.scenario import Scenario
from scenario_runner.scenario.json_model import ModelBase

_MOST_ARRAYS, _MOST_LINES, _MOST_CHANNELS, _FIRST = 24, 10, 8, 8

MOST_BYTES: Final = 100_000


def scenario_html(scenario: Scenario) -> str:
    """The resources and commands of a scenario, and its warnings."""
    parts = [f"<b>{_text(f'Scenario {scenario.path}' if scenario.path else 'Scenario')}</b>"]
    parts += _lines("warnings", scenario.warnings)
    for what, entries in (("resource", scenario.resources), ("command", scenario.commands)):
        rows: list[str] = []
        for index, entry in enumerate(entries):
            rows.append(_cells((str(index), entry.kind, _fields(entry))))
            if sum(map(len, rows)) > MOST_BYTES // 3:
                break
        parts.append(_joined([_table(("", what, ""), rows)], len(entries) - len(rows), what))
    return _joined(parts)


def _fields(entry: Any) -> str:
    """The keys that an entry has, or a part of one."""
    return ", ".join(f"{key}: {_brief(value)}" for key, value in entry if key in entry.model_fields_set)


def _brief(value: Any) -> str:
    """A value of a scenario in a few words."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_brief, value[:_FIRST]))}{', …' if len(value) > _FIRST else ''}]"
    if isinstance(value, numpy.ndarray):
        return f"{value.dtype} {value.shape}"
    text = f"{{{_fields(value)}}}" if isinstance(value, ModelBase) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _text(text: str, longest: int = 300) -> str:
    """HTML of a text on one line, each of its characters a byte."""
    return escape(one_line(text, longest)).encode("ascii", "xmlcharrefreplace").decode()


def _joined(parts: Sequence[str], left: int = 0, what: str = "") -> str:
    more = f"&hellip; and {counted(left, f'more {what}')}" if left else ""
    return f"<div>{''.join(parts)}{more}</div>"


def _lines(title: str, lines: Sequence[object]) -> list[str]:
    items = [f"<li>{_text(str(line))}</li>" for line in lines[:_MOST_LINES]]
    return [f"<div>{title}:</div><ul>{_joined(items, len(lines) - len(items), 'line')}</ul>"] if lines else []


def _cells(texts: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<td>{_text(text)}</td>' for text in texts)}</tr>"


def _table(heading: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{text}</th>" for text in heading)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
