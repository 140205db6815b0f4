"""Graph commands: a VGF file's segments, or a SPIR-V module, become operations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Any

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.vk_formats import ADDRESS_MODE_NAMES, FILTER_NAMES, STANDARD_COLOR_NAMES
from scenario_runner.ml.vgf_model import (
    BUFFER_TYPES,
    IMAGE_TYPES,
    TENSOR,
    ModelResource,
    Port,
    Sampler,
    Segment,
    descriptor_type_name,
)
from scenario_runner.plan.command_parts import BindingPlanner, CommandContext, CommandResolver, Tables, declared_by
from scenario_runner.plan.data_graphs import CalledGraph, graph_dispatch, spirv_dispatch
from scenario_runner.plan.graph_files import VgfGraph, graph_entry, row_shapes
from scenario_runner.plan.graph_records import GraphConstantPlan, GraphDispatch, TensorDescription, TensorPlan
from scenario_runner.plan.image_records import ImagePlan, SamplerPlan
from scenario_runner.plan.plan import Operation, ResourcePlan
from scenario_runner.plan.records import BufferPlan, DescriptorList, Dispatch, image_parts
from scenario_runner.plan.shader_modules import LoadedShader
from scenario_runner.plan.tensors import agrees, is_format_of_tensors
from scenario_runner.scenario import Binding, DispatchGraph
from scenario_runner.scenario.scenario import Problems

# A segment's default name.
_COUNTED = re.compile(r"compute_segment_[0-9]+")
_THE_SHADER_DECIDES = "the type of the shader is used; the tables of the model should name it"


class _Inside(Problems):
    """Problems in a segment, at the command's place and with the segment's name in the file.

    Descriptor types in the file's tables are hints. A type that differs from the shader becomes a warning.
    """

    def __init__(self, problems: Problems, pointer: str, where: str) -> None:
        self._outer, self._pointer, self._where = problems, pointer, where
        self.errors = problems.errors

    def error(self, code: str, pointer: str, message: str, help: str | None = None) -> None:
        if code == "SR-BIND-004":
            self._outer.warn("SR-GRAPH-015", self._pointer, f"{self._where}: {message}", _THE_SHADER_DECIDES)
        else:
            self._outer.error(code, self._pointer, f"{self._where}: {message}")

    def warn(self, code: str, pointer: str, message: str, help: str | None = None) -> None:
        self._outer.warn(code, self._pointer, f"{self._where}: {message}", help)


class VgfDispatch:
    """Resolves a dispatch_graph command."""

    def __init__(self, graph: VgfGraph, command: DispatchGraph, index: int, context: CommandContext) -> None:
        self._context = context
        self._graph = graph
        self._command = command
        self._index = index
        self._pointer = context.scenario.command_pointer(index)
        self._tables = context.tables
        self._problems = context.problems

    def operations(self) -> list[Operation]:
        """Return the segments' operations, and note errors."""
        self._check_targets()
        plans = {binding.id: self._tables.resources.get(binding.resource_ref) for binding in self._command.bindings}
        bound = {binding: plan.dims for binding, plan in plans.items() if isinstance(plan, TensorPlan)}
        try:
            shapes = row_shapes(self._graph, bound)
        except ScenarioRunnerError as error:
            self._problems.add_error(error, f"{self._pointer}/bindings")
            return []
        self._values = Values(self._graph, self._pointer, self._tables, shapes, self._problems)
        if not self._bind():
            return []
        operations: list[Operation] = []
        names: list[str] = []
        segments = self._graph.vgf.segments
        for segment in segments:
            # a later segment may read this segment's results; after the last, the scenario decides
            barrier = self._command.implicit_barrier or segment is not segments[-1]
            operation = self._operation(segment, barrier)
            if operation is not None:
                operations.append(operation)
                names.append(f"{self._graph.graph.uid}/{segment.name or f'segment_{segment.index}'}")
        self._tables.names[self._index] = tuple(names)
        return operations

    def _check_targets(self) -> None:
        """Note shader names missing in the model."""
        graph, resource, command = self._graph, self._graph.graph, self._command
        targets, modules = graph.vgf.targets(), graph.vgf.compute_names()
        others = [name for name in targets if name not in modules and not _COUNTED.fullmatch(name)]
        there_are = ", ".join(map(repr, [*others, *modules])) or "none"
        named = (
            (f"{graph.pointer}/shader_substitutions", "target", resource.shader_substitutions),
            (f"{graph.pointer}/specialization_constants_map", "shader_target", resource.specialization_constants_map),
            (f"{self._pointer}/shader_substitutions", "target", command.shader_substitutions),
            (f"{self._pointer}/push_constants", "shader_target", command.push_constants),
        )
        for place, key, entries in named:
            for index, entry in enumerate(entries):
                name = getattr(entry, key)
                if name not in targets:
                    message = f"the graph {resource.uid!r} has no shader {name!r:.100}; its shaders are: {there_are}"
                    self._problems.error("SR-GRAPH-008", f"{place}/{index}/{key}", message)

    def _bind(self) -> bool:
        """Match bindings and ports by number. Return whether every port has a matching resource."""
        graph, problems = self._graph, self._problems
        before = len(problems.errors)
        ports = [*(("input", port) for port in graph.inputs), *(("output", port) for port in graph.outputs)]
        bound: set[int] = set()
        for index, binding in enumerate(self._command.bindings):
            place = f"{self._pointer}/bindings/{index}"
            matching = [(direction, port) for direction, port in ports if port.binding == binding.id]
            if not matching:
                there_are = ", ".join(f"{direction} {port.label}" for direction, port in ports) or "none"
                message = f"graph {graph.graph.uid!r} has no input or output {binding.id}; it has: {there_are}"
                problems.error("SR-GRAPH-005", f"{place}/id", message)
            elif binding.id in bound:
                problems.error("SR-CONFLICT-004", f"{place}/id", f"{matching[0][1].label} is bound already")
            bound.add(binding.id)
            for direction, port in matching:  # two ports if the model returns an input unchanged
                if not self._values.bind(binding, port, direction, place):
                    break
        for direction, port in ports:
            if port.binding not in bound:
                bound.add(port.binding)
                row = graph.vgf.resources[port.resource_index]
                what = f"{direction} {port.label} of graph {graph.graph.uid!r}"
                message = f"nothing is bound to the {what} (shape {list(row.shape)}, {row.format_name})"
                help = f'add {{"set": 0, "id": {port.binding}, "resource_ref": "…"}}'
                problems.error("SR-BIND-001", f"{self._pointer}/bindings", message, help)
        return len(problems.errors) == before

    def _operation(self, segment: Segment, barrier: bool) -> Operation | None:
        """Return a segment's operation; None after an error."""
        where = f"segment {segment.name or segment.index!r} of graph {self._graph.graph.uid!r}"
        inside = _Inside(self._problems, self._pointer, where)
        bound: list[Binding] = []  # like the bindings in a dispatch_compute
        for descriptor_set in segment.descriptor_sets:
            for slot in dict.fromkeys(descriptor_set.slots):
                uid = self._values.uid(slot.resource_index)
                if uid is None:
                    return None
                row = self._graph.vgf.resources[slot.resource_index]
                kind = descriptor_type_name(row.descriptor_type) or "VK_DESCRIPTOR_TYPE_AUTO"
                place: dict[str, Any] = {"set": descriptor_set.index, "id": slot.binding}
                bound.append(Binding.model_construct(**place, resource_ref=uid, descriptor_type=kind))
        if segment.type == "graph":
            return self._graph_segment(segment, bound, barrier, where, inside)
        return self._compute_segment(segment, bound, barrier, inside)

    def _compute_segment(
        self, segment: Segment, bindings: list[Binding], barrier: bool, inside: _Inside
    ) -> Dispatch | None:
        """Return a compute segment's dispatch; None after an error."""
        graph, context, tables = self._graph, self._context, self._tables
        name = graph.vgf.modules[segment.module_index].name
        declared_shader = graph.shader_of(self._command, name, context.scenario)
        if declared_shader is None:
            what = f"the shader {name!r} of graph {graph.graph.uid!r} is a placeholder without code"
            help = f'add {{"shader_ref": "…", "target": "{name}"}} to shader_substitutions'
            self._problems.error("SR-GRAPH-009", self._pointer, f"{what}, and nothing is substituted for it", help)
            return None
        shader = context.shaders.get(declared_shader.uid)
        if shader is None:
            return None  # it did not compile
        declared = declared_by([shader], shader.pointer, inside)
        bound = BindingPlanner(declared, tables.resources, self._pointer, inside).plan(bindings)
        push_constants = self._push_constants(segment, name, shader)
        workgroups = segment.dispatch_shape
        if 0 in workgroups:
            inside.error("SR-GRAPH-006", "", f"it has {workgroups} workgroups, so no invocation runs")
        if declared.layouts is None or push_constants is None:
            return None
        assert context.image_uses is not None, "graphs may have images inside"
        shader = context.image_uses.fit_shader(shader, bindings, self._pointer, inside)
        layouts = declared.layouts_for(bound, tables, self._pointer)
        pipeline = tables.pipelines.add(shader.pipeline(layouts, len(push_constants)))
        sets = tables.lists.add(DescriptorList(layouts, bound))
        return Dispatch(pipeline, sets, workgroups, push_constants, barrier, self._index)

    def _push_constants(self, segment: Segment, name: str, loaded: LoadedShader) -> bytes | None:
        """Return a compute segment's push constants. The scenario, the file or the shader tells the size."""
        ranges = max((part.offset_bytes + part.size_bytes for part in segment.push_constant_ranges), default=0)
        size = self._graph.graph.push_constants_size or loaded.push_constants_size or ranges
        targets = self._graph.vgf.targets()
        uid, place = None, ""
        for index, entry in enumerate(self._command.push_constants):
            if uid is None and name in targets.get(entry.shader_target, ()):
                uid, place = entry.push_data_ref, f"{self._pointer}/push_constants/{index}/push_data_ref"
        shader = loaded._replace(pointer=self._graph.pointer)
        return self._context.push_constants.bytes_for([shader], uid, self._pointer, place, size)

    def _graph_segment(
        self, segment: Segment, bound: list[Binding], barrier: bool, where: str, inside: _Inside
    ) -> GraphDispatch | None:
        """Return a graph segment's operation; None after an error."""
        graph = self._graph
        row = graph.vgf.modules[segment.module_index]
        tensors: dict[tuple[int, int], TensorPlan] = {}
        for binding in bound:
            plan = self._tables.resources[binding.resource_ref]
            if plan.kind != "tensor":
                message = f"it binds {plan.uid!r}, which is not a tensor; graphs take nothing else"
                inside.error("SR-GRAPH-006", "", message)
                return None
            tensors[binding.set, binding.id] = plan
        try:
            module = graph.module(segment.module_index)
            entry = graph_entry(module.module, row.entry_point, f"module {row.name!r}")
        except ScenarioRunnerError as error:
            self._problems.add_error(error, graph.pointer)
            return None
        constants = {constant.id: constant for constant in self._constants(segment)}

        def report(what: str, code: str, message: str) -> None:
            inside.error(code if what == "shapes" else "SR-GRAPH-006", "", f"{graph.path}: {message}")

        called = CalledGraph(module, entry, where, graph.pointer, row.name)
        return graph_dispatch(called, tensors, constants, self._context, self._index, barrier, report)

    def _constants(self, segment: Segment) -> Iterator[GraphConstantPlan]:
        """Yield a graph segment's constants; note an error for an unknown format."""
        vgf = self._graph.vgf
        for link in segment.constants:
            constant = vgf.constants[link.constant_index]
            row = vgf.resources[constant.resource_index]
            if row.known_format is None:
                what = f"{self._graph.path}: constant {link.constant_index} has the format {row.format_name}"
                self._problems.error("SR-RUN-003", self._graph.pointer, f"{what}, which this program does not know")
                continue
            description = TensorDescription(row.format, row.shape or (1,), strides=row.strides or None)
            data = self._graph.constant(link.constant_index)
            yield GraphConstantPlan(link.id, description, data, constant.sparsity_dimension)


class GraphResolver(CommandResolver):
    """Resolves dispatch_graph and dispatch_spirv_graph."""

    def resolve(self, command: Any, index: int) -> list[Operation]:
        context = self.context
        assert context.graphs is not None, "the command runs a graph"
        if context.layouts is not None:
            context.layouts.check_bindings(command, index)
        graph = context.graphs.graphs.get(command.graph_ref)
        if graph is None:
            return []
        for number, binding in enumerate(command.bindings):
            resource: Any = context.scenario.resource(binding.resource_ref)
            if graph.key(binding) in graph.reads and getattr(resource, "shader_access", "") == "writeonly":
                place = f"{context.scenario.command_pointer(index)}/bindings/{number}/resource_ref"
                what = f"graph {command.graph_ref!r} reads {resource.kind} {resource.uid!r}"
                help = f"give {resource.uid!r} the shader_access 'readonly', or 'readwrite' where something writes it"
                context.problems.warn("SR-ACCESS-002", place, f"{what}, but its shader_access is 'writeonly'", help)
        if isinstance(graph, VgfGraph):
            return VgfDispatch(graph, command, index, context).operations()
        operation = spirv_dispatch(graph, command, index, context)
        return [] if operation is None else [operation]


class Values:
    """A VGF model's values in a dispatch: the plan's resource for each row in the file.

    A value has a row for each view, and the rows form an alias group: a tensor for graphs, a buffer or an image for
    shaders. A bound resource is a view. The planner makes the other views in the same memory. All dispatches
    with a graph resource share the memory for values between segments.
    """

    def __init__(
        self, graph: VgfGraph, pointer: str, tables: Tables, shapes: dict[int, tuple[int, ...]], problems: Problems
    ) -> None:
        """``shapes`` has shapes for rows with open dimensions."""
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
        """Connect a bound resource with a model port. Return False after noting a misfit."""
        plan = self._tables.resources.get(binding.resource_ref)
        if plan is None:
            return True  # planning the resource has reported an error
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
        """Return a row's uid, and make a new resource if needed; None after an error."""
        uid = self._uids.get(index)
        if uid is None:
            uid = self._make(index)
            if uid is not None:
                self._uids[index] = uid
        return uid

    def _mismatch(self, index: int, plan: Any) -> tuple[str, str] | None:
        """Compare a resource with a row in the VGF resource table. Return a code and the message's end, or None."""
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
            return "SR-TENSOR-003", f"has the shape {list(shape)}; the bound tensor {plan.uid!r} has {list(plan.shape)}"
        if agrees(shape[-3:-1], (plan.height, plan.width)):
            return None
        has = f"image {plan.uid!r} has {plan.width} by {plan.height}"
        return code, f"is an image of {shape[-2]} by {shape[-3]} texels (shape {list(shape)}); {has}"

    def _same_view(self, index: int, other: int) -> bool:
        """Return whether two rows in the VGF resource table have equal kind, format, shape and strides."""
        row, view = self._rows[index], self._rows[other]
        same_type = _kind_of(row) == _kind_of(view) and row.format == view.format and row.strides == view.strides
        return same_type and self._shapes[index] == self._shapes[other]

    def _make(self, index: int) -> str | None:
        """Make a resource for a row, in the value's memory; return the uid, or None after an error."""
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
            return None  # `_bind` has reported the missing binding
        while base in resources and base not in self._tables.made:
            base += "_"  # a scenario resource has this uid
        value = self._plan(index, base, memory, offset, zero_fill=owner is None)
        if value is None:
            return None
        resources.setdefault(base, value)
        self._tables.made.add(base)
        return base

    def _plan(self, index: int, uid: str, memory: str | None, offset: int, *, zero_fill: bool) -> ResourcePlan | None:
        """Plan the resource for a row; return None after noting an error."""
        row, shape = self._rows[index], self._shapes[index]
        format, kind, error = row.known_format, _kind_of(row), self._problems.error
        if min(shape, default=1) < 0:
            what = f"{self._where} has a value of the shape {list(shape)} between its segments"
            message = f"{what}, and its dynamic dimensions are unknown"
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
        """Return the uid of an image sharing a row's value; None without such an image."""
        group = self._rows[index].alias_group
        rows = () if group is None else enumerate(self._rows)
        image = next((other for other, row in rows if row.alias_group == group and _kind_of(row) == "image"), None)
        return None if image is None else self.uid(image)


def _sampler(sampler: Sampler | None) -> SamplerPlan:
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
