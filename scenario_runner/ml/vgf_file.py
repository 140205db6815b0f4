"""Reading of VGF files: the header, the checks of cross references, and the joining of rows with the same value.

If an index is invalid, nothing else is checked. Each check takes time linear in the size of the file.
"""

import os
import struct
from collections.abc import Callable, Iterator
from itertools import chain, count, islice
from typing import NamedTuple, TypeVar

from scenario_runner.errors import UnsupportedError, error_of, file_error, log
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.input import VGF_SIGNATURE, Identity, SourceFile, recognized
from scenario_runner.ml.flatbuffers import in_program_order, is_program, join_models, read_program
from scenario_runner.ml.vgf_model import IMAGE_TYPES, Segment, Slot, Vgf
from scenario_runner.ml.vgf_tables import (
    CUT,
    Content,
    Section,
    damaged,
    read_constants,
    read_modules,
    read_resources,
    read_sequence,
)

_models: dict[Identity, Vgf] = {}
MOST_MODELS = 4
"""A process that runs many models keeps only the last ones."""


SIZE_BYTES = 128
_LEGACY_MAGIC = struct.pack("<I", 0xF0E1D2C3)
_TOSA = b"TOSA"  # behind the first offset of a FlatBuffer
_OLDEST, _NEWEST = (0, 3), (0, 5)
_SECTION_NAMES = ("module", "model sequence", "model resource", "constant")
# Offsets in FlatBuffers have 32 bits and are partly signed, so no buffer is larger.
_FLATBUFFER_LIMIT_BYTES = 2**31 - 1


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
                f"the header places the {name} section at bytes {offset} to {offset + size}, "
                f"but the file has {file_size_bytes} bytes, and the first {SIZE_BYTES} are the header"
            )
            raise damaged(path, "/header", message, CUT)
        if name != "constant" and size > _FLATBUFFER_LIMIT_BYTES:
            message = f"the {name} section has {size} bytes, but at most {_FLATBUFFER_LIMIT_BYTES} are possible"
            raise damaged(path, "/header", message)
        sections.append(Section(name, offset, size))
    return Header((major, minor, patch), *sections)


_Table = TypeVar("_Table")


def read_vgf(path: str | os.PathLike[str]) -> Vgf:
    """Read a VGF file (formats 0.3 to 0.5).

    The data of constants are not read, only their places. `find_problems` checks every index, size and cross reference,
    so that callers need not. Raises FileError for an unreadable or invalid file, and UnsupportedError if
    the ``ml`` extra is missing.
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
        log.warning(__name__, "%s: the program's operators outside the VGF model are not run: %s", file.path, others)
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


def join_by_number(vgf: Vgf) -> Vgf:
    """Join segment rows and model rows with the same number as alias groups, unless the sizes differ.

    A model with invalid indices stays unchanged, since `find_problems` reports it.
    """
    if next(_indices(vgf), None) is not None:
        return vgf
    rows = vgf.resources
    old_groups = [row.alias_group for row in rows]
    groups = old_groups.copy()
    new = count(max((group for group in groups if group is not None), default=-1) + 1)
    for row, listed in _joins(vgf):
        is_constant = "constant" in (rows[row].category, rows[listed].category)
        if is_constant or rows[row].size_bytes != rows[listed].size_bytes:
            continue
        group = next(new) if groups[listed] is None else groups[listed]
        joined = groups[row]
        groups[row] = groups[listed] = group
        if joined not in (None, group):
            groups = [group if known == joined else known for known in groups]
    if groups == old_groups:
        return vgf
    joined_rows = (row._replace(alias_group=group) for row, group in zip(rows, groups, strict=True))
    return vgf._replace(resources=tuple(joined_rows))


def _joins(vgf: Vgf) -> Iterator[tuple[int, int]]:
    """Yield pairs of rows: a row of a segment, and the row that the model lists under the same number."""
    inputs, outputs = dict(vgf.inputs[::-1]), dict(vgf.outputs[::-1])
    outside = {vgf.value(slot.resource_index) for slot in (*vgf.inputs, *vgf.outputs)}
    written = {vgf.value(slot.resource_index) for segment in vgf.segments for slot in segment.outputs}
    done: set[tuple[str, int]] = set()
    for segment in vgf.segments:
        for slot in segment.inputs:
            value = vgf.value(slot.resource_index)
            known = inputs.get(slot.binding, outputs.get(slot.binding))
            if known is not None and value not in outside and value not in done:
                yield slot.resource_index, known
        for slot in segment.outputs:
            value = vgf.value(slot.resource_index)
            known = outputs.get(slot.binding)
            is_listed = vgf.resources[slot.resource_index].category in ("input", "output")
            if known is not None and value not in outside and (is_listed or vgf.value(known) not in written):
                yield slot.resource_index, known
            done.add(value)


_Finding = tuple[str, str]
"""A JSON pointer into the result of `describe`, and the problem there."""

_MOST_PROBLEMS = 20


def find_problems(vgf: Vgf, path: str) -> list[Diagnostic]:
    """List the first 20 problems of a file, in file order; the list is empty for a sound file."""
    findings = list(islice(_indices(vgf), _MOST_PROBLEMS))
    if not findings:
        checks = (_resources, _alias_groups, _constants, _segments)
        findings = list(islice(chain.from_iterable(check(vgf) for check in checks), _MOST_PROBLEMS))
    return [Diagnostic("SR-FILE-013", "error", pointer, message, path=path) for pointer, message in findings]


def _all_slots(vgf: Vgf) -> Iterator[tuple[str, Slot]]:
    """Iterate over all slots of the file with their places."""
    lists: list[tuple[str, tuple[Slot, ...]]] = [("/inputs", vgf.inputs), ("/outputs", vgf.outputs)]
    for s in vgf.segments:
        lists += [(f"/segments/{s.index}/inputs", s.inputs), (f"/segments/{s.index}/outputs", s.outputs)]
        lists += [(f"/segments/{s.index}/descriptor_sets/{d}/slots", x.slots) for d, x in enumerate(s.descriptor_sets)]
    for place, slots in lists:
        for i, slot in enumerate(slots):
            yield f"{place}/{i}", slot


def _indices(vgf: Vgf) -> Iterator[_Finding]:
    def outside(place: str, kind: str, index: int, count: int) -> Iterator[_Finding]:
        if not 0 <= index < count:
            yield place, f"the {kind} index is {index}, but the file has {count} of them"

    for i, constant in enumerate(vgf.constants):
        yield from outside(f"/constants/{i}", "resource", constant.resource_index, len(vgf.resources))
    for place, slot in _all_slots(vgf):
        yield from outside(place, "resource", slot.resource_index, len(vgf.resources))
    for segment in vgf.segments:
        place = f"/segments/{segment.index}"
        yield from outside(f"{place}/module_index", "module", segment.module_index, len(vgf.modules))
        for i, link in enumerate(segment.constants):
            yield from outside(f"{place}/constants/{i}", "constant", link.constant_index, len(vgf.constants))


def _resources(vgf: Vgf) -> Iterator[_Finding]:
    for i, resource in enumerate(vgf.resources):
        shape, texel = resource.shape, resource.known_format
        image = f"is an image of the shape {list(shape)}"
        if any(size == 0 or size < -1 for size in shape):
            yield f"/resources/{i}", f"has the shape {list(shape)}; a dimension is 1 or more, or -1 when dynamic"
        elif resource.descriptor_type not in IMAGE_TYPES:
            continue
        elif len(shape) not in (3, 4) or (len(shape) == 4 and shape[0] not in (1, -1)):
            yield f"/resources/{i}", f"{image}, expected [H, W, components] or [1, H, W, components]"
        elif texel and shape[-1] not in (texel.components, -1):
            yield f"/resources/{i}", f"{image}, but {texel.name} has {texel.components} components"


def _alias_groups(vgf: Vgf) -> Iterator[_Finding]:
    """Find views of the same value with different sizes. The converter changes the formats of some views for graphs."""
    first_of_group: dict[int, tuple[int, int]] = {}
    for i, resource in enumerate(vgf.resources):
        size, group, texel = resource.size_bytes, resource.alias_group, resource.known_format
        if not size or group is None or texel is None:
            continue
        if resource.descriptor_type not in IMAGE_TYPES and texel.components > 1:
            continue  # the file does not say whether the shape of a buffer counts vectors or components
        first, first_size = first_of_group.setdefault(group, (i, size))
        if size != first_size:
            own = f"{size} bytes (shape {list(resource.shape)}, {resource.format_name})"
            shared = f"resource {first}, which has {first_size} bytes (alias group {group})"
            yield f"/resources/{i}", f"has {own}, but shares the memory of {shared}"


def _constants(vgf: Vgf) -> Iterator[_Finding]:
    for i, constant in enumerate(vgf.constants):
        resource = vgf.resources[constant.resource_index]
        expected = resource.size_bytes
        if min(resource.shape, default=1) < 0:
            dynamic = f"has the dynamic shape {list(resource.shape)}, but the shape of a constant is fixed"
            yield f"/constants/{i}", dynamic
        elif expected is not None and expected != constant.size_bytes:
            needs = f"shape {list(resource.shape)} of {resource.format_name} takes {expected}"
            yield f"/constants/{i}", f"has {constant.size_bytes} bytes of data, but {needs}"


def _segments(vgf: Vgf) -> Iterator[_Finding]:
    reached = {vgf.value(slot.resource_index) for slot in (*vgf.inputs, *vgf.outputs)}
    for segment in vgf.segments:
        place = f"/segments/{segment.index}"
        module = vgf.modules[segment.module_index]
        if module.type != segment.type:
            yield place, f"is a {segment.type} segment, but its module {module.name!r} is a {module.type} module"
        elif segment.type == "graph" and module.language != "SPIR-V":
            code = f"its module {module.name!r} has {module.language or 'no'} code, expected SPIR-V"
            yield place, f"is a graph, but {code}"
        for d, descriptor_set in enumerate(segment.descriptor_sets):
            bound: dict[int, int] = {}
            for i, slot in enumerate(descriptor_set.slots):
                index, here = slot.resource_index, f"{place}/descriptor_sets/{d}/slots/{i}"
                category, first = vgf.resources[index].category, bound.setdefault(slot.binding, index)
                if first != index:
                    yield here, f"the binding {slot.binding} is used twice, for the resources {first} and {index}"
                if vgf.resources[index].descriptor_type is None:
                    yield here, f"binds resource {index}, which has no descriptor type"
                elif category in ("input", "output") and vgf.value(index) not in reached:
                    yield here, f"uses resource {index}, an {category} that the model does not list as one"


def unwritten_inputs(vgf: Vgf) -> Iterator[tuple[Segment, Slot]]:
    """Yield inputs of segments that the caller does not bind and no earlier segment writes."""
    written = {vgf.value(i) for i, resource in enumerate(vgf.resources) if resource.category == "input"}
    written.update(vgf.value(slot.resource_index) for slot in vgf.outputs)
    for segment in vgf.segments:
        for slot in segment.inputs:
            if vgf.value(slot.resource_index) not in written:
                yield segment, slot
        written.update(vgf.value(slot.resource_index) for slot in segment.outputs)
