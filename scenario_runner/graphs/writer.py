"""Writing a VGF file with ``vgfpy``: the other way round of `reader`."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from scenario_runner.errors import MissingPackageError
from scenario_runner.graphs.model import ModelResource, Module, Segment, Slot, Vgf
from scenario_runner.graphs.reader import put_constants_size, raw_section


def vgf_parts(vgf: Vgf) -> list[bytes | memoryview]:
    """The parts, one after the other, of a file with this model, in the newest format; equal models give equal bytes.

    The data of constants must be in memory, and every index must lead somewhere (`find_problems`): the library checks
    nothing. Raises MissingPackageError without the ``ml`` extra.
    """
    try:
        import vgfpy
    except ImportError as error:
        raise MissingPackageError(
            "writing VGF files needs the package ai_ml_sdk_vgf_library, which is not installed",
            help="install it with 'scenario-runner doctor --fix', or: pip install ai_ml_sdk_vgf_library",
        ) from error
    writer = _Writer(vgfpy)
    for module in vgf.modules:
        writer.module(module)
    for resource in vgf.resources:
        writer.resource(resource)
    for constant in vgf.constants:
        sparsity = -1 if constant.sparsity_dimension is None else constant.sparsity_dimension
        writer.constants.append(
            # The data are written below: the library would copy them three times.
            writer.encoder.AddConstant(writer.resources[constant.resource_index], b"", sparsity)
        )
    for segment in vgf.segments:
        writer.segment(segment)
    writer.encoder.AddModelSequenceInputsOutputs(
        writer.slots(vgf.inputs), list(vgf.input_names), writer.slots(vgf.outputs), list(vgf.output_names)
    )
    writer.encoder.Finish()
    file = io.BytesIO()
    if not writer.encoder.WriteTo(file):
        raise MemoryError
    tables = bytearray(file.getvalue())
    constants = raw_section(vgf.constants)
    start = put_constants_size(tables, sum(memoryview(part).nbytes for part in constants))
    return [memoryview(tables)[:start], *constants]


class _Writer:
    """An encoder with the references that it has given, in the order of the model's tables."""

    def __init__(self, vgfpy: Any) -> None:
        self.library = vgfpy
        self.encoder = vgfpy.CreateEncoder(0)
        self.modules: list[Any] = []
        self.resources: list[Any] = []
        self.constants: list[Any] = []

    def module(self, module: Module) -> None:
        library = self.library
        kind = library.ModuleType.Compute if module.type == "compute" else library.ModuleType.Graph
        arguments = [kind, module.name, module.entry_point]
        if isinstance(module.code, bytes):
            arguments.append(memoryview(module.code).cast("I").tolist())
        elif module.code is not None:
            language = library.ShaderType.Hlsl if module.language == "HLSL" else library.ShaderType.Glsl
            arguments += [language, module.code]
        self.modules.append(self.encoder.AddModule(*arguments))

    def resource(self, resource: ModelResource) -> None:
        encoder = self.encoder
        shape, strides = list(resource.shape), list(resource.strides)
        if resource.category == "constant":
            self.resources.append(encoder.AddConstantResource(resource.format, shape, strides))
            return
        add = {
            "input": encoder.AddInputResource,
            "output": encoder.AddOutputResource,
            "intermediate": encoder.AddIntermediateResource,
        }[resource.category]
        added = add(resource.descriptor_type, resource.format, shape, strides, resource.alias_group)
        if resource.sampler is not None:
            sampler = resource.sampler
            encoder.AddSamplerConfig(
                added,
                sampler.min_filter,
                sampler.mag_filter,
                sampler.address_mode_u,
                sampler.address_mode_v,
                sampler.border_color,
            )
        self.resources.append(added)

    def slots(self, slots: Iterable[Slot]) -> list[Any]:
        return [self.encoder.AddBindingSlot(slot.binding, self.resources[slot.resource_index]) for slot in slots]

    def segment(self, segment: Segment) -> None:
        encoder, library = self.encoder, self.library
        constants = [
            library.GraphConstantBindingRef(each.id, self.constants[each.constant_index]) for each in segment.constants
        ]
        encoder.AddSegmentInfo(
            self.modules[segment.module_index],
            segment.name,
            [encoder.AddDescriptorSetInfo(self.slots(each.slots), each.index) for each in segment.descriptor_sets],
            self.slots(segment.inputs),
            self.slots(segment.outputs),
            dispatchShape=list(segment.dispatch_shape),
            pushConstRanges=[
                encoder.AddPushConstRange(each.stage_flags, each.offset_bytes, each.size_bytes)
                for each in segment.push_constant_ranges
            ],
            **({"constantBindings": constants} if constants else {}),
        )
