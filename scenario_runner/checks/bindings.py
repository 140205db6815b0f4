"""A command's resources against the variables of shaders and graphs: kinds, descriptor types, sizes, formats.

Sources: Vulkan specification, "Shader Interfaces", sections "Descriptor Set Interface", "DescriptorSet and Binding
Assignment" and "Push Constant Interface"; "Images", section "Image Format and Type Matching", and the table "SPIR-V
and Vulkan Image Format Compatibility"; SPV_ARM_tensors; VK_ARM_tensors, the formats of VkTensorDescriptionARM.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.files.vk_formats import ML_DTYPES, Format, find_format
from scenario_runner.scenario import Binding
from scenario_runner.shaders.spirv import DescriptorBinding, Image, Interface, Scalar, Tensor
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv._generated.enumerants import IMAGE_FORMATS
from scenario_runner.shaders.spirv.index import Index
from scenario_runner.shaders.spirv.interface import array_uses
from scenario_runner.shaders.spirv.types import scalars

_HLSL = 5  # SPIR-V specification, "Source Language"
# The resource that a scenario binds to each kind of variable.
RESOURCE_OF: Final = {
    "storage_buffer": "buffer",
    "uniform_buffer": "buffer",
    "storage_texel_buffer": "buffer",
    "uniform_texel_buffer": "buffer",
    "storage_image": "image",
    "sampled_image": "image",
    "combined_image_sampler": "image",
    "sampler": "image",
    "tensor": "tensor",
}
TEXEL_BUFFERS: Final = frozenset({"storage_texel_buffer", "uniform_texel_buffer"})
# Variables of these kinds may share one combined image sampler.
SAMPLED: Final = frozenset({"sampled_image", "combined_image_sampler", "sampler"})
MOST_SETS: Final = 1024
"""Far above the maxBoundDescriptorSets of any device. Each set below the highest used set gets a layout."""
MOST_BYTES = 1 << 16
"""Far above the maxPushConstantsSize of any device. The limit keeps wrong sizes and files out of memory."""
# SPIR-V image format suffix → numeric format in a VkFormat name.
_SUFFIXES = {"": "UNORM", "Snorm": "SNORM", "f": "SFLOAT", "i": "SINT", "ui": "UINT"}
_SPECIAL_FORMATS = {
    "R11fG11fB10f": "VK_FORMAT_B10G11R11_UFLOAT_PACK32",
    "Rgb10A2": "VK_FORMAT_A2B10G10R10_UNORM_PACK32",
    "Rgb10a2ui": "VK_FORMAT_A2B10G10R10_UINT_PACK32",
    "R64ui": "VK_FORMAT_R64_UINT",
    "R64i": "VK_FORMAT_R64_SINT",
}
TEXEL_KINDS = {"uint": "uint", "sint": "int"}
"""``numeric`` of a format → the kind of the scalars that shaders see; "float" for any other."""
KIND_WORDS: Final = {"uint": "unsigned integers", "int": "signed integers", "float": "floats"}
# A format's ``numeric`` → the texels in words, and GLSL's image type prefix.
_TEXELS = {"uint": ("unsigned integers", "u"), "sint": ("signed integers", "i")}
_WIDE = 64
_FLOAT32: Final = Scalar("float", 32)
_MOST_CHARACTERS = 200
_MOST_LISTED = 8
_WHOLE = frozenset({"int", "uint", "bool"})


def check_registers(index: Index, uid: str, variables: Sequence[DescriptorBinding], pointer: str) -> list[Diagnostic]:
    """Report problems where the shader ``uid`` uses several variables of one kind at the same binding.

    GLSL shaders do this to read a buffer as two types. In modules made from HLSL it is a mistake.
    """
    if all(index.words[at + 1] != _HLSL for at in index.offsets[op.SOURCE]):
        return []
    names = " and ".join(repr(variable.name) for variable in variables)
    first = variables[0]
    place = f"set {first.set} and binding {first.binding}, so they all access the same resource"
    message = f"the variables {names} of shader {uid!r} have the same {place}"
    help = "t0 and u0 are the same binding: give the registers different numbers, or write [[vk::binding(1, 0)]]"
    return [warning("SR-BIND-010", pointer, message, help)]


Stages = Sequence[tuple[str, Interface]]
"""A command's shaders: uid and interface of each."""


class Slot(NamedTuple):
    """A set and binding with the variables that a command's shaders declare there.

    ``kind`` is the descriptor kind. ``variables`` are pairs of a shader's uid and a variable. They are the used
    variables, or all variables where none is used. The first pair is ``shader`` and ``variable``, with the largest
    block. ``has_place`` is true if the layout has a descriptor here. Unused variables get one only for tensors: drivers
    crash on unbound sets, and the emulation layers crash on tensors without a descriptor. A runtime array has the
    ``descriptor_count`` 0. Shaders pick the ``picked`` descriptors of an array by constant indices.
    """

    set: int
    binding: int
    kind: str
    used: bool
    has_place: bool
    shader: str
    variable: DescriptorBinding
    variables: tuple[tuple[str, DescriptorBinding], ...]
    descriptor_count: int = 1
    picked: frozenset[int] = frozenset()

    @property
    def is_sampler(self) -> bool:
        """Return whether the descriptor is a sampler without an image."""
        return self.kind == "sampler"


Slots = Mapping[tuple[int, int], Slot]


def slots_of(stages: Stages, pointer: str) -> tuple[dict[tuple[int, int], Slot], list[Diagnostic]]:
    """Return the slots of a command's shaders, and errors at ``pointer`` for variables that no scenario can bind.

    From SPIR-V 1.4 on, an entry point also lists variables that the code never uses. An unused variable that no
    scenario can bind (an input attachment, a high set), and an unused array, gets no slot and no error.
    """
    grouped: dict[tuple[int, int], list[tuple[str, DescriptorBinding]]] = {}
    findings: list[Diagnostic] = []
    for uid, interface in stages:
        for problem in interface.problems:
            findings.append(error("SR-BIND-009", pointer, f"shader {uid!r}: {problem}"))
        for variable in interface.bindings:
            grouped.setdefault((variable.set, variable.binding), []).append((uid, variable))
    slots: dict[tuple[int, int], Slot] = {}
    for (set, binding), variables in sorted(grouped.items()):
        used = [member for member in variables if member[1].used]
        deciding = used or variables
        if len(deciding) > 1:
            deciding = sorted(deciding, key=_block_size, reverse=True)
        uid, first = deciding[0]
        kind = first.kind
        if not used and (kind not in RESOURCE_OF or first.count != 1 or set > MOST_SETS):
            continue
        others = [member for member in deciding if member[1].kind != kind] if len(deciding) > 1 else []
        if others:
            if SAMPLED.issuperset(variable.kind for _, variable in deciding):
                kind = "combined_image_sampler"
            elif used:
                other_uid, other = others[0]
                where = "it" if other_uid == uid else f"shader {other_uid!r}"
                also = f"a {words(other.kind)}{named(other)}"
                message = f"shader {uid!r} declares {described(first)} where {where} also has {also}"
                help = "give each variable a separate binding: one resource cannot be both"
                findings.append(error("SR-BIND-006", pointer, message, help))
        elif len(used) > 1:
            for owner, interface in stages:
                own = [variable for stage, variable in used if stage == owner]
                if len(own) > 1:
                    findings += check_registers(interface.declarations.index, owner, own, pointer)
        if kind not in RESOURCE_OF:
            message = f"shader {uid!r} uses {described(first)}; scenarios have no resource that can be bound to it"
            findings.append(error("SR-BIND-008", pointer, message))
        if set > MOST_SETS:
            message = f"shader {uid!r} uses {described(first)}; no device has more than {MOST_SETS} descriptor sets"
            findings.append(error("SR-LIMIT-005", pointer, message))
        has_place = kind in RESOURCE_OF and (bool(used) or kind == "tensor")
        counts = [member[1].count or 0 for member in deciding]
        count = max(counts) if all(counts) else 0
        picked = frozenset[int]() if count == 1 else _picked(stages, deciding)
        slots[set, binding] = Slot(
            set, binding, kind, bool(used), has_place, uid, first, tuple(deciding), count, picked
        )
    return slots, findings


def _picked(stages: Stages, variables: Sequence[tuple[str, DescriptorBinding]]) -> frozenset[int]:
    """Return the descriptors of an array that shaders pick by constant indices."""
    ids = {(uid, variable.variable) for uid, variable in variables}
    uses = [(uid, id, use) for uid, interface in stages for id, use in array_uses(interface).items()]
    return frozenset[int]().union(*(use.constants for uid, id, use in uses if (uid, id) in ids))


def _block_size(member: tuple[str, DescriptorBinding]) -> int:
    block = member[1].block
    return block.size_bytes if block else 0


def declared_size(interface: Interface) -> int:
    """Return a shader's push constant block size in bytes, rounded up to a multiple of 4."""
    block = interface.push_constants
    return 0 if block is None else -(-block.size_bytes // 4) * 4


def described(variable: DescriptorBinding) -> str:
    """Describe a variable for messages, as in "storage buffer 'data' at set 0, binding 1"."""
    return f"{words(variable.kind)}{named(variable)} at set {variable.set}, binding {variable.binding}"


def words(kind: str) -> str:
    """Return a kind of variable with spaces, for messages."""
    return kind.replace("_", " ")


def named(variable: DescriptorBinding) -> str:
    """Return the variable's name in quotes with a space before it, or an empty string. Long names are cut."""
    return f" {variable.name[:_MOST_CHARACTERS]!r}" if variable.name else ""


def called(slot: Slot) -> str:
    """Describe the first variable of a slot, with the shader, for messages."""
    return f"{described(slot.variable)} in shader {slot.shader!r}"


def check_array(slot: Slot, binding: Binding, place: str) -> list[Diagnostic]:
    """Compare the number of bound resources with the number of descriptors that the shaders declare."""
    declared, count = slot.descriptor_count, len(binding.resource_refs) or 1
    if declared == count == 1:
        return []
    if declared and count > declared:
        has = f"an array of {declared}" if declared > 1 else "not an array"
        message = f"{count} resources are bound to {called(slot)}, which is {has}"
        return [error("SR-BIND-007", f"{place}/resource_refs", message, "remove the others")]
    gaps = {*range(declared or count)}.difference(element for _, element, _ in binding.parts())
    missing = sorted(slot.picked & gaps or gaps)
    listed = ", ".join(map(str, missing[:_MOST_LISTED])) + (", …" if len(missing) > _MOST_LISTED else "")
    what = f"nothing is bound to {'entry' if len(missing) == 1 else 'the entries'} {listed} of {called(slot)}"
    if slot.picked & gaps:
        return [error("SR-BIND-001", place, f"{what}, which uses it", "add the resource to resource_refs")]
    help = "a shader that picks such an entry does something undefined"
    return [warning("SR-BIND-012", place, what, help)] if gaps else []


def check_type(slot: Slot, descriptor_type: str, place: str) -> list[Diagnostic]:
    """Compare the descriptor type of a binding with the declaration."""
    kind = descriptor_type.removeprefix("VK_DESCRIPTOR_TYPE_").removesuffix("_ARM").lower()
    if kind in ("auto", slot.kind) or (kind == "combined_image_sampler" and slot.kind in SAMPLED):
        return []
    message = f"descriptor type {descriptor_type!r} does not match {called(slot)}"
    help = "leave descriptor_type out: it is taken from the shader"
    return [error("SR-BIND-004", f"{place}/descriptor_type", message, help)]


def check_writes(slot: Slot, uid: str, place: str) -> list[Diagnostic]:
    """Warn of a shader that writes the readonly resource ``uid``.

    Nothing stops such a write, and results do not include a readonly resource. A write that is only assumed, because a
    pointer could not be followed, does not count.
    """
    for shader, declared in slot.variables:
        if declared.writes and declared.writable and declared.followed:
            name = repr(declared.name) if declared.name else f"set {declared.set}, binding {declared.binding}"
            message = f"shader {shader!r} writes {RESOURCE_OF[slot.kind]} {uid!r} through {name}"
            help = f"give {uid!r} the shader_access 'readwrite', or declare {name} readonly in the shader"
            return [warning("SR-ACCESS-001", place, f"{message}, but its shader_access is 'readonly'", help)]
    return []


def check_doubles(slot: Slot, uid: str, path: str, place: str) -> list[Diagnostic]:
    """Warn where shaders read the float64 data of a buffer as float32. They do not convert: they see other numbers."""
    blocks = [variable.block for _, variable in slot.variables if variable.block is not None]
    if {scalar for block in blocks for scalar in scalars(block)} != {_FLOAT32}:
        return []
    message = f"buffer {uid!r} holds float64 numbers of {path!r}, but {called(slot)} has float32 numbers"
    help = 'save the file with .astype("float32"), and halve the size of the buffer'
    return [warning("SR-BIND-014", place, message, help)]


def check_image(variable: DescriptorBinding, shader: str, uid: str, format: Format, place: str) -> list[Diagnostic]:
    """Find problems in binding the image ``uid`` to a variable of ``shader``, at the pointer ``place``."""
    declared = variable.image
    what = f"{described(variable)}, in shader {shader!r}"
    findings = []
    compares = variable.compared or (declared is not None and declared.depth)
    if compares and variable.has_sampler:
        message = f"{what} compares depths while sampling, but scenarios have no such samplers"
        help = "sample without comparison (sampler2D, not sampler2DShadow; SamplerState) and compare in the shader"
        findings.append(error("SR-IMAGE-005", place, message, help))
    if declared is None:  # a sampler alone
        return findings
    if declared.dim != "2D" or declared.arrayed or declared.multisampled:
        shape = declared.dim + " array" * declared.arrayed + " multisampled" * declared.multisampled
        message = f"{what} is declared as {shape}; image {uid!r} is 2D, as all images of a scenario are"
        return [error("SR-IMAGE-001", place, message)]
    if not _same_texels(declared, format):
        texels, prefix = _TEXELS.get(format.numeric, ("floating-point or normalized values", ""))
        type = {"storage_image": "image2D", "sampled_image": "texture2D"}.get(variable.kind, "sampler2D")
        message = f"{what} has texels of {declared.sampled_type}; image {uid!r} of {format.name} has {texels}"
        help = f"declare it as {prefix}{type}, or change the format"
        findings.append(error("SR-IMAGE-002", place, message, help))
    return findings


def check_texels(variable: DescriptorBinding, shader: str, format: Format | None, place: str) -> list[Diagnostic]:
    """Find problems in the ``format`` of a buffer's texels for a texel buffer variable of ``shader``."""
    declared = variable.image
    assert declared is not None, "texel buffers are images of the dimension Buffer"
    what = f"{described(variable)}, in shader {shader!r}"
    if format is None:
        help = 'add the format of the texels to the binding, such as "format": "VK_FORMAT_R32_SFLOAT"'
        return [error("SR-BIND-011", place, f"{what} declares no format", help)]
    expected = format_of(declared.format) if variable.kind == "storage_texel_buffer" else None
    if format.is_compressed or format.aspects != ("color",):
        message = f"{what} cannot have texels of {format.name}"
    elif not _same_texels(declared, format):
        texels, _ = _TEXELS.get(format.numeric, ("floating-point or normalized values", ""))
        message = f"{what} has texels of {declared.sampled_type}; {format.name} has {texels}"
    elif expected is not None and expected is not format:
        message = f"{what} is declared as {declared.format} ({expected.name}); the binding has {format.name}"
    else:
        return []
    return [error("SR-BIND-011", f"{place}/format", message)]


def declared_otherwise(declared: Image, format: Format) -> bool:
    """Return whether a storage image is declared with another format than ``format``, but the same kind of texels."""
    expected = format_of(declared.format)
    return expected is not None and expected is not format and _same_texels(declared, format)


def name_of_format(format: Format) -> str:
    """Return an image format's SPIR-V name, or 'Unknown' for formats without a SPIR-V name."""
    return next((name for name in IMAGE_FORMATS.values() if format_of(name) is format), "Unknown")


def _same_texels(declared: Image, format: Format) -> bool:
    """Return whether shader and image agree on the texel kind. 64-bit texels match only each other."""
    scalar = declared.sampled_type
    if scalar is None:
        return True
    wide = format.name.startswith("VK_FORMAT_R64")
    return scalar.kind == TEXEL_KINDS.get(format.numeric, "float") and (scalar.width_bits == _WIDE) == wide


def format_of(name: str) -> Format | None:
    """Return the VkFormat for a SPIR-V image format: 'Rgba16f' is R16G16B16A16_SFLOAT. 'Unknown' gives None."""
    special = _SPECIAL_FORMATS.get(name)
    if special is not None:
        return find_format(special)
    letters = name.rstrip("Snormfui0123456789")
    rest = name[len(letters) :]
    bits = rest.rstrip("Snormfui")
    suffix = _SUFFIXES.get(rest[len(bits) :])
    if not bits or suffix is None:
        return None
    channels = "".join(f"{letter.upper()}{bits}" for letter in letters)
    return find_format(f"VK_FORMAT_{channels}_{suffix}")


def check_tensor(
    declared: Tensor, what: str, uid: str, shape: tuple[int, ...], format: Format, place: str
) -> list[Diagnostic]:
    """Find problems in binding the tensor ``uid`` at ``place`` to the variable ``what`` of the type ``declared``.

    A dimension of 0 or less is unknown until the graph is read, so it matches any size.
    """
    findings = []
    dims = shape or (1,)  # a scalar is bound as a tensor of rank 1
    if declared.rank is not None and declared.rank != len(dims):
        bound = f"the bound tensor {uid!r} has the shape {list(shape)} of rank {len(dims)}"
        message = f"{what} has the rank {declared.rank}; {bound}"
        findings.append(error("SR-TENSOR-001", place, message))
    elif declared.shape is not None and any(
        size > 0 and size != expected_size for size, expected_size in zip(dims, declared.shape, strict=False)
    ):
        message = f"{what} has the shape {list(declared.shape)}; the bound tensor {uid!r} has {list(shape)}"
        findings.append(error("SR-TENSOR-003", place, message))
    if not holds(format, declared.element):
        message = f"{what} has elements of {declared.element}; the bound tensor {uid!r} is of {format.name}"
        findings.append(error("SR-TENSOR-002", place, message, "both must be the same type"))
    return findings


def holds(format: Format, element: Scalar) -> bool:
    """Return whether a tensor format has the element type that a shader declares.

    Signed and unsigned integers match each other, because graphs of TOSA declare all integers as unsigned.
    """
    if format.components != 1:
        return True  # the tensor check reports it
    if element.is_bool:
        return format.numeric == "bool" or (format.numeric in ("uint", "sint") and format.block_size_bytes == 1)
    if format.block_size_bytes != element.size_bytes:
        return False
    if format.numeric in ("uint", "sint", "unorm", "snorm", "bool"):
        return not element.is_float
    encoding = format.numeric if format.numeric in ML_DTYPES else ""
    return element.is_float and encoding == element.encoding.replace("_", "")
