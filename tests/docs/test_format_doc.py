"""docs/format.md is current, says something about every key, and its examples are valid."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from scenario_runner.kinds import COMMANDS, RESOURCES, load
from scenario_runner.scenario import loads
from scenario_runner.scenario.model_base import VALUES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
KINDS = {**RESOURCES, **COMMANDS}


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_format_doc", ROOT / "tools" / "generate_format_doc.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(kind: str) -> str:
    """What the page says about a kind, under any of its names."""
    found = [
        text for text in re.split(r"^###? ", PAGE, flags=re.M) if re.match(rf"{kind}\n|.*Also .*`{kind}`", text, re.S)
    ]
    assert len(found) == 1, kind
    return found[0]


def example(kind: str) -> dict[str, Any]:
    """The entry that the page shows for a kind."""
    [block] = re.findall(r"^```json\n(.*?)^```", section(kind), re.M | re.S)
    entry: dict[str, Any] = json.loads(block)
    return entry


def keys(kind: str) -> set[str]:
    model = load(KINDS[kind].model)
    return set(model.model_fields) - model.code_only


def test_current(generator: ModuleType) -> None:
    """Generating the page again changes nothing."""
    assert generator.text() == PAGE


@pytest.mark.parametrize("kind", KINDS)
def test_every_key(kind: str) -> None:
    """The page lists each key of a kind, with a type and a meaning, and its example uses each."""
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.*) \| (.+) \|$", section(kind), re.M)
    assert {row[0] for row in rows} == keys(kind)
    assert all(not re.search("None|null", kind_of_value) for _, kind_of_value, _, _ in rows)
    [(name, body)] = example(kind).items()
    assert KINDS[name] == KINDS[kind]
    assert body.keys() == keys(kind)


def test_examples_are_one_scenario() -> None:
    """The examples of the page, with the resources that they refer to, are a valid scenario without warnings."""
    text = json.loads((ROOT / "docs" / "format_examples.json").read_text(encoding="utf-8"))
    resources = [example(kind) for kind in RESOURCES]
    commands = [example(kind) for kind in COMMANDS]
    shown = {body["uid"] for entry in resources for body in entry.values()}
    resources += [entry for entry in text["resources"] for body in entry.values() if body["uid"] not in shown]
    scenario = loads(json.dumps({"resources": resources, "commands": commands}))
    assert scenario.warnings == ()
    assert len(scenario.commands) == len(COMMANDS)


def test_spellings() -> None:
    """Every second spelling of a kind or a value is on the page."""
    spellings = PAGE.split("## Spellings of the dialects")[1]
    for name, ours in VALUES.items():
        assert f"| `{ours}` | `{name}` |" in spellings
    assert "`$schema`" in PAGE
