"""dispatch_optical_flow: image checks, and the pipelines. An optical flow sees a single mip level in each image.

Source: VK_ARM_data_graph_optical_flow, VkDataGraphPipelineOpticalFlowCreateInfoARM.
"""

from typing import Any, Final, NamedTuple, get_args

from scenario_runner.plan.command_parts import CommandContext, CommandResolver
from scenario_runner.plan.graph_records import Connection, FlowConnection, OpticalFlowDispatch, OpticalFlowPlan
from scenario_runner.plan.image_records import ImagePlan, ImageUsage
from scenario_runner.plan.records import Descriptor, DescriptorKind, DescriptorList, LayoutBinding
from scenario_runner.scenario import Binding, DispatchOpticalFlow

# A flow vector belongs to an input texel and points into the reference.
_CONNECTIONS: Final[dict[str, Connection]] = dict(
    zip(
        ("search_image", "template_image", "hint_motion_vectors", "output_image", "output_cost"),
        get_args(Connection),
        strict=True,
    )
)
"""Binding name → connection."""
_OUTPUTS: Final = ("output_image", "output_cost")
"""The bindings written by an optical flow; it reads all others."""
_FLAGS_OF_FOLLOWING: Final = frozenset(
    {"input_unchanged", "reference_unchanged", "input_is_previous_reference", "reference_is_previous_input"}
)
"""Flags about the previous dispatch's images."""
_KINDS: Final[dict[str, DescriptorKind]] = {
    "VK_DESCRIPTOR_TYPE_AUTO": "sampled_image",
    "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE": "storage_image",
    "VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE": "sampled_image",
    "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER": "combined_image_sampler",
}
"""The ``descriptor_type`` in a scenario → the descriptor through which an optical flow reads."""
# The emulation layers sample every input, whatever the descriptor's type.
_USAGE: Final[dict[Connection, tuple[ImageUsage, ...]]] = {
    "input": ("flow_input", "sampled"),
    "reference": ("flow_input", "sampled"),
    "hint": ("flow_hint", "sampled"),
    "flow_vector": ("flow_output",),
    "cost": ("flow_cost",),
}


class _Image(NamedTuple):
    """A mip level for an optical flow to read or write; ``place`` is the binding's pointer."""

    plan: ImagePlan
    level: int
    kind: DescriptorKind
    place: str

    @property
    def label(self) -> str:
        """The name in messages."""
        return self.plan.level_name(self.level)


class OpticalFlowResolver(CommandResolver):
    """Resolves dispatch_optical_flow. Dispatches with equal content share a pipeline and a session."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._problems = context.problems
        self._started: set[int] = set()

    def resolve(self, command: DispatchOpticalFlow, index: int) -> tuple[OpticalFlowDispatch, ...]:
        tables, before = self.context.tables, len(self._problems.errors)
        pointer, bindings = self.context.scenario.command_pointer(index), command.bindings.given()
        images: dict[str, _Image] = {}
        for name, binding in bindings.items():
            place = f"{pointer}/bindings/{name}"
            if self.context.layouts is not None:
                self.context.layouts.check_shader_access(binding.resource_ref, binding.lod or 0, place)
            image = self._image(name, binding, place)
            if image is not None:
                images[name] = image
        grid = int(command.grid_size.partition("x")[0])
        self._check_sizes(images, command.width, command.height, grid)
        for first_name, second_name in (("search_image", "template_image"), ("output_image", "hint_motion_vectors")):
            self._check_formats(images, first_name, second_name)
        self._check_access(images)
        if len(self._problems.errors) > before or len(images) < len(bindings):
            return ()
        # Only the connections matter: sets and ids in the scenario may be any numbers.
        numbered = [(number, images[name], name) for number, name in enumerate(filter(images.get, _CONNECTIONS))]
        descriptors = tuple(
            Descriptor(0, number, image.kind, image.plan.uid, image.level, "flow_input" in _USAGE[_CONNECTIONS[name]])
            for number, image, name in numbered
        )
        connections = tuple(
            FlowConnection(0, number, _CONNECTIONS[name], image.plan.format.value, image.plan.uid, image.place)
            for number, image, name in numbered
        )
        set_layouts = (tuple(LayoutBinding(descriptor.binding, descriptor.kind) for descriptor in descriptors),)
        size = command.width, command.height
        name = "the optical flow"
        plan = OpticalFlowPlan(*size, grid, command.performance_level, set_layouts, connections, name, pointer)
        pipeline = tables.graph_pipelines.add(plan)
        for name, image in images.items():
            latest: Any = tables.resources[image.plan.uid]
            tables.resources[image.plan.uid] = latest._replace(usage=latest.usage.union(_USAGE[_CONNECTIONS[name]]))
        flags: tuple[str, ...] = tuple(command.execution_flags)
        if pipeline not in self._started:
            self._started.add(pipeline)
            flags = self._first_flags(flags, pointer)
        tables.names[index] = (command.kind,)
        lists, hint = tables.lists.add(DescriptorList(set_layouts, descriptors)), command.mean_flow_l1_norm_hint
        return (OpticalFlowDispatch(pipeline, lists, command.implicit_barrier, index, flags, hint),)

    def _image(self, name: str, binding: Binding, place: str) -> _Image | None:
        """Return a binding's mip level; None for an unsuitable image."""
        plan = self.context.tables.resources.get(binding.resource_ref)
        if not isinstance(plan, ImagePlan):
            return None
        kind = _KINDS.get(binding.descriptor_type)
        if name in _OUTPUTS:
            is_auto = binding.descriptor_type == "VK_DESCRIPTOR_TYPE_AUTO"
            kind = "storage_image" if is_auto or kind == "storage_image" else None
        if kind is None:
            expected = "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE" if name in _OUTPUTS else "the descriptor type of an image"
            message = f"{name} of an optical flow cannot be bound as {binding.descriptor_type}"
            self._problems.error("SR-FLOW-005", f"{place}/descriptor_type", message, f"leave it out, or use {expected}")
            return None
        level = binding.lod or 0
        if level >= plan.mips:
            return None  # reading the scenario has reported the level
        return _Image(plan, level, kind, f"{place}/resource_ref")

    def _check_sizes(self, images: dict[str, _Image], width: int, height: int, grid: int) -> None:
        """Compare image sizes with the optical flow's size and grid."""
        vectors = -(-width // grid), -(-height // grid)
        for name, image in images.items():
            part = image.plan.part_of(image.level)
            texels = f"{image.label} has {part.width} x {part.height} texels"
            if name in ("search_image", "template_image"):
                if (part.width, part.height) != (width, height):
                    message = f"{texels}; the optical flow has {width} x {height} texels"
                    help = "give the command the width and height of search_image and template_image"
                    self._problems.error("SR-FLOW-001", image.place, message, help)
            elif (part.width, part.height) != vectors:
                flow = f"an optical flow of {width} x {height} texels with the grid size {grid}x{grid}"
                message = f"{texels}; {flow} has {vectors[0]} x {vectors[1]} vectors"
                self._problems.error("SR-FLOW-002", image.place, message, "the image has one texel for each vector")

    def _check_formats(self, images: dict[str, _Image], first_name: str, second_name: str) -> None:
        """Note an error if two images must share a format but differ."""
        first, second = images.get(first_name), images.get(second_name)
        if first is None or second is None or first.plan.format is second.plan.format:
            return
        message = f"{second.label} is {second.plan.format.name}, and {first.label} is {first.plan.format.name}"
        help = f"give {first_name} and {second_name} the same format"
        self._problems.error("SR-FLOW-003", second.place, message, help)

    def _check_access(self, images: dict[str, _Image]) -> None:
        """Note images also written through another binding, and warn of a wrong ``shader_access``."""
        seen: dict[tuple[str, int], str] = {}
        for name, image in sorted(images.items(), key=lambda item: item[0] in _OUTPUTS):
            uid = image.plan.uid
            other = seen.setdefault((uid, image.level), name)
            if other != name and name in _OUTPUTS:
                message = f"{image.label} is bound as {other}, and the optical flow also writes it as {name}"
                self._problems.error("SR-FLOW-004", image.place, message, f"bind another image as {name}")
            access = getattr(self.context.scenario.resource(uid), "shader_access", "")
            code, does, wrong, right = "SR-ACCESS-002", "reads", "writeonly", "readonly"
            if name in _OUTPUTS:
                code, does, wrong, right = "SR-ACCESS-001", "writes", "readonly", "writeonly"
            if access == wrong:
                message = f"the optical flow {does} image {uid!r}, but its shader_access is {wrong!r}"
                self._problems.warn(code, image.place, message, f"give {uid!r} the shader_access {right!r}")

    def _first_flags(self, flags: tuple[str, ...], pointer: str) -> tuple[str, ...]:
        """Drop and warn of flags about a previous optical flow. A session's first optical flow has none."""
        for index, flag in enumerate(flags):
            if flag in _FLAGS_OF_FOLLOWING:
                message = f"the flag {flag!r} is ignored: the session has no previous optical flow"
                help = "optical flows of equal size, grid size, performance level and formats share a session"
                place = f"{pointer}/execution_flags/{index}"
                self._problems.warn("SR-FLOW-006", place, message, help)
        return tuple(flag for flag in flags if flag not in _FLAGS_OF_FOLLOWING)
