"""dispatch_fragment commands, as far as the scenario and the two shaders tell, whether or not they are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.checks.bindings import Bound, check_bindings, slots_of
from scenario_runner.checks.push_constants import check_size
from scenario_runner.plan.bindings import bound_of
from scenario_runner.plan.shaders import load_shaders
from scenario_runner.scenario import DispatchFragment, Shader

if TYPE_CHECKING:
    from scenario_runner.checks.finding import Finding
    from scenario_runner.plan.model import CompilerOptions
    from scenario_runner.plan.resolve import Examination
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import Scenario


def check_fragments(
    scenario: Scenario, examination: Examination, compiler: CompilerOptions
) -> tuple[list[Finding], dict[str, LoadedShader]]:
    """What is wrong with the drawing commands, and all shaders that could be loaded, those of drawings too.

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
    for index, command in drawings:
        pointer = scenario.command_pointer(index)
        stages = [shaders[uid] for uid in (command.vertex_shader_ref, command.fragment_shader_ref) if uid in shaders]
        if len(stages) < 2:
            continue  # said where the shader is
        for stage in stages:
            size: int = getattr(scenario.resource(stage.uid), "push_constants_size", 0)
            found += check_size(stage.uid, stage.interface, size, stage.pointer)
        slots, findings = slots_of([(stage.uid, stage.interface) for stage in stages], pointer)
        found += findings
        names = " and ".join(repr(stage.uid) for stage in stages)
        found += check_bindings(slots, f"the shaders {names} do", command.bindings, bound, pointer)
    return found, shaders
