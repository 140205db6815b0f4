"""docs/doctor.md: its tables name every key of the report and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from scenario_runner import doctor
from scenario_runner.doctor import gather

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")


def documented(title: str) -> dict[str, list[str]]:
    """The keys of the table under a heading, each with the words in backquotes of its description."""
    section = PAGE.split(f"### {title}\n", 1)[1].split("\n### ", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.M)
    return {key: re.findall(r"`(\w+)`", text) for key, text in rows}


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return gather()


def test_every_key_of_the_report_is_documented(report: dict[str, Any]) -> None:
    """The tables have the keys of the report and of a device, in their order; nested objects have the keys named."""
    keys = documented("The report")
    assert list(keys) == list(report)
    for name in ("program", "python", "vgf", "cache", "loader", "driver_start"):
        assert list(report[name]) == [word for word in keys[name] if word in report[name]]
    assert {*report["system"], "path", "accessible"} == set(keys["system"])
    assert set(report["drivers"][0]) == set(keys["drivers"])
    compilers = report["compilers"]
    nested = {*compilers, *compilers["GLSL"][0], *compilers["spirv_val"], "message", "help"}
    assert nested == set(keys["compilers"])
    layers = report["layers"]
    nested = {*layers, *layers["available"][0], *layers["validation"], *layers["ml_emulation"]}
    assert nested | {"path"} == set(keys["layers"])


def test_every_key_of_a_device_is_documented(report: dict[str, Any]) -> None:
    """The table of devices has each key of a device."""
    keys = documented("A device")
    for device in report["devices"]:
        assert set(device) == set(keys)
        assert set(device["ml"]) == set(keys["ml"])
        assert set(device["driver"]) == set(keys["driver"])
        assert set(device["queue_families"][0]) == set(keys["queue_families"])
        assert set(next(iter(device["formats"].values()))) == set(keys["formats"])


def test_every_finding_is_documented() -> None:
    """The list of findings has every id that the source gives one."""
    source = Path(doctor.__file__).with_name("findings.py").read_text(encoding="utf-8")
    ids = set(re.findall(r'"((?:[a-z]+-)+[a-z]+)"', source))
    ids |= {f"{who}-{what}" for who in ("driver", "layer") for what in ("crash", "hang")}
    ids |= {f"{language}-compiler-unusable" for language in ("glsl", "hlsl")}
    listed = set(re.findall(r"`([a-z-]+)`", PAGE.split("### Findings\n", 1)[1]))
    assert listed == ids
