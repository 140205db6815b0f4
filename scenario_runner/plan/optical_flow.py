"""dispatch_optical_flow commands: their images, checked, and the pipelines that they need."""

from __future__ import annotations

from typing import Final, get_args

from scenario_runner.checks.optical_flow import (
    FLAGS_OF_FOLLOWING,
    OUTPUTS,
    FlowImage,
    check_first_flags,
    check_flow,
    check_flow_access,
    descriptor_kind,
)
from scenario_runner.plan.context import CommandContext, CommandResolver, Tables
from scenario_runner.plan.model.commands import Connection, FlowConnection, OpticalFlowDispatch, OpticalFlowPlan
from scenario_runner.plan.model.records import Descriptor, DescriptorKind, DescriptorList, LayoutBinding, NeededFeature
from scenario_runner.plan.model.resources import ImagePlan, ImageUsage
from scenario_runner.plan.problems import Problems
from scenario_runner.scenario import Binding, DispatchOpticalFlow

# A vector of the flow belongs to a texel of the input and points into the reference.
CONNECTIONS: Final[dict[str, Connection]] = dict(
    zip(
        ("search_image", "template_image", "hint_motion_vectors", "output_image", "output_cost"),
        get_args(Connection),
        strict=True,
    )
)
"""The name of a binding → what it is connected to."""
# The emulation layers sample what they read, whatever the type of the descriptor.
_USAGE: Final[dict[Connection, tuple[ImageUsage, ...]]] = {
    "input": ("flow_input", "sampled"),
    "reference": ("flow_input", "sampled"),
    "hint": ("flow_hint", "sampled"),
    "flow_vector": ("flow_output",),
    "cost": ("flow_cost",),
}


class OpticalFlows(CommandResolver):
    """Resolves dispatch_optical_flow; dispatches of equal content share a pipeline and its session."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._started: set[int] = set()
        self._usage: dict[str, set[ImageUsage]] = {}

    def resolve(self, command: DispatchOpticalFlow, index: int) -> tuple[OpticalFlowDispatch, ...]:
        found = self._dispatch(command, index)
        if found is None:
            return ()
        for name, binding in command.bindings.given().items():
            self._usage.setdefault(binding.resource_ref, set()).update(_USAGE[CONNECTIONS[name]])
        if found.pipeline not in self._started:
            self._started.add(found.pipeline)
            self.context.problems.report(check_first_flags(found.flags, self.context.scenario.command_pointer(index)))
            found = found._replace(flags=tuple(flag for flag in found.flags if flag not in FLAGS_OF_FOLLOWING))
        self.context.tables.names[index] = (command.kind,)
        return (found,)

    def finish(self) -> tuple[NeededFeature, ...]:
        """Add what they are used for to the plans of the images."""
        resources = self.context.tables.resources
        for uid, uses in self._usage.items():
            image = resources[uid]
            assert isinstance(image, ImagePlan)
            resources[uid] = image._replace(usage=image.usage | uses)
        return ()

    def _dispatch(self, command: DispatchOpticalFlow, index: int) -> OpticalFlowDispatch | None:
        scenario, tables, problems = self.context.scenario, self.context.tables, self.context.problems
        pointer = scenario.command_pointer(index)
        before = len(problems.errors)
        bindings = command.bindings.given()
        if self.context.layouts is not None:
            seen = [(each.resource_ref, each.lod or 0) for each in bindings.values()]
            self.context.layouts.check_shader_access(seen, f"{pointer}/bindings", list(bindings))
        images = {}
        kinds: dict[str, DescriptorKind] = {}
        for name, binding in bindings.items():
            image = _image(name, binding, pointer, tables, problems)
            kind = descriptor_kind(name, binding.descriptor_type)
            if image is not None and kind is not None:
                images[name], kinds[name] = image, kind
        grid = int(command.grid_size.partition("x")[0])
        problems.report(check_flow(command.width, command.height, grid, images, pointer))
        access = {name: str(getattr(scenario.resource(each.uid), "shader_access", "")) for name, each in images.items()}
        problems.report(check_flow_access(images, access, pointer))
        if len(problems.errors) > before or len(images) < len(bindings):
            return None
        # Sets and ids of the scenario may be any numbers; nothing but the connections refers to them.
        numbered = list(enumerate(name for name in CONNECTIONS if name in images))
        descriptors = tuple(
            Descriptor(0, number, kinds[name], images[name].uid, images[name].level) for number, name in numbered
        )
        connections = tuple(
            FlowConnection(
                0,
                number,
                CONNECTIONS[name],
                images[name].format.value,
                images[name].uid,
                f"{pointer}/bindings/{name}/resource_ref",
            )
            for number, name in numbered
        )
        set_layouts = (tuple(LayoutBinding(each.binding, each.kind) for each in descriptors),)
        size = command.width, command.height
        plan = OpticalFlowPlan(*size, grid, command.performance_level, set_layouts, connections, command.work, pointer)
        wanted = DescriptorList(set_layouts, descriptors)
        return OpticalFlowDispatch(
            tables.graph_pipelines.add(plan, plan.content),
            tables.lists.add(wanted, wanted),
            command.implicit_barrier,
            index,
            command.execution_flags,
            command.mean_flow_l1_norm_hint,
        )


def _image(name: str, binding: Binding, pointer: str, tables: Tables, problems: Problems) -> FlowImage | None:
    """The mip level that a binding means; None where it cannot be bound, which is noted here or with the image."""
    plan = tables.resources.get(binding.resource_ref)
    if not isinstance(plan, ImagePlan):
        return None
    place = f"{pointer}/bindings/{name}"
    if descriptor_kind(name, binding.descriptor_type) is None:
        expected = "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE" if name in OUTPUTS else "the descriptor type of an image"
        message = f"{name} of an optical flow cannot be bound as {binding.descriptor_type}"
        problems.error("SR-FLOW-005", f"{place}/descriptor_type", message, f"leave it out, or use {expected}")
        return None
    level = binding.lod or 0
    if level >= plan.mips:
        return None  # reported with the scenario
    part = next(part for part in plan.parts if part.level == level)
    return FlowImage(plan.uid, level, plan.format, part.width, part.height)
