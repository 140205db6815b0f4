"""dispatch_fragment commands: shaders, bindings, attachments, and memory that is both attachment and bound.

The same image used twice is found by `checks.drawings`, an image and a tensor of OPTIMAL tiling by `layouts`.
Source: Vulkan specification, "Render Pass", feedback loops, and "Memory Aliasing".
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from scenario_runner.byte_data import overlap
from scenario_runner.checks.drawings import Attachment, Stage, check_attachments, check_stages, written_components
from scenario_runner.plan.commands import (
    CommandContext,
    CommandResolver,
    content_of_binding,
    declared_by,
    descriptors,
)
from scenario_runner.plan.plan import ResourcePlan, span_of
from scenario_runner.plan.records import DescriptorList, NeededFeature
from scenario_runner.plan.shaders import LoadedShader
from scenario_runner.plan.special_records import Draw, GraphicsPipelinePlan, ImagePlan, ShaderStagePlan, Target
from scenario_runner.scenario import ColorAttachment, DispatchFragment, Image
from scenario_runner.scenario.scenario import Problems


def check_drawn_memory(
    attached: Sequence[str],
    bound: Sequence[str],
    resources: Mapping[str, ResourcePlan],
    pointer: str,
    problems: Problems,
) -> None:
    """Note attachments whose bytes another attachment or a resource that the shaders use has too; all are uids."""
    for index, uid in enumerate(attached):
        image, place = resources[uid], f"{pointer}/color_attachment_refs/{index}"
        if image.group is None:
            continue
        for first, other in enumerate(attached[:index]):
            if _share(image, resources[other]):
                message = (
                    f"image {uid!r} shares memory with attachment {first}, {other!r}: which of the two values stays is"
                    " undefined"
                )
                problems.error("SR-ATTACH-010", place, message, "draw into images with memory of their own")
        for user in dict.fromkeys(bound):
            if _share(image, resources[user]):
                message = (
                    f"image {uid!r} is drawn into while the shaders use {resources[user].kind} {user!r}, which shares"
                    " its memory: what they see there is undefined"
                )
                problems.error("SR-ATTACH-008", place, message, "draw into an image with memory of its own")


def _share(one: ResourcePlan, other: ResourcePlan) -> bool:
    if one.uid == other.uid or one.group != other.group:
        return False
    by_layout = other.kind == "tensor" and not other.linear
    return not by_layout and overlap(span_of(one), span_of(other))


_INDEPENDENT_MASKS = (
    "VkPhysicalDeviceFeatures",
    "independentBlend",
    "a drawing that gives its attachments different components",
)
_DYNAMIC_RENDERING = ("VkPhysicalDeviceVulkan13Features", "dynamicRendering")


class Drawings(CommandResolver):
    """Resolves dispatch_fragment; commands that differ in nothing but their place are looked at once."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._scenario = context.scenario
        self._problems = context.problems
        self._stages: dict[str, Stage] = {}
        self._known: dict[Hashable, Draw | None] = {}
        self._features = context.tables.features

    def resolve(self, command: DispatchFragment, index: int) -> tuple[Draw, ...]:
        pointer = self._scenario.command_pointer(index)
        if not self._known:
            self._features[NeededFeature(*_DYNAMIC_RENDERING, "dispatch_fragment", pointer)] = None
        images = self.context.layouts
        attached = [
            (color_attachment_ref.resource_ref, color_attachment_ref.lod)
            for color_attachment_ref in command.color_attachment_refs
        ]
        if images is not None:
            images.check_bindings(command, index)
            images.check_shader_access(attached, f"{pointer}/color_attachment_refs")
        key = (
            command.vertex_shader_ref,
            command.fragment_shader_ref,
            command.push_data_ref,
            tuple(map(content_of_binding, command.bindings)),
            tuple(attached),
            command.render_extent,
        )
        if key not in self._known:
            self._known[key] = self._plan(command, index, pointer)
        draw = self._known[key]
        self.context.tables.names[index] = (command.debug_name or command.fragment_shader_ref,)
        return () if draw is None else (draw._replace(barrier_after=command.implicit_barrier, command=index),)

    def _plan(self, command: DispatchFragment, index: int, pointer: str) -> Draw | None:
        """A draw unlike any before; None where something is wrong with it."""
        problems, tables = self._problems, self.context.tables
        resources, push_constants = tables.resources, self.context.push_constants
        pair = (command.vertex_shader_ref, command.fragment_shader_ref)
        loaded = tuple(self.context.shaders[uid] for uid in pair if uid in self.context.shaders)
        attachments = tuple(self._attachment(target) for target in command.color_attachment_refs)
        if len(loaded) < len(pair):  # reported where the shader is
            return None
        pushed = push_constants.of(command, loaded, pointer)
        declared = declared_by(loaded, pointer, problems)
        bound = descriptors(declared, command.bindings, resources, pointer, problems, self.context.readonly)
        vertex, fragment = (self._stage(stage) for stage in loaded)
        findings, needs = check_stages(vertex, fragment, pointer)
        problems.report(findings)
        for need in needs:
            self._features[NeededFeature(*need, pointer)] = None
        images = [(descriptor.uid, descriptor.level) for descriptor in bound if descriptor.kind != "sampler"]
        problems.report(check_attachments(attachments, fragment, command.render_extent, images, pointer))
        known = [attachment for attachment in attachments if attachment is not None]
        attached = [attachment.uid for attachment in known]
        check_drawn_memory(attached, [descriptor.uid for descriptor in bound], resources, pointer, problems)
        if declared.layouts is None or len(known) < len(attachments):
            return None
        fitted = self.context.fitted
        if fitted is not None:
            loaded = tuple(fitted.of(stage, command.bindings, pointer, problems) for stage in loaded)
        written = written_components(fragment.interface)
        masks = tuple(sum(1 << component for component in written.get(index, ())) for index in range(len(known)))
        if len(set(masks)) > 1:
            self._features[NeededFeature(*_INDEPENDENT_MASKS, pointer)] = None
        pipeline = GraphicsPipelinePlan(
            _stage_plan(loaded[0], vertex),
            _stage_plan(loaded[1], fragment),
            declared.layouts,
            max(shader.range_size for shader in loaded),
            tuple(attachment.format.value for attachment in known),
            masks,
            pointer,
        )
        descriptor_list = DescriptorList(declared.layouts, bound)
        extent = command.render_extent or (known[0].width, known[0].height)
        return Draw(
            pipeline=tables.graphics_pipelines.add(pipeline, pipeline.content),
            descriptors=tables.lists.add(descriptor_list, descriptor_list),
            targets=tuple(Target(attachment.uid, attachment.level) for attachment in known),
            extent=(extent[0], extent[1]),
            push_constants=pushed,
            barrier_after=command.implicit_barrier,
            command=index,
        )

    def _stage(self, shader: LoadedShader) -> Stage:
        stage = self._stages.get(shader.uid)
        if stage is None:
            interface = shader.entry.stage_interface(shader.interface.declarations.specialization)
            stage = self._stages[shader.uid] = Stage(shader.uid, shader.pointer, shader.entry, interface)
        return stage

    def _attachment(self, target: ColorAttachment) -> Attachment | None:
        """The mip level that is drawn into; None where something else is wrong with the image."""
        plan = self.context.tables.resources.get(target.resource_ref)
        declared = self._scenario.resource(target.resource_ref)
        if not isinstance(plan, ImagePlan) or not isinstance(declared, Image) or target.lod >= plan.mips:
            return None
        width, height = (max(1, size >> target.lod) for size in (plan.width, plan.height))
        return Attachment(plan.uid, target.lod, plan.format, width, height, declared.color_attachment)


def _stage_plan(shader: LoadedShader, stage: Stage) -> ShaderStagePlan:
    def locations(variables: Any) -> int:
        return max((variable.location + variable.locations for variable in variables), default=0)

    return ShaderStagePlan(
        code=shader.code,
        entry=shader.entry.name,
        specialization=shader.specialization,
        label=shader.uid,
        pointer=shader.pointer,
        inputs=locations(stage.interface.inputs),
        outputs=locations(stage.interface.outputs),
    )
