"""A VGF file as the library alone reads it: what the tests compare our dataclasses with, field by field."""

from __future__ import annotations

from typing import Any

import vgfpy


def library_view(file: bytes) -> dict[str, Any]:
    """Every value of a sound file, as plain tuples and lists."""
    h = vgfpy.CreateHeaderDecoder(file, vgfpy.HeaderSize(), len(file))

    def section(create: Any, offset: int, size: int) -> tuple[Any, bytes]:
        data = file[offset : offset + size]
        return create(data, size), data

    # The bytes are kept beside their decoder, whose views do not keep them.
    modules, _a = section(vgfpy.CreateModuleTableDecoder, h.GetModuleTableOffset(), h.GetModuleTableSize())
    sequence, _b = section(
        vgfpy.CreateModelSequenceTableDecoder, h.GetModelSequenceTableOffset(), h.GetModelSequenceTableSize()
    )
    resources, _c = section(
        vgfpy.CreateModelResourceTableDecoder, h.GetModelResourceTableOffset(), h.GetModelResourceTableSize()
    )
    constants, _d = section(vgfpy.CreateConstantDecoder, h.GetConstantsOffset(), h.GetConstantsSize())
    return {
        "version": (h.GetMajor(), h.GetMinor(), h.GetPatch()),
        "modules": [_module(modules, i) for i in range(modules.size())],
        "resources": [_resource(resources, i) for i in range(resources.size())],
        "segments": [_segment(sequence, s) for s in range(sequence.modelSequenceTableSize())],
        "constants": [_constant(constants, i) for i in range(constants.size())],
        "inputs": _slots(sequence, sequence.getModelSequenceInputBindingSlotsHandle()),
        "outputs": _slots(sequence, sequence.getModelSequenceOutputBindingSlotsHandle()),
        "input_names": _names(sequence, sequence.getModelSequenceInputNamesHandle()),
        "output_names": _names(sequence, sequence.getModelSequenceOutputNamesHandle()),
    }


def _module(table: Any, i: int) -> tuple[Any, ...]:
    code: Any = None
    if table.hasSPIRVCode(i):
        code = bytes(table.getSPIRVModuleCode(i))
    elif table.hasGLSLCode(i) or table.hasHLSLCode(i):
        code = table.getGLSLModuleCode(i) or table.getHLSLModuleCode(i)
    return table.getModuleType(i).name.lower(), table.getModuleName(i), table.getModuleEntryPoint(i), code


def _resource(table: Any, i: int) -> tuple[Any, ...]:
    sampler = table.getSamplerConfigHandle(i)
    fields = ("MinFilter", "MagFilter", "AddressModeU", "AddressModeV", "BorderColor")
    return (
        table.getCategory(i).name.lower(),
        table.getDescriptorType(i),
        table.getVkFormat(i),
        tuple(table.getTensorShape(i) or ()),
        tuple(table.getTensorStride(i) or ()),
        table.getAliasGroupId(i),
        sampler and tuple(getattr(table, f"getSamplerConfig{field}")(sampler) for field in fields),
    )


def _segment(table: Any, s: int) -> tuple[Any, ...]:
    ranges = table.getSegmentPushConstRange(s)
    return (
        s,
        table.getSegmentType(s).name.lower(),
        table.getSegmentName(s),
        table.getSegmentModuleIndex(s),
        [
            (table.getSegmentDescriptorSetIndex(s, d), _slots(table, table.getDescriptorBindingSlotsHandle(s, d)))
            for d in range(table.getSegmentDescriptorSetInfosSize(s))
        ],
        _slots(table, table.getSegmentInputBindingSlotsHandle(s)),
        _slots(table, table.getSegmentOutputBindingSlotsHandle(s)),
        [(link.graphConstantId, link.constantIndex) for link in table.getSegmentConstantBindings(s)],
        tuple(table.getSegmentDispatchShape(s)),
        [
            (
                table.getPushConstRangeStageFlags(ranges, i),
                table.getPushConstRangeOffset(ranges, i),
                table.getPushConstRangeSize(ranges, i),
            )
            for i in range(table.getPushConstRangesSize(ranges))
        ],
    )


def _constant(table: Any, i: int) -> tuple[Any, ...]:
    sparsity = table.getConstantSparsityDimension(i)
    return table.getConstantMrtIndex(i), None if sparsity == -1 else sparsity, bytes(table.getConstant(i))


def _slots(table: Any, handle: Any) -> list[tuple[int, int]]:
    return [
        (table.getBindingSlotBinding(handle, i), table.getBindingSlotMrtIndex(handle, i))
        for i in range(table.getBindingsSize(handle))
    ]


def _names(table: Any, handle: Any) -> list[str]:
    return [table.getName(handle, i) for i in range(table.getNamesSize(handle))]
