"""The model resource section: one row for every view of every value."""

from __future__ import annotations

from typing import Any

from scenario_runner.vgf.budget import Budget
from scenario_runner.vgf.library import decoder, kind_number
from scenario_runner.vgf.model import Category, ModelResource, Sampler

_CATEGORIES: tuple[Category, ...] = ("input", "output", "intermediate", "constant")


def read_resources(section: bytes, path: str) -> tuple[ModelResource, ...]:
    """Decode the model resource section. Raises FileError when it is damaged."""
    table = decoder("CreateModelResourceTableDecoder", section, path, "model resource")
    budget = Budget(len(section), path, "model resource")
    return tuple(_resource(table, i, budget, path) for i in budget.elements(table.size()))


def _resource(table: Any, i: int, budget: Budget, path: str) -> ModelResource:
    category = _CATEGORIES[kind_number(table.getCategory(i), path, f"/resources/{i}/category", _CATEGORIES)]
    return ModelResource(
        category=category,
        descriptor_type=table.getDescriptorType(i),
        format=int(table.getVkFormat(i)),
        shape=_numbers(table.getTensorShape(i), budget),
        strides=_numbers(table.getTensorStride(i), budget),
        alias_group=table.getAliasGroupId(i),
        sampler=_sampler(table, i),
    )


def _numbers(view: memoryview | None, budget: Budget) -> tuple[int, ...]:
    """Copied at once: the library's views do not keep their buffer alive."""
    if view is None:
        return ()
    budget.elements(len(view))
    return tuple(view)


def _sampler(table: Any, i: int) -> Sampler | None:
    handle = table.getSamplerConfigHandle(i)
    if handle is None:
        return None
    return Sampler(
        min_filter=int(table.getSamplerConfigMinFilter(handle)),
        mag_filter=int(table.getSamplerConfigMagFilter(handle)),
        address_mode_u=int(table.getSamplerConfigAddressModeU(handle)),
        address_mode_v=int(table.getSamplerConfigAddressModeV(handle)),
        border_color=int(table.getSamplerConfigBorderColor(handle)),
    )
