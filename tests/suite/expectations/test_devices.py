"""Conditions on devices and drivers, and what a device lacks."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from scenario_runner import Runner
from scenario_runner.suite.evaluation import lacking
from scenario_runner.suite.expectations.format import Condition, Needs
from scenario_runner.suite.expectations.reading import driver_version, matches, of_text
from tests.tables import cases


def device(type: str = "discrete", vendor_id: int = 0x10DE) -> Any:
    """A device as conditions see it."""
    properties = SimpleNamespace(vendorID=vendor_id, driverVersion=0)
    return SimpleNamespace(name="NVIDIA H100 80GB HBM3", type=type, driver="NVIDIA 550.54.14", properties=properties)


@pytest.mark.parametrize("keys, expected", cases(__file__, "wrong.txt", "CONDITIONS"))
def test_conditions(keys: str, expected: str) -> None:
    """All keys of a condition must match."""
    assert matches(Condition.model_validate(json.loads(keys)), device()) == json.loads(expected)


@pytest.mark.parametrize("text", ["", "25", ">=a", "24.1-25", ">=1,<2", "=>1"])
def test_texts_that_are_no_comparisons(text: str) -> None:
    """They are refused as a whole."""
    with pytest.raises(ValidationError, match="expected comparisons such as"):
        Condition.model_validate({"driver_version": text})


def test_the_first_match_counts() -> None:
    """Its keys take the place of those outside, one by one; another source takes the place of the source."""
    given = {
        "timeout": 3,
        "outputs": {"x": {"file": "x.npy", "atol": 1.0, "allowed_count": 3}, "y": {"values": 1}},
        "when": [
            {"type": "cpu", "outputs": {"x": {"atol": 9.0}}},
            {"type": "discrete", "timeout": 5, "outputs": {"x": {"rtol": 0.5, "allowed_share": 0.1}, "z": {}}},
            {"vendor": "nvidia", "outputs": {"x": {"sha256": "0" * 64}}},
        ],
    }
    expectations = of_text(json.dumps(given), "c.json", ".", "expected")
    found = expectations.for_device(device()).check
    x = found.outputs["x"]
    assert (found.timeout, x.file, x.atol, x.rtol, x.allowed_count, x.allowed_share) == (5, "x.npy", 1, 0.5, None, 0.1)
    assert set(found.outputs) == {"x", "y", "z"}
    cpu = expectations.for_device(device("cpu", 0)).check
    assert (cpu.timeout, cpu.outputs["x"].atol, cpu.outputs["x"].allowed_count) == (3, 9, 3)
    digest = expectations.for_device(device("other")).check.outputs["x"]
    assert (digest.sha256, digest.file, digest.atol) == (("0" * 64,), None, None)
    assert expectations.for_device(device("other", 1)) == expectations


def test_the_device_of_this_machine() -> None:
    """Its driver says a version; what it lacks is named with the feature or extension that would bring it."""
    with Runner() as runner:
        physical = runner.physical_device
        assert driver_version(physical) > (0, 0)
        has = Needs(capabilities=("Shader", "Int64"), features=("shaderInt64",), extensions=())
        assert list(lacking(has, physical)) == []
        lacks = Needs.model_construct(
            capabilities=("NoSuchThing",), features=("noSuchFeature",), extensions=("VK_NO_such",)
        )
        assert list(lacking(lacks, physical)) == [
            "the capability NoSuchThing: no Vulkan version knows it",
            "the feature noSuchFeature",
            "the extension VK_NO_such",
        ]
