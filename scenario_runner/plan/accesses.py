"""Accesses of the operations of a plan to its resources, as the SPIR-V modules of shaders and graphs tell them."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple

from scenario_runner.files.byte_data import overlap
from scenario_runner.plan.plan import Operation, Plan, Work, memory_groups, span_of
from scenario_runner.plan.records import Descriptor
from scenario_runner.plan.shader_modules import LoadedShader
from scenario_runner.shaders.spirv import DescriptorBinding, Interface, read_module
from scenario_runner.shaders.spirv.types import Array, RuntimeArray, Scalar, Struct, Vector

_Variables = dict[tuple[int, int], list[DescriptorBinding]]


class ResourceAccess(NamedTuple):
    """A use of a resource by one stage of an operation, of an image at a mip ``level`` or at all (None).

    ``atomic`` tells that all of it are atomic operations; ``extent_bytes`` is the part of a buffer that variables can
    touch: that of their blocks, None where one ends in a runtime array.
    """

    uid: str
    level: int | None
    stage: str
    reads: bool
    writes: bool
    atomic: bool = False
    extent_bytes: int | None = None


class Accesses:
    """Accesses by operation; those of one pipeline and one list of descriptors are worked out once.

    ``shaders`` are those of the plan by uid; a kept plan has none, and its modules are read again.
    """

    def __init__(self, plan: Plan, shaders: Mapping[str, LoadedShader] | None = None) -> None:
        self._plan = plan
        self._shaders = shaders or {}
        self._known: dict[Hashable, tuple[ResourceAccess, ...]] = {}
        self._stages: dict[tuple[str, int], list[tuple[str, _Variables]]] = {}
        self._sharing: dict[str, set[str]] = {}
        for members in memory_groups(plan.resources.values()).values():
            for plan_of_member in members:
                span = span_of(plan_of_member)
                same = {other.uid for other in members if overlap(span, span_of(other))}
                self._sharing[plan_of_member.uid] = {plan_of_member.uid, *same}

    def of(self, operation: Operation) -> tuple[ResourceAccess, ...]:
        """The accesses of an operation; those of a draw are its shaders' and those to its attachments."""
        if operation.kind == "barrier":
            return ()
        targets = operation.targets if operation.kind == "draw" else ()
        key = (operation.kind, operation.pipeline, operation.descriptors, targets)
        if key not in self._known:
            bound = self._of_shaders if operation.kind in ("dispatch", "draw") else self._of_graph
            attached = [ResourceAccess(target.uid, target.level, "attachment", False, True) for target in targets]
            self._known[key] = (*bound(operation), *attached)
        return self._known[key]

    def changed_by(self, operation: Operation) -> set[str]:
        """The resources that an operation may change: what it writes, and what shares these bytes."""
        written = {access.uid for access in self.of(operation) if access.writes}
        return {member for uid in written for member in self._sharing.get(uid, (uid,))}

    def elements(self) -> dict[str, str]:
        """The element types of buffers, such as "float32", by uid: of those that all shaders see in the same way."""
        seen: dict[str, set[str | None]] = {}
        for operation in (operation for frame in self._plan.frames for operation in frame.operations):
            if operation.kind in ("dispatch", "draw"):
                for descriptor, _, variables in self._bound(operation):
                    names = {element_name(variable.block) for variable in variables if variable.block is not None}
                    seen.setdefault(descriptor.uid, set()).update(names)
        return {uid: name for uid, names in seen.items() for name in names if name is not None and len(names) == 1}

    def _of_shaders(self, operation: Work) -> Iterator[ResourceAccess]:
        for descriptor, stage, variables in self._bound(operation):
            used = [variable for variable in variables if variable.reads or variable.writes]
            if used:
                blocks = [variable.block for variable in used]
                sizes = [block.size_bytes for block in blocks if block and block.runtime_stride_bytes is None]
                yield ResourceAccess(
                    descriptor.uid,
                    descriptor.level,
                    stage,
                    reads=any(variable.reads for variable in used),
                    writes=any(variable.writes and variable.writable for variable in used),
                    atomic=all(variable.atomic for variable in used),
                    extent_bytes=max(sizes) if len(sizes) == len(used) else None,
                )

    def _of_graph(self, operation: Work) -> Iterator[ResourceAccess]:
        resources = self._plan.graph_pipelines[operation.pipeline].resources
        by_place = {(resource.set, resource.binding): resource for resource in resources}
        for descriptor in self._plan.descriptor_lists[operation.descriptors].descriptors:
            resource = by_place.get((descriptor.set, descriptor.binding))
            if resource is not None:
                yield ResourceAccess(descriptor.uid, descriptor.level, "graph", resource.reads, resource.writes)

    def _bound(self, operation: Work) -> Iterator[tuple[Descriptor, str, list[DescriptorBinding]]]:
        """The descriptors of a dispatch or a draw, each with a stage and the variables that this stage has for it."""
        key = (operation.kind, operation.pipeline)
        if key not in self._stages:
            self._stages[key] = list(self._variables(*key))
        for descriptor in self._plan.descriptor_lists[operation.descriptors].descriptors:
            for stage, variables in self._stages[key]:
                if (descriptor.set, descriptor.binding) in variables:
                    yield descriptor, stage, variables[descriptor.set, descriptor.binding]

    def _variables(self, kind: str, pipeline: int) -> Iterator[tuple[str, _Variables]]:
        """The stages of a pipeline, with their variables by set and binding."""
        plan: Any = self._plan
        stages = {"compute": plan.pipelines[pipeline]} if kind == "dispatch" else {}
        if kind == "draw":
            stages = dict(zip(("vertex", "fragment"), plan.graphics_pipelines[pipeline], strict=False))
        for name, stage in stages.items():
            shader = self._shaders.get(stage.label)
            by_place: _Variables = {}
            for variable in (_interface(stage.code, stage.entry) if shader is None else shader.interface).bindings:
                by_place.setdefault((variable.set, variable.binding), []).append(variable)
            yield name, by_place


def _interface(code: bytes, entry_point: str) -> Interface:
    return next(entry.interface for entry in read_module(code).entry_points if entry.name == entry_point)


def element_name(type: object) -> str | None:
    """The one kind of number that a structure holds without gaps, None where there are several or gaps."""
    if isinstance(type, Struct):
        return element_name(type.members[0].type) if len(type.members) == 1 else None
    if isinstance(type, Array | RuntimeArray):
        inner = type.element
        if not isinstance(inner, Scalar | Vector) or type.stride_bytes not in (None, inner.size_bytes):
            return None
        return element_name(inner)
    if isinstance(type, Vector):
        return element_name(type.component)
    if not isinstance(type, Scalar) or type.is_bool:
        return None
    return type.encoding or f"{type.kind}{type.width_bits}"
