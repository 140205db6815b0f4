"""Reading and writing of VGF files: header, tables, constants, cross references.

Since format 0.4 the constant section is raw. It has the tag ``CONST00\0``, a u64 count, a record per constant, and the
payload. A record is {u32 resource, i32 sparsity dimension (-1 dense), u64 size, u64 offset from the end of the
records}. The payload of a file on disk is not read. In older files the section is a FlatBuffers table; the library
reads it, and small constants are copied.
"""

import io
import os
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from scenario_runner.errors import UnsupportedError, error_of, file_error, log
from scenario_runner.files.input import VGF_SIGNATURE, Identity, SourceFile, recognized
from scenario_runner.ml.executorch import in_program_order, is_program, join_models, read_program
from scenario_runner.ml.vgf_check import find_problems, join_by_number
from scenario_runner.ml.vgf_model import Constant, ModelResource, Module, Slot, Vgf
from scenario_runner.ml.vgf_tables import (
    CUT,
    VgfObject,
    damaged,
    decoder,
    library,
    read_modules,
    read_resources,
    read_sequence,
)

_models: dict[Identity, Vgf] = {}
MOST_MODELS = 4
"""A process that runs many models keeps only the last ones."""


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


SIZE_BYTES = 128
_LEGACY_MAGIC = struct.pack("<I", 0xF0E1D2C3)
_TOSA = b"TOSA"  # behind the first offset of a FlatBuffer
_OLDEST, _NEWEST = (0, 3), (0, 5)
_CONSTANTS_SIZE_AT = 72
_SECTION_NAMES = ("module", "model sequence", "model resource", "constant")
# Offsets in FlatBuffers have 32 bits and are partly signed, so no buffer is larger.
_FLATBUFFER_LIMIT_BYTES = 2**31 - 1


class Section(NamedTuple):
    """A part of the file, checked to lie within it."""

    name: str
    offset_bytes: int
    size_bytes: int


class Header(NamedTuple):
    """The format version, and the sections in the order of the file."""

    version: tuple[int, int, int]
    modules: Section
    sequence: Section
    resources: Section
    constants: Section


def read_header(start: bytes | memoryview, file_size_bytes: int, path: str) -> Header:
    """Read and check the header at the beginning of ``start``.

    Raises FileError for another kind of file, an unknown version and a truncated file.
    """
    if len(start) < SIZE_BYTES:
        message = f"the file has {file_size_bytes} bytes, but a VGF file begins with a header of {SIZE_BYTES} bytes"
        raise damaged(path, "/header", message)
    magic = bytes(start[:4])
    if start[4:8] == _TOSA:
        message = "this is a TOSA model, which has to be converted to VGF first"
        raise damaged(path, "/header", message, f"scenario-runner convert {path} -o MODEL.vgf", "SR-FILE-014")
    if magic not in (VGF_SIGNATURE, _LEGACY_MAGIC):
        if (kind := recognized(start, path)) is not None:
            raise damaged(path, "/header", f"this is {kind[0]}, expected a VGF file", kind[1], "SR-FILE-014")
        message = f"this is not a VGF file: it begins with {magic!r} where {VGF_SIGNATURE!r} is expected"
        raise damaged(path, "/header", message)
    major, minor, patch = start[8:11]
    if not _OLDEST <= (major, minor) <= _NEWEST:
        message = f"the file has the VGF format {major}.{minor}.{patch}, but formats 0.3 to 0.5 can be read"
        help = "convert the model again with a model converter that writes one of these formats"
        raise damaged(path, "/header", message, help, "SR-FILE-014")
    numbers = struct.unpack_from("<8Q", start, 16)
    sections = []
    for name, offset, size in zip(_SECTION_NAMES, numbers[::2], numbers[1::2], strict=True):
        if offset < SIZE_BYTES or offset + size > file_size_bytes:
            message = (
                f"the {name} section is said to be bytes {offset} to {offset + size}, "
                f"but the file has {file_size_bytes} bytes, the header's {SIZE_BYTES} included"
            )
            raise damaged(path, "/header", message, CUT)
        if name != "constant" and size > _FLATBUFFER_LIMIT_BYTES:
            message = f"the {name} section has {size} bytes, but at most {_FLATBUFFER_LIMIT_BYTES} are possible"
            raise damaged(path, "/header", message)
        sections.append(Section(name, offset, size))
    return Header((major, minor, patch), *sections)


_TAG = b"CONST00\0"
_START_BYTES = 16
_RECORD = struct.Struct("<IiQQ")
_DENSE = -1
_ALIGNMENT = 8


def read_constants(content: Content, section: Section, path: str) -> tuple[Constant, ...]:
    """Decode the constant section. Raises FileError for a damaged section."""
    if not section.size_bytes:
        return ()
    start = content.part(section.offset_bytes, min(_START_BYTES, section.size_bytes))
    if bytes(start[: len(_TAG)]) != _TAG:
        return _read_flatbuffer(content.part(section.offset_bytes, section.size_bytes), path)
    return _read_raw(content, section, start, path)


def raw_section(constants: Sequence[Constant]) -> list[bytes | memoryview]:
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


def _read_raw(content: Content, section: Section, start: memoryview, path: str) -> tuple[Constant, ...]:
    room = (section.size_bytes - _START_BYTES) // _RECORD.size
    count = struct.unpack_from("<Q", start, len(_TAG))[0] if room >= 0 else 1
    if count > room:
        message = f"{count} constants do not fit into the constant section of {section.size_bytes} bytes"
        raise damaged(path, "/constants", message, CUT)
    records = content.part(section.offset_bytes + _START_BYTES, count * _RECORD.size)
    payload_offset = section.offset_bytes + _START_BYTES + count * _RECORD.size
    payload_size = section.size_bytes - _START_BYTES - count * _RECORD.size
    constants = []
    for i, (resource_index, sparsity, size, offset) in enumerate(_RECORD.iter_unpack(records)):
        if offset + size > payload_size:
            message = f"the data are said to be bytes {offset} to {offset + size} of {payload_size}"
            raise damaged(path, f"/constants/{i}", message, CUT)
        place = payload_offset + offset
        data = content.part(place, size) if isinstance(content.source, memoryview) else None
        constants.append(_constant(i, resource_index, sparsity, size, path, content.start_bytes + place, data))
    return tuple(constants)


def _read_flatbuffer(section: memoryview, path: str) -> tuple[Constant, ...]:
    table = decoder("CreateConstantDecoder", section, path, "constant")
    constants = []
    for i in range(table.size()):
        view = table.getConstant(i)
        data = memoryview(b"" if view is None else bytes(view))
        sparsity = table.getConstantSparsityDimension(i)
        constants.append(_constant(i, table.getConstantMrtIndex(i), sparsity, data.nbytes, path, None, data))
    return tuple(constants)


def _constant(
    i: int, resource_index: int, sparsity: int, size: int, path: str, offset: int | None, data: memoryview | None
) -> Constant:
    if sparsity < _DENSE:
        message = f"the sparsity dimension is {sparsity}, expected -1 (dense) or an axis"
        raise damaged(path, f"/constants/{i}/sparsity_dimension", message)
    return Constant(resource_index, None if sparsity == _DENSE else sparsity, size, offset, data)


_Table = TypeVar("_Table")


def read_vgf(path: str | os.PathLike[str]) -> Vgf:
    """Read a VGF file (formats 0.3 to 0.5).

    The data of constants are not read, only their places. `find_problems` checks every index, size and cross reference,
    so that callers need not. Raises FileError for an unreadable or invalid file, and UnsupportedError without the
    ``ml`` extra.
    """
    with SourceFile(path) as file:
        return read_open_vgf(file)


def read_open_vgf(file: SourceFile) -> Vgf:
    """Read an open file as `read_vgf` does. The models of an ExecuTorch program are joined."""
    if not is_program(file):
        return _parsed(Content(file, file.size_bytes), file.path)
    program = read_program(file)
    others = ", ".join(dict.fromkeys(program.others))
    if others and len(program.calls) > 1:
        raise UnsupportedError(
            f"between its {len(program.calls)} VGF models the ExecuTorch program runs other operators: {others:.300}",
            help="scenario-runner vgf extract writes the models, to be run one by one",
        ).at(path=file.path)
    if others:
        log.warning(__name__, "%s: operators of the program around its model are not run: %s", file.path, others)
    models = [_parsed(Content(file, call.part.size_bytes, call.part.offset_bytes), file.path) for call in program.calls]
    if len(models) == 1:
        return in_program_order(program, models[0])
    try:
        joined = join_models(program, models)
    except ValueError as error:
        raise file_error(file.path, "is a damaged ExecuTorch program", code="SR-FILE-013") from error
    if problems := find_problems(joined, file.path):
        raise error_of(problems)
    return joined


def parse_vgf(content: bytes | bytearray | memoryview, *, name: str = "<memory>") -> Vgf:
    """Read a VGF file in memory; the data of constants are views of ``content``. Messages begin with ``name``.

    Raises as `read_vgf` does.
    """
    view = memoryview(content).cast("B").toreadonly()
    return _parsed(Content(view, view.nbytes), name)


def _parsed(content: Content, name: str) -> Vgf:
    header = read_header(content.part(0, SIZE_BYTES), content.size_bytes, name)

    def table(read: Callable[[bytes, str], _Table], section: Section) -> _Table:
        # The library verifies a table once and then trusts it. So it gets a copy, which nothing can change.
        copied = bytes(content.part(section.offset_bytes, section.size_bytes))
        try:
            return read(copied, name)
        except UnicodeDecodeError as error:
            message = f"a text of the {section.name} section is not valid UTF-8"
            raise damaged(name, None, message, "the file is damaged") from error

    vgf = Vgf(
        version=header.version,
        modules=table(read_modules, header.modules),
        resources=table(read_resources, header.resources),
        constants=read_constants(content, header.constants, name),
        **table(read_sequence, header.sequence),
    )
    vgf = join_by_number(vgf)
    if problems := find_problems(vgf, name):
        raise error_of(problems)
    return vgf


def vgf_parts(vgf: Vgf) -> list[bytes | memoryview]:
    """Encode a model in the newest format. Return the file in parts; equal models give equal bytes.

    The data of constants must be in memory, and every index must be valid (`find_problems`), since the library checks
    nothing. Raises MissingPackageError without the ``ml`` extra.
    """
    vgfpy = library("writing")
    encoder = vgfpy.CreateEncoder(0)
    modules = [encoder.AddModule(*_module_arguments(vgfpy, module)) for module in vgf.modules]
    resources = [_add_resource(encoder, resource) for resource in vgf.resources]
    # The data follow below: the library would copy them three times.
    constants = [encoder.AddConstant(resources[row.resource_index], b"", _sparsity(row)) for row in vgf.constants]

    def slots(slots: Iterable[Slot]) -> list[VgfObject]:
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


def _module_arguments(vgfpy: VgfObject, module: Module) -> list[VgfObject]:
    kind = vgfpy.ModuleType.Compute if module.type == "compute" else vgfpy.ModuleType.Graph
    arguments = [kind, module.name, module.entry_point]
    if isinstance(module.code, bytes):
        arguments.append(memoryview(module.code).cast("I").tolist())
    elif module.code is not None:
        language = vgfpy.ShaderType.Hlsl if module.language == "HLSL" else vgfpy.ShaderType.Glsl
        arguments += [language, module.code]
    return arguments


def _add_resource(encoder: VgfObject, resource: ModelResource) -> VgfObject:
    shape, strides = list(resource.shape), list(resource.strides)
    if resource.category == "constant":
        return encoder.AddConstantResource(resource.format, shape, strides)
    add = getattr(encoder, f"Add{resource.category.title()}Resource")
    added = add(resource.descriptor_type, resource.format, shape, strides, resource.alias_group)
    if resource.sampler is not None:
        encoder.AddSamplerConfig(added, *resource.sampler)
    return added


def _sparsity(constant: Constant) -> int:
    return _DENSE if constant.sparsity_dimension is None else constant.sparsity_dimension


def read_model(path: str) -> tuple[Vgf, Identity]:
    """Return the kept model of an unchanged VGF file, or read the file with `read_vgf`.

    Return the model and the identity of the file.
    """
    with SourceFile(path) as file:
        model = _models.pop(file.identity, None) or read_open_vgf(file)
        if file.identity.settled:
            _models[file.identity] = model
            if len(_models) > MOST_MODELS:
                del _models[next(iter(_models))]
        return model, file.identity


def forget_models() -> None:
    """Drop all kept models."""
    _models.clear()
