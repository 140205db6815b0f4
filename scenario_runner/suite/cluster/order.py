"""What all shards of a suite have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from scenario_runner.suite.verdicts import Rules


class Order(NamedTuple):
    """How a host runs items; see `running.options.WorkerOptions`. ``evidence``: files about failures are wanted."""

    session: str
    devices: tuple[str, ...]
    jobs: int
    timeout_s: float
    timeout_origin: str
    runner: Mapping[str, Any]
    rules: Rules
    evidence: bool

    @classmethod
    def of_json(cls, given: Any) -> Order:
        order = cls(*given)
        return order._replace(devices=tuple(order.devices), rules=Rules(*order.rules))
