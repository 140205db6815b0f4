"""Memory groups in a plan: resources that share one memory object."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenario_runner.byte_spans import Span
    from scenario_runner.plan.model.plan import ResourcePlan


def memory_groups(plans: Iterable[ResourcePlan]) -> dict[str, list[ResourcePlan]]:
    """The members of each group, by its name."""
    groups: dict[str, list[ResourcePlan]] = {}
    for plan in plans:
        if plan.group is not None:
            groups.setdefault(plan.group, []).append(plan)
    return groups


def span_of(plan: ResourcePlan) -> Span:
    """The bytes of a member in the memory of its group, before a device pads its rows."""
    return plan.offset_bytes, plan.offset_bytes + plan.size_bytes
