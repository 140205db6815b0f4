"""What the operations of a plan may change, and what kind of numbers shaders see in buffers: from their SPIR-V."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from scenario_runner.byte_spans import overlap
from scenario_runner.plan.model.plan import memory_groups, span_of
from scenario_runner.spirv import read_module
from scenario_runner.spirv.types import Array, RuntimeArray, Scalar, Struct, Vector

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.spirv import DescriptorBinding

_Place = tuple[int, int]  # set and binding


class Changes:
    """Resources by operation; what belongs to one pipeline and one list of descriptors is worked out once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known: dict[tuple[str, int, int], frozenset[str]] = {}
        self._sharing: dict[str, set[str]] = {}
        for members in memory_groups(plan.resources.values()).values():
            for one in members:
                same = {other.uid for other in members if overlap(span_of(one), span_of(other))}
                self._sharing[one.uid] = {one.uid, *same}
        self._variables: dict[tuple[str, int], list[DescriptorBinding]] = {}

    def of(self, operation: Any) -> frozenset[str]:
        """The resources that an operation may change: what it writes, and what shares these bytes."""
        if operation.kind == "barrier":
            return frozenset()
        key = (operation.kind, operation.pipeline, operation.descriptors)
        if key not in self._known:
            self._known[key] = self._shared(self._written(operation))
        if operation.kind == "draw":
            return self._known[key] | self._shared({target.uid for target in operation.targets})
        return self._known[key]

    def elements(self) -> dict[str, str]:
        """What the items of buffers are, such as "float32", by uid: of those that all shaders see in the same way."""
        seen: dict[str, set[str | None]] = {}
        for frame in self._plan.frames:
            for operation in frame.operations:
                if operation.kind in ("dispatch", "draw"):
                    for uid, variable in self._bound(operation):
                        if variable.block is not None:
                            seen.setdefault(uid, set()).add(element_name(variable.block.struct))
        return {uid: name for uid, names in seen.items() for name in names if name is not None and len(names) == 1}

    def _shared(self, uids: set[str]) -> frozenset[str]:
        return frozenset(each for uid in uids for each in self._sharing.get(uid, (uid,)))

    def _written(self, operation: Any) -> set[str]:
        if operation.kind in ("dispatch", "draw"):
            return {uid for uid, variable in self._bound(operation) if variable.writes and variable.writable}
        pipeline = self._plan.graph_pipelines[operation.pipeline]
        written = {(each.set, each.binding) for each in pipeline.resources if each.writes}
        descriptors = self._plan.descriptor_lists[operation.descriptors].descriptors
        return {each.uid for each in descriptors if (each.set, each.binding) in written}

    def _bound(self, operation: Any) -> Iterator[tuple[str, DescriptorBinding]]:
        """The resources that an operation binds to shaders, each with a variable that shows it."""
        uids: dict[_Place, str] = {
            (each.set, each.binding): each.uid
            for each in self._plan.descriptor_lists[operation.descriptors].descriptors
        }
        for variable in self._variables_of(operation):
            uid = uids.get((variable.set, variable.binding))
            if uid is not None:
                yield uid, variable

    def _variables_of(self, operation: Any) -> list[DescriptorBinding]:
        key = (operation.kind, operation.pipeline)
        found = self._variables.get(key)
        if found is None:
            plan: Any = self._plan
            stages = [plan.pipelines[operation.pipeline]] if operation.kind == "dispatch" else []
            stages = stages or plan.graphics_pipelines[operation.pipeline][:2]
            found = self._variables[key] = [
                variable for stage in stages for variable in _entry(stage.code, stage.entry).interface.bindings
            ]
        return found


def element_name(type: Any) -> str | None:
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
    if not isinstance(type, Scalar) or type.kind == "bool":
        return None
    return type.encoding or f"{type.kind}{type.width_bits}"


def _entry(code: bytes, name: str) -> Any:
    return next(entry for entry in read_module(code).entry_points if entry.name == name)
