"""Changing values in the text of a JSON file, so that the rest of it stays as it was written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scenario_runner.scenario.syntax import scan


def with_values(text: str, values: Mapping[str, Any]) -> str:
    """The text with other values at the JSON pointers, which must lead to values."""
    offsets: dict[str, int] = {}
    scan(text, lambda pointer, key, value: offsets.__setitem__(pointer, value))
    decoder = json.JSONDecoder()
    for pointer in sorted(values, key=lambda each: offsets[each], reverse=True):
        start = offsets[pointer]
        _, end = decoder.raw_decode(text, start)
        text = text[:start] + json.dumps(values[pointer]) + text[end:]
    return text
