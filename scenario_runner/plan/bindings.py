"""What a dispatch binds: the descriptor set layouts of its shader, and what stands at each binding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.checks.bindings import RESOURCE_OF, check_bindings, slots_of
from scenario_runner.checks.bound import Bound
from scenario_runner.plan.model.plan import ResourcePlan
from scenario_runner.plan.model.records import Descriptor, DescriptorKind, LayoutBinding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Protocol

    from scenario_runner.checks.bindings import Slot, Slots
    from scenario_runner.checks.workgroup_count import Extent
    from scenario_runner.diagnostics import Diagnostic
    from scenario_runner.plan.model.records import ShaderStage
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import Binding

    class Report(Protocol):
        """What takes findings: `problems.Problems`, or something that stands in for it."""

        def report(self, findings: Iterable[Diagnostic]) -> bool: ...


SetLayouts = tuple[tuple[LayoutBinding, ...], ...]


def set_layouts(shader: LoadedShader, problems: Report) -> SetLayouts | None:
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
    problems: Report,
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
            from scenario_runner.plan.image_bindings import image_descriptor

            result.append(image_descriptor(binding, kind, resource))  # type: ignore[arg-type]
        else:
            result.append(Descriptor(binding.set, binding.id, kind, resource.uid))
    return tuple(result)


def extents_of(bindings: Iterable[Binding], resources: Mapping[str, ResourcePlan]) -> list[Extent]:
    """How much there is to work on in each resource that is bound."""
    from scenario_runner.checks.workgroup_count import Extent

    planned = [(resources.get(binding.resource_ref), binding.lod) for binding in bindings]
    return [Extent(plan.uid, plan.kind, plan.extent(lod)) for plan, lod in planned if plan is not None]


def bound_of(resource: ResourcePlan, readonly: bool = False) -> Bound:
    """A planned resource as the rules look at it."""
    dims = resource.dims if resource.kind == "tensor" else ()
    return Bound(resource.uid, resource.kind, resource.size_bytes, resource.format, dims, readonly)
