"""The resources of a scenario, each with its size and the source of its initial bytes; reads every file's header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.kinds import RESOURCES, load

if TYPE_CHECKING:
    from scenario_runner.plan.resolvers import PlanContext, ResourceResolver


def resolve_resources(context: PlanContext) -> None:
    """Plan everything that gets memory on the device, and find the sources of raw_data.

    What is wrong goes into the problems of the context.
    """
    scenario, problems, planned = context.scenario, context.problems, context.tables.resources
    resolvers: dict[str, ResourceResolver | None] = {}
    for index, resource in enumerate(scenario.resources):
        if resource.kind not in resolvers:
            name = RESOURCES[resource.kind].resolver
            resolvers[resource.kind] = load(name)(context) if name else None
        resolver = resolvers[resource.kind]
        if resolver is None:
            continue
        pointer = scenario.resource_pointer(index)
        try:
            plan = resolver.resolve(resource, pointer)
        except ScenarioRunnerError as error:
            problems.add_error(error, f"{pointer}/src")
        else:
            if plan is not None:
                planned[resource.uid] = plan
    if any(plan.group is not None for plan in planned.values()):
        from scenario_runner.plan.groups import check_groups, check_offsets

        check_offsets(planned.values(), problems)
        if any(resource.kind == "image" for resource in scenario.resources):
            check_groups(planned, problems)
        if any(plan.kind == "tensor" for plan in planned.values()):
            from scenario_runner.plan.tensor_groups import join_groups

            join_groups(planned, problems)
