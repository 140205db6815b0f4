"""Attributes that match a shader's interface, for authors who embed the shader in a model."""

import base64
import os
from collections.abc import Iterable, Sequence
from typing import Literal

from scenario_runner.checks.bindings import Slot, format_of, slots_of
from scenario_runner.checks.entry_points import find_entry_point, refuse_errors
from scenario_runner.errors import UsageError
from scenario_runner.files.vk_formats import all_formats
from scenario_runner.ml.vgf_model import COMBINED_IMAGE_SAMPLER, descriptor_type_name
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import BuildOptions, CompileRequest, assemble, read_source
from scenario_runner.shaders.spirv import DescriptorBinding, Scalar, read_module
from scenario_runner.shaders.spirv.index import MAGIC
from scenario_runner.tosa.shader_agreement import (
    TYPE_OF_KIND,
    check_arrays,
    constants_of,
    format_push_constants,
    number_type,
)

_NUMERIC = {"float": "sfloat", "int": "sint", "uint": "uint", "bool": "bool"}
_SAMPLER = {
    "min_filter": "VK_FILTER_NEAREST",
    "mag_filter": "VK_FILTER_NEAREST",
    "address_mode_u": "VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE",
    "address_mode_v": "VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE",
    "border_color": "VK_BORDER_COLOR_FLOAT_TRANSPARENT_BLACK",
}


def attributes_of_shader(
    path: str,
    *,
    entry_point: str = "main",
    workgroups: tuple[int, int, int] | None = None,
    spirv: bool = False,
    include_dirs: Sequence[str] = (),
    compiler: str | None = None,
    use_cache: bool = True,
) -> dict[str, object]:
    """Make the attributes of the compute shader in the file ``path``, as data for `json.dump`.

    A variable that the shader writes becomes an output, every other variable an input, in the order of sets and
    bindings. Formats come from the declarations; an open format becomes the widest format. ``workgroups`` gives
    workgroup_sizes, by default the shader's local size. With ``spirv`` the attributes have the compiled module instead
    of the source. Raises FileError, CompileError and ShaderError, and UsageError for a source with includes.
    """
    content = code = read_source(path)
    language: Literal["GLSL", "HLSL"] = "HLSL" if path.lower().endswith(".hlsl") else "GLSL"
    is_module = content[:4] == MAGIC.to_bytes(4, "little")
    if not is_module:
        folders = tuple(map(os.path.abspath, include_dirs))
        request = CompileRequest(language, path, content, entry=entry_point, include_dirs=folders, base_dir=os.getcwd())
        if not spirv and len(assemble(request, BuildOptions()).files) > 1:
            message = f"{path}: includes other files, which a model does not carry"
            raise UsageError(message, help="embed the compiled module: --spirv")
        (code,) = compile_all([request], compiler=compiler, use_cache=use_cache)
    module = read_module(code, name=path)
    name = os.path.basename(path)
    entry, problems = find_entry_point(module, name, entry_point, "compute", "")
    refuse_errors(problems, path)
    assert entry is not None
    slots, problems = slots_of([(name, entry.interface)], "")
    refuse_errors([*problems, *check_arrays(slots.values(), "")], path)
    interface = entry.interface
    as_module = spirv or is_module
    attributes: dict[str, object] = {
        "entry_point": entry_point,
        "workgroup_sizes": list(workgroups or interface.local_size() or (1, 1, 1)),
        "shader_language": "SPIR-V" if as_module else language,
        "shader_code": base64.b64encode(code).decode() if as_module else content.decode("utf-8", "replace"),
    }
    if interface.push_constants is not None and interface.push_constants.members:
        attributes["push_constants"] = format_push_constants(constants_of(interface.push_constants))
    return attributes | _resources(slots.values())


def _resources(slots: Iterable[Slot]) -> dict[str, object]:
    """Return the keys of inputs and outputs."""
    attributes: dict[str, object] = {}
    counts = {"input": 0, "output": 0}
    for slot in slots:
        if not slot.used:
            continue
        direction = "output" if any(variable.writes for _, variable in slot.variables) else "input"
        number = TYPE_OF_KIND[slot.kind]
        described = {
            "vkformat": format_name(slot.variable),
            "vkdescriptortype": descriptor_type_name(number),
            "descriptorset": slot.set,
            "binding": slot.binding,
            **({"sampler": dict(_SAMPLER)} if number == COMBINED_IMAGE_SAMPLER else {}),
        }
        attributes |= {f"{direction}_{counts[direction]}_{key}": value for key, value in described.items()}
        counts[direction] += 1
    return attributes


def format_name(variable: DescriptorBinding) -> str:
    """Name a declaration's format, or a format for the declared type."""
    if variable.tensor is not None:
        return _format_named(variable.tensor.element, 1)
    if variable.block is not None:
        element = number_type(variable.block)
        return "VK_FORMAT_R32_UINT" if element is None else _format_named(element, 1)
    image = variable.image
    declared = None if image is None else format_of(image.format)
    if declared is not None:
        return declared.name
    if image is None or image.sampled_type is None:
        return "VK_FORMAT_R32G32B32A32_SFLOAT"
    return _format_named(image.sampled_type, 4)


def _format_named(element: Scalar, components: int) -> str:
    """Name the format with n components of a type; VK_FORMAT_R8_UINT if there is none."""
    numeric = element.encoding.replace("_", "") or _NUMERIC[element.kind]
    bits = (8 if element.is_bool else element.width_bits,) * components
    formats = (format for format in all_formats() if not format.is_packed and "color" in format.aspects)
    names = (format.name for format in formats if (format.numeric, format.channel_bits) == (numeric, bits))
    return next(names, "VK_FORMAT_R8_UINT")
