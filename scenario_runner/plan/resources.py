"""The resources of a scenario, each with its size and the source of its initial bytes; reads every file's header."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scenario_runner.errors import FileError, ScenarioRunnerError, UsageError
from scenario_runner.plan.model import BufferPlan, ResourcePlan, Source
from scenario_runner.plan.sources import ArraySource, NpySource
from scenario_runner.scenario import Buffer, RawData

if TYPE_CHECKING:
    from scenario_runner.plan.problems import Problems
    from scenario_runner.scenario import Scenario


def resolve_resources(
    scenario: Scenario, inputs: Mapping[str, Any], problems: Problems
) -> tuple[dict[str, ResourcePlan], dict[str, Source]]:
    """Everything that gets memory on the device, and the sources of raw_data, by uid.

    ``inputs`` goes before the data and the ``src`` of a resource. What is wrong goes into ``problems``.
    """
    planned: dict[str, ResourcePlan] = {}
    raw_data: dict[str, Source] = {}
    for index, resource in enumerate(scenario.resources):
        pointer = scenario.resource_pointer(index)
        try:
            if isinstance(resource, Buffer):
                source = _source(scenario, resource, inputs)
                plan = _buffer(resource, source, pointer, problems)
                if plan is not None:
                    planned[resource.uid] = plan
            elif isinstance(resource, RawData):
                source = _source(scenario, resource, inputs)
                assert source is not None, "the model sees to it"
                raw_data[resource.uid] = source
        except ScenarioRunnerError as error:
            problems.add_error(error, f"{pointer}/src")
    return planned, raw_data


def _source(scenario: Scenario, resource: Buffer | RawData, inputs: Mapping[str, Any]) -> Source | None:
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
            UsageError if path is None else FileError,
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
