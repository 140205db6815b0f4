"""The resources of a scenario, each with its size and the source of its initial bytes; reads every file's header."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.plan.model.plan import ResourcePlan
from scenario_runner.plan.model.records import BufferPlan, Source
from scenario_runner.plan.sources import ArraySource, NpySource
from scenario_runner.scenario import Buffer, Image, RawData, Tensor

if TYPE_CHECKING:
    from scenario_runner.plan.problems import Problems
    from scenario_runner.scenario import GraphConstant, Scenario


def resolve_resources(
    scenario: Scenario,
    inputs: Mapping[str, Any],
    problems: Problems,
    shapes: Mapping[str, tuple[int, ...]],
    shown: Collection[str] = (),
    deferred: Collection[str] = (),
) -> tuple[dict[str, ResourcePlan], dict[str, Source]]:
    """Everything that gets memory on the device, and the sources of raw_data, by uid.

    ``inputs`` goes before the data and the ``src`` of a resource; ``shapes`` are those that graphs give to tensors, and
    ``deferred`` the tensors that lack one which a graph should give.
    All of the resources in ``shown`` is read back, also what the file of their ``dst`` does not hold. What is wrong
    goes into ``problems``.
    """
    groups = [getattr(resource, "memory_group", None) for resource in scenario.resources]
    members = Counter(group.id for group in groups if group is not None)
    planned: dict[str, ResourcePlan] = {}
    raw_data: dict[str, Source] = {}
    for index, resource in enumerate(scenario.resources):
        pointer = scenario.resource_pointer(index)
        try:
            if isinstance(resource, Buffer):
                source = source_of(scenario, resource, inputs)
                plan = _buffer(resource, source, pointer, problems)
                if plan is not None:
                    planned[resource.uid] = plan
            elif isinstance(resource, RawData):
                source = source_of(scenario, resource, inputs)
                assert source is not None, "the model sees to it"
                raw_data[resource.uid] = source
            elif isinstance(resource, Tensor):
                from scenario_runner.plan.tensors import resolve_tensor

                source = source_of(scenario, resource, inputs)
                tensor = resolve_tensor(
                    resource, source, pointer, shapes.get(resource.uid), problems, deferred=resource.uid in deferred
                )
                if tensor is not None:
                    planned[resource.uid] = tensor
            elif isinstance(resource, Image):
                from scenario_runner.plan.images import resolve_image

                image = resolve_image(
                    scenario, resource, pointer, inputs, members, all_levels=resource.uid in shown, problems=problems
                )
                if image is not None:
                    planned[resource.uid] = image
        except ScenarioRunnerError as error:
            problems.add_error(error, f"{pointer}/src")
    if members:
        from scenario_runner.plan.groups import check_offsets

        check_offsets(planned.values(), problems)
    if any(count > 1 for count in members.values()) and any(isinstance(each, Image) for each in scenario.resources):
        from scenario_runner.plan.groups import check_groups

        check_groups(planned, problems)
    return planned, raw_data


def source_of(
    scenario: Scenario, resource: Buffer | RawData | Tensor | GraphConstant, inputs: Mapping[str, Any]
) -> Source | None:
    """Where the bytes of a resource come from: ``inputs`` before its data before its file; None for zeros."""
    if resource.uid in inputs:
        return ArraySource(inputs[resource.uid], resource.uid)
    if resource.data is not None:
        return ArraySource(resource.data, resource.uid)
    if resource.src is not None:
        return NpySource(os.path.join(scenario.base_dir, resource.src))
    return None


def _buffer(buffer: Buffer, source: Source | None, pointer: str, problems: Problems) -> BufferPlan | None:
    if source is not None and source.size_bytes != buffer.size:
        path = source.path if isinstance(source, NpySource) else None
        what = "the array given for it" if path is None else repr(path)
        problems.error(
            "SR-USAGE-001" if path is None else "SR-FILE-002",
            f"{pointer}/size",
            f"buffer {buffer.uid!r} has {buffer.size} bytes, but {what} holds {source.size_bytes}",
            "both must be equal",
        )
        return None
    group = buffer.memory_group
    return BufferPlan(
        uid=buffer.uid,
        pointer=pointer,
        size_bytes=buffer.size,
        group=None if group is None else group.id,
        offset_bytes=0 if group is None else group.offset,
        source=source,
    )
