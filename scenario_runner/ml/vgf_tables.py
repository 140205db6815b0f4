"""The tables of a VGF file, which ``vgfpy`` decodes: modules, resources, and the sequence of segments."""

from typing import Any, TypeAlias, TypeVar

from scenario_runner.errors import FileError, MissingPackageError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.installation import requirement
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

    Raises MissingPackageError without the library, and FileError if the library rejects the section.
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
