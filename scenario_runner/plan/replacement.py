"""New inputs for a plan that was made before, without planning again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scenario_runner.errors import UsageError
from scenario_runner.kinds import RESOURCES, load
from scenario_runner.plan.model.plan import Plan, ResourcePlan
from scenario_runner.plan.sources import ArraySource

if TYPE_CHECKING:
    from scenario_runner.scenario import Scenario


def with_inputs(plan: Plan, scenario: Scenario, inputs: Mapping[str, Any]) -> Plan | None:
    """The plan of ``scenario`` with other content for buffers, tensors, images and raw_data, by uid.

    None where the content may change more than itself (the shapes of graphs, the push constants of shaders in them),
    or does not fit: planning again then gives the plan, or the error.
    """
    try:
        return _with_inputs(plan, scenario, inputs)
    except UsageError:
        return None


def _with_inputs(plan: Plan, scenario: Scenario, inputs: Mapping[str, Any]) -> Plan | None:
    resources = dict(plan.resources)
    push_constants: dict[str, bytes] = {}
    for uid, data in inputs.items():
        planned = resources.get(uid)
        if planned is not None:
            replaced = _replaced(planned, scenario, data)
            if replaced is None:
                return None
            resources[uid] = replaced
        else:
            source = ArraySource(data, uid)
            content = bytearray(source.size_bytes)
            source.read_into(memoryview(content))
            push_constants[uid] = bytes(content)
    plan = plan._replace(resources=resources)
    return _with_push_constants(plan, scenario, push_constants) if push_constants else plan


def _replaced(planned: ResourcePlan, scenario: Scenario, data: Any) -> ResourcePlan | None:
    """A resource with other content; None where that takes more than another source."""
    if planned.group is not None:
        return None  # who fills shared memory is a matter of the whole group
    replaced: ResourcePlan | None = load(RESOURCES[planned.kind].resolver).replaced(planned, scenario, data)
    return replaced


def _with_push_constants(plan: Plan, scenario: Scenario, given: Mapping[str, bytes]) -> Plan | None:
    """The plan with other push constants in its dispatches; None where graphs use them, or their sizes differ."""
    used = set()
    frames = []
    for frame in plan.frames:
        operations = []
        for operation in frame.operations:
            if operation.kind == "dispatch" or operation.kind == "draw":
                command = scenario.commands[operation.command]
                uid: str | None = getattr(command, "push_data_ref", None)
                if uid is not None and uid in given:
                    if command.kind == "dispatch_graph" or len(given[uid]) != len(operation.push_constants):
                        return None
                    used.add(uid)
                    operation = operation._replace(push_constants=given[uid])
            operations.append(operation)
        frames.append(frame._replace(operations=tuple(operations)))
    return plan._replace(frames=tuple(frames)) if used == given.keys() else None
