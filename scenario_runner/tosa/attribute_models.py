"""The attributes of a shader in JSON: pydantic models, the JSON Schema, and the reader that reports every problem.

Source: "Vulkan Shader in TOSA Custom Operation Attributes".
"""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.json_schema import models_json_schema

from scenario_runner.checks.bindings import MOST_BYTES
from scenario_runner.errors.diagnostic import Diagnostic, error, escape, warning
from scenario_runner.errors.text import Json, close_match, close_names, counted, did_you_mean, listed
from scenario_runner.files.vk_formats import (
    ADDRESS_MODES,
    BORDER_COLORS,
    FILTERS,
    Format,
    all_formats,
    find_format,
    format_help,
)
from scenario_runner.ml.vgf_model import COMBINED_IMAGE_SAMPLER, DESCRIPTOR_TYPES, STORAGE_IMAGE, TENSOR, UNIFORM_BUFFER
from scenario_runner.ml.vgf_model import Sampler as Settings
from scenario_runner.scenario.entries import U32, build
from scenario_runner.scenario.json_model import ModelBase, findings, shown
from scenario_runner.scenario.kinds import without_null
from scenario_runner.shaders.source import own_include
from scenario_runner.shaders.spirv.index import MAGIC
from scenario_runner.tosa.model import Attributes, PushConstant, View

OTHER_DESCRIPTOR_TYPES = {"VK_DESCRIPTOR_TYPE_STORAGE_TENSOR_EXT": "VK_DESCRIPTOR_TYPE_TENSOR_ARM"}
"""Vulkan's names for names that only the description of the attributes uses."""

_Size = Annotated[int, Field(ge=1, le=0xFFFF_FFFF)]
# Source: Vulkan specification, VkFilter, VkSamplerAddressMode and VkBorderColor.
_FILTERS: Final = {
    **{f"VK_FILTER_{name}": number for name, number in FILTERS.items()},
    "VK_FILTER_CUBIC_IMG": 1000015000,
    "VK_FILTER_CUBIC_EXT": 1000015000,
}
_ADDRESS_MODES: Final = {
    **{f"VK_SAMPLER_ADDRESS_MODE_{name.replace('CLAMP_', 'CLAMP_TO_')}": mode for name, mode in ADDRESS_MODES.items()},
    "VK_SAMPLER_ADDRESS_MODE_MIRROR_CLAMP_TO_EDGE": 4,
}
_SETTINGS: Final = {
    "min_filter": _FILTERS,
    "mag_filter": _FILTERS,
    "address_mode_u": _ADDRESS_MODES,
    "address_mode_v": _ADDRESS_MODES,
    "border_color": {f"VK_BORDER_COLOR_{name}": number for name, number in BORDER_COLORS.items()},
}


def _enum(names: Iterable[object]) -> dict[str, Json]:
    return {"enum": list(names)}


def _setting(name: str, description: str) -> Any:
    return Field(description=description, json_schema_extra=_enum(_SETTINGS[name]))


class Sampler(ModelBase):
    """The sampler of an image."""

    model_config = ConfigDict(extra="allow")

    min_filter: str = _setting("min_filter", "VkFilter where the image is made smaller.")
    mag_filter: str = _setting("mag_filter", "VkFilter where the image is made larger.")
    address_mode_u: str = _setting("address_mode_u", "VkSamplerAddressMode in x.")
    address_mode_v: str = _setting("address_mode_v", "VkSamplerAddressMode in y.")
    border_color: str = _setting("border_color", "VkBorderColor, used by the address mode CLAMP_TO_BORDER.")


class Resource(ModelBase):
    """An input or output; the keys lack the prefix ``input_<index>_`` or ``output_<index>_``."""

    vkformat: str = Field(
        min_length=1,
        description="Name of the VkFormat of the elements or texels.",
        json_schema_extra=_enum(format.name for format in all_formats()),
    )
    vkdescriptortype: str = Field(
        min_length=1,
        description="Name of the VkDescriptorType of the shader's variable.",
        json_schema_extra=_enum((*DESCRIPTOR_TYPES, *OTHER_DESCRIPTOR_TYPES)),
    )
    binding: U32 = Field(description="Binding of the shader's variable.")
    descriptorset: U32 = Field(description="Descriptor set of the shader's variable.")
    type: str | None = Field(
        default=None, description="Logical type, such as Tensor, Image or Buffer; the descriptor type decides."
    )
    sampler: Sampler | None = Field(default=None, description="Sampler of a VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER.")


class CustomShader(ModelBase):
    """The attributes of a custom operation that is a Vulkan compute shader."""

    entry_point: str = Field(min_length=1, description="Name of the shader's entry point; main for GLSL.")
    workgroup_sizes: Annotated[tuple[_Size, ...], Field(strict=False, min_length=3, max_length=3)] = Field(
        description=(
            "x, y and z. Converters write them as the number of workgroups of the dispatch; the description of the "
            "attributes calls them the local size."
        )
    )
    shader_language: Literal["", "SPIR-V", "GLSL", "HLSL"] = Field(
        default="", description="Language of shader_code; empty or left out for a placeholder without code."
    )
    shader_code: str | None = Field(
        default=None, description="Source text of GLSL or HLSL, or a SPIR-V module (32-bit little-endian) in base64."
    )
    push_constants: str = Field(
        default="", description="Names and sizes in bytes, in their order, such as 'scale: 4, bias: 4'."
    )


_INDEXED_KEY = "^(input|output)_(0|[1-9][0-9]*)_{name}$"


def json_schema() -> dict[str, object]:
    """Return the JSON Schema. It allows any further keys but indices with leading zeros."""
    _, generated = models_json_schema(
        [(CustomShader, "validation"), (Resource, "validation")], ref_template="#/$defs/{model}"
    )
    definitions = without_null(generated["$defs"])
    shader, resource = definitions.pop("CustomShader"), definitions.pop("Resource")
    languages = [name for name in shader["properties"]["shader_language"]["enum"] if name]
    with_language = {"properties": {"shader_language": {"enum": languages}}, "required": ["shader_language"]}
    with_code = {"properties": {"shader_code": {"minLength": 1}}, "required": ["shader_code"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Attributes of a custom operation with a Vulkan shader",
        "description": shader["description"],
        "type": "object",
        "properties": shader["properties"],
        "required": shader["required"],
        "patternProperties": {
            **{_INDEXED_KEY.format(name=name): part for name, part in resource["properties"].items()},
            "^(input|output)_0[0-9]+_": False,
        },
        "additionalProperties": True,
        "allOf": [
            {"if": with_language, "then": with_code},
            {"if": with_code, "then": with_language},
        ],
        "$defs": definitions,
    }


_INDEXED = re.compile(r"(input|output)_([0-9]+)_(\w+)")
_ALMOST_INDEXED = re.compile(r"(in(?:put)?|out(?:put)?)s?[_-]?([0-9]*)[_-]?(\w*)", re.IGNORECASE)
_SHADER_KEYS: Final = tuple(CustomShader.model_fields)
_RESOURCE_KEYS: Final = tuple(Resource.model_fields)
_REQUIRED: Final = tuple(name for name, field in Resource.model_fields.items() if field.is_required())
_OPTIONAL: Final = frozenset({"shader_language", "shader_code", "push_constants", "type", "sampler"})
_PUSH_CONSTANT = re.compile(r"\s*([^\s:,][^:,]*?)\s*:\s*([0-9]{1,9})\s*")
_MOST_FINDINGS: Final = 100


class Reader:
    """A reader of an operation's attributes. ``findings`` are errors and warnings with pointers into the attributes."""

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.findings: list[Diagnostic] = []
        self._resources: dict[str, dict[int, dict[str, object]]] = {"input": {}, "output": {}}
        self._unknown: dict[str, str] = {}

    def read(self, tree: Json, operands: int | None, results: int | None) -> Attributes | None:
        """Read attributes; None if there is an error. ``operands`` and ``results`` are numbers, if known."""
        if not isinstance(tree, dict):
            self._error("SR-JSON-005", "", f"expected an object with the attributes, got {shown(tree)}")
            return None
        shader: CustomShader | None = self._validated(CustomShader, self._sorted(tree), "")
        inputs = self._views("input", operands)
        outputs = self._views("output", results)
        self._check_shared_bindings([*inputs, *outputs])
        if shader is None:
            return None
        code = self._code(shader)
        push_constants = self._push_constants(shader.push_constants)
        if any(finding.severity == "error" for finding in self.findings):
            return None
        x, y, z = shader.workgroup_sizes
        return Attributes(
            operation=self.operation,
            entry_point=shader.entry_point,
            workgroup_sizes=(x, y, z),
            language=shader.shader_language,
            code=code,
            push_constants=push_constants,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            warnings=tuple(self.findings),
        )

    def _sorted(self, tree: dict[str, object]) -> dict[str, object]:
        """Return the shader's keys. Sort the keys of inputs and outputs by index, and note unknown keys."""
        shader: dict[str, object] = {}
        for key, value in tree.items():
            indexed = _INDEXED.fullmatch(key)
            direction, index, name = indexed.groups() if indexed else ("", "0", key)
            if indexed and str(int(index[:10])) != index:
                right = f"{direction}_{index.lstrip('0') or '0'}_{name}"
                help = f"write {shown(right)}" if len(index) < 10 else "number them 0, 1, 2, ..."
                message = f"the index {index:.40} in {shown(key)} is not allowed"
                self._error("SR-CUSTOM-002", f"/{key}", message, help)
            elif name not in (_RESOURCE_KEYS if indexed else _SHADER_KEYS):
                self._warn_of_unknown(key)
            elif value is not None or name not in _OPTIONAL:
                keys = self._resources[direction].setdefault(int(index), {}) if indexed else shader
                keys[name] = value
        return shader

    def _warn_of_unknown(self, key: str) -> None:
        """Warn about a key that resembles a known key."""
        if len(self._unknown) >= _MOST_FINDINGS:
            return
        indexed, almost = _INDEXED.fullmatch(key), _ALMOST_INDEXED.fullmatch(key)
        prefix, name, candidates = "", key, list(_SHADER_KEYS)
        if indexed:
            prefix, name, candidates = f"{indexed[1]}_{indexed[2]}_", indexed[3], list(_RESOURCE_KEYS)
        elif almost:
            direction = "input" if almost[1].lower().startswith("in") else "output"
            candidates += [f"{direction}_{almost[2][:10] or 0}_{name}" for name in _RESOURCE_KEYS]
        for close in close_names(name, candidates, most=1, cutoff=0.8):
            self._unknown.setdefault(f"{prefix}{close}", key)
            message = f"the attribute {shown(key)} is not known and has no effect{did_you_mean([f'{prefix}{close}'])}"
            self._warning("SR-CUSTOM-007", f"/{escape(key)}", message)

    def _validated(self, model: type[Any], values: dict[str, Json], prefix: str) -> Any:
        """Validate keys, each written with ``prefix`` in the file. Return the model, or None after an error."""
        if not model.__pydantic_complete__:
            build(model)
        missing = [name for name, field in model.model_fields.items() if field.is_required() and name not in values]
        for name in missing:
            key = f"{prefix}{name}"
            near = self._unknown.get(key)
            help = f"write it instead of {shown(near)}" if near else None
            self._error("SR-JSON-004", "", f"the required key {shown(key)} is missing", help)
        try:
            return model.model_validate(values)
        except ValidationError as wrong:
            for finding in findings(model, wrong):
                if finding.code != "SR-JSON-004" or finding.pointer:
                    pointer = f"/{prefix}{(finding.pointer or '')[1:]}"
                    self.findings.append(finding._replace(pointer=pointer))
        return None

    def _views(self, direction: str, count: int | None) -> list[View]:
        """Read the inputs or outputs. Return the correct ones in order."""
        described = self._resources[direction]
        indices = sorted(described)
        if count is None:
            gap = next(((expected, index) for expected, index in enumerate(indices) if index != expected), None)
            if gap is not None:
                message = f"{direction}_{gap[1]} is described, but {direction}_{gap[0]} is not"
                help = f"number the {direction}s 0, 1, 2, ... without gaps"
                self._error("SR-CUSTOM-002", self._pointer(direction, gap[1]), message, help)
        else:
            has = counted(count, "operand" if direction == "input" else "result")
            for index in [index for index in range(count) if index not in described][:_MOST_FINDINGS]:
                message = f"the operation has {has}, but the attributes have no {direction}_{index}_… keys"
                help = f"add {listed(f'{direction}_{index}_{name}' for name in _REQUIRED)}"
                self._error("SR-CUSTOM-003", "", message, help)
            for index in [index for index in indices if index >= count][:_MOST_FINDINGS]:
                message = f"{direction}_{index} is described, but the operation has {has}"
                self._error("SR-CUSTOM-003", self._pointer(direction, index), message)
            indices = [index for index in indices if index < count]
        views = [self._view(f"{direction}_{index}", described[index]) for index in indices]
        return [view for view in views if view is not None]

    def _pointer(self, direction: str, index: int) -> str:
        return f"/{direction}_{index}_{next(iter(self._resources[direction][index]))}"

    def _view(self, name: str, values: dict[str, Json]) -> View | None:
        """Read an input or output; return None after an error."""
        before = len(self.findings)
        if isinstance(values.get("sampler"), dict):
            self._check_sampler(values["sampler"], f"/{name}_sampler")
        resource: Resource | None = self._validated(Resource, values, f"{name}_")
        if resource is None:
            return None
        format = find_format(resource.vkformat)
        if format is None:
            message = f"unknown format {shown(resource.vkformat)}"
            self._error("SR-JSON-005", f"/{name}_vkformat", message, format_help(resource.vkformat))
        number = self._descriptor_type(f"/{name}_vkdescriptortype", resource.vkdescriptortype)
        if format is None or number is None or any(finding.severity == "error" for finding in self.findings[before:]):
            return None
        settings = None
        if resource.sampler is not None:
            settings = Settings(*(_SETTINGS[name][getattr(resource.sampler, name)] for name in Settings._fields))
        view = View(name, format, number, resource.descriptorset, resource.binding, settings, resource.type or "")
        self._check_view(view, resource.vkdescriptortype)
        return view

    def _descriptor_type(self, pointer: str, name: str) -> int | None:
        meant = OTHER_DESCRIPTOR_TYPES.get(name, name)
        if meant != name:
            message = f"{shown(name)} is not a descriptor type of Vulkan; {meant} is used"
            self._warning("SR-JSON-008", pointer, message, f"write {meant}")
        return self._number(pointer, meant, DESCRIPTOR_TYPES, prefix="VK_DESCRIPTOR_TYPE_")

    def _number(self, pointer: str, name: str, numbers: Mapping[str, int], prefix: str = "") -> int | None:
        """Look up the number of a Vulkan name; report an unknown name."""
        if name not in numbers:
            close = close_match(f"{prefix}{name.removeprefix(prefix)}", numbers)
            self._error("SR-JSON-005", pointer, f"expected one of {listed(numbers)}, got {shown(name)}{close}")
        return numbers.get(name)

    def _check_sampler(self, sampler: dict[str, object], pointer: str) -> None:
        """Warn about keys that resemble known keys, and report names that Vulkan lacks."""
        for key in [key for key in sampler if key not in Sampler.model_fields][:_MOST_FINDINGS]:
            for close in close_names(key, Sampler.model_fields, most=1, cutoff=0.8):
                message = f"the key {shown(key)} is not known and has no effect{did_you_mean([close])}"
                self._warning("SR-CUSTOM-007", f"{pointer}/{escape(key)}", message)
        for key, numbers in _SETTINGS.items():
            if isinstance(name := sampler.get(key), str):
                self._number(f"{pointer}/{key}", name, numbers)

    def _check_view(self, view: View, descriptor_type: str) -> None:
        """Report contradictions between the keys of an input or output."""
        problem = _format_problem(view.format, view.descriptor_type)
        if problem:
            message = f"{view.format.name} {problem}, but {view.name}_vkdescriptortype is {descriptor_type}"
            self._error("SR-CUSTOM-001", f"/{view.name}_vkformat", message)
        if view.name.startswith("output") and view.descriptor_type in (COMBINED_IMAGE_SAMPLER, UNIFORM_BUFFER):
            message = f"{descriptor_type} is an output, but shaders can only read it"
            help = "use VK_DESCRIPTOR_TYPE_STORAGE_IMAGE or VK_DESCRIPTOR_TYPE_STORAGE_BUFFER"
            self._error("SR-CUSTOM-001", f"/{view.name}_vkdescriptortype", message, help)
        if view.sampler is not None and view.descriptor_type != COMBINED_IMAGE_SAMPLER:
            message = f"{view.name} has a sampler, which {descriptor_type} does not use"
            self._warning("SR-CONFLICT-002", f"/{view.name}_sampler", message, "remove it")
        if view.logical_type.lower() in {"tensor", "image", "buffer"} - {view.kind}:
            message = f"{shown(view.logical_type)} has no effect: {view.name}_vkdescriptortype is {descriptor_type}"
            help = f"write '{view.kind.title()}', or leave it out"
            self._warning("SR-CONFLICT-002", f"/{view.name}_type", message, help)

    def _check_shared_bindings(self, views: Iterable[View]) -> None:
        first: dict[tuple[int, int], str] = {}
        for view in views:
            other = first.setdefault((view.set, view.binding), view.name)
            if other != view.name:
                message = f"{view.name} has the same set {view.set} and binding {view.binding} as {other}"
                self._error("SR-CUSTOM-004", f"/{view.name}_binding", message, "give each view another binding")

    def _code(self, shader: CustomShader) -> bytes | str | None:
        """Return SPIR-V as bytes or a source as text; None for a placeholder."""
        language, code = shader.shader_language, shader.shader_code
        if not code:
            if language:
                message = f"shader_language is {shown(language)}, but there is no shader_code"
                help = "add shader_code; for a placeholder leave both out"
                self._error("SR-CUSTOM-001", "/shader_language", message, help)
            return None
        if not language:
            message = "shader_code is given without a shader_language"
            self._error("SR-CUSTOM-001", "/shader_code", message, 'write "SPIR-V", "GLSL" or "HLSL"')
            return None
        if language == "GLSL" and shader.entry_point != "main":
            message = f"entry_point is {shown(shader.entry_point)}; the entry point of GLSL is always called main"
            self._warning("SR-CUSTOM-008", "/entry_point", message, 'write "main"')
        if language == "SPIR-V":
            return self._module(code)
        directive = own_include(code.encode())
        if directive:
            message = f"the source has an {directive}, but a model does not carry other files"
            help = "insert the text of the file, or embed the compiled module as SPIR-V"
            self._error("SR-CUSTOM-018", "/shader_code", message, help)
        return code

    def _module(self, code: str) -> bytes:
        try:
            data = base64.b64decode("".join(code.split()), validate=True)
        except (binascii.Error, ValueError) as wrong:
            reason = str(wrong)[:1].lower() + str(wrong)[1:100]
            self._error("SR-CUSTOM-005", "/shader_code", f"the text is not base64: {reason}")
            return b""
        if len(data) % 4 or len(data) < 20:
            message = f"the text decodes to {len(data)} bytes; a SPIR-V module has at least five words of 4 bytes"
            self._error("SR-CUSTOM-005", "/shader_code", message)
        elif data[:4] != MAGIC.to_bytes(4, "little"):
            message = f"the text decodes to bytes that begin with {data[:4].hex(' ')}; SPIR-V begins with 03 02 23 07"
            self._error("SR-CUSTOM-005", "/shader_code", message)
        return data

    def _push_constants(self, text: str) -> tuple[PushConstant, ...]:
        """Parse a list of push constants, which follow each other in memory."""
        constants: list[PushConstant] = []
        problems: list[str] = []
        offset = 0
        for part in text.split(",") if text.strip() else ():
            pair = _PUSH_CONSTANT.fullmatch(part)
            if pair is None:
                problems.append(f"expected 'name: size', got {shown(part.strip())}")
                continue
            name, size = pair[1], int(pair[2])
            if size < 1:
                problems.append(f"the push constant {shown(name)} has {size} bytes, expected at least 1")
            constants.append(PushConstant(name, size, offset))
            offset += size
        for name, count in Counter(constant.name for constant in constants).items():
            if count > 1:
                problems.append(f"the push constant {shown(name)} is listed twice")
        if offset > MOST_BYTES and not problems:
            problems.append(f"the push constants take {offset} bytes; no device has more than {MOST_BYTES}")
        for problem in problems:
            help = 'write names and sizes in bytes, such as "scale: 4, bias: 4"'
            self._error("SR-CUSTOM-006", "/push_constants", problem, help)
        return tuple(constants)

    def _error(self, code: str, pointer: str, message: str, help: str | None = None) -> None:
        self.findings.append(error(code, pointer, message, help))

    def _warning(self, code: str, pointer: str, message: str, help: str | None = None) -> None:
        self.findings.append(warning(code, pointer, message, help))


def _format_problem(format: Format, descriptor_type: int) -> str:
    """Explain why a descriptor type cannot have a format; empty if it can."""
    if descriptor_type == TENSOR:
        return "" if format.components == 1 and not format.is_packed else f"has {format.components} components"
    if descriptor_type == STORAGE_IMAGE and format.is_compressed:
        return "is compressed"
    if descriptor_type in (STORAGE_IMAGE, COMBINED_IMAGE_SAMPLER) and "stencil" in format.aspects:
        return "has a stencil"
    return ""
