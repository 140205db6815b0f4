"""The values of a VGF model in one dispatch: which resource of the plan stands for which row of the file.

A value has one row for every way in which it is seen (its alias group): a tensor for graphs, a buffer or an image for
shaders. What the scenario binds stands for one of them; the others become resources of their own in the same memory.
Values between the segments get memory once for each graph resource, and keep it for all of its dispatches.
"""

from __future__ import annotations

from math import prod
from typing import Any

from scenario_runner.formats import ADDRESS_MODE_NAMES, FILTER_NAMES, STANDARD_COLOR_NAMES
from scenario_runner.graphs import ModelResource, Port
from scenario_runner.graphs.model import (
    BUFFER_TYPES,
    IMAGE_TYPES,
    TENSOR,
    descriptor_type_name,
    format_name,
    known_format,
    resource_size_bytes,
)
from scenario_runner.plan.commands import Tables
from scenario_runner.plan.graph_models import VgfGraph
from scenario_runner.plan.plan import ResourcePlan
from scenario_runner.plan.records import BufferPlan, image_parts
from scenario_runner.plan.special_records import ImagePlan, SamplerPlan, TensorPlan
from scenario_runner.plan.tensors import agrees, is_format_of_tensors
from scenario_runner.scenario import Binding
from scenario_runner.scenario.scenario import Problems


class Values:
    """Resolves rows of a model to uids in the plan's resources, and adds what the model needs beside what is bound."""

    def __init__(
        self,
        graph: VgfGraph,
        pointer: str,
        tables: Tables,
        shapes: dict[int, tuple[int, ...]],
        problems: Problems,
    ) -> None:
        """``shapes`` are those of rows that the file leaves open."""
        self._vgf = graph.vgf
        self._graph = graph.graph.uid
        self._where = f"{graph.path}: graph {graph.graph.uid!r}"
        self._pointer = pointer
        self._resources = tables.resources
        self._made = tables.made
        self._shapes = shapes
        self._problems = problems
        self._uids: dict[int, str] = {}
        self._external: dict[int, str] = {}  # by alias group

    def bind(self, binding: Binding, port: Port, direction: str, place: str) -> bool:
        """Let what the scenario binds stand for a port of the model; what does not fit is noted, and False returned."""
        plan = self._resources.get(binding.resource_ref)
        if plan is None:
            return True  # reported where the resource is
        rows = [index for index in port.view_indices if _kind_of(self._vgf.resources[index]) == plan.kind]
        label = f"{direction} {port.label} of graph {self._graph!r}"
        if not rows:
            kinds = dict.fromkeys(_kind_of(self._vgf.resources[index]) for index in port.view_indices)
            kinds_text = " or ".join(kinds)
            row = self._vgf.resources[port.resource_index]
            message = (
                f"{label} is a {kinds_text} of the shape {list(row.shape)}, {format_name(row.format)}; {plan.uid!r} is"
                f" a {plan.kind}"
            )
            self._problems.error("SR-BIND-003", f"{place}/resource_ref", message)
            return False
        fits = [index for index in rows if self._mismatch(index, plan) is None]
        if not fits:
            code, kinds_text = self._mismatch(rows[0], plan) or ("", "")
            self._problems.error(code, f"{place}/resource_ref", f"{label} {kinds_text}")
            return False
        chosen = fits[0]
        group = self._vgf.resources[chosen].alias_group
        known = self._uids.get(chosen) or (None if group is None else self._external.get(group))
        if known is not None and known != plan.uid:
            message = f"{label} is the value that {known!r} is bound to; bind {known!r} here as well"
            self._problems.error("SR-GRAPH-010", f"{place}/resource_ref", message)
            return False
        self._uids[chosen] = plan.uid
        for index in port.view_indices:
            if self._same_view(index, chosen):
                self._uids[index] = plan.uid
        if group is not None:
            self._external[group] = plan.uid
        return True

    def uid(self, index: int) -> str | None:
        """The uid of the resource that stands for a row, made now if it is new; None when something is wrong."""
        uid = self._uids.get(index)
        if uid is None:
            uid = self._make(index)
            if uid is not None:
                self._uids[index] = uid
        return uid

    def _mismatch(self, index: int, plan: Any) -> tuple[str, str] | None:
        """The code, and what a row wants that a resource of its kind has not as the end of a sentence."""
        row = self._vgf.resources[index]
        kind = _kind_of(row)
        shape = self._shape(index)
        if kind == "buffer":
            size = resource_size_bytes(row)
            if size is None or size == plan.size_bytes:
                return None
            return (
                "SR-GRAPH-013",
                f"takes {size} bytes (shape {list(row.shape)}, {format_name(row.format)}); buffer {plan.uid!r} has"
                f" {plan.size_bytes}",
            )
        if plan.format.value != row.format:
            code = "SR-TENSOR-002" if kind == "tensor" else "SR-GRAPH-013"
            return code, f"has the format {format_name(row.format)}; {kind} {plan.uid!r} has {plan.format.name}"
        if kind == "tensor":
            if agrees(shape or (1,), plan.dims):
                return None
            return "SR-TENSOR-003", f"has the shape {list(shape)}; tensor {plan.uid!r} has {list(plan.shape)}"
        height, width = shape[-3], shape[-2]
        if (width not in (-1, plan.width)) or (height not in (-1, plan.height)):
            return (
                "SR-GRAPH-013",
                f"is an image of {width} by {height} texels (shape {list(shape)}); image {plan.uid!r} has"
                f" {plan.width} by {plan.height}",
            )
        return None

    def _shape(self, index: int) -> tuple[int, ...]:
        return self._shapes.get(index, self._vgf.resources[index].shape)

    def _same_view(self, one: int, other: int) -> bool:
        first, second = self._vgf.resources[one], self._vgf.resources[other]
        return (
            _kind_of(first) == _kind_of(second)
            and first.format == second.format
            and self._shape(one) == self._shape(other)
            and first.strides == second.strides
        )

    def _make(self, index: int) -> str | None:
        row = self._vgf.resources[index]
        group = row.alias_group
        if group is not None:
            for other, uid in self._uids.items():
                if self._vgf.resources[other].alias_group == group and self._same_view(other, index):
                    return uid
        owner = None if group is None else self._external.get(group)
        memory, offset = (None if group is None else f"value {group} of {self._graph}"), 0
        base = f"{self._graph}:{index}"
        if owner is not None:
            plan = self._resources[owner]
            if plan.group is None:
                shared = {"group": f"memory of {owner}"} | ({"aliased": True} if hasattr(plan, "aliased") else {})
                plan = plan._replace(**shared)  # type: ignore[arg-type]
                self._resources[owner] = plan
            memory, offset = plan.group, plan.offset_bytes
            base = f"{owner}:{_kind_of(row)} {row.format} {self._shape(index)}"
        elif row.category in ("input", "output"):
            return None  # nothing is bound to it, which is reported there
        while base in self._resources and base not in self._made:
            base += "_"  # a resource of the scenario is called so
        tensor = self._plan(index, base, memory, offset, zero_fill=owner is None)
        if tensor is None:
            return None
        self._resources.setdefault(base, tensor)
        self._made.add(base)
        return base

    def _plan(self, index: int, uid: str, memory: str | None, offset: int, *, zero_fill: bool) -> ResourcePlan | None:
        row, shape = self._vgf.resources[index], self._shape(index)
        format, kind = known_format(row.format), _kind_of(row)
        if min(shape, default=1) < 0:
            message = (
                f"{self._where} has a value of the shape {list(shape)} between its segments, and nothing says"
                " what its dynamic dimensions are"
            )
            self._problems.error("SR-GRAPH-007", self._pointer, message, "convert the model with fixed shapes")
            return None
        if format is None or not kind:
            what = f"that is seen as {descriptor_type_name(row.descriptor_type)}"
            if format is None:
                what = f"of {format_name(row.format)}"
            message = f"{self._where} has a value {what}, which this program does not know"
            self._problems.error("SR-RUN-003", self._pointer, message)
            return None
        if kind == "tensor" and not is_format_of_tensors(format):
            message = (
                f"{self._where}: resource {index} of the model is a tensor of {format.name}, which no"
                " tensor can have: its elements are single numbers"
            )
            self._problems.error("SR-GRAPH-006", self._pointer, message)
            return None
        size = prod(shape) * format.block_size_bytes
        if kind == "buffer":
            return BufferPlan(uid, self._pointer, size, memory, offset, zero_fill=zero_fill)
        if kind == "tensor":
            return TensorPlan(
                uid, self._pointer, size, format, shape, strides=row.strides or None, image=self._image_of(index),
                group=memory, offset_bytes=offset, zero_fill=zero_fill,
            )  # fmt: skip
        height, width = shape[-3:-1]
        parts = image_parts(format, width, height, 1)
        sampler = SamplerPlan() if row.sampler is None else _sampler(row.sampler)
        return ImagePlan(
            uid, self._pointer, parts[-1].end_bytes, format, width, height, 1, parts, sampler,
            group=memory, offset_bytes=offset, aliased=memory is not None, zero_fill=zero_fill,
        )  # fmt: skip

    def _image_of(self, index: int) -> str | None:
        """The image that shows the value of a row as well."""
        group = self._vgf.resources[index].alias_group
        rows = () if group is None else enumerate(self._vgf.resources)
        image = next((other for other, row in rows if row.alias_group == group and _kind_of(row) == "image"), None)
        return None if image is None else self.uid(image)


def _sampler(sampler: Any) -> Any:

    return SamplerPlan(
        min_filter=FILTER_NAMES.get(sampler.min_filter, "NEAREST"),
        mag_filter=FILTER_NAMES.get(sampler.mag_filter, "NEAREST"),
        address_mode=ADDRESS_MODE_NAMES.get(sampler.address_mode_u, "CLAMP_EDGE"),
        border_color=STANDARD_COLOR_NAMES.get(sampler.border_color, "FLOAT_TRANSPARENT_BLACK"),
    )


def _kind_of(row: ModelResource) -> str:
    if row.descriptor_type in BUFFER_TYPES:
        return "buffer"
    if row.descriptor_type in IMAGE_TYPES:
        return "image"
    return "tensor" if row.descriptor_type == TENSOR else ""
