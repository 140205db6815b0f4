"""Conditions on devices and drivers, and what a device lacks."""

from __future__ import annotations

import json

import pytest

from scenario_runner import Runner
from scenario_runner.suite.expectations.devices import Device, comparisons, lacking, matches, matching, merged
from scenario_runner.suite.expectations.model import Check, Condition, Needs
from tests.tables import cases

DEVICE = Device("NVIDIA H100 80GB HBM3", "discrete", 0x10DE, "NVIDIA 550.54.14", (550, 54, 14))


@pytest.mark.parametrize("keys, expected", cases(__file__, "wrong.txt", "CONDITIONS"))
def test_conditions(keys: str, expected: str) -> None:
    """All keys of a condition must match."""
    assert matches(Condition(**json.loads(keys)), DEVICE) == json.loads(expected)


@pytest.mark.parametrize("text", ["", "25", ">=a", "24.1-25", ">=1,<2", "=>1"])
def test_texts_that_are_no_comparisons(text: str) -> None:
    """They are refused as a whole."""
    assert comparisons(text) is None


def test_the_first_match_counts() -> None:
    """Its keys take the place of those outside, one by one; another source takes the place of the source."""
    check = Check.model_validate(
        {
            "timeout": 3,
            "outputs": {"x": {"file": "x.npy", "atol": 1.0, "allowed_count": 3}, "y": {"values": 1}},
            "when": [
                {"type": "cpu", "outputs": {"x": {"atol": 9.0}}},
                {"type": "discrete", "timeout": 5, "outputs": {"x": {"rtol": 0.5, "allowed_share": 0.1}, "z": {}}},
                {"vendor": "nvidia", "outputs": {"x": {"sha256": "0" * 64}}},
            ],
        }
    )

    def for_device(check: Check, device: Device) -> Check:
        at = matching(check, device)
        return check if at is None else merged(check, check.when[at])

    found = for_device(check, DEVICE)
    x = found.outputs["x"]
    assert (found.timeout, x.file, x.atol, x.rtol, x.allowed_count, x.allowed_share) == (5, "x.npy", 1, 0.5, None, 0.1)
    assert set(found.outputs) == {"x", "y", "z"}
    cpu = for_device(check, DEVICE._replace(type="cpu", vendor_id=0))
    assert (cpu.timeout, cpu.outputs["x"].atol, cpu.outputs["x"].allowed_count) == (3, 9, 3)
    digest = for_device(check, DEVICE._replace(type="other")).outputs["x"]
    assert (digest.sha256, digest.file, digest.atol) == (("0" * 64,), None, None)
    other = for_device(check, DEVICE._replace(type="other", vendor_id=1))
    assert other is check


def test_the_device_of_this_machine() -> None:
    """Its driver says a version; what it lacks is named with the feature or extension that would bring it."""
    with Runner() as runner:
        physical = runner.physical_device
        device = Device.of(physical)
        assert device.driver_version > (0, 0)
        assert device.name == physical.name
        has = Needs(capabilities=("Shader", "Int64"), features=("shaderInt64",), extensions=())
        assert list(lacking(has, physical)) == []
        lacks = Needs(capabilities=("NoSuchThing",), features=("noSuchFeature",), extensions=("VK_NO_such",))
        assert list(lacking(lacks, physical)) == [
            "the capability NoSuchThing: no Vulkan version knows it",
            "the feature noSuchFeature",
            "the extension VK_NO_such",
        ]
