"""Writes the C declarations that the `vulkan` package lacks, for the cffi module `_generated/arm.py`.

Enumerations and flags become integers of the same size, so that the module needs no enumerators of the package.
Structures and handles of the package become external types, so that the types of both modules can be mixed.
"""

import re
from importlib.util import find_spec
from pathlib import Path

from vulkan_registry import Member, Registry

EXTENSIONS = (
    "VK_ARM_tensors",
    "VK_ARM_data_graph",
    "VK_ARM_data_graph_instruction_set_tosa",
    "VK_ARM_data_graph_optical_flow",
    "VK_ARM_data_graph_neural_accelerator_statistics",
    "VK_ARM_shader_instrumentation",
    "VK_NV_cooperative_matrix2",
    "VK_EXT_frame_boundary",
    "VK_KHR_maintenance5",
    "VK_KHR_deferred_host_operations",
)
"""The bindings must have the types and commands of these extensions that the package lacks."""

EXTRA_STRUCTS = ("VkPhysicalDeviceVulkan14Features", "VkPhysicalDeviceVulkan14Properties")
"""Core structures younger than the package."""

INTEGERS = {"VkBool32": "uint32_t", "VkDeviceSize": "uint64_t", "VkDeviceAddress": "uint64_t", "VkFlags": "uint32_t"}
C_TYPES = {"void", "char", "float", "double", "size_t", "int"} | {
    f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


class Package:
    """The names that the installed `vulkan` package declares."""

    def __init__(self) -> None:
        found = find_spec("vulkan")
        if found is None or found.origin is None:
            raise ModuleNotFoundError("the package 'vulkan' is needed: pip install scenario-runner")
        text = Path(found.origin).with_name("vulkan.cdef.h").read_text("utf-8")
        self.structs = set(re.findall(r"^typedef (?:struct|union) (Vk\w+) \{", text, re.MULTILINE))
        self.structs |= set(re.findall(r"^typedef (?!VkFlags)Vk\w+ (Vk\w+);", text, re.MULTILINE))
        self.handles = set(re.findall(r"^typedef struct \w+_T ?\* ?(Vk\w+);", text, re.MULTILINE))
        self.commands = set(re.findall(r"\( ?\*PFN_(vk\w+)\)", text))


class ArmDeclarations:
    """Declarations in dependency order.

    ``external`` has the declarations that the package and the package's ffi have. ``own`` has new declarations for the
    generated module.
    """

    def __init__(self, registry: Registry, package: Package) -> None:
        self.registry = registry
        self.package = package
        self.external: dict[str, str] = {}
        self.own: dict[str, str] = {}
        for name in EXTENSIONS:
            extension = registry.extensions[name]
            for kind in extension.types:
                if registry.canonical(kind) in registry.structs and kind not in package.structs:
                    self._struct(registry.canonical(kind))
            for command in extension.commands:
                if command not in package.commands:
                    self._command(registry.command_aliases.get(command, command))
        for name in EXTRA_STRUCTS:
            self._struct(name)

    @property
    def structs(self) -> list[str]:
        """Names of the structures declared by the generated module."""
        return [name for name in self.own if name in self.registry.structs]

    def _struct(self, name: str) -> None:
        if name in self.own or name in self.external:
            return
        if name in self.package.structs:
            kind = self.registry.structs[name].kind
            # The members come from the package at run time; cffi only refuses opaque structures inside others.
            self.external[name] = f"typedef {kind} {name} {{ int placeholder; }} {name};"
            return
        struct = self.registry.structs[name]
        members = "".join(f"    {self._declaration(member)};\n" for member in struct.members)
        self.own[name] = f"typedef {struct.kind} {name} {{\n{members}}} {name};"

    def _command(self, name: str) -> None:
        command = self.registry.commands[name]
        parameters = ", ".join(self._declaration(parameter) for parameter in command.parameters)
        self.own[f"PFN_{name}"] = f"typedef {self._type(command.returns)} (*PFN_{name})({parameters});"

    def _declaration(self, member: Member) -> str:
        text = re.sub(rf"\b{member.type}\b", self._type(member.type), member.declaration, count=1)
        text = re.sub(r"\bstruct ", "", text)
        return re.sub(r"\[(VK_\w+)\]", lambda found: f"[{self.registry.constants[found[1]]}]", text)

    def _type(self, name: str) -> str:
        registry = self.registry
        if name in C_TYPES:
            return name
        name = registry.canonical(name)
        if name in INTEGERS:
            return INTEGERS[name]
        if name in registry.flag_bits:
            return f"uint{registry.flag_bits[name]}_t"
        if name in registry.enum_types:
            return "uint32_t" if re.search(r"FlagBits\d?[A-Z]*$", name) else "int32_t"
        if name in registry.handles:
            place = self.external if name in self.package.handles else self.own
            place.setdefault(name, f"typedef struct {name}_T *{name};")
            return name
        if name in registry.structs:
            self._struct(name)
            return name
        raise ValueError(f"vk.xml: no C type is known for {name!r}")
