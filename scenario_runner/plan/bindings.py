"""Descriptors and push constants of a command: the layouts that its shaders ask for, and what the scenario binds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from scenario_runner.checks.bindings import RESOURCE_OF, Slot, Slots, check_bindings, slots_of
from scenario_runner.checks.dispatches import Extent, check_data, check_missing_data, check_size, layout_size, padded
from scenario_runner.checks.resources import Bound
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.plan.model.plan import ResourcePlan
from scenario_runner.plan.model.records import Descriptor, DescriptorKind, LayoutBinding, ShaderStage, Source
from scenario_runner.plan.model.resources import ImagePlan
from scenario_runner.plan.problems import Problems
from scenario_runner.plan.shaders import LoadedShader
from scenario_runner.scenario import Binding, Scenario


def image_descriptor(binding: Binding, kind: DescriptorKind, image: ImagePlan) -> Descriptor:
    """The descriptor for an image: the level that the binding names, or all; a storage image is the first one then."""
    level = binding.lod
    if image.mips == 1 or (level is None and kind == "storage_image"):
        level = 0
    return Descriptor(binding.set, binding.id, kind, image.uid, None if kind == "sampler" else level)


SetLayouts = tuple[tuple[LayoutBinding, ...], ...]


def set_layouts(shader: LoadedShader, problems: Problems) -> SetLayouts | None:
    """The descriptor set layouts that the shader asks for, from set 0 on, gaps as empty sets; None where we cannot.

    They come from the shader alone: every descriptor that it uses has its place, and nothing else.
    """
    slots, findings = slots_of([(shader.uid, shader.interface)], shader.pointer)
    return layouts_of(slots) if problems.report(findings) else None


def layouts_of(slots: Slots, stages: Mapping[str, tuple[ShaderStage, ...]] | None = None) -> SetLayouts:
    """The same from what was found to be right; ``stages`` are those of each shader, compute without.

    Variables other than tensors that an entry point only lists have no place: drivers crash on the sets that are
    not bound for them.
    """
    by_set: dict[int, list[LayoutBinding]] = {}
    for slot in slots.values():  # in the order of sets and bindings
        if not _has_place(slot):
            continue
        kind: DescriptorKind = slot.kind  # type: ignore[assignment]
        place = LayoutBinding(slot.binding, kind)
        if stages is not None:
            seen_by = dict.fromkeys(stage for uid, _ in slot.variables for stage in stages[uid])
            place = place._replace(stages=tuple(sorted(seen_by)))
        by_set.setdefault(slot.set, []).append(place)
    return tuple(tuple(by_set.get(number, ())) for number in range(max(by_set) + 1)) if by_set else ()


def _has_place(slot: Slot) -> bool:
    """Whether a variable has a place in the layout: the emulation layers crash where tensors have none, used or not."""
    return slot.used or slot.kind == "tensor"


def descriptors(
    shader: LoadedShader,
    bindings: Sequence[Binding],
    resources: Mapping[str, ResourcePlan],
    pointer: str,
    problems: Problems,
    readonly: Collection[str] = (),
) -> tuple[Descriptor, ...]:
    """The descriptors of one dispatch, checked against the shader. What is wrong goes into ``problems``.

    ``readonly`` are the resources that the scenario calls so.
    """
    slots, _ = slots_of([(shader.uid, shader.interface)], pointer)  # what is wrong with them, `set_layouts` says

    def bound(uid: str) -> Bound | None:
        resource = resources.get(uid)
        return None if resource is None else bound_of(resource, uid in readonly)

    good = problems.report(check_bindings(slots, f"shader {shader.uid!r} does", bindings, bound, pointer))
    return descriptors_of(slots, bindings, resources) if good else ()


def descriptors_of(
    slots: Slots, bindings: Sequence[Binding], resources: Mapping[str, ResourcePlan]
) -> tuple[Descriptor, ...]:
    """What stands at each binding that the shaders use, once it is known to be right."""
    result = []
    for binding in bindings:
        slot = slots.get((binding.set, binding.id))
        resource = resources.get(binding.resource_ref)
        if slot is None or not _has_place(slot) or resource is None or slot.kind not in RESOURCE_OF:
            continue
        kind: DescriptorKind = slot.kind  # type: ignore[assignment]
        if RESOURCE_OF[kind] == "image":
            result.append(image_descriptor(binding, kind, resource))  # type: ignore[arg-type]
        else:
            result.append(Descriptor(binding.set, binding.id, kind, resource.uid))
    return tuple(result)


def extents_of(bindings: Iterable[Binding], resources: Mapping[str, ResourcePlan]) -> list[Extent]:
    """How much there is to work on in each resource that is bound."""

    planned = [(resources.get(binding.resource_ref), binding.lod) for binding in bindings]
    return [Extent(plan.uid, plan.kind, plan.extent(lod)) for plan, lod in planned if plan is not None]


def bound_of(resource: ResourcePlan, readonly: bool = False) -> Bound:
    """A planned resource as the rules look at it."""
    dims = resource.dims if resource.kind == "tensor" else ()
    return Bound(resource.uid, resource.kind, resource.size_bytes, resource.format, dims, readonly)


class PushConstants:
    """Reads each raw_data once, and only when a dispatch uses it; what is wrong goes into ``problems``.

    ``read`` are the bytes of those that were read, by uid.
    """

    def __init__(self, scenario: Scenario, sources: Mapping[str, Source], problems: Problems) -> None:
        self._scenario = scenario
        self._sources = sources
        self._problems = problems
        self.read: dict[str, bytes] = {}
        self._fits: dict[tuple[str, int], bool] = {}

    def of(self, command: Any, shaders: Sequence[LoadedShader], pointer: str) -> bytes:
        """The push constants that the shaders of a dispatch see, empty where something is wrong with them.

        ``command`` is a dispatch_compute or a dispatch_fragment.
        """
        size = self._given_size(shaders)
        uid: str | None = command.push_data_ref
        fits = [self._check(shader, size) for shader in shaders]
        if not all(fits):
            return b""
        if uid is None:
            for shader in shaders:
                self._problems.report(check_missing_data(shader.uid, shader.interface, pointer))
            return bytes(self.size(shaders))
        source = self._sources.get(uid)
        if source is None:
            return b""  # reported where the raw_data is
        label = ("shader " if len(shaders) == 1 else "shaders ") + " and ".join(repr(each.uid) for each in shaders)
        interfaces = [shader.interface for shader in shaders]
        found = check_data(label, interfaces, size, uid, source.size_bytes, f"{pointer}/push_data_ref")
        return padded(self.data(uid) or b"") if self._problems.report(found) else b""

    def data(self, uid: str) -> bytes | None:
        """The bytes of a raw_data; None where something is wrong with it, which is reported there."""
        source = self._sources.get(uid)
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

    def size(self, shaders: Sequence[LoadedShader]) -> int:
        """Bytes of the range in the pipeline layout of shaders that run together."""
        size = self._given_size(shaders)
        return max(layout_size(size, shader.interface) for shader in shaders)

    def _given_size(self, shaders: Sequence[LoadedShader]) -> int:
        """The largest push_constants_size of the shaders; 0 where all leave it out."""
        given = {
            shader.uid: getattr(self._scenario.resource(shader.uid), "push_constants_size", 0) for shader in shaders
        }
        if not any(given.values()):
            return 0
        return max(given[shader.uid] or layout_size(0, shader.interface) for shader in shaders)

    def _check(self, shader: LoadedShader, size: int) -> bool:
        """Whether a shader can have push constants of this size; what is wrong is noted once."""
        key = (shader.uid, size)
        if key not in self._fits:
            findings = check_size(shader.uid, shader.interface, size, shader.pointer)
            self._fits[key] = self._problems.report(findings)
        return self._fits[key]
