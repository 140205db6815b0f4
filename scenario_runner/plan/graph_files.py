"""Graphs for commands: VGF files, which stay in memory until they change, and SPIR-V modules.

Graphs are read before resources are planned, because they decide shapes and shaders. The planner follows the commands
in order. It knows input shapes from the scenario or from files, infers a graph's output shapes, and takes these for the
next graph's inputs.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from scenario_runner.errors import ScenarioRunnerError, ShaderError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.input import ArrayLike, Identity, array_of, plain_bytes
from scenario_runner.files.npy import read_header
from scenario_runner.ml.graph_module import GraphModule
from scenario_runner.ml.tosa_operators import Shape
from scenario_runner.ml.vgf_file import MOST_MODELS, forget_models, parse_vgf, read_model, unwritten_inputs
from scenario_runner.ml.vgf_model import Vgf
from scenario_runner.plan.shader_modules import read_spirv
from scenario_runner.plan.sources import ConstantData, FilePart
from scenario_runner.plan.tensors import agrees, is_open, report_unknown_shape
from scenario_runner.processes import progress
from scenario_runner.scenario import Binding, DispatchGraph, Graph, Scenario, Shader, Tensor
from scenario_runner.scenario.inline_contents import file_of, shape_in
from scenario_runner.scenario.scenario import Problems
from scenario_runner.shaders.spirv import GraphEntryPoint, Module

# Reading a model takes most planning time, and further plans for the model have the same code.
_graph_module = lru_cache(MOST_MODELS)(GraphModule)


def forget() -> None:
    """Drop all models from memory."""
    forget_models()
    _graph_module.cache_clear()


def graph_entry(module: Module, name: str, what: str) -> GraphEntryPoint:
    """Find the graph entry point ``name``. Raise ShaderError, which lists all entry points."""
    for entry in module.graph_entry_points:
        if entry.name == name:
            return entry
    there_are = ", ".join(repr(entry.name) for entry in module.graph_entry_points) or "none"
    message = f"{what} has no graph entry point {name!r}; its graph entry points are: {there_are}"
    raise ShaderError(Diagnostic("SR-GRAPH-001", "error", None, message))


class VgfGraph:
    """A graph resource with the file's model, shared by all dispatches.

    A binding's `key` finds it in ``reads``, in ``writes``, and in ``declared``, which has shapes.
    """

    def __init__(self, scenario: Scenario, graph: Graph) -> None:
        """Read the file. Raise FileError, and UnsupportedError if the ``ml`` extra is missing."""
        self.graph = graph
        self.pointer = scenario.resource_pointer(graph.uid)
        self.identity: Identity | None = None
        with progress.phase("parse", "VGF", graph.uid):
            if graph.data is not None:
                self.path = f"<data of {graph.uid!r}>"
                self.vgf: Vgf = parse_vgf(plain_bytes(graph.data, graph.uid), name=self.path)
            else:
                self.path = os.path.join(scenario.base_dir, graph.src or "")
                self.vgf, self.identity = read_model(self.path)
        self.inputs = self.vgf.input_ports
        self.outputs = self.vgf.output_ports
        self.reads = frozenset(port.binding for port in self.inputs)
        self.writes = frozenset(port.binding for port in self.outputs)
        self.declared: dict[Any, Shape] = {
            port.binding: self.vgf.resources[port.resource_index].shape for port in (*self.inputs, *self.outputs)
        }
        self.is_open = any(min(row.shape, default=1) < 0 for row in self.vgf.resources)
        self._modules: dict[int, GraphModule] = {}
        self._constants: dict[int, memoryview] = {}

    @staticmethod
    def key(binding: Binding) -> int:
        """Return a binding's key, the number alone: a VGF has no sets."""
        number: int = binding.id
        return number

    def inferred(self, bound: Mapping[Any, Shape]) -> dict[Any, Shape]:
        """Infer open input and output shapes from the known shapes in ``bound``. Raise as `row_shapes`."""
        shapes = row_shapes(self, bound)
        ports = {port.binding: port.resource_index for port in (*self.inputs, *self.outputs)}
        return {binding: shapes[row] for binding, row in ports.items() if row in shapes}

    def module(self, index: int) -> GraphModule:
        """Return a graph segment's SPIR-V module. Raise SpirvError."""
        if index not in self._modules:
            code = self.vgf.modules[index].code
            assert isinstance(code, bytes), "find_problems refuses graph modules without code"
            self._modules[index] = _graph_module(code, f"{self.path}: module {self.vgf.modules[index].name!r}")
        return self._modules[index]

    def constant(self, index: int) -> ConstantData:
        """Return a constant's data."""
        row = self.vgf.constants[index]
        if row.data is None:  # a file's data on disk stays there
            return FilePart(self.path, self.identity, row.offset_bytes, row.size_bytes)  # type: ignore[arg-type]
        if index not in self._constants:  # a copy, because the caller may change other data than bytes later
            is_fixed = isinstance(row.data.obj, bytes)
            self._constants[index] = row.data if is_fixed else memoryview(bytes(row.data))
        return self._constants[index]

    def shader_of(self, command: DispatchGraph, name: str, scenario: Scenario) -> Shader | None:
        """Return the shader for the compute module ``name``: a substitute, or the file's own; None without code."""
        targets, constants_map = self.vgf.targets(), self.graph.specialization_constants_map
        entries = [entry for entry in constants_map if name in targets.get(entry.shader_target, ())]
        update: dict[str, Any] = {"uid": f"{self.graph.uid}/{name}", "specialization_constants": ()}
        if entries:
            update["specialization_constants"] = entries[0].specialization_constants
        for substitution in (*command.shader_substitutions, *self.graph.shader_substitutions):
            if name in targets.get(substitution.target, ()):
                shader: Any = scenario.resource(substitution.shader_ref)
                if entries:
                    update["uid"] = f"{shader.uid} as {name!r} of {self.graph.uid}"
                    shader = shader.model_copy(update=update)
                return shader  # type: ignore[no-any-return]
        module = next(module for module in self.vgf.modules if module.name == name and module.type == "compute")
        if module.code is None or module.language is None:
            return None
        # the only entry point in GLSL, even if the file names another
        entry = "main" if module.language == "GLSL" else module.entry_point
        return Shader(type=module.language, source=module.code, entry=entry, **update)


class SpirvGraph:
    """A shader resource with a graph; see `VgfGraph`."""

    def __init__(self, scenario: Scenario, shader: Shader) -> None:
        """Read the module. Raise FileError, SpirvError, or ShaderError for a missing graph entry point."""
        self.uid = shader.uid
        self.pointer = scenario.resource_pointer(shader.uid)
        code, self.identity = read_spirv(scenario, shader)
        self.path = os.path.join(scenario.base_dir, file_of(shader) or "")
        self.body = GraphModule(code, file_of(shader) or shader.uid)
        self.module = self.body.module
        name = shader.entry
        entries = self.module.graph_entry_points
        if len(entries) == 1 and "entry" not in shader.model_fields_set:
            name = entries[0].name  # the only entry point, if the scenario names none
        self.entry = entry = graph_entry(self.module, name, f"shader {shader.uid!r}")
        self.reads = frozenset((input_.set, input_.binding) for input_ in entry.inputs)
        self.writes = frozenset((output.set, output.binding) for output in entry.outputs)
        tensors = {(port.set, port.binding): port.tensor.shape for port in (*entry.inputs, *entry.outputs)}
        self.declared: dict[Any, Shape] = {place: shape for place, shape in tensors.items() if shape is not None}

    @staticmethod
    def key(binding: Binding) -> tuple[int, int]:
        """Return a binding's key."""
        return binding.set, binding.id

    def inferred(self, bound: Mapping[Any, Shape]) -> dict[Any, Shape]:
        """Infer output shapes from input shapes. Raise ScenarioError for unsuitable inputs."""
        return {**self.body.fixed(self.entry, bound).outputs}


def row_shapes(graph: VgfGraph, bound: Mapping[int, Shape]) -> dict[int, Shape]:
    """Infer the shapes for open rows in the file. ``bound`` has input and output shapes by binding number.

    It follows the segments in order. A shader's outputs have known shapes only if they are bound. Raise
    ScenarioError for inputs in conflict with each other, and ShaderError for damaged modules.
    """
    rows = graph.vgf.resources
    if not graph.is_open:
        return {}
    known: dict[int, Shape] = {}
    for port in graph.inputs:
        if port.binding in bound:
            _note(graph, known, port.resource_index, bound[port.binding])
    for segment in graph.vgf.segments:
        if segment.type != "graph":
            continue
        module = graph.module(segment.module_index)
        plan = graph.vgf.modules[segment.module_index]
        entry = graph_entry(module.module, plan.entry_point, f"module {plan.name!r}")
        slots = {
            (descriptor_set.index, slot.binding): slot.resource_index
            for descriptor_set in segment.descriptor_sets
            for slot in descriptor_set.slots
        }
        shapes = {
            place: known.get(row, rows[row].shape)
            for place, row in slots.items()
            if row in known or min(rows[row].shape, default=1) > 0
        }
        for place, shape in module.fixed(entry, shapes).outputs.items():
            if place in slots and min(shape) > 0:
                _note(graph, known, slots[place], shape)
    for port in graph.outputs:
        if port.binding in bound:
            _note(graph, known, port.resource_index, bound[port.binding])
    return known


def _note(graph: VgfGraph, known: dict[int, Shape], row: int, shape: Shape) -> None:
    """Set the shape for all open views on a row's value, if they agree."""
    group = graph.vgf.resources[row].alias_group
    for index, view in enumerate(graph.vgf.resources):
        is_same = index == row or (group is not None and view.alias_group == group)
        if is_same and index not in known and min(view.shape, default=1) < 0 and agrees(view.shape, shape):
            known[index] = shape


class GraphFiles:
    """Graphs for commands, by uid; other files stay closed.

    ``shapes`` has inferred shapes for tensors with open dimensions. ``deferred`` has tensors without a shape that a
    graph writes.
    """

    def __init__(self, scenario: Scenario, inputs: Mapping[str, ArrayLike], problems: Problems) -> None:
        """Read the files, and note errors."""
        self.scenario = scenario
        self.problems = problems
        self.graphs: dict[str, VgfGraph | SpirvGraph] = {}
        failed: set[str] = set()
        for command in scenario.commands:
            uid: str = getattr(command, "graph_ref", "")
            if not uid or uid in failed or uid in self.graphs:
                continue
            resource: Any = scenario.resource(uid)
            try:
                if command.kind == "dispatch_graph":
                    self.graphs[uid] = graph = VgfGraph(scenario, resource)
                    self._warn_of_unwritten(graph)
                else:
                    self.graphs[uid] = SpirvGraph(scenario, resource)
            except ScenarioRunnerError as error:
                failed.add(uid)
                problems.add_error(error, f"{scenario.resource_pointer(uid)}/src")
        open_uids = {resource.uid for resource in scenario.resources if is_open(resource)}
        self.shapes: dict[str, Shape] = self._infer(open_uids, inputs) if open_uids else {}
        # usually the graph's inputs have errors, which planning the command finds
        written = {
            binding.resource_ref
            for command, graph in self.dispatches()
            for binding in command.bindings
            if graph.key(binding) in graph.writes
        }
        self.deferred = frozenset(written & open_uids - self.shapes.keys())

    def dispatches(self) -> Iterator[tuple[Any, VgfGraph | SpirvGraph]]:
        """Yield the commands with a readable graph, in order."""
        for command in self.scenario.commands:
            graph = self.graphs.get(getattr(command, "graph_ref", ""))
            if graph is not None:
                yield command, graph

    def add_shaders(self, shaders: list[Shader]) -> dict[str, str]:
        """Add shaders in models, and return their pointers."""
        places: dict[str, str] = {}
        known = {shader.uid for shader in shaders}
        for command, graph in self.dispatches():
            if not isinstance(graph, VgfGraph):
                continue
            for name in graph.vgf.compute_names():
                shader = graph.shader_of(command, name, self.scenario)
                if shader is None or shader.uid in known:
                    continue
                known.add(shader.uid)
                shaders.append(shader)
                if all(shader.uid != resource.uid for resource in self.scenario.resources):
                    places[shader.uid] = graph.pointer
        return places

    def report_unknown_shapes(self) -> None:
        """Note tensors without a shape from a graph, unless there are errors, which are the usual reason."""
        for uid in () if self.problems.errors else sorted(self.deferred):
            report_unknown_shape(self.scenario.resource(uid), self.scenario.resource_pointer(uid), self.problems)

    def _warn_of_unwritten(self, graph: VgfGraph) -> None:
        """Warn if segments read a resource but no segment writes it."""
        for segment, slot in unwritten_inputs(graph.vgf):
            what = f"segment {segment.name or segment.index!r} reads resource {slot.resource_index}"
            message = f"{what} (binding {slot.binding}), which no segment before it writes; it reads zeros"
            self.problems.warn("SR-GRAPH-016", graph.pointer, f"{graph.path}: {message}")

    def _infer(self, open_uids: Collection[str], inputs: Mapping[str, ArrayLike]) -> dict[str, Shape]:
        """Infer shapes for tensors with open dimensions from graphs and from initial content."""
        known: dict[str, Shape] = {}
        for resource in self.scenario.resources:
            if isinstance(resource, Tensor):
                is_open = resource.uid in open_uids
                shape = _content_shape(self.scenario, resource, inputs) if is_open else tuple(resource.dims)
                if shape is not None:
                    known[resource.uid] = shape or (1,)
        shapes: dict[str, Shape] = {}
        before = -1
        while len(shapes) not in (before, len(open_uids)):  # a graph may read a later command's output
            before = len(shapes)
            for index, command in enumerate(self.scenario.commands):
                for uid, shape in self._shapes_of_graph(index, command, known):
                    if uid in open_uids and uid not in shapes and min(shape, default=1) > 0:
                        shapes[uid] = shape
                        known.setdefault(uid, shape)
                        self._check_dims(index, uid, shape)
        return {uid: known[uid] for uid in open_uids if uid in known} | shapes

    def _shapes_of_graph(self, index: int, command: Any, known: Mapping[str, Shape]) -> Iterator[tuple[str, Shape]]:
        """Yield tensor shapes from a command's graph."""
        graph = self.graphs.get(getattr(command, "graph_ref", ""))
        if graph is None:
            return
        bound = [(graph.key(binding), binding.resource_ref) for binding in command.bindings]
        shapes = graph.declared
        try:
            shapes = shapes | graph.inferred({key: known[uid] for key, uid in bound if uid in known})
        except ScenarioRunnerError as error:
            self.problems.add_error(error, f"{self.scenario.command_pointer(index)}/bindings")
        yield from ((uid, shapes[key]) for key, uid in bound if key in shapes)

    def _check_dims(self, index: int, uid: str, shape: Shape) -> None:
        """Note an error if a graph gives other dimensions to a tensor than the scenario declares."""
        dims = self.scenario.resource(uid).dims  # type: ignore[attr-defined]
        if not agrees(dims, shape) and max(dims, default=0) > 0:
            makes = f"the graph of {self.scenario.command_pointer(index)} makes {list(shape)} of it"
            message = f"tensor {uid!r} has the shape {list(dims)}, but {makes}"
            self.problems.error("SR-TENSOR-003", f"{self.scenario.resource_pointer(uid)}/dims", message)


def _content_shape(scenario: Scenario, tensor: Tensor, inputs: Mapping[str, ArrayLike]) -> Shape | None:
    """Return the shape of a tensor's initial content; None without initial content."""
    data = inputs.get(tensor.uid, tensor.data)
    if data is not None:
        shape = getattr(array_of(data, tensor.uid), "shape", None)
        return None if shape is None else tuple(shape)
    path = file_of(tensor)
    if path is None:
        return shape_in(tensor.src)
    try:
        return read_header(os.path.join(scenario.base_dir, path)).shape
    except ScenarioRunnerError:
        return None  # planning the tensor reports the error
