"""dispatch_fragment commands: their shaders, what these bind, and the images that are drawn into."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.checks.attachments import Attachment, check_attachments
from scenario_runner.checks.bindings import check_bindings, slots_of
from scenario_runner.checks.bound import Bound
from scenario_runner.checks.push_constants import check_size
from scenario_runner.checks.stages import Stage, check_stages
from scenario_runner.plan.bindings import bound_of, descriptors_of
from scenario_runner.plan.model.images import ImagePlan
from scenario_runner.plan.shaders import load_shaders
from scenario_runner.scenario import DispatchFragment, Image, Shader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.plan.model.plan import ResourcePlan
    from scenario_runner.plan.model.records import CompilerOptions, Descriptor
    from scenario_runner.plan.problems import Problems
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import ColorAttachment, Scenario


class DrawingStages(NamedTuple):
    """The two shaders of a drawing; ``needs`` are (structure, member, what needs it) of device features."""

    vertex: Stage
    fragment: Stage
    needs: tuple[tuple[str, str, str], ...]


class Drawing(NamedTuple):
    """The dispatch_fragment command number ``command``, as far as it could be planned.

    ``shaders`` are those that could be loaded, the vertex shader first; ``stages`` is None unless both could.
    ``attachments`` has None for an image that could not be planned.
    """

    command: int
    shaders: tuple[LoadedShader, ...]
    stages: DrawingStages | None
    descriptors: tuple[Descriptor, ...]
    attachments: tuple[Attachment | None, ...]
    barrier_after: bool


def plan_drawings(
    scenario: Scenario,
    resources: Mapping[str, ResourcePlan],
    shaders: Mapping[str, LoadedShader],
    compiler: CompilerOptions,
    problems: Problems,
) -> tuple[Drawing, ...]:
    """The drawings of a scenario, checked; what is wrong goes into ``problems``.

    ``shaders`` are those that are loaded already; the others are compiled or read here.
    """
    drawings = [
        (index, command) for index, command in enumerate(scenario.commands) if isinstance(command, DispatchFragment)
    ]
    used = {uid: None for _, command in drawings for uid in (command.vertex_shader_ref, command.fragment_shader_ref)}
    wanted = [shader for uid in used if uid not in shaders and isinstance(shader := scenario.resource(uid), Shader)]
    loaded = {**shaders, **load_shaders(scenario, wanted, compiler, problems, thorough=True)}
    stages = {uid: _stage(loaded[uid]) for uid in used if uid in loaded}
    return tuple(_drawing(scenario, index, command, resources, loaded, stages, problems) for index, command in drawings)


def _drawing(
    scenario: Scenario,
    index: int,
    command: DispatchFragment,
    resources: Mapping[str, ResourcePlan],
    shaders: Mapping[str, LoadedShader],
    stages: Mapping[str, Stage],
    problems: Problems,
) -> Drawing:
    pointer = scenario.command_pointer(index)
    pair = (command.vertex_shader_ref, command.fragment_shader_ref)
    loaded = tuple(shaders[uid] for uid in pair if uid in shaders)
    attachments = tuple(_attachment(scenario, resources, target) for target in command.color_attachment_refs)
    if len(loaded) < 2:  # reported where the shader is
        return Drawing(index, loaded, None, (), attachments, command.implicit_barrier)

    def bound(uid: str) -> Bound | None:
        resource = resources.get(uid)
        readonly = getattr(scenario.resource(uid), "shader_access", "") == "readonly"
        return None if resource is None else bound_of(resource, readonly)

    for each in loaded:
        size: int = getattr(scenario.resource(each.uid), "push_constants_size", 0)
        problems.report(check_size(each.uid, each.interface, size, each.pointer))
    slots, findings = slots_of([(each.uid, each.interface) for each in loaded], pointer)
    problems.report(findings)
    names = " and ".join(repr(each.uid) for each in loaded)
    good = problems.report(check_bindings(slots, f"the shaders {names} do", command.bindings, bound, pointer))
    vertex, fragment = (stages[uid] for uid in pair)
    findings, needs = check_stages(vertex, fragment, pointer)
    problems.report(findings)
    images = [
        (binding.resource_ref, binding.lod)
        for binding in command.bindings
        if (slot := slots.get((binding.set, binding.id))) is not None and slot.used
    ]
    problems.report(check_attachments(attachments, fragment, command.render_extent, images, pointer))
    descriptors = descriptors_of(slots, command.bindings, resources) if good else ()
    both = DrawingStages(vertex, fragment, tuple(needs))
    return Drawing(index, loaded, both, descriptors, attachments, command.implicit_barrier)


def _stage(shader: LoadedShader) -> Stage:
    interface = shader.entry.stage_interface(shader.interface.specialization)
    return Stage(shader.uid, shader.pointer, shader.entry, interface)


def _attachment(
    scenario: Scenario, resources: Mapping[str, ResourcePlan], target: ColorAttachment
) -> Attachment | None:
    """The mip level that is drawn into; None where something else is wrong with the image."""
    plan, declared = resources.get(target.resource_ref), scenario.resource(target.resource_ref)
    if not isinstance(plan, ImagePlan) or not isinstance(declared, Image) or target.lod >= plan.mips:
        return None
    width, height = (max(1, size >> target.lod) for size in (plan.width, plan.height))
    return Attachment(plan.uid, target.lod, plan.format, width, height, declared.color_attachment)
