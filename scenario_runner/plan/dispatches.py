"""dispatch_compute commands: pipelines, descriptors, push constants and workgroup counts."""

from __future__ import annotations

from typing import Any

from scenario_runner.checks.dispatches import check_no_workgroups, check_too_many
from scenario_runner.plan.bindings import SetLayouts, descriptors, extents_of, set_layouts
from scenario_runner.plan.context import CommandResolver, PlanContext
from scenario_runner.plan.model.records import DescriptorList, Dispatch
from scenario_runner.scenario import DispatchCompute


class Dispatches(CommandResolver):
    """Resolves dispatch_compute; equal dispatches share their pipelines, descriptors and push constants."""

    def __init__(self, context: PlanContext) -> None:
        super().__init__(context)
        self._scenario = context.scenario
        self._problems = context.problems
        self._readonly = frozenset(
            resource.uid
            for resource in context.scenario.resources
            if getattr(resource, "shader_access", "") == "readonly"
        )
        self._layouts: dict[str, SetLayouts | None] = {}
        self._prepared: dict[Any, tuple[int, int, bytes] | None] = {}

    def resolve(self, command: DispatchCompute, index: int) -> tuple[Dispatch, ...]:
        key = (
            command.shader_ref,
            command.push_data_ref,
            tuple((each.set, each.id, each.resource_ref, each.lod, each.descriptor_type) for each in command.bindings),
        )
        images = self.context.layouts
        if images is not None:
            images.check_shader_access(
                [(each.resource_ref, each.lod) for each in command.bindings],
                f"{self._scenario.command_pointer(index)}/bindings",
            )
        if key in self._prepared:
            prepared = self._prepared[key]
        else:
            prepared = self._prepared[key] = self._prepare(command, index)
        if prepared is None:
            return ()
        pipeline, descriptor_list, push_constants = prepared
        tables = self.context.tables
        if tables.pipelines[pipeline].label != command.shader_ref:  # another shader has the same content
            tables.names[index] = (command.shader_ref,)
        counts = command.rangeND
        workgroups = (counts[0], counts[1] if len(counts) > 1 else 1, counts[2] if len(counts) > 2 else 1)
        if 0 in workgroups or images is not None:
            self._check_count(command, index, workgroups)
        return (Dispatch(pipeline, descriptor_list, workgroups, push_constants, command.implicit_barrier, index),)

    def _check_count(self, command: DispatchCompute, index: int, workgroups: tuple[int, int, int]) -> None:

        pointer, shader = self._scenario.command_pointer(index), self.context.shaders[command.shader_ref]
        self._problems.report(check_no_workgroups(workgroups, shader.uid, pointer))
        extents = extents_of(command.bindings, self.context.tables.resources)
        size = shader.interface.local_size() or (1, 1, 1)
        self._problems.report(check_too_many(workgroups, size, shader.uid, extents, pointer))

    def _prepare(self, command: DispatchCompute, index: int) -> tuple[int, int, bytes] | None:
        """Pipeline, descriptors and push constants of a dispatch unlike any before; None when something is wrong."""
        shader = self.context.shaders.get(command.shader_ref)
        if shader is None:
            return None
        pointer = self._scenario.command_pointer(index)
        if shader.uid not in self._layouts:
            self._layouts[shader.uid] = set_layouts(shader, self._problems)
        layouts = self._layouts[shader.uid]
        resources = self.context.tables.resources
        found = descriptors(shader, command.bindings, resources, pointer, self._problems, self._readonly)
        push_constants = self.context.push_constants.of(command, (shader,), pointer)
        if layouts is None:
            return None
        if self.context.layouts is not None:
            from scenario_runner.plan.images import fitted_to_images

            shader = fitted_to_images(shader, command.bindings, self.context.tables, pointer, self._problems)
        size: int = getattr(self._scenario.resource(shader.uid), "push_constants_size", 0)
        pipeline = self.context.tables.pipeline(shader, layouts, size)
        descriptor_list = self.context.tables.descriptor_list(DescriptorList(layouts, found))
        return pipeline, descriptor_list, push_constants
