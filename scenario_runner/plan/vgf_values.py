"""The values of a VGF model in one dispatch: which resource of the plan stands for which row of the file.

A value has one row for every way in which it is seen (its alias group): a tensor for graphs, a buffer or an image for
shaders. What the scenario binds stands for one of them; the others become resources of their own in the same memory.
Values between the segments get memory once for each graph resource, and keep it for all of its dispatches.
"""

from __future__ import annotations

from math import prod
from typing import Any

from scenario_runner.formats import ADDRESS_MODE_NAMES, FILTER_NAMES, STANDARD_COLOR_NAMES
from scenario_runner.graphs.model import BUFFER_TYPES, IMAGE_TYPES, TENSOR, ModelResource, Port, descriptor_type_name
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
        self, graph: VgfGraph, pointer: str, tables: Tables, shapes: dict[int, tuple[int, ...]], problems: Problems
    ) -> None:
        """``shapes`` are those of rows that the file leaves open."""
        self._rows = graph.vgf.resources
        self._graph = graph.graph.uid
        self._where = f"{graph.path}: graph {graph.graph.uid!r}"
        self._pointer = pointer
        self._tables = tables
        self._shapes = {index: shapes.get(index, row.shape) for index, row in enumerate(self._rows)}
        self._problems = problems
        self._uids: dict[int, str] = {}
        self._external: dict[int, str] = {}  # by alias group

    def bind(self, binding: Binding, port: Port, direction: str, place: str) -> bool:
        """Let what the scenario binds stand for a port of the model; what does not fit is noted, and False returned."""
        plan = self._tables.resources.get(binding.resource_ref)
        if plan is None:
            return True  # reported where the resource is
        kinds = dict.fromkeys(_kind_of(self._rows[index]) for index in port.view_indices)
        rows = [index for index in port.view_indices if _kind_of(self._rows[index]) == plan.kind]
        mismatches = [self._mismatch(index, plan) for index in rows]
        row = self._rows[port.resource_index]
        code, message = "SR-BIND-003", f"is a {' or '.join(kinds)} ({_described(row)}); {plan.uid!r} is a {plan.kind}"
        if None in mismatches:
            chosen = rows[mismatches.index(None)]
            group = self._rows[chosen].alias_group
            known = self._uids.get(chosen) or (None if group is None else self._external.get(group))
            if known in (None, plan.uid):
                self._uids |= {index: plan.uid for index in port.view_indices if self._same_view(index, chosen)}
                if group is not None:
                    self._external[group] = plan.uid
                return True
            code, message = "SR-GRAPH-010", f"is the value that {known!r} is bound to; bind {known!r} here as well"
        elif mismatches:
            code, message = mismatches[0] or ("", "")
        label = f"{direction} {port.label} of graph {self._graph!r}"
        self._problems.error(code, f"{place}/resource_ref", f"{label} {message}")
        return False

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
        row, shape, kind = self._rows[index], self._shapes[index], _kind_of(self._rows[index])
        code = "SR-GRAPH-013"
        if kind == "buffer":
            size = row.size_bytes
            if size is None or size == plan.size_bytes:
                return None
            return code, f"takes {size} bytes ({_described(row)}); buffer {plan.uid!r} has {plan.size_bytes}"
        if plan.format.value != row.format:
            code = "SR-TENSOR-002" if kind == "tensor" else code
            return code, f"has the format {row.format_name}; {kind} {plan.uid!r} has {plan.format.name}"
        if kind == "tensor":
            if agrees(shape or (1,), plan.dims):
                return None
            return "SR-TENSOR-003", f"has the shape {list(shape)}; tensor {plan.uid!r} has {list(plan.shape)}"
        if agrees(shape[-3:-1], (plan.height, plan.width)):
            return None
        has = f"image {plan.uid!r} has {plan.width} by {plan.height}"
        return code, f"is an image of {shape[-2]} by {shape[-3]} texels (shape {list(shape)}); {has}"

    def _same_view(self, index: int, other: int) -> bool:
        def view(index: int) -> tuple[Any, ...]:
            row = self._rows[index]
            return _kind_of(row), row.format, self._shapes[index], row.strides

        return view(index) == view(other)

    def _make(self, index: int) -> str | None:
        row, resources = self._rows[index], self._tables.resources
        group = row.alias_group
        owner, memory, offset = None, None, 0
        if group is not None:
            for other, uid in self._uids.items():
                if self._rows[other].alias_group == group and self._same_view(other, index):
                    return uid
            owner, memory = self._external.get(group), f"value {group} of {self._graph}"
        base = f"{self._graph}:{index}"
        if owner is not None:
            plan = resources[owner]
            if plan.group is None:
                shared = {"group": f"memory of {owner}"} | ({"aliased": True} if hasattr(plan, "aliased") else {})
                plan = plan._replace(**shared)  # type: ignore[arg-type]
                resources[owner] = plan
            memory, offset = plan.group, plan.offset_bytes
            base = f"{owner}:{_kind_of(row)} {row.format} {self._shapes[index]}"
        elif row.category in ("input", "output"):
            return None  # nothing is bound to it, which is reported there
        while base in resources and base not in self._tables.made:
            base += "_"  # a resource of the scenario is called so
        value = self._plan(index, base, memory, offset, zero_fill=owner is None)
        if value is None:
            return None
        resources.setdefault(base, value)
        self._tables.made.add(base)
        return base

    def _plan(self, index: int, uid: str, memory: str | None, offset: int, *, zero_fill: bool) -> ResourcePlan | None:
        row, shape = self._rows[index], self._shapes[index]
        format, kind, error = row.known_format, _kind_of(row), self._problems.error
        if min(shape, default=1) < 0:
            what = f"{self._where} has a value of the shape {list(shape)} between its segments"
            message = f"{what}, and nothing says what its dynamic dimensions are"
            error("SR-GRAPH-007", self._pointer, message, "convert the model with fixed shapes")
            return None
        if format is None or not kind:
            what = f"that is seen as {descriptor_type_name(row.descriptor_type)}"
            if format is None:
                what = f"of {row.format_name}"
            message = f"{self._where} has a value {what}, which this program does not know"
            error("SR-RUN-003", self._pointer, message)
            return None
        if kind == "tensor" and not is_format_of_tensors(format):
            message = f"resource {index} of the model is a tensor of {format.name}, but elements are single numbers"
            error("SR-GRAPH-006", self._pointer, f"{self._where}: {message}")
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
        return ImagePlan(
            uid, self._pointer, parts[-1].end_bytes, format, width, height, 1, parts, _sampler(row.sampler),
            group=memory, offset_bytes=offset, aliased=memory is not None, zero_fill=zero_fill,
        )  # fmt: skip

    def _image_of(self, index: int) -> str | None:
        """The image that shows the value of a row as well."""
        group = self._rows[index].alias_group
        rows = () if group is None else enumerate(self._rows)
        image = next((other for other, row in rows if row.alias_group == group and _kind_of(row) == "image"), None)
        return None if image is None else self.uid(image)


def _sampler(sampler: Any) -> SamplerPlan:
    if sampler is None:
        return SamplerPlan()
    return SamplerPlan(
        min_filter=FILTER_NAMES.get(sampler.min_filter, "NEAREST"),
        mag_filter=FILTER_NAMES.get(sampler.mag_filter, "NEAREST"),
        address_mode=ADDRESS_MODE_NAMES.get(sampler.address_mode_u, "CLAMP_EDGE"),
        border_color=STANDARD_COLOR_NAMES.get(sampler.border_color, "FLOAT_TRANSPARENT_BLACK"),
    )


def _described(row: ModelResource) -> str:
    return f"shape {list(row.shape)}, {row.format_name}"


def _kind_of(row: ModelResource) -> str:
    if row.descriptor_type in BUFFER_TYPES:
        return "buffer"
    if row.descriptor_type in IMAGE_TYPES:
        return "image"
    return "tensor" if row.descriptor_type == TENSOR else ""
