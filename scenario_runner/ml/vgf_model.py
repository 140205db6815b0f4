"""The content of a VGF file as frozen data: tables, descriptor types, sizes, inputs and outputs.

Every cross reference is an index into a tuple of `Vgf`. `describe` turns the data into JSON for ``vgf show --json``.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Literal, NamedTuple

from scenario_runner.errors import FileError, UnsupportedError
from scenario_runner.files.vk_formats import Format, format_of_value

COMBINED_IMAGE_SAMPLER, STORAGE_IMAGE, UNIFORM_BUFFER, STORAGE_BUFFER, TENSOR = 1, 3, 6, 7, 1000460000
IMAGE_TYPES = frozenset({COMBINED_IMAGE_SAMPLER, STORAGE_IMAGE})
BUFFER_TYPES = frozenset({UNIFORM_BUFFER, STORAGE_BUFFER})
_NAMES = {
    COMBINED_IMAGE_SAMPLER: "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER",
    STORAGE_IMAGE: "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE",
    UNIFORM_BUFFER: "VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER",
    STORAGE_BUFFER: "VK_DESCRIPTOR_TYPE_STORAGE_BUFFER",
    TENSOR: "VK_DESCRIPTOR_TYPE_TENSOR_ARM",
}
DESCRIPTOR_TYPES = {name: number for number, name in sorted(_NAMES.items(), key=lambda named: named[1])}
"""The VkDescriptorTypes in VGF files, by name."""


def descriptor_type_name(descriptor_type: int | None) -> str | None:
    """Return the name of a VkDescriptorType, or ``VkDescriptorType(number)`` if it is unknown."""
    if descriptor_type is None:
        return None
    return _NAMES.get(descriptor_type, f"VkDescriptorType({descriptor_type})")


Kind = Literal["compute", "graph"]
Language = Literal["SPIR-V", "GLSL", "HLSL"]
Category = Literal["input", "output", "intermediate", "constant"]


class Module(NamedTuple):
    """A module of a shader or graph. ``code`` is SPIR-V as bytes, GLSL or HLSL as text, or None for a placeholder."""

    type: Kind
    name: str
    entry_point: str
    language: Language | None
    code: bytes | str | None


class Sampler(NamedTuple):
    """The VkFilter, VkSamplerAddressMode and VkBorderColor of a sampled image."""

    min_filter: int
    mag_filter: int
    address_mode_u: int
    address_mode_v: int
    border_color: int


class ModelResource(NamedTuple):
    """A row of the model resource table.

    ``descriptor_type`` is a VkDescriptorType (None for constants), ``format`` a VkFormat. ``shape`` counts elements: -1
    is a dynamic dimension, ``()`` a scalar or an unknown shape. ``strides`` is ``()`` for packed elements. Rows with
    the same ``alias_group`` are views of the same value and share memory.
    """

    category: Category
    descriptor_type: int | None
    format: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] = ()
    alias_group: int | None = None
    sampler: Sampler | None = None

    @property
    def known_format(self) -> Format | None:
        """The format; None if it is unknown. For unknown names the converter writes -1."""
        try:
            return format_of_value(self.format)
        except UnsupportedError:
            return None

    @property
    def format_name(self) -> str:
        """The name of the format, or ``VkFormat(number)`` if it is unknown."""
        return self.known_format.name if self.known_format else f"VkFormat({self.format})"

    @property
    def size_bytes(self) -> int | None:
        """The packed size; None with a dynamic dimension, without a shape, or for an unknown format.

        The last dimension of an image counts components of texels: the shape is [H, W, C] or [1, H, W, C].
        """
        texel = self.known_format
        if texel is None or texel.is_compressed or not self.shape or min(self.shape) < 0:
            return None
        texels = prod(self.shape) // (texel.components if self.descriptor_type in IMAGE_TYPES else 1)
        return texels * texel.block_size_bytes


class Slot(NamedTuple):
    """A number with a resource.

    In a descriptor set ``binding`` is the shader's binding. In inputs and outputs it is the number of the value within
    the whole model, which scenarios use in bindings.
    """

    binding: int
    resource_index: int


class DescriptorSet(NamedTuple):
    """A descriptor set of a segment; ``index`` is the shader's set number."""

    index: int  # type: ignore[assignment]  # in place of the method of tuples
    slots: tuple[Slot, ...]


class GraphConstant(NamedTuple):
    """A link from the OpGraphConstantARM with the literal ``id`` to a row of the constants."""

    id: int
    constant_index: int


class PushConstantRange(NamedTuple):
    """A VkPushConstantRange."""

    stage_flags: int
    offset_bytes: int
    size_bytes: int


class Segment(NamedTuple):
    """A step of the model: a graph or a compute shader. Segments run in file order.

    ``dispatch_shape`` is the workgroup count of a compute segment, or (0, 0, 0) if the file has none.
    """

    index: int  # type: ignore[assignment]  # in place of the method of tuples
    type: Kind
    name: str
    module_index: int
    descriptor_sets: tuple[DescriptorSet, ...]
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    constants: tuple[GraphConstant, ...] = ()
    dispatch_shape: tuple[int, int, int] = (0, 0, 0)
    push_constant_ranges: tuple[PushConstantRange, ...] = ()

    @property
    def slots(self) -> list[Slot]:
        """The slots of all descriptor sets."""
        return [slot for descriptor_set in self.descriptor_sets for slot in descriptor_set.slots]

    def with_rows(self, row: Callable[[int], int]) -> "Segment":
        """Return the segment with slots that refer to other rows; ``row`` maps old rows to new ones."""

        def moved(slots: tuple[Slot, ...]) -> tuple[Slot, ...]:
            return tuple(Slot(slot.binding, row(slot.resource_index)) for slot in slots)

        return self._replace(
            inputs=moved(self.inputs),
            outputs=moved(self.outputs),
            descriptor_sets=tuple(DescriptorSet(number, moved(slots)) for number, slots in self.descriptor_sets),
        )


class Constant(NamedTuple):
    """Constant data. ``sparsity_dimension`` is the axis of 2:4 semi-structured sparsity, None for dense data.

    ``data`` is a read-only view of a parsed model. For a file on disk it is None, and the bytes lie at
    ``offset_bytes``.
    """

    resource_index: int
    sparsity_dimension: int | None
    size_bytes: int
    offset_bytes: int | None = None
    data: memoryview | None = None


class Port(NamedTuple):
    """An input or output of the model.

    ``names`` is empty if the file does not assign names to slots. A result that the model returns several times has
    several names. ``resource_index`` is the row that the model lists. ``view_indices`` are all rows of the same value,
    beginning with this row. They share an allocation, and each has a Vulkan object: an input that a graph reads as
    tensor and a shader as buffer has two.
    """

    binding: int
    names: tuple[str, ...]
    resource_index: int
    view_indices: tuple[int, ...]

    @property
    def name(self) -> str | None:
        """The first name, if any."""
        return self.names[0] if self.names else None

    @property
    def label(self) -> str:
        """The name of the port for messages: name and number, or only the number."""
        return f"binding {self.binding}" if self.name is None else f"{self.name!r} (binding {self.binding})"


class Vgf(NamedTuple):
    """A VGF file. ``version`` is (major, minor, patch) of the file format.

    ``input_names`` and ``output_names`` come from the file and may be longer than the slots. ``input_ports`` and
    ``output_ports`` assign names to slots.
    """

    version: tuple[int, int, int]
    modules: tuple[Module, ...]
    resources: tuple[ModelResource, ...]
    segments: tuple[Segment, ...]
    constants: tuple[Constant, ...]
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    def value(self, index: int) -> tuple[str, int]:
        """Identify a row's value: the alias group, or the row itself."""
        group = self.resources[index].alias_group
        return ("row", index) if group is None else ("group", group)

    @property
    def input_ports(self) -> tuple[Port, ...]:
        """The model's inputs in file order. A number that the file repeats is a single port."""
        return self._ports(self.inputs, self.input_names)

    @property
    def output_ports(self) -> tuple[Port, ...]:
        """The model's outputs in file order. A result that the model repeats is a single port."""
        return self._ports(self.outputs, self.output_names)

    def compute_names(self) -> list[str]:
        """List the modules with compute shaders, which can have substitutions, push constants and specialization."""
        used = dict.fromkeys(segment.module_index for segment in self.segments if segment.type == "compute")
        return [self.modules[index].name for index in used]

    def targets(self) -> dict[str, frozenset[str]]:
        """Map each name in a substitution, push constants or specialization to compute modules.

        A name is a module's name, or a segment's name if no module has it. In a converted model, segments are named
        after custom operations.
        """
        targets: dict[str, frozenset[str]] = {}
        for segment in self.segments:
            if segment.type == "compute" and segment.name:
                module = self.modules[segment.module_index].name
                targets[segment.name] = targets.get(segment.name, frozenset()) | {module}
        return targets | {name: frozenset({name}) for name in self.compute_names()}

    def _ports(self, slots: tuple[Slot, ...], names: tuple[str, ...]) -> tuple[Port, ...]:
        # Names belong to positions. The converter drops slots of unused arguments but keeps their names. So with
        # unequal lengths no name is certain.
        trusted = names if len(names) == len(slots) else ("",) * len(slots)
        rows: dict[int, int] = {}
        names_of: dict[int, list[str]] = {}
        for (binding, row), name in zip(slots, trusted, strict=True):
            rows.setdefault(binding, row)
            names_of.setdefault(binding, []).extend([name] if name else [])
        return tuple(Port(binding, tuple(names_of[binding]), row, self._views(row)) for binding, row in rows.items())

    def _views(self, index: int) -> tuple[int, ...]:
        """Return the rows of the same value, beginning with ``index``."""
        group = self.resources[index].alias_group
        others = [] if group is None else [i for i, row in enumerate(self.resources) if row.alias_group == group]
        return (index, *(i for i in others if i != index))


def find_port(ports: Sequence[Port], key: str | int, direction: Literal["input", "output"] = "input") -> Port:
    """Find an input or output by binding number or name. A name has priority over a number that is written as text.

    Raises FileError with the existing ports if none or several match.
    """
    named = [port for port in ports if key in port.names]
    number = int(key) if isinstance(key, int) or (key.isascii() and key.isdigit() and len(key) < 11) else None
    matches = named or [port for port in ports if port.binding == number]
    if len(matches) == 1:
        return matches[0]
    known = ", ".join(port.label for port in (matches or ports)) or "none"
    if matches:
        raise FileError(f"several {direction}s are called {key!r}: {known}", help="say which one by its binding number")
    raise FileError(f"the model has no {direction} {key!r}; its {direction}s: {known}")


def describe(vgf: Vgf) -> dict[str, Any]:
    """Describe the file, except code and constant data, as JSON data.

    ``inputs`` and ``outputs`` are the ports of the model. Other slots are {binding, resource_index}. Sampler values are
    Vulkan's numbers. Error messages about a file have JSON pointers into this description.
    """
    return {
        "version": ".".join(map(str, vgf.version)),
        "inputs": [_port(vgf, port) for port in vgf.input_ports],
        "outputs": [_port(vgf, port) for port in vgf.output_ports],
        "input_names": list(vgf.input_names),
        "output_names": list(vgf.output_names),
        "segments": [_segment(vgf, segment) for segment in vgf.segments],
        "modules": [{"index": i, **_module(module)} for i, module in enumerate(vgf.modules)],
        "resources": [{"index": i, **_resource(resource)} for i, resource in enumerate(vgf.resources)],
        "constants": [{"index": i, **_constant(vgf, constant)} for i, constant in enumerate(vgf.constants)],
    }


def _plain(value: object) -> Any:
    """Turn a value into JSON data: records into objects, other tuples into arrays."""
    if not isinstance(value, tuple):
        return value
    parts = [_plain(part) for part in value]
    names = getattr(value, "_fields", None)
    return parts if names is None else dict(zip(names, parts, strict=True))


def _fields(record: object, *names: str) -> dict[str, object]:
    return {name: _plain(getattr(record, name)) for name in names}


def _port(vgf: Vgf, port: Port) -> dict[str, object]:
    return {**_plain(port), **_view(vgf.resources[port.resource_index])}


def _view(resource: ModelResource) -> dict[str, object]:
    descriptor_type = descriptor_type_name(resource.descriptor_type)
    return {"descriptor_type": descriptor_type, "format": resource.format_name, "shape": list(resource.shape)}


_LISTS = ("dispatch_shape", "inputs", "outputs", "descriptor_sets", "constants", "push_constant_ranges")


def _segment(vgf: Vgf, segment: Segment) -> dict[str, object]:
    described = _fields(segment, "index", "name", "type", "module_index")
    return {**described, "module": vgf.modules[segment.module_index].name, **_fields(segment, *_LISTS)}


def _module(module: Module) -> dict[str, object]:
    code = module.code.encode() if isinstance(module.code, str) else module.code
    return {**_fields(module, "name", "type", "entry_point", "language"), "code_size_bytes": len(code or b"")}


def _resource(resource: ModelResource) -> dict[str, object]:
    described = {"category": resource.category, **_view(resource)}
    return described | _fields(resource, "strides", "size_bytes", "alias_group", "sampler")


def _constant(vgf: Vgf, constant: Constant) -> dict[str, object]:
    resource = vgf.resources[constant.resource_index]
    return {
        "resource_index": constant.resource_index,
        "format": resource.format_name,
        "shape": list(resource.shape),
        **_fields(constant, "sparsity_dimension", "size_bytes"),
    }
