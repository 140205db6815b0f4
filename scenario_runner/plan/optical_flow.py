"""dispatch_optical_flow commands: their images, checked, and the pipelines that they need.

Source: VK_ARM_data_graph_optical_flow, VkDataGraphPipelineOpticalFlowCreateInfoARM. The images of every connection are
seen as one mip level each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.formats import Format
from scenario_runner.plan.context import CommandContext, CommandResolver, Tables
from scenario_runner.plan.model.commands import Connection, FlowConnection, OpticalFlowDispatch, OpticalFlowPlan
from scenario_runner.plan.model.records import Descriptor, DescriptorKind, DescriptorList, LayoutBinding, NeededFeature
from scenario_runner.plan.model.resources import ImagePlan, ImageUsage
from scenario_runner.plan.problems import Problems
from scenario_runner.scenario import Binding, DispatchOpticalFlow

OUTPUTS: Final = ("output_image", "output_cost")
"""The bindings that an optical flow writes; it reads the others."""
FLAGS_OF_FOLLOWING: Final = frozenset(
    {"input_unchanged", "reference_unchanged", "input_is_previous_reference", "reference_is_previous_input"}
)
"""The flags that tell what the images have in common with those of the previous dispatch."""
_Kind = Literal["storage_image", "sampled_image", "combined_image_sampler"]
_IMAGE_TYPES: Final[dict[str, _Kind]] = {
    "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE": "storage_image",
    "VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE": "sampled_image",
    "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER": "combined_image_sampler",
}


class FlowImage(NamedTuple):
    """A mip level that an optical flow reads or writes: ``width`` times ``height`` texels."""

    uid: str
    level: int
    format: Format
    width: int
    height: int

    @property
    def called(self) -> str:
        """What messages call it."""
        return f"image {self.uid!r}" + (f", mip level {self.level}," if self.level else "")

    @property
    def extent(self) -> str:
        """Its size in words."""
        return f"{self.width} x {self.height} texels"


def check_flow(
    width: int, height: int, grid: int, images: Mapping[str, FlowImage], pointer: str
) -> Iterator[Diagnostic]:
    """What is wrong with the ``images`` of an optical flow by the names of its bindings; unknown ones are left out."""
    for name in ("search_image", "template_image"):
        image = images.get(name)
        if image is not None and (image.width, image.height) != (width, height):
            message = f"{image.called} has {image.extent}; the optical flow has {width} x {height} texels"
            yield error(
                "SR-FLOW-001", _binding_place(pointer, name), message, "width and height are those of the two images"
            )
    vectors = -(-width // grid), -(-height // grid)
    for name in ("output_image", "hint_motion_vectors", "output_cost"):
        image = images.get(name)
        if image is not None and (image.width, image.height) != vectors:
            message = (
                f"{image.called} has {image.extent}; an optical flow of {width} x {height} texels with the grid size"
                f" {grid}x{grid} has {vectors[0]} x {vectors[1]} vectors"
            )
            yield error(
                "SR-FLOW-002", _binding_place(pointer, name), message, "the image has one texel for each vector"
            )
    yield from _check_formats("search_image", "template_image", images, pointer)
    yield from _check_formats("output_image", "hint_motion_vectors", images, pointer)
    yield from _check_written(images, pointer)


def _check_formats(one: str, other: str, images: Mapping[str, FlowImage], pointer: str) -> Iterator[Diagnostic]:
    """The two images of the motion have one format, and so have vectors and hints."""
    first, second = images.get(one), images.get(other)
    if first is None or second is None or first.format is second.format:
        return
    message = f"{second.called} is {second.format.name}, and {first.called} is {first.format.name}"
    yield error("SR-FLOW-003", _binding_place(pointer, other), message, f"{one} and {other} have one format")


def _check_written(images: Mapping[str, FlowImage], pointer: str) -> Iterator[Diagnostic]:
    """What is written must not be read or written by the same command through another binding."""
    seen: dict[tuple[str, int], str] = {}
    for name, image in sorted(images.items(), key=lambda each: each[0] in OUTPUTS):
        other = seen.setdefault((image.uid, image.level), name)
        if other != name and name in OUTPUTS:
            message = f"{image.called} is written as {name}, and is {other} as well"
            yield error("SR-FLOW-004", _binding_place(pointer, name), message, "bind another image")


def check_flow_access(images: Mapping[str, FlowImage], access: Mapping[str, str], pointer: str) -> Iterator[Diagnostic]:
    """Warnings about what an optical flow does with images against their ``shader_access``, by names of bindings."""
    for name, image in images.items():
        place = _binding_place(pointer, name)
        if name in OUTPUTS and access[name] == "readonly":
            message = f"the optical flow writes image {image.uid!r}, but its shader_access is 'readonly'"
            yield warning("SR-ACCESS-001", place, message, f"give {image.uid!r} the shader_access 'writeonly'")
        elif name not in OUTPUTS and access[name] == "writeonly":
            message = f"the optical flow reads image {image.uid!r}, but its shader_access is 'writeonly'"
            yield warning("SR-ACCESS-002", place, message, f"give {image.uid!r} the shader_access 'readonly'")


def check_first_flags(flags: Sequence[str], pointer: str) -> Iterator[Diagnostic]:
    """Warnings about flags of the first optical flow of a session: it has no previous one to compare with."""
    for index, flag in enumerate(flags):
        if flag in FLAGS_OF_FOLLOWING:
            yield warning(
                "SR-FLOW-006",
                f"{pointer}/execution_flags/{index}",
                f"the flag {flag!r} is about the previous optical flow of the session, and this one is the first;"
                " it is ignored",
                "optical flows of equal size, grid size, performance level and formats share a session",
            )


def descriptor_kind(name: str, wanted: str) -> _Kind | None:
    """The kind of descriptor for a binding with the ``descriptor_type`` that the scenario asks for; None where an
    optical flow cannot have it."""
    if wanted == "VK_DESCRIPTOR_TYPE_AUTO":
        return "storage_image" if name in OUTPUTS else "sampled_image"
    kind = _IMAGE_TYPES.get(wanted)
    return None if name in OUTPUTS and kind != "storage_image" else kind


def _binding_place(pointer: str, name: str) -> str:
    return f"{pointer}/bindings/{name}/resource_ref"


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
