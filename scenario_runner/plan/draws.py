"""dispatch_fragment: checks for shaders and attachments, and the graphics pipeline.

`image_layouts` finds draws into an OPTIMAL image sharing memory with a tensor.

Source: Vulkan specification, "Shader Interfaces", section "Fragment Output Interface"; "Render Pass", feedback loops;
"Memory Aliasing". The extents follow the JSON Test Description Specification.
"""

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

from scenario_runner.checks.bindings import KIND_WORDS, TEXEL_KINDS
from scenario_runner.checks.entry_points import Stage, check_stages, writes_point_size
from scenario_runner.plan.command_parts import BindingPlanner, CommandContext, CommandResolver, declared_by
from scenario_runner.plan.image_records import DepthTest, Draw, GraphicsPipelinePlan, ImagePlan, ShaderStagePlan, Target
from scenario_runner.plan.plan import ResourcePlan, span_of
from scenario_runner.plan.records import Descriptor, DescriptorList, overlap
from scenario_runner.plan.shader_modules import LoadedShader
from scenario_runner.plan.vertex_input import VertexInputPlanner
from scenario_runner.scenario import ColorAttachment, DispatchFragment, Image
from scenario_runner.scenario.drawing import (
    COMPARE_OPS,
    POLYGON_MODES,
    TOPOLOGIES,
    DepthAttachment,
    DepthBias,
    Viewport,
)
from scenario_runner.shaders.spirv.stage_interface import StageVariable

_CORE: Final = "VkPhysicalDeviceFeatures"
_VULKAN_1_3: Final = "VkPhysicalDeviceVulkan13Features"
_DIFFERENT_MASKS: Final = "a drawing that gives its attachments different components"
_CHANNELS: Final = "RGBA"

_content_of = attrgetter(*DispatchFragment.model_fields.keys() - {"debug_name", "implicit_barrier"})
"""Returns the fields that decide a draw."""


class Attachment(NamedTuple):
    """A mip level to draw into, at ``place`` in the scenario. ``declared`` is the image's color_attachment."""

    image: ImagePlan
    level: int
    declared: bool
    place: str

    @property
    def is_depth(self) -> bool:
        return self.place.endswith("/depth_attachment")

    @property
    def role(self) -> str:
        """The attachment's part in the draw, for messages."""
        return "the depth attachment" if self.is_depth else f"attachment {self.place.rpartition('/')[2]}"

    @property
    def label(self) -> str:
        """The name in messages."""
        return self.image.level_name(self.level)

    @property
    def size(self) -> tuple[int, int]:
        part = self.image.part_of(self.level)
        return part.width, part.height


class DrawResolver(CommandResolver):
    """Resolves dispatch_fragment, once for all commands with equal content."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._known: dict[Hashable, Draw | None] = {}

    def resolve(self, command: DispatchFragment, index: int) -> tuple[Draw, ...]:
        context = self.context
        pointer = context.scenario.command_pointer(index)
        if not self._known:
            context.tables.need(_VULKAN_1_3, "dynamicRendering", "dispatch_fragment", pointer)
        if context.layouts is not None:
            context.layouts.check_bindings(command, index)
            for place, target in command.attachments().items():
                context.layouts.check_shader_access(target.resource_ref, target.lod, f"{pointer}/{place}")
        key = _content_of(command)
        if key not in self._known:
            self._known[key] = _DrawPlanner(context, command, index, pointer).plan()
        draw = self._known[key]
        context.tables.names[index] = (command.debug_name or command.fragment_shader_ref,)
        return () if draw is None else (draw._replace(barrier_after=command.implicit_barrier, command=index),)


class _DrawPlanner:
    """Plans the first command with this content, and notes errors."""

    def __init__(self, context: CommandContext, command: DispatchFragment, index: int, pointer: str) -> None:
        self._context = context
        self._command = command
        self._index = index
        self._pointer = pointer
        self._error = context.problems.error
        self._warn = context.problems.warn

    def plan(self) -> Draw | None:
        """Return the draw; None after an error."""
        context, command, pointer = self._context, self._command, self._pointer
        problems, tables, loaded = context.problems, context.tables, context.shaders
        attachments = [self._attachment(*attachment) for attachment in command.attachments().items()]
        if not {command.vertex_shader_ref, command.fragment_shader_ref} <= loaded.keys():
            return None  # loading the shader has reported an error
        shaders = [loaded[command.vertex_shader_ref], loaded[command.fragment_shader_ref]]
        pushed = context.push_constants.bytes_for(shaders, command.push_data_ref, pointer, f"{pointer}/push_data_ref")
        declared = declared_by(shaders, pointer, problems)
        planner = BindingPlanner(declared, tables.resources, pointer, problems, context.readonly)
        bound = planner.plan(command.bindings)
        vertex, fragment = _stage(shaders[0]), _stage(shaders[1])
        self._check_stages(vertex, fragment)
        known = [attachment for attachment in attachments if attachment is not None]
        self._check_images(known, bound)
        written = _written(fragment)
        count = len(command.color_attachment_refs)
        if not fragment.interface.problems:
            self._check_outputs(attachments[:count], fragment, written)
        self._check_memory(known, bound)
        vertex_input = VertexInputPlanner(context, command, pointer).plan(vertex.label, vertex.interface.inputs)
        if declared.layouts is None or len(known) < len(attachments) or vertex_input is None:
            return None
        if context.image_uses is not None:
            fit = partial(context.image_uses.fit_shader, bindings=command.bindings, pointer=pointer, problems=problems)
            shaders = [fit(shader) for shader in shaders]
        masks = tuple(sum(1 << component for component in written.get(index, ())) for index in range(count))
        if len(set(masks)) > 1:
            self._need(_CORE, "independentBlend", _DIFFERENT_MASKS)
        attributes, vertices = vertex_input
        layouts = declared.layouts_for(bound, tables, pointer)
        pipeline = GraphicsPipelinePlan(
            _stage_plan(shaders[0], vertex),
            _stage_plan(shaders[1], fragment),
            layouts,
            max(max(shader.push_constants_size, shader.block_size) for shader in shaders),
            tuple(attachment.image.format.value for attachment in known if not attachment.is_depth),
            masks,
            *self._fixed_functions(known),
            attributes,
            pointer,
        )
        indices = tables.graphics_pipelines.add(pipeline), tables.lists.add(DescriptorList(layouts, bound))
        targets = tuple(Target(each.image.uid, each.level, each.is_depth) for each in known)
        extent = command.render_extent or known[0].size
        size = extent[0], extent[1]
        return Draw(*indices, targets, size, self._viewport(*size), vertices, pushed or b"", True, self._index)

    def _fixed_functions(self, attachments: Sequence[Attachment]) -> tuple[int, int, DepthTest | None]:
        """Return topology, polygon mode and depth test, and note the features for them."""
        command, depth = self._command, None
        if command.polygon_mode != "FILL":
            self._need(_CORE, "fillModeNonSolid", f"the polygon_mode {command.polygon_mode}")
        if command.depth_attachment is not None:
            depth = self._depth_test(command.depth_attachment, attachments[-1])
        return TOPOLOGIES.index(command.topology), POLYGON_MODES.index(command.polygon_mode), depth

    def _check_stages(self, vertex: Stage, fragment: Stage) -> None:
        """Check the shaders against each other, and note the features that they need together."""
        findings, needs = check_stages(vertex, fragment, self._pointer)
        self._context.problems.report(findings)
        for need in needs:
            self._need(*need)
        if self._command.topology == "POINT_LIST" and not findings and not writes_point_size(vertex):
            message = f"{vertex.label} draws points and never writes their size (gl_PointSize), which is then undefined"
            self._warn("SR-STAGE-008", vertex.pointer, message, "write gl_PointSize = 1.0; in the vertex shader")

    def _need(self, structure: str, member: str, what: str) -> None:
        self._context.tables.need(structure, member, what, self._pointer)

    def _depth_test(self, test: DepthAttachment, depth: Attachment) -> DepthTest:
        """Return the depth test of the pipeline, and note the features for it."""
        bias = test.bias or DepthBias()
        if test.clamp:
            self._need(_CORE, "depthClamp", "clamp of a depth_attachment")
        if bias.clamp:
            self._need(_CORE, "depthBiasClamp", "clamp of a depth bias")
        compare_op = COMPARE_OPS.index(test.compare_op)
        factors = bias.constant, bias.clamp, bias.slope
        return DepthTest(depth.image.format.value, compare_op, test.write, factors, test.clamp)

    def _viewport(self, width: int, height: int) -> tuple[float, float, float, float, float, float]:
        """Return the VkViewport for an extent."""
        viewport = self._command.viewport or Viewport()
        shown = viewport.width or width, height if viewport.height is None else viewport.height
        return viewport.x, viewport.y, *shown, viewport.min_depth, viewport.max_depth

    def _attachment(self, place: str, target: ColorAttachment | DepthAttachment) -> Attachment | None:
        """Return the mip level to draw into; None for an image with errors."""
        image = self._context.tables.resources.get(target.resource_ref)
        declared = self._context.scenario.resource(target.resource_ref)
        if not isinstance(image, ImagePlan) or not isinstance(declared, Image) or target.lod >= image.mips:
            return None
        return Attachment(image, target.lod, declared.color_attachment, f"{self._pointer}/{place}")

    def _check_images(self, attachments: Iterable[Attachment], bound: Sequence[Descriptor]) -> None:
        """Check each attachment, and the attachments against each other and against bound resources."""
        extent, whose = self._command.render_extent, "the render_extent"
        first: dict[tuple[str, int], Attachment] = {}
        for attachment in attachments:
            image, level, name, place = attachment.image, attachment.level, attachment.label, attachment.place
            self._check_aspect(attachment)
            width, height = attachment.size
            if extent is None:
                extent, whose = attachment.size, f"{attachment.role}, {image.uid!r},"
            elif tuple(extent) != (width, height):
                message = f"{name} has {width} x {height} texels, {whose} has {extent[0]} x {extent[1]}"
                self._error("SR-ATTACH-007", place, message, "give all attachments of a drawing one size")
            other = first.setdefault((image.uid, level), attachment)
            if other is not attachment:
                message = f"{name} is {other.role} already: the result of both writes is undefined"
                self._error("SR-ATTACH-010", place, message, "give each output an image or a mip level of its own")
            seen = [use.level for use in bound if use.uid == image.uid and use.kind != "sampler"]
            if None in seen or level in seen:
                message = f"{name} is drawn into while the shaders bind it: the texels that they read are undefined"
                help = "draw into another image, or bind another mip level with lod"
                self._error("SR-ATTACH-008", place, message, help)

    def _check_aspect(self, attachment: Attachment) -> None:
        """Check that an image's format and memory suit an attachment."""
        image, name, place = attachment.image, attachment.label, attachment.place
        format = image.format
        if attachment.is_depth:
            if "depth" not in format.aspects:
                message = f"{name} has the format {format.name}, which has no depth"
                self._error("SR-ATTACH-006", place, message, "use a depth format such as VK_FORMAT_D32_SFLOAT")
            if image.group is not None:
                message = f"{name} is a depth attachment, which cannot be in a memory group ({image.group!r})"
                self._error("SR-ATTACH-011", place, message, "take the image out of the group")
            return
        if not attachment.declared:
            message = f"{name} is drawn into, and its color_attachment is false"
            self._warn("SR-ATTACH-005", place, message, "set color_attachment of the image to true")
        if format.is_compressed or "color" not in format.aspects:
            message = f"{name} has the format {format.name}, which cannot be drawn into as a colour"
            self._error("SR-ATTACH-006", place, message)

    def _check_outputs(
        self,
        attachments: Sequence[Attachment | None],
        fragment: Stage,
        written: dict[int, dict[int, StageVariable]],
    ) -> None:
        """Check the fragment shader's outputs against the attachments."""
        for output in fragment.interface.outputs:
            what = f"output {output.name!r} of {fragment.label}"
            lost = [location for location, _ in output.words() if location >= len(attachments)]
            if output.index:
                message = f"{what} is the second input of a blend, and a drawing of a scenario does not blend"
                self._warn("SR-ATTACH-001", self._pointer, message)
            elif lost:
                message = f"{what} goes to the attachment {lost[0]}; the drawing has {len(attachments) or 'none'}"
                help = "add an image to color_attachment_refs, or drop the output"
                self._warn("SR-ATTACH-001", self._pointer, f"{message}, so it is lost", help)
        for index, attachment in enumerate(attachments):
            place = f"{self._pointer}/color_attachment_refs/{index}"
            outputs = written.get(index, {})
            if not outputs:
                message = f"{fragment.label} has no output at location {index}: the image stays as it is"
                self._warn("SR-ATTACH-002", place, message, f"declare: layout(location = {index}) out vec4 color;")
            elif attachment is not None:
                self._check_values(attachment.image, outputs, fragment.label, place)

    def _check_values(self, image: ImagePlan, outputs: dict[int, StageVariable], shader: str, place: str) -> None:
        """Compare the components in shader outputs with an attachment's format."""
        format, variables = image.format, dict.fromkeys(outputs.values())
        expected_class = TEXEL_KINDS.get(format.numeric, "float")
        for output in variables:
            if output.scalar.kind != expected_class or output.scalar.width_bits > 32:
                what = f"output {output.name!r} of {shader} gives {output.scalar}"
                takes = f"takes {KIND_WORDS[expected_class]} of 32 bits"
                message = f"{what}; image {image.uid!r} of {format.name} {takes}"
                self._error("SR-ATTACH-003", place, message, "change the output's type, or the format")
        channels = [channel for channel in _CHANNELS if channel in format.channels]
        missing = [channel for channel in channels if _CHANNELS.index(channel) not in outputs]
        if missing:
            names = " and ".join(repr(output.name) for output in variables)
            what = f"{names} of {shader} does not give {' and '.join(missing)} of image {image.uid!r}"
            message = f"{what} ({format.name}), which stays as it is"
            self._warn("SR-ATTACH-004", place, message, f"give all {len(channels)} components")

    def _check_memory(self, attachments: Sequence[Attachment], bound: Sequence[Descriptor]) -> None:
        """Note attachments sharing bytes with another attachment or with a bound resource."""
        resources = self._context.tables.resources
        users = [resources[uid] for uid in dict.fromkeys(descriptor.uid for descriptor in bound)]
        for index, attachment in enumerate(attachments):
            image, place = attachment.image, attachment.place
            for other in attachments[:index]:
                if _share(image, other.image):
                    what = f"image {image.uid!r} shares memory with {other.role}, {other.image.uid!r}"
                    message = f"{what}: the result of both writes is undefined"
                    self._error("SR-ATTACH-010", place, message, "draw into images with memory of their own")
            for user in users:
                if _share(image, user):
                    what = f"image {image.uid!r} is drawn into while the shaders use {user.kind} {user.uid!r}"
                    message = f"{what}, which shares its memory: the bytes that they read are undefined"
                    self._error("SR-ATTACH-008", place, message, "draw into an image with memory of its own")


def _share(image: ImagePlan, other: ResourcePlan) -> bool:
    """Return whether an image shares bytes with a resource; `image_layouts` looks at OPTIMAL tensors."""
    if image.group is None or image.uid == other.uid or image.group != other.group:
        return False
    by_layout = other.kind == "tensor" and not other.linear
    return not by_layout and overlap(span_of(image), span_of(other))


def _written(fragment: Stage) -> dict[int, dict[int, StageVariable]]:
    """Return the outputs of a fragment shader by location and component."""
    written: dict[int, dict[int, StageVariable]] = {}
    for output in fragment.interface.outputs:
        for location, component in () if output.index else output.words():
            written.setdefault(location, {})[component] = output
    return written


def _stage(shader: LoadedShader) -> Stage:
    """Return a shader with inputs and outputs."""
    interface = shader.entry.stage_interface(shader.interface.declarations.specialization)
    return Stage(shader.uid, shader.pointer, shader.entry, interface)


def _stage_plan(shader: LoadedShader, stage: Stage) -> ShaderStagePlan:
    """Return the record of a shader for the pipeline."""

    def locations(variables: Iterable[StageVariable]) -> int:
        return max((variable.location + variable.locations for variable in variables), default=0)

    inputs, outputs = locations(stage.interface.inputs), locations(stage.interface.outputs)
    names = shader.uid, shader.pointer
    return ShaderStagePlan(shader.code, shader.entry.name, shader.specialization, *names, inputs, outputs)
