"""Scenarios from JSON data."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from scenario_runner.scenario import Scenario, loads

Body = dict[str, Any]


@pytest.fixture
def scenario_of() -> Callable[..., Scenario]:
    """Loads entries given as JSON data."""

    def load(resources: list[Body], commands: list[Body]) -> Scenario:
        return loads(json.dumps({"resources": resources, "commands": commands}))

    return load
