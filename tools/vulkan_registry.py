"""Reads the Vulkan registry (vk.xml) into plain data for `generate_bindings`.

The PyPI package `vulkan-object` has the XML; the package's code is not used. Entries for other APIs (Vulkan SC) and for
unreleased extensions are skipped. Source: the registry's schema document, "The Khronos Vulkan API Registry".
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from xml.etree.ElementTree import Element

EXTENSION_BASE = 1_000_000_000
EXTENSION_BLOCK = 1000


@dataclass(frozen=True, slots=True)
class Member:
    """A structure's member or a command's parameter; ``declaration`` is the C text without comments."""

    name: str
    type: str
    declaration: str
    values: str | None
    length: str | None


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure or union; it may be in the pNext chain of each structure in ``extends``."""

    name: str
    kind: str
    members: tuple[Member, ...]
    extends: tuple[str, ...]

    @property
    def structure_type(self) -> str | None:
        """The sType value's name, or None for a plain structure."""
        first = self.members[0] if self.members else None
        return first.values if first is not None and first.name == "sType" else None


@dataclass(frozen=True, slots=True)
class Command:
    """A command: C return type and parameters."""

    name: str
    returns: str
    parameters: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Extension:
    """The types and commands of a released extension.

    ``depends`` is the registry's expression for the dependencies; ``kind`` is "instance" or "device".
    """

    name: str
    kind: str
    depends: str
    types: tuple[str, ...]
    commands: tuple[str, ...]


@dataclass(slots=True)
class Registry:
    """The parts of vk.xml for the bindings; ``providers`` has the versions and extensions that define a type."""

    package_version: str
    header_version: int = 0
    structs: dict[str, Struct] = field(default_factory=dict)
    handles: set[str] = field(default_factory=set)
    flag_bits: dict[str, int] = field(default_factory=dict)
    enum_types: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    command_aliases: dict[str, str] = field(default_factory=dict)
    commands: dict[str, Command] = field(default_factory=dict)
    extensions: dict[str, Extension] = field(default_factory=dict)
    providers: dict[str, list[str]] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    value_aliases: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    spirv_capabilities: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    spirv_extensions: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    def canonical(self, name: str) -> str:
        """Return a type's newest name: promotion may rename types."""
        while name in self.aliases:
            name = self.aliases[name]
        return name

    def value(self, name: str) -> int:
        """Return the number of an enumeration value or flag bit under any name or alias."""
        while name in self.value_aliases:
            name = self.value_aliases[name]
        return next(values[name] for values in self.enums.values() if name in values)


def read_registry() -> Registry:
    """Read vk.xml of the installed `vulkan-object`. Raises ModuleNotFoundError without the package."""
    found = find_spec("vulkan_object")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the package 'vulkan-object' is needed: pip install scenario-runner[dev]")
    root = ElementTree.parse(Path(found.origin).with_name("vk.xml")).getroot()
    registry = Registry(version("vulkan-object"))
    for element in root.iterfind("types/type"):
        if _for_vulkan(element):
            _read_type(registry, element)
    for element in root.iterfind("enums"):
        _read_enums(registry, element)
    for element in root.iterfind("commands/command"):
        if _for_vulkan(element):
            _read_command(registry, element)
    for element in root.iterfind("feature"):
        if _for_vulkan(element):
            # The registry splits a version into internal parts; users see a single version.
            name = "VK_VERSION_" + element.attrib["number"].replace(".", "_")
            _read_requirements(registry, element, name, 0)
    for element in root.iterfind("extensions/extension"):
        if "vulkan" in element.attrib["supported"].split(","):
            _read_extension(registry, element)
    for element in root.iterfind("spirvcapabilities/spirvcapability"):
        registry.spirv_capabilities[element.attrib["name"]] = [dict(e.attrib) for e in element.iterfind("enable")]
    for element in root.iterfind("spirvextensions/spirvextension"):
        registry.spirv_extensions[element.attrib["name"]] = [dict(e.attrib) for e in element.iterfind("enable")]
    return registry


def _for_vulkan(element: Element) -> bool:
    api = element.get("api")
    return api is None or "vulkan" in api.split(",")


def _text(element: Element) -> str:
    """Return the C text of an element without comments and with single spaces."""
    parts = [element.text or ""]
    for child in element:
        if child.tag != "comment":
            parts.append(_text(child))
        parts.append(child.tail or "")
    return re.sub(r"\s+", " ", "".join(parts)).strip()


def _name(element: Element) -> str:
    return element.get("name") or element.findtext("name") or ""


def _members(element: Element, tag: str) -> tuple[Member, ...]:
    return tuple(
        Member(
            name=_name(member),
            type=member.findtext("type") or "",
            declaration=_text(member),
            values=member.get("values"),
            length=member.get("altlen") or member.get("len"),
        )
        for member in element.iterfind(tag)
        if _for_vulkan(member)
    )


def _read_type(registry: Registry, element: Element) -> None:
    name = _name(element)
    category = element.get("category")
    if category == "define":
        found = re.search(r"VK_HEADER_VERSION (\d+)$", _text(element))
        if found:
            registry.header_version = int(found[1])
    elif element.get("alias"):
        registry.aliases[name] = element.attrib["alias"]
    elif category in ("struct", "union"):
        extends = tuple(filter(None, element.get("structextends", "").split(",")))
        registry.structs[name] = Struct(name, category, _members(element, "member"), extends)
    elif category == "handle":
        registry.handles.add(name)
    elif category == "bitmask":
        registry.flag_bits[name] = 64 if element.findtext("type") == "VkFlags64" else 32
    elif category == "enum":
        registry.enum_types.add(name)


def _read_command(registry: Registry, element: Element) -> None:
    if element.get("alias"):
        registry.command_aliases[element.attrib["name"]] = element.attrib["alias"]
        return
    proto = element.find("proto")
    if proto is not None:
        name = proto.findtext("name") or ""
        registry.commands[name] = Command(name, proto.findtext("type") or "", _members(element, "param"))


def _read_enums(registry: Registry, element: Element) -> None:
    name = element.attrib["name"]
    if element.get("type") == "constants":
        for value in element.iterfind("enum"):
            if "value" in value.attrib:
                registry.constants[value.attrib["name"]] = value.attrib["value"]
        return
    if element.get("bitwidth") == "64":
        registry.flag_bits[name] = 64
    values = registry.enums.setdefault(name, {})
    for value in element.iterfind("enum"):
        if not _for_vulkan(value):
            continue
        if "alias" in value.attrib:
            registry.value_aliases[value.attrib["name"]] = value.attrib["alias"]
        else:
            values[value.attrib["name"]] = _value(value, 0)


def _value(element: Element, extension: int) -> int:
    if "bitpos" in element.attrib:
        return 1 << int(element.attrib["bitpos"])
    if "value" in element.attrib:
        return int(element.attrib["value"], 0)
    block = int(element.get("extnumber", extension)) - 1
    value = EXTENSION_BASE + block * EXTENSION_BLOCK + int(element.attrib["offset"])
    return -value if element.get("dir") == "-" else value


def _extending(element: Element) -> Iterator[Element]:
    for require in element.iterfind("require"):
        if _for_vulkan(require):
            for value in require.iterfind("enum"):
                if "extends" in value.attrib and _for_vulkan(value):
                    yield value


def _read_requirements(registry: Registry, element: Element, provider: str, number: int) -> None:
    for value in _extending(element):
        if "alias" in value.attrib:
            registry.value_aliases[value.attrib["name"]] = value.attrib["alias"]
        else:
            known = registry.enums.setdefault(value.attrib["extends"], {})
            name, new = value.attrib["name"], _value(value, number)
            if known.setdefault(name, new) != new:
                raise ValueError(f"vk.xml: {name!r} is {known[name]} and {new}")
    for require in element.iterfind("require"):
        if _for_vulkan(require):
            for kind in require.iterfind("type"):
                registry.providers.setdefault(kind.attrib["name"], []).append(provider)


def _read_extension(registry: Registry, element: Element) -> None:
    name = element.attrib["name"]
    requires = [require for require in element.iterfind("require") if _for_vulkan(require)]
    registry.extensions[name] = Extension(
        name,
        element.get("type", ""),
        element.get("depends", ""),
        tuple(kind.attrib["name"] for require in requires for kind in require.iterfind("type")),
        tuple(command.attrib["name"] for require in requires for command in require.iterfind("command")),
    )
    _read_requirements(registry, element, name, int(element.attrib["number"]))
