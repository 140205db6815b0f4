"""dispatch_fragment: checks for shaders and attachments, and the graphics pipeline.

`image_layouts` finds draws into an OPTIMAL image sharing memory with a tensor.

Source: Vulkan specification, "Shader Interfaces", sections "Interface Matching", "Vertex Input Interface" and "Fragment
Output Interface"; "Shaders" and the SPIR-V environment's rules on interpolation and execution modes for fragment
shaders; "Render Pass", feedback loops, and "Memory Aliasing". The extents follow the JSON Test Description
Specification.
"""

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from scenario_runner.checks.bindings import TEXEL_KINDS
from scenario_runner.files.byte_data import overlap
from scenario_runner.plan.command_parts import (
    CommandContext,
    CommandResolver,
    content_of_binding,
    declared_by,
    descriptors,
)
from scenario_runner.plan.image_records import Draw, GraphicsPipelinePlan, ImagePlan, ShaderStagePlan, Target
from scenario_runner.plan.plan import ResourcePlan, span_of
from scenario_runner.plan.records import Descriptor, DescriptorList, NeededFeature
from scenario_runner.plan.shader_modules import LoadedShader
from scenario_runner.scenario import ColorAttachment, DispatchFragment, Image
from scenario_runner.shaders.spirv.stage_interface import StageInterface, StageVariable
from scenario_runner.shaders.spirv.types import Array, Struct, Type, Vector

# Execution modes (SPIR-V specification, "Execution Mode").
_PIXEL_CENTER_INTEGER: Final = 6
_ORIGIN_UPPER_LEFT: Final = 7
_ORIGIN_LOWER_LEFT: Final = 8
_DEPTH_REPLACING: Final = 12

_VULKAN_1_3: Final = "VkPhysicalDeviceVulkan13Features"
_DIFFERENT_MASKS: Final = "a drawing that gives its attachments different components"
_WORDS: Final = {"uint": "unsigned integers", "int": "signed integers", "float": "floats"}
_CHANNELS: Final = "RGBA"


class Stage(NamedTuple):
    """One shader in a drawing with inputs and outputs."""

    shader: LoadedShader
    interface: StageInterface

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"shader {self.shader.uid!r}"

    def record(self) -> ShaderStagePlan:
        """Return the record for the pipeline."""

        def locations(variables: Iterable[StageVariable]) -> int:
            return max((variable.location + variable.locations for variable in variables), default=0)

        uid, pointer, code, _, entry = self.shader[:5]
        inputs, outputs = locations(self.interface.inputs), locations(self.interface.outputs)
        return ShaderStagePlan(code, entry.name, self.shader.specialization, uid, pointer, inputs, outputs)


class Attachment(NamedTuple):
    """A mip level to draw into. ``declared`` is the image's color_attachment."""

    image: ImagePlan
    level: int
    declared: bool

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
            feature = NeededFeature(_VULKAN_1_3, "dynamicRendering", "dispatch_fragment", pointer)
            context.tables.features[feature] = None
        attached = [(target.resource_ref, target.lod) for target in command.color_attachment_refs]
        if context.layouts is not None:
            context.layouts.check_bindings(command, index)
            for number, (uid, level) in enumerate(attached):
                context.layouts.check_shader_access(uid, level, f"{pointer}/color_attachment_refs/{number}")
        key = (
            command.vertex_shader_ref,
            command.fragment_shader_ref,
            command.push_data_ref,
            tuple(map(content_of_binding, command.bindings)),
            tuple(attached),
            command.render_extent,
        )
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
        attachments = [self._attachment(target) for target in command.color_attachment_refs]
        if not {command.vertex_shader_ref, command.fragment_shader_ref} <= loaded.keys():
            return None  # loading the shader has reported an error
        shaders = [loaded[command.vertex_shader_ref], loaded[command.fragment_shader_ref]]
        pushed = context.push_constants.bytes_for(shaders, command.push_data_ref, pointer, f"{pointer}/push_data_ref")
        declared = declared_by(shaders, pointer, problems)
        bound = descriptors(declared, command.bindings, tables.resources, pointer, problems, context.readonly)
        vertex, fragment = (
            Stage(shader, shader.entry.stage_interface(shader.interface.declarations.specialization))
            for shader in shaders
        )
        self._check_stages(vertex, fragment)
        self._check_images(attachments, bound)
        written: dict[int, dict[int, StageVariable]] = {}  # by location and component
        for output in fragment.interface.outputs:
            for location, component in () if output.index else output.words():
                written.setdefault(location, {})[component] = output
        if not fragment.interface.problems:
            self._check_outputs(attachments, fragment, written)
        known = [attachment for attachment in attachments if attachment is not None]
        self._check_memory([attachment.image for attachment in known], bound)
        if declared.layouts is None or len(known) < len(attachments):
            return None
        if context.image_uses is not None:
            fit = partial(context.image_uses.fit_shader, bindings=command.bindings, pointer=pointer, problems=problems)
            vertex, fragment = (stage._replace(shader=fit(stage.shader)) for stage in (vertex, fragment))
        masks = tuple(sum(1 << component for component in written.get(index, ())) for index in range(len(known)))
        if len(set(masks)) > 1:
            self._need("VkPhysicalDeviceFeatures", "independentBlend", _DIFFERENT_MASKS)
        pipeline = GraphicsPipelinePlan(
            vertex.record(),
            fragment.record(),
            declared.layouts,
            max(max(shader.push_constants_size, shader.block_size) for shader in shaders),
            tuple(attachment.image.format.value for attachment in known),
            masks,
            pointer,
        )
        sets = DescriptorList(declared.layouts, bound)
        indices = tables.graphics_pipelines.add(pipeline, pipeline.content), tables.lists.add(sets, sets)
        targets = tuple(Target(attachment.image.uid, attachment.level) for attachment in known)
        width, height = command.render_extent or known[0].size
        barrier_after = command.implicit_barrier
        return Draw(*indices, targets, (width, height), pushed or b"", barrier_after, self._index)

    def _need(self, structure: str, member: str, what: str) -> None:
        self._context.tables.features[NeededFeature(structure, member, what, self._pointer)] = None

    def _attachment(self, target: ColorAttachment) -> Attachment | None:
        """Return the mip level to draw into; None for an image with errors."""
        image = self._context.tables.resources.get(target.resource_ref)
        declared = self._context.scenario.resource(target.resource_ref)
        if not isinstance(image, ImagePlan) or not isinstance(declared, Image) or target.lod >= image.mips:
            return None
        return Attachment(image, target.lod, declared.color_attachment)

    def _check_stages(self, vertex: Stage, fragment: Stage) -> None:
        """Check shader inputs and outputs. Impossible declarations stand alone, since nothing matches them."""
        wrong = [(stage, problem) for stage in (vertex, fragment) for problem in stage.interface.problems]
        for stage, problem in wrong:
            self._error("SR-STAGE-004", stage.shader.pointer, f"{stage.label}: {problem}")
        if wrong:
            return
        for input_ in vertex.interface.inputs:
            what = f"{vertex.label} takes {_described('input', input_)}"
            message = f"{what} from a vertex buffer; a drawing of a scenario has none"
            help = "tell the three vertices apart by gl_VertexIndex, and read their data from a buffer"
            self._error("SR-STAGE-005", f"{self._pointer}/vertex_shader_ref", message, help)
        if "Position" not in vertex.interface.outputs_built_in:
            message = f"{vertex.label} never writes a position (gl_Position), so that the draw is undefined"
            self._warn("SR-STAGE-007", vertex.shader.pointer, message)
        for sentence in _wrong_modes(fragment):
            self._error("SR-STAGE-006", fragment.shader.pointer, f"{fragment.label} {sentence}")
        for input_ in fragment.interface.inputs:
            is_float = input_.scalar.is_float and input_.scalar.width_bits != 64
            if not (input_.flat or input_.per_vertex or is_float):
                what = f"{fragment.label} interpolates {_described('input', input_)}"
                message = f"{what}: only floats of 16 and 32 bits can be"
                self._error("SR-STAGE-003", fragment.shader.pointer, message, "declare it flat")
        outputs = {(output.location, output.component): output for output in vertex.interface.outputs}
        for input_ in fragment.interface.inputs:
            self._check_input(vertex, fragment, input_, outputs.get((input_.location, input_.component)))

    def _check_input(self, vertex: Stage, fragment: Stage, input_: StageVariable, output: StageVariable | None) -> None:
        """Check a fragment shader's input against the output at the same location and component."""
        place = f"{self._pointer}/fragment_shader_ref"
        what = f"{fragment.label} takes {_described('input', input_)}"
        if output is None:
            instead = f"has nothing at {_place(input_)}"
            for around in vertex.interface.outputs:
                if (input_.location, input_.component) in around.words():
                    instead = f"has {_described('output', around)} there, which begins elsewhere"
            message = f"{what}; {vertex.label} {instead}"
            self._error("SR-STAGE-001", place, message, "declare the same variable as an output there")
            return
        read_type: Type = input_.type
        if input_.per_vertex and isinstance(read_type, Array):
            read_type = read_type.element
        if _same(read_type, output.type):
            return
        if (
            isinstance(read_type, Vector)
            and isinstance(output.type, Vector)
            and read_type.component == output.type.component
            and read_type.components < output.type.components
        ):
            needed_by = f"{_described('input', input_)} of {fragment.label}, a part of a vector"
            self._need(_VULKAN_1_3, "maintenance4", needed_by)
            return
        message = f"{what} as {input_.type}; {vertex.label} hands on {output.name!r} there as {output.type}"
        self._error("SR-STAGE-002", place, message, "declare both with the same type")

    def _check_images(self, attachments: Sequence[Attachment | None], bound: Sequence[Descriptor]) -> None:
        """Check each attachment, and the attachments against each other and against bound resources."""
        extent, whose = self._command.render_extent, "the render_extent"
        first: dict[tuple[str, int], int] = {}
        for index, attachment in enumerate(attachments):
            if attachment is None:
                continue
            image, level, name = attachment.image, attachment.level, attachment.label
            place = f"{self._pointer}/color_attachment_refs/{index}"
            if not attachment.declared:
                message = f"{name} is drawn into, and its color_attachment is false"
                self._warn("SR-ATTACH-005", place, message, "set color_attachment of the image to true")
            if image.format.is_compressed or "color" not in image.format.aspects:
                message = f"{name} has the format {image.format.name}, which cannot be drawn into as a colour"
                self._error("SR-ATTACH-006", place, message)
            width, height = attachment.size
            if extent is None:
                extent, whose = attachment.size, f"attachment 0, {image.uid!r},"
            elif tuple(extent) != (width, height):
                message = f"{name} has {width} x {height} texels, {whose} has {extent[0]} x {extent[1]}"
                self._error("SR-ATTACH-007", place, message, "give all attachments of a drawing one size")
            other = first.setdefault((image.uid, level), index)
            if other != index:
                message = f"{name} is attachment {other} already: the result of both writes is undefined"
                self._error("SR-ATTACH-010", place, message, "give each output an image or a mip level of its own")
            seen = [use.level for use in bound if use.uid == image.uid and use.kind != "sampler"]
            if None in seen or level in seen:
                message = f"{name} is drawn into while the shaders bind it: the texels that they read are undefined"
                help = "draw into another image, or bind another mip level with lod"
                self._error("SR-ATTACH-008", place, message, help)

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
                self._warn("SR-ATTACH-001", self._pointer, f"{message}, so that it is lost", help)
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
                takes = f"takes {_WORDS[expected_class]} of 32 bits"
                message = f"{what}; image {image.uid!r} of {format.name} {takes}"
                self._error("SR-ATTACH-003", place, message, "change the output's type, or the format")
        channels = [channel for channel in _CHANNELS if channel in format.channels]
        missing = [channel for channel in channels if _CHANNELS.index(channel) not in outputs]
        if missing:
            names = " and ".join(repr(output.name) for output in variables)
            what = f"{names} of {shader} does not give {' and '.join(missing)} of image {image.uid!r}"
            message = f"{what} ({format.name}), which stays as it is"
            self._warn("SR-ATTACH-004", place, message, f"give all {len(channels)} components")

    def _check_memory(self, images: Sequence[ImagePlan], bound: Sequence[Descriptor]) -> None:
        """Note attachments sharing bytes with another attachment or with a bound resource."""
        resources = self._context.tables.resources
        users = [resources[uid] for uid in dict.fromkeys(descriptor.uid for descriptor in bound)]
        for index, image in enumerate(images):
            place = f"{self._pointer}/color_attachment_refs/{index}"
            for first, other in enumerate(images[:index]):
                if _share(image, other):
                    what = f"image {image.uid!r} shares memory with attachment {first}, {other.uid!r}"
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


def _wrong_modes(fragment: Stage) -> list[str]:
    """Find errors in a fragment shader's execution modes, as sentence ends."""
    entry = fragment.shader.entry
    modes = {entry.source.words[at + 2] for at in entry.source.execution_modes(entry.function)}
    wrong = []
    if _ORIGIN_LOWER_LEFT in modes:
        wrong.append("has the execution mode OriginLowerLeft, which Vulkan does not allow")
    elif _ORIGIN_UPPER_LEFT not in modes:
        wrong.append("lacks the execution mode OriginUpperLeft, which every fragment shader needs")
    if _PIXEL_CENTER_INTEGER in modes:
        wrong.append("has the execution mode PixelCenterInteger, which Vulkan does not allow")
    if "FragDepth" in fragment.interface.outputs_built_in and _DEPTH_REPLACING not in modes:
        wrong.append("has the output FragDepth without the execution mode DepthReplacing")
    return wrong


def _same(first: Type, second: Type) -> bool:
    """Return whether two declarations mean the same type, apart from ids and names."""
    if isinstance(first, Array) and isinstance(second, Array):
        return first.length == second.length and _same(first.element, second.element)
    if isinstance(first, Struct) and isinstance(second, Struct):
        return len(first.members) == len(second.members) and all(
            _same(mine.type, theirs.type) for mine, theirs in zip(first.members, second.members, strict=True)
        )
    return first == second


def _place(variable: StageVariable) -> str:
    component = f", component {variable.component}" if variable.component else ""
    return f"location {variable.location}{component}"


def _described(way: str, variable: StageVariable) -> str:
    return f"{way} {variable.name!r} at {_place(variable)}"
