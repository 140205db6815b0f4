"""dispatch_compute commands: pipelines, descriptors, push constants and workgroup counts."""

from __future__ import annotations

from typing import Any

from scenario_runner.checks.dispatches import Extent, check_no_workgroups, check_too_many
from scenario_runner.plan.bindings import Declared, binding_key, declared_by, descriptors
from scenario_runner.plan.context import CommandContext, CommandResolver
from scenario_runner.plan.model.records import DescriptorList, Dispatch
from scenario_runner.scenario import DispatchCompute


class Dispatches(CommandResolver):
    """Resolves dispatch_compute; equal dispatches share their pipelines, descriptors and push constants."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._declared: dict[str, Declared] = {}
        self._known: dict[Any, Dispatch | None] = {}

    def resolve(self, command: DispatchCompute, index: int) -> tuple[Dispatch, ...]:
        tables, images = self.context.tables, self.context.layouts
        if images is not None:
            images.check_bindings(command, index)
        key = (command.shader_ref, command.push_data_ref, binding_key(command.bindings))
        if key not in self._known:
            self._known[key] = self._dispatch(command, index)
        known = self._known[key]
        if known is None:
            return ()
        if tables.pipelines[known.pipeline].label != command.shader_ref:  # another shader has the same content
            tables.names[index] = (command.shader_ref,)
        x, y, z = (*command.rangeND, 1, 1)[:3]
        if not (x and y and z) or images is not None:
            self._check_count(command, index, (x, y, z))
        return (known._replace(workgroup_count=(x, y, z), barrier_after=command.implicit_barrier, command=index),)

    def _check_count(self, command: DispatchCompute, index: int, workgroups: tuple[int, int, int]) -> None:
        context, shader = self.context, self.context.shaders[command.shader_ref]
        pointer = context.scenario.command_pointer(index)
        context.problems.report(check_no_workgroups(workgroups, shader.uid, pointer))
        bound = [(context.tables.resources.get(each.resource_ref), each.lod) for each in command.bindings]
        extents = [Extent(plan.uid, plan.kind, plan.extent(lod)) for plan, lod in bound if plan is not None]
        size = shader.interface.local_size() or (1, 1, 1)
        context.problems.report(check_too_many(workgroups, size, shader.uid, extents, pointer))

    def _dispatch(self, command: DispatchCompute, index: int) -> Dispatch | None:
        """A dispatch unlike any before; None where something is wrong with it."""
        scenario, problems, tables, shaders = self.context[:4]
        shader = shaders.get(command.shader_ref)
        if shader is None:
            return None
        pointer = scenario.command_pointer(index)
        declared = self._declared.get(shader.uid)
        if declared is None:
            declared = self._declared[shader.uid] = declared_by([shader], shader.pointer, problems)
        bindings, readonly = command.bindings, self.context.readonly
        found = descriptors(declared, bindings, tables.resources, pointer, problems, readonly)
        push_constants = self.context.push_constants.of(command, [shader], pointer)
        if declared.layouts is None:
            return None
        if self.context.layouts is not None:
            from scenario_runner.plan.images import fitted_to_images

            shader = fitted_to_images(shader, bindings, tables, pointer, problems)
        pipeline = shader.pipeline(declared.layouts, shader.push_constants_size)
        wanted = DescriptorList(declared.layouts, found)
        return Dispatch(
            pipeline=tables.pipelines.add(pipeline, pipeline.content),
            descriptors=tables.lists.add(wanted, wanted),
            workgroup_count=(1, 1, 1),
            push_constants=push_constants,
            barrier_after=command.implicit_barrier,
            command=index,
        )
