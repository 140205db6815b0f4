"""Comparison of compiled shaders with their attributes: entry point, workgroups, bindings, push constants, types.

Source: "Vulkan Custom Shader Conversion to VGF"; images hold values of the shape [height, width, components].
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from math import prod
from typing import Final, NamedTuple

from scenario_runner.checks.bindings import (
    Slot,
    check_image,
    check_tensor,
    declared_otherwise,
    described,
    slots_of,
)
from scenario_runner.checks.entry_points import check_blocks, check_workgroup, find_entry_point
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic, error, note, warning
from scenario_runner.errors.text import counted
from scenario_runner.files.vk_formats import Format
from scenario_runner.ml import vgf_model
from scenario_runner.scenario.json_model import shown
from scenario_runner.shaders.compile import compile_each
from scenario_runner.shaders.compilers.search import Compiled
from scenario_runner.shaders.source import CompileRequest
from scenario_runner.shaders.spirv import DescriptorBinding, Interface, Module, read_module
from scenario_runner.shaders.spirv.types import Scalar, Struct, Vector, innermost
from scenario_runner.shaders.spirv_val import check_modules
from scenario_runner.tosa.attribute_parsing import with_places
from scenario_runner.tosa.model import Attributes, PushConstant, Types, ValueType, View

_CODE = "/shader_code"
_ELEMENTS = 4  # an invocation often makes a vec4


def check_agreement(
    attributes: Attributes, module: Module, types: Types | None = None
) -> tuple[Interface | None, list[Diagnostic]]:
    """Compare a module with attributes. Return the interface of the entry point, and the differences.

    Pointers of findings lead into the attributes. ``types`` are the types of operands and results, if known. Raises
    `SpirvError` for an unreadable module.
    """
    name = attributes.operation
    entry, findings = find_entry_point(module, name, attributes.module_entry_point, "compute", "")
    if entry is None:
        return None, [finding._replace(pointer="/entry_point") for finding in findings]
    interface = entry.interface
    findings += check_workgroup(interface, "compute", name, _CODE)
    findings += check_blocks(interface, name, _CODE)[0]
    if not any(finding.severity == "error" for finding in findings):
        findings += check_workgroup_sizes(attributes, interface, types)
    slots, problems = slots_of([(name, interface)], _CODE)
    findings += [*problems, *check_arrays(slots.values(), _CODE)]
    findings += _check_places(attributes, slots)
    for view, type in views_and_types(attributes, types):
        slot = slots.get((view.set, view.binding))
        if slot is not None:
            findings += check_variables(view, slot, type)
    findings += check_types(attributes, types)
    findings += check_push_constants(attributes, interface)
    return interface, findings


def check_workgroup_sizes(attributes: Attributes, interface: Interface, types: Types | None) -> list[Diagnostic]:
    """Find a workgroup_sizes that probably means the local size.

    In a model, the key is the number of workgroups, although the description of the attributes calls it a local size.
    """
    counts, size = attributes.workgroup_sizes, interface.local_size()
    if size is None:
        return []
    invocations = prod(counts) * prod(size)
    most_elements, images = 0, True
    for view, type in views_and_types(attributes, types):
        if view.name.startswith("output") and type.static_shape is not None:
            most_elements = max(most_elements, prod(type.static_shape) // view.format.components)
            images = images and view.is_image
    runs = f"{_times(counts)} workgroups of {_times(size)} invocations"
    help = "write the number of workgroups, or convert with --dispatch cover-output"
    if counts == size and counts != (1, 1, 1) and invocations != most_elements:
        severity = warning
        message = f"{list(counts)} is the local size of the shader; it is used as the number of workgroups: {runs}"
    elif invocations * (1 if images else _ELEMENTS) < most_elements:
        severity = note  # an invocation may make many more elements
        message = f"{runs} are {invocations} invocations, but the largest output has {most_elements} elements or texels"
    else:
        return []
    return [severity("SR-CUSTOM-014", "/workgroup_sizes", message, help)]


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _check_places(attributes: Attributes, slots: Mapping[tuple[int, int], Slot]) -> list[Diagnostic]:
    """Find bindings that only the shader or only the attributes have."""
    views = {(view.set, view.binding): view for view in attributes.views}
    missing = [slot for place, slot in slots.items() if slot.used and place not in views]
    unused = [view for place, view in views.items() if place not in slots or not slots[place].used]
    findings = []
    for slot in missing:
        moved = (view for view in unused if (view.set, view.binding) not in slots)
        meant = next((view for view in moved if view.set == slot.set or view.binding == slot.binding), None)
        message = f"the shader uses {described(slot.variable)}, which no input or output of the attributes has"
        if meant is None:
            there = [f"{view.name} at set {view.set}, binding {view.binding}" for view in attributes.views[:20]]
            help = f"the attributes have {', '.join(there)}" if there else None
            findings.append(error("SR-CUSTOM-009", _CODE, message, help))
            continue
        unused.remove(meant)
        key, right = ("binding", slot.binding) if meant.set == slot.set else ("descriptorset", slot.set)
        help = f"if {meant.name} is meant, write {right}"
        findings.append(error("SR-CUSTOM-009", f"/{meant.name}_{key}", message, help))
    for view in unused:
        message = f"the shader does not use set {view.set}, binding {view.binding}, which {view.name} has"
        findings.append(warning("SR-CUSTOM-010", f"/{view.name}_binding", message))
    return findings


class CheckedShader(NamedTuple):
    """A shader with the SPIR-V module, the entry point's interface, and findings.

    A placeholder and a shader that does not compile have neither module nor interface. ``findings`` do not repeat the
    warnings of `Attributes`.
    """

    attributes: Attributes
    module: bytes | None
    interface: Interface | None
    findings: tuple[Diagnostic, ...]

    @property
    def is_good(self) -> bool:
        """True if no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)

    @property
    def local_size(self) -> tuple[int, int, int] | None:
        """The local size in the code; None without code."""
        return None if self.interface is None else self.interface.local_size()


def check_shaders(
    shaders: Sequence[Attributes],
    types: Sequence[Types | None] | None = None,
    *,
    compiler: str | None = None,
    use_cache: bool = True,
) -> list[CheckedShader]:
    """Compile shaders side by side, and compare each with the operation's attributes and ``types``.

    ``compiler`` names the GLSL compiler. Errors of shaders are findings. Raises UsageError if the environment names a
    compiler or validator that does not exist.
    """
    sources = [
        CompileRequest(shader.language, source=shader.code, name=_label(shader), entry=shader.module_entry_point)
        for shader in shaders
        if isinstance(shader.code, str) and (shader.language == "GLSL" or shader.language == "HLSL")
    ]
    compiled = iter(compile_each(sources, compiler=compiler, use_cache=use_cache))
    numbered = enumerate(shaders)
    binaries = {str(i): (_label(shader), shader.code) for i, shader in numbered if isinstance(shader.code, bytes)}
    complaints = check_modules(binaries, cache_dir=None, use_cache=use_cache) if binaries else {}
    checked = []
    for index, shader in enumerate(shaders):
        module: bytes | ScenarioRunnerError | None
        if isinstance(shader.code, str):
            outcome = next(compiled)
            module = outcome.module if isinstance(outcome, Compiled) else outcome
        else:
            module = complaints.get(str(index)) or shader.code
        checked.append(_checked(shader, module, types[index] if types else None))
    return checked


def _label(shader: Attributes) -> str:
    return f"<shader_code of {shader.operation!r:.200}>"


def _checked(attributes: Attributes, module: bytes | ScenarioRunnerError | None, types: Types | None) -> CheckedShader:
    findings: list[Diagnostic] = []
    interface = failure = None
    if isinstance(module, ScenarioRunnerError):
        failure, module = module, None
    elif module is not None:
        try:
            interface, findings = check_agreement(attributes, read_module(module, name=attributes.operation), types)
        except ScenarioRunnerError as error:
            failure = error
    for problem in failure.problems if failure else ():  # without a line of the source, the place is the attribute
        findings.append(problem if problem.path else problem._replace(pointer=problem.pointer or _CODE))
    if interface is None:
        findings += check_types(attributes, types)
    return CheckedShader(attributes, module, interface, tuple(with_places(findings, attributes.origin)))


TYPE_OF_KIND: Final = {
    "storage_buffer": vgf_model.STORAGE_BUFFER,
    "uniform_buffer": vgf_model.UNIFORM_BUFFER,
    "storage_image": vgf_model.STORAGE_IMAGE,
    "combined_image_sampler": vgf_model.COMBINED_IMAGE_SAMPLER,
    "sampled_image": vgf_model.COMBINED_IMAGE_SAMPLER,
    "sampler": vgf_model.COMBINED_IMAGE_SAMPLER,
    "tensor": vgf_model.TENSOR,
}
"""The descriptor type in attributes for each kind of variable."""

_NUMBERS: Final = {"sfloat": "float", "sint": "int", "uint": "uint"}


def check_arrays(slots: Iterable[Slot], pointer: str) -> Iterator[Diagnostic]:
    """Refuse arrays of descriptors: an attribute describes one resource for each binding."""
    for slot in slots:
        if slot.descriptor_count != 1:
            message = f"shader {slot.shader!r} uses {described(slot.variable)}, an array of descriptors"
            help = "declare a binding for each resource: a custom operation has one resource for each binding"
            yield error("SR-BIND-007", pointer, message, help)


def check_variables(view: View, slot: Slot, type: ValueType) -> Iterator[Diagnostic]:
    """Compare an operand's or result's view with the variables at the same binding."""
    expected_type = TYPE_OF_KIND.get(slot.kind)
    if expected_type is None:
        return  # `slots_of` reports it
    if view.descriptor_type != expected_type:
        yield error(
            "SR-CUSTOM-011",
            f"/{view.name}_vkdescriptortype",
            f"{view.name} is {vgf_model.descriptor_type_name(view.descriptor_type)}, but the shader declares"
            f" {described(slot.variable)}",
            f"write {vgf_model.descriptor_type_name(expected_type)}",
        )
        return
    for shader, variable in slot.variables:
        yield from _check_variable(view, variable, shader, type)
    yield from _check_access(view, slot)


def _check_variable(view: View, variable: DescriptorBinding, shader: str, type: ValueType) -> Iterator[Diagnostic]:
    place = f"/{view.name}_vkformat"
    if variable.tensor is not None:
        shape = (0,) * (variable.tensor.rank or 0) if type.shape is None else type.shape
        dims = tuple(size or 0 for size in shape)
        what = f"{described(variable)} in shader {shader!r}"
        yield from check_tensor(variable.tensor, what, view.name, dims, view.format, place)
    elif variable.image is not None:
        yield from check_image(variable, shader, view.name, view.format, place)
        if variable.kind == "storage_image" and declared_otherwise(variable.image, view.format):
            message = f"{view.name} is {view.format.name}, but {described(variable)} is {variable.image.format}"
            yield warning("SR-CUSTOM-012", place, message)
    elif variable.has_sampler:
        yield from check_image(variable, shader, view.name, view.format, place)
    elif variable.block is not None:
        yield from _check_buffer(view, variable, variable.block, type)


def _check_buffer(view: View, variable: DescriptorBinding, block: Struct, type: ValueType) -> Iterator[Diagnostic]:
    element = number_type(block)
    if element is not None and not _reads_as(element, view.format):
        message = f"{view.name} is {view.format.name}, but {described(variable)} has elements of {element}"
        yield warning("SR-CUSTOM-012", f"/{view.name}_vkformat", message)
    if type.static_shape is None or type.format is None:
        return
    has = prod(type.static_shape) * type.format.block_size_bytes
    if block.size_bytes > has:
        message = f"{view.name} has {has} bytes, but {described(variable)} declares {block.size_bytes}"
        yield warning("SR-BIND-005", f"/{view.name}_binding", message)


def number_type(block: Struct) -> Scalar | None:
    """Return the type of numbers in a block with a single member; None for other blocks."""
    if len(block.members) != 1:
        return None
    type = innermost(block.members[0].type)
    if isinstance(type, Vector):
        return type.component
    return type if isinstance(type, Scalar) else None


def _reads_as(element: Scalar, format: Format) -> bool:
    """Return whether numbers of a format fit the shader's ``element``.

    Words of 32 bits may hold anything, since smaller types need device features.
    """
    if element == Scalar("uint", 32) or format.is_packed or format.is_compressed:
        return True
    kind = _NUMBERS.get(format.numeric)
    return kind is None or (element.kind, element.width_bits) == (kind, format.channel_bits[0])


def _check_access(view: View, slot: Slot) -> Iterator[Diagnostic]:
    used = [variable for _, variable in slot.variables if variable.used]
    if not used:
        return  # `_check_places` reports it
    if view.name.startswith("input"):
        if any(variable.writes and variable.writable and variable.followed for variable in used):
            message = f"the shader writes {described(slot.variable)}, which is {view.name}"
            yield warning("SR-CUSTOM-013", f"/{view.name}_binding", message, "the shader must not write its inputs")
    elif all(variable.followed and not variable.writes for variable in used):
        message = f"the shader does not write {described(slot.variable)}, which is {view.name}"
        yield warning("SR-CUSTOM-013", f"/{view.name}_binding", message, "the result would be undefined")


_POINTER = "/push_constants"
_MOST_FINDINGS = 20


def check_push_constants(attributes: Attributes, interface: Interface) -> list[Diagnostic]:
    """Compare the attribute ``push_constants`` with the shader's block."""
    declared = attributes.push_constants
    of_shader = () if interface.push_constants is None else constants_of(interface.push_constants)
    if not of_shader:
        message = f"the shader uses no push constants, but the attributes have {shown(format_push_constants(declared))}"
        return [warning("SR-CUSTOM-017", _POINTER, message)] if declared else []
    help = f'the shader has "push_constants": "{format_push_constants(of_shader)}"'
    if not declared:
        message = f"the shader uses {counted(len(of_shader), 'push constant')}, but the attributes have none"
        return [warning("SR-CUSTOM-017", _POINTER, message, help)]
    problems = []
    if len(declared) != len(of_shader):
        constants = counted(len(declared), "push constant")
        problems.append(f"the attributes have {constants}, the shader has {len(of_shader)}")
    for ours, theirs in zip(declared, of_shader, strict=False):
        constant = f"the push constant {shown(ours.name)}"
        if theirs.name and ours.name != theirs.name:
            problems.append(f"{constant} is called {shown(theirs.name)} in the shader")
        elif ours.size_bytes != theirs.size_bytes:
            problems.append(f"{constant} has {ours.size_bytes} bytes, in the shader {theirs.size_bytes}")
    return [error("SR-CUSTOM-015", _POINTER, message, help) for message in problems[:_MOST_FINDINGS]]


def constants_of(block: Struct) -> tuple[PushConstant, ...]:
    """Return the members of a push constant block in the order of offsets; names may be empty."""
    members = sorted(block.members, key=lambda member: member.offset_bytes or 0)
    return tuple(PushConstant(member.name, member.size_bytes, member.offset_bytes or 0) for member in members)


def with_shader_offsets(attributes: Attributes, interface: Interface | None) -> tuple[tuple[PushConstant, ...], int]:
    """Return the push constants at the shader's offsets, and the size of their range in bytes.

    The shader may leave gaps, since a vec4 begins at a multiple of 16. Without an interface there are no gaps.
    """
    declared = attributes.push_constants
    block = None if interface is None else interface.push_constants
    if block is None:
        return declared, attributes.push_constants_size_bytes
    of_shader = constants_of(block)
    if len(of_shader) == len(declared):
        pairs = zip(declared, of_shader, strict=True)
        declared = tuple(ours._replace(offset_bytes=theirs.offset_bytes) for ours, theirs in pairs)
    return declared, max(-(-block.size_bytes // 4) * 4, attributes.push_constants_size_bytes)


def format_push_constants(constants: Iterable[PushConstant]) -> str:
    """Format push constants as the attribute has them."""
    return ", ".join(f"{constant.name[:100] or 'unnamed'}: {constant.size_bytes}" for constant in constants)


_WHOLE = frozenset({"uint", "sint", "unorm", "snorm", "uscaled", "sscaled", "srgb"})
_UNKNOWN = ValueType(None, "")


def views_and_types(attributes: Attributes, types: Types | None) -> Iterator[tuple[View, ValueType]]:
    """Yield each view with the operand's or result's type. An unknown type has no shape and no format."""
    for views, known in zip((attributes.inputs, attributes.outputs), types or ((), ()), strict=True):
        yield from zip(views, chain(known, repeat(_UNKNOWN)), strict=False)


def check_types(attributes: Attributes, types: Types | None) -> Iterator[Diagnostic]:
    """Find contradictions between attributes and types of values."""
    for view, type in views_and_types(attributes, types):
        if view.is_image:
            yield from _check_image_type(view, type)
        elif not view.is_buffer and type.format is not None and not _fits(view.format, type.format):
            message = f"{view.name} is {view.format.name}, but the value has elements of {type.element}"
            yield error("SR-CUSTOM-016", f"/{view.name}_vkformat", message)


def _fits(format: Format, expected: Format) -> bool:
    """Return whether elements have the size of ``expected``, and are integers or floats of the same encoding."""
    if format.block_size_bytes != expected.block_size_bytes:
        return False
    is_whole = expected.numeric in ("sint", "uint", "bool") and format.numeric in _WHOLE
    return is_whole or format.numeric == expected.numeric


def _check_image_type(view: View, type: ValueType) -> Iterator[Diagnostic]:
    shape, format, components = type.shape, view.format, view.format.components
    if shape is None:
        return
    is_image = len(shape) == 3 or (len(shape) == 4 and shape[0] in (1, None))
    if not is_image or shape[-1] not in (components, None):
        sizes = ", ".join("?" if size is None else str(size) for size in shape)
        yield error(
            "SR-CUSTOM-016",
            f"/{view.name}_vkdescriptortype",
            f"{view.name} is an image of {format.name}, but the value has the shape [{sizes}]; expected"
            f" [height, width, {components}] or [1, height, width, {components}]",
        )
    elif type.format is not None and type.format.block_size_bytes * components != format.block_size_bytes:
        yield error(
            "SR-CUSTOM-016",
            f"/{view.name}_vkformat",
            f"{view.name} is an image of {format.name}, which has {format.block_size_bytes} bytes a texel, but"
            f" {components} elements of {type.element} have {type.format.block_size_bytes * components}",
        )
