"""Writes scenario_runner/vulkan/_generated/ from the Vulkan registry; run it after an update of `vulkan-object`.

    python tools/generate_bindings.py [--check] [--output DIRECTORY]

``--check`` writes nothing and exits with 1 if a file would change. The same inputs always give the same bytes: names
are sorted or in the registry's order, and every file's header has the package versions.
"""

import argparse
import contextlib
import io
import re
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from arm_cdef import ArmDeclarations, Package
from vulkan_registry import Registry, Struct, read_registry

PACKAGE = Path(__file__).resolve().parent.parent / "scenario_runner"
OUTPUT = PACKAGE / "vulkan" / "_generated"
FEATURE_PARENTS = {"VkPhysicalDeviceFeatures2", "VkDeviceCreateInfo"}
LEFT_OUT_STRUCTS = re.compile(r"Vk\w*Video")


def main(arguments: list[str] | None = None) -> int:
    """Write or check the bindings. Return the exit code."""
    parser = argparse.ArgumentParser(description="generate the Vulkan bindings")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="directory to write to")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when a file would change")
    options = parser.parse_args(arguments)
    changed = 0
    texts = generate()
    for name, text in texts.items():
        path = options.output / name
        data = text.encode()
        if path.is_file() and path.read_bytes() == data:
            continue
        changed += 1
        print(f"{path.name}: {'would change' if options.check else 'written'}")
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    for path in sorted(options.output.glob("*.py")):
        if path.name not in texts:
            changed += 1
            print(f"{path.name}: is not generated, remove it")
    return 1 if options.check and changed else 0


def generate() -> dict[str, str]:
    """Return the text of every generated file by name."""
    registry = read_registry()
    package = Package()
    declarations = ArmDeclarations(registry, package)
    bodies = {
        "__init__.py": ("Generated bindings and tables.", ""),
        "arm.py": (
            "cffi types that the `vulkan` package lacks: the Arm tensor and data graph extensions and their kin.\n\n"
            "Enumerations and flags are plain integers of their size; struct types of the package are shared with it.",
            arm_module(declarations),
        ),
        "constants.py": (
            "The enumeration values, flag bits and API constants that the package uses, without their VK_.\n\n"
            "RESULTS has the name of each VkResult.",
            constants_module(registry, used_constants()) + results_table(registry),
        ),
        "extensions.py": (
            "The names of all device extensions, and their dependencies.\n\n"
            "Beyond Vulkan 1.1, an extension depends on one of each tuple of extensions and versions. A version is\n"
            "packed as VK_MAKE_API_VERSION(0, major, minor, 0).",
            extension_names(registry) + extension_dependencies(registry),
        ),
        "features.py": (
            "Feature structures that may extend VkDeviceCreateInfo; all their members are VkBool32.\n\n"
            "A version is packed as VK_MAKE_API_VERSION(0, major, minor, 0), and 0 where there is none.",
            features_module(registry),
        ),
        "spirv_requirements.py": (
            "What a device must have for a SPIR-V capability or extension: any one of the alternatives is enough.\n\n"
            "A version is packed as VK_MAKE_API_VERSION(0, major, minor, 0), and 0 where there is none.",
            spirv_module(registry),
        ),
        "structures.py": (
            "sType and array lengths of the structures that `vulkan_api.new` can build.",
            structures_module(registry, package, declarations),
        ),
    }
    source = (
        f"Made by tools/generate_bindings.py from vulkan-object {registry.package_version} "
        f"(VK_HEADER_VERSION {registry.header_version}) and vulkan {version('vulkan')}; do not edit.\n"
        "The Vulkan registry is Copyright The Khronos Group Inc., Apache-2.0 OR MIT."
    )
    return {name: f'"""{title}\n\n{source}\n"""\n{body}' for name, (title, body) in bodies.items()}


def arm_module(declarations: ArmDeclarations) -> str:
    """Write the out-of-line ABI-mode cffi module. It only declares the parent module's used types."""
    from cffi import FFI

    parent = FFI()
    parent.cdef("\n".join(declarations.external.values()))
    parent.set_source("vulkan._vulkancache", None)
    ffi = FFI()
    ffi.include(parent)
    ffi.cdef("\n".join(declarations.own.values()))
    ffi.set_source("scenario_runner.vulkan._generated.arm", None)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "arm.py"
        with contextlib.redirect_stdout(io.StringIO()):  # newer cffi prints the file name
            ffi.emit_python_code(str(path))
        text = path.read_text("utf-8")
    # Importing the package would load a megabyte of wrappers; our module only loads the types.
    old, new = (
        "from vulkan._vulkancache import ffi as _ffi0\n",
        "from scenario_runner.vulkan import ffi as _ffi0\n",
    )
    if text.count(old) != 1:
        raise ValueError("cffi's output no longer imports the included module in the known way")
    return text.replace("# auto-generated file\n", "").replace(old, new)


def constants_module(registry: Registry, names: Iterable[str]) -> str:
    """Write constants by names without ``VK_``. Raises ValueError for an unknown constant."""
    known: dict[str, str] = {name: constant_value(value) for name, value in registry.constants.items()}
    for group, values in registry.enums.items():
        form = "{:#x}" if "FlagBits" in group else "{}"
        known |= {name: form.format(value) if value > 9 else str(value) for name, value in values.items()}
    unknown = [name for name in names if f"VK_{name}" not in known]
    if unknown:
        raise ValueError(f"vk.xml has no constants called {', '.join(unknown)} (with VK_ in front)")
    return "".join(f"{name} = {known[f'VK_{name}']}\n" for name in sorted(names))


def used_constants(package: Path = PACKAGE) -> set[str]:
    """Find the names in `vk.NAME` that the package uses, where ``vk`` is the module of constants."""
    sources = (path.read_text("utf-8") for path in package.rglob("*.py") if "_generated" not in path.parts)
    return {
        name for source in sources if "constants as vk" in source for name in re.findall(r"\bvk\.([A-Z]\w+)", source)
    }


def results_table(registry: Registry) -> str:
    lines = ["RESULTS = {", *(f"    {value}: {name!r}," for name, value in registry.enums["VkResult"].items()), "}"]
    return "\n".join(lines) + "\n"


def constant_value(text: str) -> str:
    """Turn a C constant of the registry, such as ``(~0U)``, ``1000.0F`` or ``256``, into a Python literal."""
    found = re.fullmatch(r"\(~(\d)(U|ULL)\)", text)
    if found:
        return hex((1 << (32 if found[2] == "U" else 64)) - 1 - int(found[1]))
    found = re.fullmatch(r"([\d.]+)[fF]?", text)
    if not found:
        raise ValueError(f"vk.xml: unknown kind of constant {text!r}")
    return found[1]


def extension_names(registry: Registry) -> str:
    names = sorted(name for name, extension in registry.extensions.items() if extension.kind == "device")
    return "\n".join(["DEVICE_EXTENSIONS = frozenset((", *(f"    {name!r}," for name in names), "))", ""])


def extension_dependencies(registry: Registry) -> str:
    lines = ["DEPENDENCIES = {"]
    for extension in registry.extensions.values():
        clauses = dependencies(registry, extension.depends) if extension.kind == "device" else ()
        if clauses:
            lines.append(f"    {extension.name!r}: {clauses!r},")
    lines.append("}")
    return "\n".join(lines) + "\n"


def dependencies(registry: Registry, expression: str) -> tuple[tuple[str | int, ...], ...]:
    """Turn a ``depends`` expression into clauses. All clauses must hold, each by any alternative.

    ``+`` is "and", ``,`` is "or"; both bind equally, from the left (registry schema, "depends"). Vulkan 1.1 and
    instance extensions are assumed.
    """
    tokens = re.findall(r"[+,()]|[^+,()]+", expression)
    clauses = _any_of(registry, tokens) if tokens else ()
    if tokens:
        raise ValueError(f"vk.xml: {expression!r} is not a well-formed dependency")
    return clauses


_Clauses = tuple[tuple[str | int, ...], ...]


def _any_of(registry: Registry, tokens: list[str]) -> _Clauses:
    """Parse clauses up to the end or a closing parenthesis, and remove their tokens."""
    found = _one_of(registry, tokens)
    while tokens and tokens[0] in "+,":
        operator, other = tokens.pop(0), _one_of(registry, tokens)
        if operator == "+":
            found = tuple(dict.fromkeys((*found, *other)))
        else:
            pairs = ((*left, *(each for each in right if each not in left)) for left in found for right in other)
            found = tuple(dict.fromkeys(pairs))
    return found


def _one_of(registry: Registry, tokens: list[str]) -> _Clauses:
    name = tokens.pop(0)
    if name == "(":
        found = _any_of(registry, tokens)
        if tokens.pop(0) != ")":
            raise ValueError("vk.xml: a dependency lacks a closing parenthesis")
        return found
    if name.startswith("VK_VERSION_"):
        version = packed_version(name)
        return () if version <= packed_version("VK_VERSION_1_1") else ((version,),)
    return () if registry.extensions[name].kind == "instance" else ((name,),)


def features_module(registry: Registry) -> str:
    structs = [struct for struct in registry.structs.values() if set(struct.extends) >= FEATURE_PARENTS]
    providers = {struct.name: provided_by(registry, struct.name) for struct in structs}
    lines = ["# struct: (sType, core version, extensions, members)", "FEATURES = {"]
    for struct in structs:
        core, extensions = providers[struct.name]
        if not core and not extensions:
            continue
        if any(member.type != "VkBool32" for member in struct.members[2:]):
            raise ValueError(f"vk.xml: {struct.name!r} has a member that is not a VkBool32")
        members = tuple(member.name for member in struct.members[2:])
        lines.append(
            f"    {struct.name!r}: ({structure_type(registry, struct)}, {core:#x}, {extensions!r}, {members!r}),"
        )
    lines.append("}")
    core_members = tuple(member.name for member in registry.structs["VkPhysicalDeviceFeatures"].members)
    lines.append("# Members of VkPhysicalDeviceFeatures, which is not a chained structure.")
    lines.append(f"CORE_FEATURES = {core_members!r}")
    lines.append("# Structures whose members all moved into a VkPhysicalDeviceVulkan1xFeatures; never chain both.")
    lines.append("ROLLED_UP = {")
    lines += [f"    {old!r}: {new!r}," for old, new in rolled_up(structs)]
    lines.append("}")
    lines.append("# Older names of the structures above.")
    lines.append("ALIASES = {")
    names = {struct.name for struct in structs}
    lines += [
        f"    {old!r}: {registry.canonical(old)!r}," for old in registry.aliases if registry.canonical(old) in names
    ]
    lines.append("}")
    return "\n".join(lines) + "\n"


def provided_by(registry: Registry, name: str) -> tuple[int, tuple[str, ...]]:
    """Find the core version and the extensions that define a structure under any name or alias."""
    names = [name, *(alias for alias in registry.aliases if registry.canonical(alias) == name)]
    found = [provider for each in names for provider in registry.providers.get(each, ())]
    versions = [packed_version(provider) for provider in found if provider.startswith("VK_VERSION_")]
    extensions = dict.fromkeys(provider for provider in found if not provider.startswith("VK_VERSION_"))
    return min(versions, default=0), tuple(extensions)


def packed_version(name: str) -> int:
    """Return VK_MAKE_API_VERSION(0, 1, 2, 0) for ``VK_VERSION_1_2``."""
    major, minor = map(int, name.removeprefix("VK_VERSION_").split("_"))
    return major << 22 | minor << 12


def structure_type(registry: Registry, struct: Struct) -> int:
    name = struct.structure_type
    if name is None:
        raise ValueError(f"vk.xml: {struct.name!r} has no sType")
    return registry.enums["VkStructureType"][name]


def rolled_up(structs: Iterable[Struct]) -> list[tuple[str, str]]:
    def members(struct: Struct) -> set[str]:
        return {member.name for member in struct.members[2:]}

    structs = list(structs)
    big = [struct for struct in structs if re.fullmatch(r"VkPhysicalDeviceVulkan1\dFeatures", struct.name)]
    small = [struct for struct in structs if not re.search(r"[A-Z]{2,}$", struct.name) and struct not in big]
    return [(struct.name, whole.name) for whole in big for struct in small if members(struct) <= members(whole)]


def spirv_module(registry: Registry) -> str:
    lines = [
        "# ('feature', struct, member, core version, extensions): the member is to be VK_TRUE, and enabled",
        "# ('property', struct, member, value, core version, extensions): the member is to have all bits of value",
        "# ('version', core version) and ('extension', name)",
        "CAPABILITIES = {",
    ]
    for name, alternatives in registry.spirv_capabilities.items():
        lines.append(f"    {name!r}: {tuple(dict.fromkeys(alternative(registry, each) for each in alternatives))!r},")
    lines.append("}")
    lines.append("EXTENSIONS = {")
    for name, alternatives in registry.spirv_extensions.items():
        lines.append(f"    {name!r}: {tuple(alternative(registry, each) for each in alternatives)!r},")
    lines.append("}")
    return "\n".join(lines) + "\n"


def alternative(registry: Registry, enable: dict[str, str]) -> tuple[object, ...]:
    if "version" in enable:
        return ("version", packed_version(enable["version"]))
    if "extension" in enable:
        return ("extension", enable["extension"])
    names = [name for name in enable["requires"].split(",") if name]
    core = min((packed_version(name) for name in names if name.startswith("VK_VERSION_")), default=0)
    extensions = tuple(name for name in names if not name.startswith("VK_VERSION_"))
    struct = registry.canonical(enable.get("struct") or enable["property"])
    member = enable.get("feature") or enable["member"]
    if member not in {each.name for each in registry.structs[struct].members}:
        raise ValueError(f"vk.xml: {struct!r} has no member {member!r}")
    if "feature" in enable:
        return ("feature", struct, member, core, extensions)
    value = enable["value"]
    bits = 1 if value == "VK_TRUE" else registry.value(value)
    return ("property", struct, member, bits, core, extensions)


def structures_module(registry: Registry, package: Package, declarations: ArmDeclarations) -> str:
    spelling = {name: name for name in declarations.structs}
    for name in sorted(package.structs, key=lambda each: (each not in registry.structs, each)):
        if registry.canonical(name) in registry.structs:
            spelling.setdefault(registry.canonical(name), name)
    lines = ["# struct: (sType or None, (array member, member that holds its length)...)", "STRUCTURES = {"]
    for struct in registry.structs.values():
        lengths = array_lengths(struct)
        if struct.name not in spelling or LEFT_OUT_STRUCTS.match(struct.name):
            continue
        if struct.structure_type is None and not lengths:
            continue
        value = structure_type(registry, struct) if struct.structure_type is not None else None
        for name in dict.fromkeys((struct.name, spelling[struct.name])):
            lines.append(f"    {name!r}: ({value}, {lengths!r}),")
    lines.append("}")
    lines.append("# Structures that the package knows only by an older name.")
    lines.append("SPELLINGS = {")
    lines += [f"    {new!r}: {old!r}," for new, old in sorted(spelling.items()) if new != old]
    lines.append("}")
    return "\n".join(lines) + "\n"


def array_lengths(struct: Struct) -> tuple[tuple[str, str], ...]:
    """Find pointer members with the length in another member.

    The only expression needed is ``codeSize / 4`` (bytes).
    """
    names = {member.name for member in struct.members}
    found = []
    for member in struct.members:
        length = (member.length or "").split(",")[0].removesuffix(" / 4")
        if length in names and "*" in member.declaration:
            found.append((member.name, length))
    return tuple(found)


if __name__ == "__main__":
    sys.exit(main())
