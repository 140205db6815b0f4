"""What a VGF file holds, as frozen data. Every cross reference is an index into a tuple of `Vgf`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["compute", "graph"]
Language = Literal["SPIR-V", "GLSL", "HLSL"]
Category = Literal["input", "output", "intermediate", "constant"]


@dataclass(frozen=True, slots=True)
class Module:
    """A shader or graph module. ``code`` is SPIR-V as bytes, GLSL or HLSL as text, or None for a placeholder."""

    type: Kind
    name: str
    entry_point: str
    language: Language | None
    code: bytes | str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Sampler:
    """VkFilter, VkSamplerAddressMode and VkBorderColor values of a sampled image."""

    min_filter: int
    mag_filter: int
    address_mode_u: int
    address_mode_v: int
    border_color: int


@dataclass(frozen=True, slots=True)
class ModelResource:
    """A row of the model resource table.

    ``descriptor_type`` is a VkDescriptorType (None for constants), ``format`` a VkFormat, ``shape`` counts elements
    with -1 for a dynamic dimension and ``()`` for a scalar or an unknown shape, ``strides`` is ``()`` when packed.
    Rows with the same ``alias_group`` are views of one value and share its memory.
    """

    category: Category
    descriptor_type: int | None
    format: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    alias_group: int | None
    sampler: Sampler | None


@dataclass(frozen=True, slots=True)
class Slot:
    """A number and the resource behind it.

    In a descriptor set ``binding`` is the shader's binding number; in inputs and outputs it is the logical number of
    the value within the whole model, which is what a scenario binds by.
    """

    binding: int
    resource_index: int


@dataclass(frozen=True, slots=True)
class DescriptorSet:
    """One descriptor set of a segment; ``index`` is the set number that the shader uses."""

    index: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class GraphConstant:
    """Feeds row ``constant_index`` of the constants to the OpGraphConstantARM whose literal is ``id``."""

    id: int
    constant_index: int


@dataclass(frozen=True, slots=True)
class PushConstantRange:
    """A VkPushConstantRange."""

    stage_flags: int
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Segment:
    """One step of the model: a graph or a compute shader. Segments run in the order of the file.

    ``dispatch_shape`` is the workgroup count of a compute segment; (0, 0, 0) means that the file gives none.
    """

    index: int
    type: Kind
    name: str
    module_index: int
    descriptor_sets: tuple[DescriptorSet, ...]
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    constants: tuple[GraphConstant, ...]
    dispatch_shape: tuple[int, int, int]
    push_constant_ranges: tuple[PushConstantRange, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """Constant data. ``sparsity_dimension`` is None for dense data and the axis of 2:4 semi-structured sparsity
    otherwise.

    ``data`` are the bytes (a read-only view of what was parsed); of a file on disk they are not read, and
    ``offset_bytes`` says where in it the ``size_bytes`` lie."""

    resource_index: int
    sparsity_dimension: int | None
    size_bytes: int
    offset_bytes: int | None = None
    data: memoryview | None = field(default=None, repr=False, hash=False)


@dataclass(frozen=True, slots=True)
class Vgf:
    """A VGF file. ``version`` is (major, minor, patch) of the file format.

    ``input_names`` and ``output_names`` are as the file has them and may be longer than the slots; `input_ports` and
    `output_ports` say which name belongs to which slot.
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
        """What identifies the value that a row is of: its alias group, or its only row."""
        group = self.resources[index].alias_group
        return ("row", index) if group is None else ("group", group)
