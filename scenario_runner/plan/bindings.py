"""Descriptors and push constants of a command: the layouts that its shaders ask for, and what the scenario binds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scenario_runner.checks.bindings import RESOURCE_OF, Slots, check_bindings, slots_of
from scenario_runner.checks.dispatches import check_data, check_missing_data, check_size, declared_size, padded
from scenario_runner.checks.resources import Bound
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.plan.model.plan import ResourcePlan
from scenario_runner.plan.model.records import Descriptor, DescriptorKind, LayoutBinding, Source
from scenario_runner.plan.problems import Problems
from scenario_runner.plan.shaders import LoadedShader
from scenario_runner.scenario import Binding, Scenario

SetLayouts = tuple[tuple[LayoutBinding, ...], ...]


class Declared(NamedTuple):
    """Bindings that shaders declare that run together; ``subject`` begins sentences about them.

    ``layouts`` are the descriptor set layouts that they ask for, from set 0 on, gaps as empty sets; None where nothing
    can be bound to them. Every descriptor that they use has its place, and nothing else.
    """

    subject: str
    slots: Slots
    layouts: SetLayouts | None


def declared_by(shaders: Sequence[LoadedShader], pointer: str, problems: Problems) -> Declared:
    """Look at the bindings of shaders; what is wrong with them is noted at ``pointer``."""
    slots, findings = slots_of([(shader.uid, shader.interface) for shader in shaders], pointer)
    names = " and ".join([repr(shader.uid) for shader in shaders])
    subject = f"shader {names} does" if len(shaders) == 1 else f"the shaders {names} do"
    if not problems.report(findings):
        return Declared(subject, slots, None)
    stages = {shader.uid: shader.stage for shader in shaders}
    by_set: dict[int, list[LayoutBinding]] = {}
    for slot in slots.values():  # in the order of sets and bindings
        if slot.has_place:
            kind: DescriptorKind = slot.kind  # type: ignore[assignment]
            seen_by = tuple(sorted({stages[uid] for uid, _ in slot.variables}))
            by_set.setdefault(slot.set, []).append(LayoutBinding(slot.binding, kind, seen_by))
    return Declared(subject, slots, tuple([tuple(by_set.get(set, ())) for set in range(max(by_set, default=-1) + 1)]))


def descriptors(
    declared: Declared,
    bindings: Iterable[Binding],
    resources: Mapping[str, ResourcePlan],
    pointer: str,
    problems: Problems,
    readonly: Collection[str] = (),
) -> tuple[Descriptor, ...]:
    """The descriptors of a command at ``pointer``; none where something is wrong with a binding, which is noted.

    ``readonly`` are the resources that the scenario calls so.
    """
    bound: dict[str, Bound] = {}
    for binding in bindings:
        plan = resources.get(binding.resource_ref)
        if plan is not None:
            dims = plan.dims if plan.kind == "tensor" else ()
            bound[plan.uid] = Bound(plan.uid, plan.kind, plan.size_bytes, plan.format, dims, plan.uid in readonly)
    if not problems.report(check_bindings(declared.slots, declared.subject, bindings, bound, pointer)):
        return ()
    found = []
    for binding in bindings:
        slot = declared.slots.get((binding.set, binding.id))
        if slot is not None and slot.has_place and binding.resource_ref in bound:
            kind: DescriptorKind = slot.kind  # type: ignore[assignment]
            level = _level(binding, kind, resources[binding.resource_ref]) if RESOURCE_OF[kind] == "image" else None
            found.append(Descriptor(binding.set, binding.id, kind, binding.resource_ref, level))
    return tuple(found)


def _level(binding: Binding, kind: DescriptorKind, image: Any) -> int | None:
    """The mip level that the binding names, or all (None); of a storage image the first one then."""
    if kind == "sampler":
        return None
    return 0 if image.mips == 1 or (binding.lod is None and kind == "storage_image") else binding.lod


def binding_key(bindings: Iterable[Binding]) -> tuple[tuple[Any, ...], ...]:
    """All that tells the bindings of two commands apart."""
    return tuple([(each.set, each.id, each.resource_ref, each.lod, each.descriptor_type) for each in bindings])


def range_size(shaders: Sequence[LoadedShader]) -> int:
    """Bytes of push constants in the pipeline layout of shaders that run together."""
    return max([max(shader.push_constants_size, declared_size(shader.interface)) for shader in shaders])


class PushConstants:
    """Reads each raw_data once, and only when a command uses it; what is wrong goes into ``problems``.

    ``sources`` are those of all raw_data by uid; ``read`` has the bytes of those that were read.
    """

    def __init__(self, scenario: Scenario, sources: Mapping[str, Source], problems: Problems) -> None:
        self._scenario = scenario
        self.sources = sources
        self._problems = problems
        self.read: dict[str, bytes] = {}

    def of(self, command: Any, shaders: Sequence[LoadedShader], pointer: str) -> bytes:
        """The push constants of a dispatch_compute or dispatch_fragment; empty where something is wrong with them."""
        size = max([shader.push_constants_size for shader in shaders])
        if size:  # those that leave it out have what their blocks need
            size = max([shader.push_constants_size or declared_size(shader.interface) for shader in shaders])
        findings = [check_size(shader.uid, shader.interface, size, shader.pointer) for shader in shaders]
        if not self._problems.report(finding for found in findings for finding in found):
            return b""
        uid: str | None = command.push_data_ref
        if uid is None:
            for shader in shaders:
                self._problems.report(check_missing_data(shader.uid, shader.interface, pointer))
            return bytes(range_size(shaders))
        source = self.sources.get(uid)
        if source is None:
            return b""  # reported where the raw_data is
        label = ("shader " if len(shaders) == 1 else "shaders ") + " and ".join(repr(each.uid) for each in shaders)
        interfaces = [shader.interface for shader in shaders]
        found = check_data(label, interfaces, size, uid, source.size_bytes, f"{pointer}/push_data_ref")
        return padded(self.data(uid) or b"") if self._problems.report(found) else b""

    def data(self, uid: str) -> bytes | None:
        """The bytes of a raw_data; None where something is wrong with it, which is reported there."""
        source = self.sources.get(uid)
        if source is None:
            return None
        if uid not in self.read:
            data = bytearray(source.size_bytes)
            try:
                source.read_into(memoryview(data))
            except ScenarioRunnerError as error:
                self._problems.add_error(error, f"{self._scenario.resource_pointer(uid)}/src")
            self.read[uid] = bytes(data)
        return self.read[uid]
