"""Comparison of compiled shaders with their attributes: entry point, workgroups, bindings, push constants, types."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from scenario_runner.checks.bindings import Slot, described, slots_of
from scenario_runner.checks.entry_points import check_blocks, check_workgroup, find_entry_point
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic, error, note, warning
from scenario_runner.shaders.compile import compile_each
from scenario_runner.shaders.compilers.search import Compiled
from scenario_runner.shaders.source import CompileRequest
from scenario_runner.shaders.spirv import Interface, Module, read_module
from scenario_runner.shaders.spirv_val import check_modules
from scenario_runner.tosa.attribute_parsing import with_places
from scenario_runner.tosa.model import Attributes, Types
from scenario_runner.tosa.variables import (
    check_arrays,
    check_push_constants,
    check_types,
    check_variables,
    views_and_types,
)

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

    Models run so many workgroups, although the description of the attributes calls the key a local size.
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
    cache_dir: str | None = None,
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
    compiled = iter(compile_each(sources, compiler=compiler, cache_dir=cache_dir, use_cache=use_cache))
    numbered = enumerate(shaders)
    binaries = {str(i): (_label(shader), shader.code) for i, shader in numbered if isinstance(shader.code, bytes)}
    complaints = check_modules(binaries, cache_dir=cache_dir, use_cache=use_cache) if binaries else {}
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
