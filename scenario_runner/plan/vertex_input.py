"""The vertex input of a draw: attributes of the vertex shader, vertex buffers and indices.

Source: Vulkan specification, "Fixed-Function Vertex Processing"; "Drawing Commands"; "Shader Interfaces", section
"Vertex Input Interface".
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from scenario_runner.checks.bindings import KIND_WORDS, TEXEL_KINDS
from scenario_runner.checks.entry_points import described
from scenario_runner.errors.diagnostic import Diagnostic, warning
from scenario_runner.errors.text import counted
from scenario_runner.files.vk_formats import Format
from scenario_runner.plan.command_parts import CommandContext
from scenario_runner.plan.image_records import AttributePlan, BufferStart, Vertices, bytes_of
from scenario_runner.plan.plan import Plan, ResourcePlan
from scenario_runner.plan.records import BufferPlan, BufferUsage
from scenario_runner.plan.resources import known_format
from scenario_runner.scenario import DispatchFragment
from scenario_runner.shaders.spirv.stage_interface import StageVariable
from scenario_runner.shaders.spirv.types import Array, Matrix, Vector

_WIDE: Final = 64
_INDEX_SIZES_BYTES: Final = {"UINT8": 1, "UINT16": 2, "UINT32": 4}
_INDEX_CODES: Final = {1: "B", 2: "H", 4: "I"}
_MOST_INDICES: Final = 1 << 16
_MORE_DATA: Final = "draw fewer vertices, give the buffer more data, or run with --enable-robustness-features"


class VertexInputPlanner:
    """Plans the vertex input of a draw, and notes errors."""

    def __init__(self, context: CommandContext, command: DispatchFragment, pointer: str) -> None:
        self._context = context
        self._command = command
        self._pointer = pointer
        self._error = context.problems.error
        self._warn = context.problems.warn

    def plan(self, shader: str, inputs: Iterable[StageVariable]) -> tuple[tuple[AttributePlan, ...], Vertices] | None:
        """Return the attributes for a shader's inputs, and the vertices; None after an error.

        ``shader`` is the name in messages.
        """
        errors = self._context.problems.errors
        before = len(errors)
        vertices = self._vertices()
        missing = _inputs_by_location(inputs)
        attributes: list[AttributePlan] = []
        starts: list[BufferStart] = []
        for index, attribute in enumerate(self._command.vertex_attributes):
            place = f"{self._pointer}/vertex_attributes/{index}"
            input_ = missing.pop(attribute.location, None)
            buffer = self._buffer(attribute.resource_ref, "vertex")
            format = known_format(attribute.format, f"{place}/format", self._context.problems)
            if input_ is None:
                message = f"{shader} reads no input at location {attribute.location}: the attribute is not used"
                self._warn("SR-DRAW-002", place, message, "remove the attribute, or declare the input")
            elif format is None or buffer is None:
                vertices = None
            else:
                self._check_kind(format, shader, input_, f"{place}/format")
                stride = format.block_size_bytes if attribute.stride is None else attribute.stride
                per_instance = attribute.input_rate == "INSTANCE"
                size = format.block_size_bytes
                attributes.append(AttributePlan(attribute.location, format.value, size, stride, per_instance))
                starts.append(BufferStart(attribute.resource_ref, attribute.offset))
                self._check_places(format, stride, attribute.offset, buffer, place)
        for location, input_ in missing.items():
            message = f"{shader} takes {described('input', input_)}; vertex_attributes has no location {location}"
            help = f'add {{"location": {location}, "resource_ref": "…", "format": "…"}} to vertex_attributes'
            self._error("SR-STAGE-005", f"{self._pointer}/vertex_shader_ref", message, help)
        if vertices is None or len(errors) > before:
            return None
        vertices = vertices._replace(buffers=tuple(starts))
        for message in past_the_end(attributes, vertices, self._context.tables.resources):
            self._warn("SR-DRAW-003", f"{self._pointer}/vertex_attributes", message, _MORE_DATA)
        return tuple(attributes), vertices

    def _buffer(self, uid: str, usage: BufferUsage) -> BufferPlan | None:
        """Return a buffer after noting the usage; None for a buffer with errors."""
        resources = self._context.tables.resources
        plan = resources.get(uid)
        if not isinstance(plan, BufferPlan):
            return None
        resources[uid] = plan._replace(usage=plan.usage | {usage})
        return plan

    def _check_kind(self, format: Format, shader: str, input_: StageVariable, place: str) -> None:
        """Check that a format has the kind of numbers that an input takes."""
        if format.is_compressed or format.aspects != ("color",):
            self._error("SR-DRAW-001", place, f"{format.name} is not a format for vertices: it has blocks or depths")
            return
        given = TEXEL_KINDS.get(format.numeric, "float"), max(format.channel_bits) == _WIDE
        taken = input_.scalar.kind, input_.scalar.width_bits == _WIDE
        if given != taken:
            has, takes = (KIND_WORDS[kind] + " of 64 bits" * is_wide for kind, is_wide in (given, taken))
            message = f"{format.name} has {has}; {described('input', input_)} of {shader} takes {takes}"
            self._error("SR-DRAW-001", place, message, "change the format, or the type of the input")

    def _check_places(self, format: Format, stride: int, offset: int, buffer: BufferPlan, place: str) -> None:
        """Check the offset and the stride of an attribute."""
        size = format.block_size_bytes
        component = format.channel_bits[0] // 8 if format.channel_bits and not format.is_packed else size
        for key, value in (("offset", offset), ("stride", stride)):
            if value % component:
                message = (
                    f"the {key} {value} is not a multiple of the {component} bytes of a component of {format.name}"
                )
                self._error("SR-DRAW-004", f"{place}/{key}", message)
        if offset >= buffer.size_bytes:
            message = f"the offset {offset} is outside of buffer {buffer.uid!r} of {buffer.size_bytes} bytes"
            self._error("SR-DRAW-004", f"{place}/offset", message)

    def _vertices(self) -> Vertices | None:
        """Return the vertices without vertex buffers; None after an error."""
        command = self._command
        count, instances, index_buffer = command.vertex_count, command.instance_count, command.index_buffer
        if index_buffer is None:
            return Vertices(3 if count is None else count, instances, command.first_vertex, command.first_instance)
        place, uid, offset = f"{self._pointer}/index_buffer", index_buffer.resource_ref, index_buffer.offset
        buffer, size = self._buffer(uid, "index"), _INDEX_SIZES_BYTES[index_buffer.index_type]
        if buffer is None:
            return None
        if size == 1:
            structure, member = "VkPhysicalDeviceIndexTypeUint8Features", "indexTypeUint8"
            self._context.tables.need(structure, member, "the index_type UINT8", place)
        first, indices = command.first_index, max(0, (buffer.size_bytes - offset) // size)
        wanted = 1 if count is None else count
        if offset % size:
            message = (
                f"the offset {offset} is not a multiple of the {size} bytes of an index ({index_buffer.index_type})"
            )
            self._error("SR-DRAW-004", f"{place}/offset", message)
        elif offset >= buffer.size_bytes or first + wanted > indices:
            has = f"buffer {uid!r} has {indices} indices from byte {offset} on"
            message = f"{has}; the draw reads {wanted} from number {first} on"
            self._error("SR-DRAW-004", place, message, "draw fewer indices, or give the buffer more")
        count = indices - first if count is None else count
        start = BufferStart(uid, offset)
        return Vertices(count, instances, first, command.first_instance, (), start, size, command.first_vertex)


def past_the_end(
    attributes: Sequence[AttributePlan],
    vertices: Vertices,
    resources: Mapping[str, ResourcePlan],
    largest_index: int | None = None,
) -> Iterator[str]:
    """Describe elements that a draw reads past the end of a buffer. ``largest_index`` checks only indexed elements."""
    for attribute, (uid, offset) in zip(attributes, vertices.buffers, strict=True):
        elements = vertices.elements(attribute)
        if largest_index is not None:
            elements = (0, max(0, largest_index + vertices.vertex_offset + 1)) if elements is None else None
        first, count = elements or (0, 0)
        end, size = offset + first * attribute.stride_bytes + bytes_of(attribute, count), resources[uid].size_bytes
        if count and end > size:
            what = "instance" if attribute.per_instance else "vertex"
            reads = f"the draw reads the attribute at location {attribute.location} up to {what} {first + count - 1}"
            yield f"{reads}, byte {end}; buffer {uid!r} has {counted(size, 'byte')}"


def indices_past_the_end(plan: Plan, changed_by: Callable[[Any], Iterable[str]]) -> Iterator[Diagnostic]:
    """Warn of indices in files and ``src`` that lead behind the end of a vertex buffer.

    ``changed_by`` returns the uids that an operation may change; indices in such buffers are not known. Raises
    FileError.
    """
    operations = [operation for frame in plan.frames for operation in frame.operations]
    draws = [operation for operation in operations if operation.kind == "draw"]
    indexed = [(draw, start) for draw in draws if (start := draw.vertices.index_buffer) is not None]
    written = {uid for each in operations for uid in changed_by(each)} if indexed else set()
    for operation, (uid, offset) in indexed:
        vertices = operation.vertices
        source, size, count = plan.resources[uid].source, vertices.index_size_bytes, vertices.vertex_count
        if source is None or uid in written or not 0 < count <= _MOST_INDICES:
            continue
        data = bytearray(count * size)
        begin = offset + vertices.first * size
        source.read_into(memoryview(data)[: max(0, source.size_bytes - begin)], begin)
        largest = max(array(_INDEX_CODES[size], data))
        attributes = plan.graphics_pipelines[operation.pipeline].attributes
        for message in past_the_end(attributes, vertices, plan.resources, largest):
            place = f"/commands/{operation.command}/dispatch_fragment/index_buffer"
            yield warning("SR-DRAW-003", place, message, _MORE_DATA)


def _inputs_by_location(inputs: Iterable[StageVariable]) -> dict[int, StageVariable]:
    """Return the inputs by the locations that need an attribute: one for each element and each column of a matrix."""
    found: dict[int, StageVariable] = {}
    for input_ in inputs:
        column = input_.type
        while isinstance(column, Array | Matrix):
            column = column.element if isinstance(column, Array) else column.column
        is_wide = isinstance(column, Vector) and column.components > 2 and input_.scalar.width_bits == 64
        step = 2 if is_wide else 1  # one attribute fills both locations
        found |= dict.fromkeys(range(input_.location, input_.location + input_.locations, step), input_)
    return found
