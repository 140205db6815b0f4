"""The tables and constants of a VGF file, and the writing of files. ``vgfpy`` decodes and encodes the tables.

Since format 0.4 the constant section is raw. It has the tag ``CONST00\0``, a u64 count, a record per constant, and the
payload. A record is {u32 resource, i32 sparsity dimension (-1 dense), u64 size, u64 offset from the end of the
records}. The payload of a file on disk is not read. In older files the section is a FlatBuffers table; the library
reads it, and small constants are copied.
"""

import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from scenario_runner.errors import FileError, MissingPackageError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.installation import requirement
from scenario_runner.files.input import SourceFile
from scenario_runner.ml import vgf_model

VgfObject: TypeAlias = Any
"""A module, table, encoder or handle of ``vgfpy``, which has no types."""

PACKAGE = "ai_ml_sdk_vgf_library"
CUT = "the file is damaged or was cut short"
_Name = TypeVar("_Name", bound=str)


def library(doing: str) -> VgfObject:
    """Import ``vgfpy``. Raises MissingPackageError; the message begins with ``doing``, such as "reading"."""
    try:
        import vgfpy
    except ImportError as error:
        message = f"{doing} VGF files needs the package {PACKAGE}, which is not installed"
        install = f"install it with 'scenario-runner doctor --fix', or: pip install '{requirement(PACKAGE).text}'"
        raise MissingPackageError(message, help=requirement(PACKAGE).without_wheels or install) from error
    return vgfpy


def decoder(factory: str, section: bytes | memoryview, path: str, name: str) -> VgfObject:
    """Make the decoder ``vgfpy.<factory>`` of a section, which the caller must keep alive.

    Raises MissingPackageError if the library is missing, and FileError if the library rejects the section.
    """
    instance = getattr(library("reading"), factory)(section, len(section)) if len(section) else None
    if instance is None:
        raise damaged(path, None, f"the {name} section ({len(section)} bytes) holds no valid table", CUT)
    return instance


def damaged(
    path: str, pointer: str | None, message: str, help: str | None = None, code: str = "SR-FILE-013"
) -> FileError:
    """Make the error for a damaged place of a file."""
    return FileError(Diagnostic(code, "error", pointer, message, help, path=path))


def _named(value: VgfObject, names: tuple[_Name, ...], path: str, pointer: str) -> _Name:
    """Return the name of an enumeration value. Raises FileError for an unknown number."""
    number = int(value)
    if not 0 <= number < len(names):
        message = f"the number {number} is unknown, expected 0 to {len(names) - 1} ({', '.join(names)})"
        raise damaged(path, pointer, message, code="SR-FILE-014")
    return names[number]


_KINDS: tuple[vgf_model.Kind, ...] = ("compute", "graph")


def read_modules(section: bytes, path: str) -> tuple[vgf_model.Module, ...]:
    """Decode the module section. Raises FileError for a damaged section."""
    table = decoder("CreateModuleTableDecoder", section, path, "module")
    return tuple(_module(table, i, path) for i in range(table.size()))


def _module(table: VgfObject, i: int, path: str) -> vgf_model.Module:
    kind = _named(table.getModuleType(i), _KINDS, path, f"/modules/{i}/type")
    language: vgf_model.Language | None = None
    code: bytes | str | None = None
    if table.hasSPIRVCode(i):
        language, code = "SPIR-V", bytes(table.getSPIRVModuleCode(i) or b"")
    elif table.hasGLSLCode(i):
        language, code = "GLSL", table.getGLSLModuleCode(i)
    elif table.hasHLSLCode(i):
        language, code = "HLSL", table.getHLSLModuleCode(i)
    if not code:
        language = code = None
    name, entry_point = table.getModuleName(i), table.getModuleEntryPoint(i)
    return vgf_model.Module(kind, name, entry_point, language, code)


_CATEGORIES: tuple[vgf_model.Category, ...] = ("input", "output", "intermediate", "constant")


def read_resources(section: bytes, path: str) -> tuple[vgf_model.ModelResource, ...]:
    """Decode the model resource section. Raises FileError for a damaged section."""
    table = decoder("CreateModelResourceTableDecoder", section, path, "model resource")
    return tuple(_resource(table, i, path) for i in range(table.size()))


def _resource(table: VgfObject, i: int, path: str) -> vgf_model.ModelResource:
    return vgf_model.ModelResource(
        category=_named(table.getCategory(i), _CATEGORIES, path, f"/resources/{i}/category"),
        descriptor_type=table.getDescriptorType(i),
        format=int(table.getVkFormat(i)),
        shape=_numbers(table.getTensorShape(i)),
        strides=_numbers(table.getTensorStride(i)),
        alias_group=table.getAliasGroupId(i),
        sampler=_sampler(table, i),
    )


def _numbers(view: memoryview | None) -> tuple[int, ...]:
    """Copy numbers, since the library's views do not keep the buffer alive."""
    return () if view is None else tuple(view)


def _sampler(table: VgfObject, i: int) -> vgf_model.Sampler | None:
    handle = table.getSamplerConfigHandle(i)
    if handle is None:
        return None
    names = ("MinFilter", "MagFilter", "AddressModeU", "AddressModeV", "BorderColor")
    return vgf_model.Sampler(*(int(getattr(table, f"getSamplerConfig{name}")(handle)) for name in names))


def read_sequence(section: bytes, path: str) -> dict[str, Any]:
    """Decode the model sequence section into fields of `Vgf`. Raises FileError when it is damaged."""
    table = decoder("CreateModelSequenceTableDecoder", section, path, "model sequence")
    return {
        "segments": tuple(_segment(table, s, path) for s in range(table.modelSequenceTableSize())),
        "inputs": _slots(table, table.getModelSequenceInputBindingSlotsHandle()),
        "outputs": _slots(table, table.getModelSequenceOutputBindingSlotsHandle()),
        "input_names": _names(table, table.getModelSequenceInputNamesHandle()),
        "output_names": _names(table, table.getModelSequenceOutputNamesHandle()),
    }


def _segment(table: VgfObject, s: int, path: str) -> vgf_model.Segment:
    return vgf_model.Segment(
        index=s,
        type=_named(table.getSegmentType(s), _KINDS, path, f"/segments/{s}/type"),
        name=table.getSegmentName(s),
        module_index=table.getSegmentModuleIndex(s),
        descriptor_sets=tuple(
            vgf_model.DescriptorSet(
                table.getSegmentDescriptorSetIndex(s, d),
                _slots(table, table.getDescriptorBindingSlotsHandle(s, d)),
            )
            for d in range(table.getSegmentDescriptorSetInfosSize(s))
        ),
        inputs=_slots(table, table.getSegmentInputBindingSlotsHandle(s)),
        outputs=_slots(table, table.getSegmentOutputBindingSlotsHandle(s)),
        # pairs of id and index; files before 0.5 have only indices, which the library returns as (i, i)
        constants=tuple(
            vgf_model.GraphConstant(binding.graphConstantId, binding.constantIndex)
            for binding in table.getSegmentConstantBindings(s)
        ),
        dispatch_shape=_dispatch_shape(table.getSegmentDispatchShape(s), path, s),
        push_constant_ranges=_push_constant_ranges(table, table.getSegmentPushConstRange(s)),
    )


def _slots(table: VgfObject, handle: VgfObject) -> tuple[vgf_model.Slot, ...]:
    return tuple(
        vgf_model.Slot(table.getBindingSlotBinding(handle, i), table.getBindingSlotMrtIndex(handle, i))
        for i in range(table.getBindingsSize(handle))
    )


def _names(table: VgfObject, handle: VgfObject) -> tuple[str, ...]:
    return tuple(table.getName(handle, i) for i in range(table.getNamesSize(handle)))


def _dispatch_shape(view: memoryview | None, path: str, s: int) -> tuple[int, int, int]:
    numbers = (0, 0, 0) if view is None else tuple(view[:4])
    if len(numbers) != 3:
        message = f"expected 3 workgroup counts, found {0 if view is None else len(view)}"
        raise damaged(path, f"/segments/{s}/dispatch_shape", message)
    return numbers


def _push_constant_ranges(table: VgfObject, handle: VgfObject) -> tuple[vgf_model.PushConstantRange, ...]:
    return tuple(
        vgf_model.PushConstantRange(
            table.getPushConstRangeStageFlags(handle, i),
            table.getPushConstRangeOffset(handle, i),
            table.getPushConstRangeSize(handle, i),
        )
        for i in range(table.getPushConstRangesSize(handle))
    )


class Content(NamedTuple):
    """The bytes of a VGF model in memory, or from ``start_bytes`` of a file.

    A file is read, never mapped: truncating a mapped file ends the process.
    """

    source: memoryview | SourceFile
    size_bytes: int
    start_bytes: int = 0

    def part(self, offset: int, size: int) -> memoryview:
        """Return ``size`` bytes from an offset on, or fewer at the end. A part of memory is a view."""
        if isinstance(self.source, memoryview):
            return self.source[offset : offset + size]
        return memoryview(self.source.read(max(0, min(size, self.size_bytes - offset)), self.start_bytes + offset))


class Section(NamedTuple):
    """A part of the file, checked to lie within it."""

    name: str
    offset_bytes: int
    size_bytes: int


_TAG = b"CONST00\0"
_START_BYTES = 16
_RECORD = struct.Struct("<IiQQ")
_DENSE = -1
_ALIGNMENT = 8
_CONSTANTS_SIZE_AT = 72  # in the header


def read_constants(content: Content, section: Section, path: str) -> tuple[vgf_model.Constant, ...]:
    """Decode the constant section. Raises FileError for a damaged section."""
    if not section.size_bytes:
        return ()
    start = content.part(section.offset_bytes, min(_START_BYTES, section.size_bytes))
    if bytes(start[: len(_TAG)]) == _TAG:
        rows = _raw_constants(content, section, start, path)
    else:
        rows = _constants_of_table(content.part(section.offset_bytes, section.size_bytes), path)
    constants = []
    for i, constant in enumerate(rows):
        sparsity = constant.sparsity_dimension
        if sparsity is not None and sparsity < _DENSE:
            message = f"the sparsity dimension is {sparsity}, expected -1 (dense) or an axis"
            raise damaged(path, f"/constants/{i}/sparsity_dimension", message)
        constants.append(constant._replace(sparsity_dimension=None) if sparsity == _DENSE else constant)
    return tuple(constants)


def _raw_constants(content: Content, section: Section, start: memoryview, path: str) -> Iterator[vgf_model.Constant]:
    """Yield the constants of a raw section, which begins with ``start``. Dense data have the dimension -1."""
    room = (section.size_bytes - _START_BYTES) // _RECORD.size
    count = struct.unpack_from("<Q", start, len(_TAG))[0] if room >= 0 else 1
    if count > room:
        message = f"{count} constants do not fit into the constant section of {section.size_bytes} bytes"
        raise damaged(path, "/constants", message, CUT)
    records = content.part(section.offset_bytes + _START_BYTES, count * _RECORD.size)
    payload_offset = section.offset_bytes + _START_BYTES + count * _RECORD.size
    payload_size = section.size_bytes - _START_BYTES - count * _RECORD.size
    for i, (resource_index, sparsity, size, offset) in enumerate(_RECORD.iter_unpack(records)):
        if offset + size > payload_size:
            message = f"the record places the data at bytes {offset} to {offset + size} of {payload_size}"
            raise damaged(path, f"/constants/{i}", message, CUT)
        place = payload_offset + offset
        data = content.part(place, size) if isinstance(content.source, memoryview) else None
        yield vgf_model.Constant(resource_index, sparsity, size, content.start_bytes + place, data)


def _constants_of_table(section: memoryview, path: str) -> Iterator[vgf_model.Constant]:
    """Yield the constants of an older file. Dense data have the dimension -1."""
    table = decoder("CreateConstantDecoder", section, path, "constant")
    for i in range(table.size()):
        view = table.getConstant(i)
        data = memoryview(b"" if view is None else bytes(view))
        sparsity = table.getConstantSparsityDimension(i)
        yield vgf_model.Constant(table.getConstantMrtIndex(i), sparsity, data.nbytes, None, data)


def vgf_parts(vgf: vgf_model.Vgf) -> list[bytes | memoryview]:
    """Encode a model in the newest format. Return the file in parts; equal models give equal bytes.

    The data of constants must be in memory, and every index must be valid (`find_problems`), since the library checks
    nothing. Raises MissingPackageError if the ``ml`` extra is missing.
    """
    vgfpy = library("writing")
    encoder = vgfpy.CreateEncoder(0)
    modules = [encoder.AddModule(*_module_arguments(vgfpy, module)) for module in vgf.modules]
    resources = [_add_resource(encoder, resource) for resource in vgf.resources]
    # The data follow below: the library would copy them three times.
    constants = [encoder.AddConstant(resources[row.resource_index], b"", _sparsity(row)) for row in vgf.constants]

    def slots(slots: Iterable[vgf_model.Slot]) -> list[VgfObject]:
        return [encoder.AddBindingSlot(slot.binding, resources[slot.resource_index]) for slot in slots]

    for segment in vgf.segments:
        links = [vgfpy.GraphConstantBindingRef(link.id, constants[link.constant_index]) for link in segment.constants]
        encoder.AddSegmentInfo(
            modules[segment.module_index],
            segment.name,
            [encoder.AddDescriptorSetInfo(slots(bound), number) for number, bound in segment.descriptor_sets],
            slots(segment.inputs),
            slots(segment.outputs),
            dispatchShape=list(segment.dispatch_shape),
            pushConstRanges=[encoder.AddPushConstRange(*part) for part in segment.push_constant_ranges],
            **({"constantBindings": links} if links else {}),
        )
    inputs, outputs = slots(vgf.inputs), slots(vgf.outputs)
    encoder.AddModelSequenceInputsOutputs(inputs, list(vgf.input_names), outputs, list(vgf.output_names))
    encoder.Finish()
    file = io.BytesIO()
    if not encoder.WriteTo(file):
        raise MemoryError
    tables = bytearray(file.getvalue())
    section = raw_section(vgf.constants)
    # the constant section is last; in the header the section's size follows the offset
    struct.pack_into("<Q", tables, _CONSTANTS_SIZE_AT, sum(memoryview(part).nbytes for part in section))
    (start,) = struct.unpack_from("<Q", tables, _CONSTANTS_SIZE_AT - 8)
    return [memoryview(tables)[:start], *section]


def _module_arguments(vgfpy: VgfObject, module: vgf_model.Module) -> list[VgfObject]:
    kind = vgfpy.ModuleType.Compute if module.type == "compute" else vgfpy.ModuleType.Graph
    arguments = [kind, module.name, module.entry_point]
    if isinstance(module.code, bytes):
        arguments.append(memoryview(module.code).cast("I").tolist())
    elif module.code is not None:
        language = vgfpy.ShaderType.Hlsl if module.language == "HLSL" else vgfpy.ShaderType.Glsl
        arguments += [language, module.code]
    return arguments


def _add_resource(encoder: VgfObject, resource: vgf_model.ModelResource) -> VgfObject:
    shape, strides = list(resource.shape), list(resource.strides)
    if resource.category == "constant":
        return encoder.AddConstantResource(resource.format, shape, strides)
    add = getattr(encoder, f"Add{resource.category.title()}Resource")
    added = add(resource.descriptor_type, resource.format, shape, strides, resource.alias_group)
    if resource.sampler is not None:
        encoder.AddSamplerConfig(added, *resource.sampler)
    return added


def _sparsity(constant: vgf_model.Constant) -> int:
    return _DENSE if constant.sparsity_dimension is None else constant.sparsity_dimension


def raw_section(constants: Sequence[vgf_model.Constant]) -> list[bytes | memoryview]:
    """Encode constants with data in memory. Return the section in parts."""
    parts: list[bytes | memoryview] = []
    records, offset = [], 0
    for constant in constants:
        assert constant.data is not None, "the caller has read the constants of files"
        records.append(_RECORD.pack(constant.resource_index, _sparsity(constant), constant.data.nbytes, offset))
        padding = bytes(-constant.data.nbytes % _ALIGNMENT)
        parts += [constant.data, padding]
        offset += constant.data.nbytes + len(padding)
    return [_TAG, len(constants).to_bytes(8, "little"), *records, *parts]
