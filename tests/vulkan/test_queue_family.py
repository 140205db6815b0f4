"""Which queue family a device is opened with."""

from __future__ import annotations

from typing import Any

import pytest

from scenario_runner.vulkan.physical_device import PhysicalDevice

GRAPHICS, COMPUTE, TRANSFER = 1, 2, 4


@pytest.mark.parametrize(
    "families, computing, drawing",
    [
        ([GRAPHICS | COMPUTE | TRANSFER, COMPUTE], 0, 0),
        ([TRANSFER, COMPUTE, GRAPHICS | COMPUTE], 1, 2),
        ([COMPUTE | TRANSFER, GRAPHICS], 0, None),
        ([GRAPHICS], None, None),
        ([0], None, None),
    ],
)
def test_first_family_that_does_the_work(families: list[int], computing: int | None, drawing: int | None) -> None:
    """The first with compute; where something is drawn, the first with graphics as well."""
    nothing: Any = None
    device = PhysicalDevice(nothing, nothing, 0)
    device.queue_families = [(flags, 1, 64) for flags in families]
    assert device.queue_family() == computing
    assert device.queue_family(graphics=True) == drawing


def test_a_family_without_queues() -> None:
    """A family that offers no queue is passed over."""
    nothing: Any = None
    device = PhysicalDevice(nothing, nothing, 0)
    device.queue_families = [(GRAPHICS | COMPUTE, 0, 64), (GRAPHICS | COMPUTE, 1, 64)]
    assert device.queue_family(graphics=True) == 1
