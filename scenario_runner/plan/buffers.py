"""The buffers and the raw_data of a scenario: their sizes and the sources of their bytes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from scenario_runner.plan.model.records import BufferPlan
from scenario_runner.plan.resolvers import ResourceResolver
from scenario_runner.plan.sources import ArraySource, NpySource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.plan.model.records import Source
    from scenario_runner.scenario import Buffer, GraphConstant, RawData, Scenario, Tensor


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


class Buffers(ResourceResolver):
    """Resolves buffer resources."""

    def resolve(self, resource: Buffer, pointer: str) -> BufferPlan | None:
        source = source_of(self.context.scenario, resource, self.context.inputs)
        if source is not None and source.size_bytes != resource.size:
            path = source.path if isinstance(source, NpySource) else None
            what = "the array given for it" if path is None else repr(path)
            self.context.problems.error(
                "SR-USAGE-001" if path is None else "SR-FILE-002",
                f"{pointer}/size",
                f"buffer {resource.uid!r} has {resource.size} bytes, but {what} holds {source.size_bytes}",
                "both must be equal",
            )
            return None
        group = resource.memory_group
        return BufferPlan(
            uid=resource.uid,
            pointer=pointer,
            size_bytes=resource.size,
            group=None if group is None else group.id,
            offset_bytes=0 if group is None else group.offset,
            source=source,
        )

    @staticmethod
    def replaced(planned: BufferPlan, scenario: Scenario, data: Any) -> BufferPlan | None:
        source = ArraySource(data, planned.uid)
        return planned._replace(source=source) if source.size_bytes == planned.size_bytes else None


class RawDatas(ResourceResolver):
    """Resolves raw_data: commands read its bytes, and nothing of it is on the device."""

    def resolve(self, resource: RawData, pointer: str) -> None:
        source = source_of(self.context.scenario, resource, self.context.inputs)
        assert source is not None, "the model sees to it"
        self.context.raw_data[resource.uid] = source
