"""The model sequence section: the segments in their order, and what goes into and comes out of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError
from scenario_runner.vgf.budget import Budget
from scenario_runner.vgf.library import decoder, kind_number
from scenario_runner.vgf.model import DescriptorSet, GraphConstant, Kind, PushConstantRange, Segment, Slot

_KINDS: tuple[Kind, ...] = ("compute", "graph")


@dataclass(frozen=True, slots=True)
class Sequence:
    """The decoded section; the fields are those of `Vgf`."""

    segments: tuple[Segment, ...]
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]


def read_sequence(section: bytes, path: str) -> Sequence:
    """Decode the model sequence section. Raises FileError when it is damaged."""
    table = decoder("CreateModelSequenceTableDecoder", section, path, "model sequence")
    budget = Budget(len(section), path, "model sequence")
    return Sequence(
        segments=tuple(_segment(table, s, budget, path) for s in budget.elements(table.modelSequenceTableSize())),
        inputs=_slots(table, table.getModelSequenceInputBindingSlotsHandle(), budget),
        outputs=_slots(table, table.getModelSequenceOutputBindingSlotsHandle(), budget),
        input_names=_names(table, table.getModelSequenceInputNamesHandle(), budget),
        output_names=_names(table, table.getModelSequenceOutputNamesHandle(), budget),
    )


def _segment(table: Any, s: int, budget: Budget, path: str) -> Segment:
    return Segment(
        index=s,
        type=_KINDS[kind_number(table.getSegmentType(s), path, f"/segments/{s}/type", _KINDS)],
        name=budget.text(table.getSegmentName(s)),
        module_index=table.getSegmentModuleIndex(s),
        descriptor_sets=tuple(
            DescriptorSet(
                table.getSegmentDescriptorSetIndex(s, d),
                _slots(table, table.getDescriptorBindingSlotsHandle(s, d), budget),
            )
            for d in budget.elements(table.getSegmentDescriptorSetInfosSize(s))
        ),
        inputs=_slots(table, table.getSegmentInputBindingSlotsHandle(s), budget),
        outputs=_slots(table, table.getSegmentOutputBindingSlotsHandle(s), budget),
        constants=_constants(table, s, budget),
        dispatch_shape=_dispatch_shape(table.getSegmentDispatchShape(s), path, s),
        push_constant_ranges=_push_constant_ranges(table, table.getSegmentPushConstRange(s), budget),
    )


def _slots(table: Any, handle: Any, budget: Budget) -> tuple[Slot, ...]:
    return tuple(
        Slot(table.getBindingSlotBinding(handle, i), table.getBindingSlotMrtIndex(handle, i))
        for i in budget.elements(table.getBindingsSize(handle))
    )


def _names(table: Any, handle: Any, budget: Budget) -> tuple[str, ...]:
    return tuple(budget.text(table.getName(handle, i)) for i in budget.elements(table.getNamesSize(handle)))


def _constants(table: Any, s: int, budget: Budget) -> tuple[GraphConstant, ...]:
    """Since 0.5 pairs of id and index; older files have indices only, which the library shows as (i, i)."""
    bindings = table.getSegmentConstantBindings(s)
    budget.elements(len(bindings))
    return tuple(GraphConstant(binding.graphConstantId, binding.constantIndex) for binding in bindings)


def _dispatch_shape(view: memoryview | None, path: str, s: int) -> tuple[int, int, int]:
    numbers = (0, 0, 0) if view is None else tuple(view[:4])
    if len(numbers) != 3:
        message = f"expected 3 workgroup counts, found {0 if view is None else len(view)}"
        raise FileError(Diagnostic("SR-FILE-013", "error", f"/segments/{s}/dispatch_shape", message, path=path))
    return numbers


def _push_constant_ranges(table: Any, handle: Any, budget: Budget) -> tuple[PushConstantRange, ...]:
    return tuple(
        PushConstantRange(
            table.getPushConstRangeStageFlags(handle, i),
            table.getPushConstRangeOffset(handle, i),
            table.getPushConstRangeSize(handle, i),
        )
        for i in budget.elements(table.getPushConstRangesSize(handle))
    )
