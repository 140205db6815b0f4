"""dispatch_fragment commands, as far as the scenario and the two shaders tell, whether or not they are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.checks.attachments import Attachment, check_attachments
from scenario_runner.checks.bindings import Bound, check_bindings, slots_of
from scenario_runner.checks.push_constants import check_size
from scenario_runner.checks.stages import Stage, check_stages
from scenario_runner.formats import find_format
from scenario_runner.plan.bindings import bound_of
from scenario_runner.plan.shaders import load_shaders
from scenario_runner.scenario import DispatchFragment, Image, Shader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenario_runner.checks.finding import Finding
    from scenario_runner.plan.model.records import CompilerOptions
    from scenario_runner.plan.resolve import Examination
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import Scenario
    from scenario_runner.validation.reported_device import ReportedDevice


def check_fragments(
    scenario: Scenario, examination: Examination, compiler: CompilerOptions, device: ReportedDevice | None = None
) -> tuple[list[Finding], dict[str, LoadedShader]]:
    """What is wrong with the drawing commands, and all shaders that could be loaded, those of drawings too.

    With a ``device``, its limits and features count as well.
    What is wrong with the shaders themselves goes into the examination's problems.
    """
    shaders = dict(examination.shaders)
    drawings = [
        (index, command) for index, command in enumerate(scenario.commands) if isinstance(command, DispatchFragment)
    ]
    wanted: dict[str, Shader] = {}
    for _, command in drawings:
        for uid in (command.vertex_shader_ref, command.fragment_shader_ref):
            shader = scenario.resource(uid)
            if uid not in shaders and isinstance(shader, Shader):
                wanted[uid] = shader
    problems = examination.problems
    shaders |= load_shaders(scenario, wanted.values(), compiler, problems, thorough=True)
    resources = examination.plan.resources if examination.plan is not None else {}

    def bound(uid: str) -> Bound | None:
        resource = resources.get(uid)
        declared = scenario.resource(uid)
        readonly = getattr(declared, "shader_access", "") == "readonly"
        return None if resource is None else bound_of(resource, readonly)

    found: list[Finding] = []
    stages = {uid: _stage(shaders[uid]) for uid in dict.fromkeys(_uids(drawings)) if uid in shaders}
    for index, command in drawings:
        pointer = scenario.command_pointer(index)
        loaded = [shaders[uid] for uid in (command.vertex_shader_ref, command.fragment_shader_ref) if uid in shaders]
        if len(loaded) < 2:
            continue  # said where the shader is
        for each in loaded:
            size: int = getattr(scenario.resource(each.uid), "push_constants_size", 0)
            found += check_size(each.uid, each.interface, size, each.pointer)
        slots, findings = slots_of([(each.uid, each.interface) for each in loaded], pointer)
        found += findings
        names = " and ".join(repr(each.uid) for each in loaded)
        found += check_bindings(slots, f"the shaders {names} do", command.bindings, bound, pointer)
        vertex, fragment = stages[command.vertex_shader_ref], stages[command.fragment_shader_ref]
        findings, needs = check_stages(vertex, fragment, pointer)
        found += findings
        attachments = [
            _attachment(scenario, target.resource_ref, target.lod) for target in command.color_attachment_refs
        ]
        images = [
            (binding.resource_ref, binding.lod)
            for binding in command.bindings
            if (slot := slots.get((binding.set, binding.id))) is not None and slot.used
        ]
        found += check_attachments(attachments, fragment, command.render_extent, images, pointer)
        if device is not None:
            found += device.drawing_findings(vertex, fragment, len(attachments), needs, pointer)
    return found, shaders


def _uids(drawings: list[tuple[int, DispatchFragment]]) -> Iterator[str]:
    for _, command in drawings:
        yield from (command.vertex_shader_ref, command.fragment_shader_ref)


def _stage(shader: LoadedShader) -> Stage:
    interface = shader.entry.stage_interface(shader.interface.specialization)
    return Stage(shader.uid, shader.pointer, shader.entry, interface)


def _attachment(scenario: Scenario, uid: str, level: int) -> Attachment | None:
    """What is drawn into, as the scenario declares it; None where something else is wrong with it."""
    image = scenario.resource(uid)
    if not isinstance(image, Image):
        return None
    format = find_format(image.format)
    if format is None or len(image.dims) != 4 or level >= image.mips:
        return None
    width, height = (max(1, size >> level) for size in image.dims[1:3])
    return Attachment(uid, level, format, width, height, image.color_attachment)
