"""Validation of scenario files without running them: the findings of all rules, each at its place. No GPU is touched.

1. The text is read; errors of the file stand alone.
2. `plan.resolve.examine` collects everything that a run would find.
3. What a run finds later or not at all is added: images that cannot be decoded, a device's limits and features,
   missing barriers (`checks.hazards`, given the memory that each command reads and writes).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from scenario_runner.checks.bindings import Slot, slots_of
from scenario_runner.checks.hazards import Barriers, Boundary, Covered, Step, Use, Work, find_hazards
from scenario_runner.codes import CODES, Code
from scenario_runner.diagnostics import Diagnostic, Severity
from scenario_runner.errors import FileError, LimitError, ScenarioRunnerError, error_class
from scenario_runner.files.source import confined
from scenario_runner.plan.destinations import at_pointer
from scenario_runner.plan.plan import AnyBarrier, Operation, Plan, ResourcePlan
from scenario_runner.plan.records import CompilerOptions, Descriptor, Dispatch
from scenario_runner.plan.resolve import Examination, examine
from scenario_runner.plan.shaders import LoadedShader
from scenario_runner.plan.sources import ImageFileSource
from scenario_runner.plan.special_records import Draw, GraphDispatch, OpticalFlowDispatch
from scenario_runner.scenario import Scenario, load
from scenario_runner.spirv import DescriptorBinding

if TYPE_CHECKING:
    from scenario_runner.reported_device import ReportedDevice


SCHEMA = 1
"""Version of the JSON that `as_json` gives; a key that changes its meaning raises it."""


class Validation(NamedTuple):
    """One file's findings, in the order of the file. ``exit_code`` is that of the error a run would end with, or 0.

    ``resources`` and ``commands`` count the entries, 0 where the file could not be read as a scenario.
    """

    file: str
    findings: tuple[Diagnostic, ...]
    resources: int
    commands: int
    exit_code: int

    def count(self, severity: Severity) -> int:
        """Count the findings of this severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The validation as a JSON object."""
        return {
            "file": self.file,
            "valid": not self.exit_code,
            "exit_code": self.exit_code,
            "resources": self.resources,
            "commands": self.commands,
            "counts": {
                "error": self.count("error"),
                "warning": self.count("warning"),
                "note": self.count("note"),
            },
            "findings": [finding.as_json() for finding in self.findings],
        }


class Options(NamedTuple):
    """Options of a validation: ``hazards`` looks for missing barriers, ``device`` has limits and features to compare
    with, ``sandbox`` refuses files outside of its folder, ``strict`` takes warnings for errors.

    ``output_dir`` is the base of relative ``dst`` paths, by default the scenario's folder.
    """

    compiler: CompilerOptions = CompilerOptions()
    hazards: bool = False
    device: ReportedDevice | None = None
    output_dir: str | None = None
    sandbox: bool = False
    strict: bool = False


def validate_file(path: str | os.PathLike[str], options: Options | None = None) -> Validation:
    """Find everything that is wrong with one scenario file, the text of the file included."""
    options = options or Options()
    file = os.fspath(path)
    with ExitStack() as stack:
        if options.sandbox:
            folders = [os.path.dirname(os.path.abspath(file))]
            if options.output_dir is not None:
                folders.append(options.output_dir)
            stack.enter_context(confined(folders, [file]))
        try:
            scenario = load(file)
        except ScenarioRunnerError as error:
            return Validation(file, error.problems, 0, 0, error.exit_code)
        return inspect(scenario, file, options)


def inspect(scenario: Scenario, file: str, options: Options) -> Validation:
    """Find everything that is wrong with a scenario that was read already.

    Raises LimitError, which says nothing about the scenario.
    """

    examination = examine(scenario, options.compiler, options.output_dir)
    findings: dict[tuple[object, ...], Diagnostic] = {}
    exit_code = 0

    def add(diagnostic: Diagnostic) -> None:
        nonlocal exit_code
        if options.strict and diagnostic.severity == "warning":
            diagnostic = diagnostic._replace(severity="error")
        if diagnostic.severity == "error":
            exit_code = exit_code or error_class(diagnostic.code).exit_code
        findings.setdefault((diagnostic.pointer, diagnostic.message), diagnostic)

    for error in examination.problems.errors:
        if error_class(error.code) is LimitError:
            raise LimitError(error)
        add(error)
    for each in (*scenario.warnings, *examination.problems.warnings):
        add(each)
    for each in _more(scenario, examination, options):
        add(scenario.placed(each))
    if not exit_code:
        for each in examination.problems.otherwise:
            add(each)
    in_order = sorted(findings.values(), key=lambda each: (each.line or 0, each.column or 0))
    return Validation(file, tuple(in_order), len(scenario.resources), len(scenario.commands), exit_code)


def _more(scenario: Scenario, examination: Examination, options: Options) -> Iterable[Diagnostic]:
    if examination.plan is not None:
        yield from _undecodable(examination.plan)
    if options.hazards:
        yield from find_hazards(steps_of(scenario, examination))
    if options.device is not None and examination.plan is not None:
        yield from options.device.findings(examination.plan)


def _undecodable(plan: Plan) -> Iterator[Diagnostic]:
    """The problems of image files that are decoded as a whole: a run finds them when it reads the texels."""
    for resource in plan.resources.values():
        source = resource.source
        if isinstance(source, ImageFileSource) and not source.divisible:
            try:
                source.read_into(memoryview(bytearray(source.size_bytes)))
            except FileError as error:
                for problem in error.problems:
                    yield at_pointer(problem, f"{resource.pointer}/src")


_STAGES = {"GLCompute": "compute", "Vertex": "vertex", "Fragment": "fragment"}


def steps_of(scenario: Scenario, examination: Examination) -> Iterator[Step]:
    """Every command as a step, nothing where there is no plan.

    A command that could not be planned uses nothing: what is wrong with it is reported elsewhere.
    """
    plan = examination.plan
    if plan is None:
        return
    planned: dict[int, list[Operation]] = {}
    for frame in plan.frames:
        for operation in frame.operations:
            planned.setdefault(operation.command, []).append(operation)
    memory = _Memory(scenario, plan.resources)
    uses = _Uses(plan, examination.shaders, memory)
    for index, each in enumerate(scenario.commands):
        command: Any = each
        pointer = scenario.command_pointer(index)
        operations = planned.get(index, ())
        if command.kind == "mark_boundary":
            yield Boundary()
        elif command.kind == "dispatch_barrier":
            for operation in operations:
                if operation.kind == "barrier":
                    yield Barriers(pointer, tuple(map(memory.covered, operation.barriers)))
        else:
            if not operations:
                yield Work(pointer, command.work, (), command.implicit_barrier)
            for operation in operations:
                if operation.kind != "barrier":
                    yield Work(pointer, command.work, uses.of(operation), operation.barrier_after)


class _Memory:
    """The place of each resource of a plan: the memory object, and the part of it in bytes; for an image with memory of
    its own, in mip levels."""

    def __init__(self, scenario: Scenario, resources: Mapping[str, ResourcePlan]) -> None:
        self._resources = resources
        # A value of a model may be seen in several ways; messages name the resource that the scenario binds for it.
        declared = (resources[resource.uid] for resource in scenario.resources if resource.uid in resources)
        self._declared: dict[tuple[str | None, int], ResourcePlan] = {}
        self._uids = set()
        for plan in declared:
            self._uids.add(plan.uid)
            if plan.group is not None:
                self._declared.setdefault((plan.group, plan.offset_bytes), plan)

    def use(
        self, uid: str, level: int | None, stage: str, reads: bool, writes: bool, atomic: bool = False
    ) -> Iterator[Use]:
        """The use of a resource, of an image one mip level or all (None); nothing for one that is not planned."""
        plan = self._resources.get(uid)
        if plan is None:
            return
        levels = None if level is None else (level, level + 1)
        memory, first, end, unit = self._range(plan, levels)
        if uid not in self._uids:
            plan = self._declared.get((plan.group, plan.offset_bytes), plan)
        base = plan.offset_bytes if plan.group is not None else 0
        yield Use(plan.uid, plan.kind, memory, first, end, stage, reads, writes, atomic, unit, base)

    def covered(self, barrier: AnyBarrier) -> Covered:
        """A barrier with the part of memory that it is about."""
        words = (barrier.src_stages, barrier.dst_stages, barrier.src_access, barrier.dst_access)
        if barrier.kind == "memory":
            return Covered(*words)
        plan = self._resources[barrier.uid]
        if barrier.kind == "image":
            levels = (barrier.base_level, barrier.base_level + barrier.level_count)
            memory, first, end, unit = self._range(plan, levels)
            changes: tuple[Use, ...] = ()
            if barrier.old_layout != barrier.new_layout:
                changes = (Use(plan.uid, "image", memory, first, end, "transition", False, True, unit=unit),)
            return Covered(*words, memory, first, end, f"image barrier {barrier.barrier!r}", changes)
        memory, first, end, _ = self._range(plan, None)
        if barrier.kind == "buffer":
            first += barrier.offset_bytes
            end = first + barrier.size_bytes
        return Covered(*words, memory, first, end)

    @staticmethod
    def _range(plan: ResourcePlan, levels: tuple[int, int] | None) -> tuple[str, int, int, str]:
        """Memory object, first and end, and what these count; ``levels`` are those of an image, None for all.

        In a group the levels of an image are taken as if they lay one behind the other.
        """
        if plan.kind == "image":
            first, end = levels or (0, plan.mips)
            if plan.group is None:
                return f"uid {plan.uid}", first, end, "mip level"
            parts = [part for part in plan.parts if first <= part.level < end]
            first, end = parts[0].offset_bytes, parts[-1].end_bytes
        else:
            first, end = 0, plan.size_bytes
        if plan.group is None:
            return f"uid {plan.uid}", first, end, "byte"
        return f"group {plan.group}", plan.offset_bytes + first, plan.offset_bytes + end, "byte"


class _Uses:
    """The accesses of a plan's operations to memory."""

    def __init__(self, plan: Plan, shaders: Mapping[str, LoadedShader], memory: _Memory) -> None:
        self._plan = plan
        self._shaders = shaders
        self._memory = memory
        self._slots: dict[str, dict[tuple[int, int], Slot]] = {}
        self._known: dict[Hashable, tuple[Use, ...]] = {}

    def of(self, operation: Dispatch | GraphDispatch | OpticalFlowDispatch | Draw) -> tuple[Use, ...]:
        """The uses of a dispatch; those of a draw are its shaders' and its attachments."""
        targets = operation.targets if operation.kind == "draw" else ()
        key = (operation.kind, operation.pipeline, operation.descriptors, targets)
        if key not in self._known:
            descriptors = self._plan.descriptor_lists[operation.descriptors].descriptors
            if operation.kind == "dispatch":
                shader = self._shaders[self._plan.pipelines[operation.pipeline].label]
                uses = self._of_shaders((shader,), descriptors)
            elif operation.kind == "draw":
                stages = self._plan.graphics_pipelines[operation.pipeline][:2]
                uses = self._of_shaders([self._shaders[stage.label] for stage in stages], descriptors)
            else:
                uses = self._of_graph(operation.pipeline, descriptors)
            attached = (self._memory.use(target.uid, target.level, "attachment", False, True) for target in targets)
            self._known[key] = (*uses, *chain.from_iterable(attached))
        return self._known[key]

    def _of_shaders(self, shaders: Iterable[LoadedShader], descriptors: Iterable[Descriptor]) -> Iterator[Use]:
        tables = [(shader, self._slots_of(shader)) for shader in shaders]
        for descriptor in descriptors:
            for shader, slots in tables:
                slot = slots.get((descriptor.set, descriptor.binding))
                variables = [] if slot is None else [each for _, each in slot.variables if each.reads or each.writes]
                if not variables:
                    continue
                stage = _STAGES.get(shader.entry.execution_model, "compute")
                reads = any(variable.reads for variable in variables)
                writes = any(variable.writes and variable.writable for variable in variables)
                atomic = all(variable.atomic for variable in variables)
                extent_bytes = _extent(variables)
                for use in self._memory.use(descriptor.uid, descriptor.level, stage, reads, writes, atomic):
                    if extent_bytes is not None and use.what == "buffer":
                        use = use._replace(end=min(use.end, use.first + extent_bytes))
                    yield use

    def _of_graph(self, pipeline: int, descriptors: Iterable[Descriptor]) -> Iterator[Use]:
        resources = {
            (resource.set, resource.binding): resource for resource in self._plan.graph_pipelines[pipeline].resources
        }
        for descriptor in descriptors:
            found = resources.get((descriptor.set, descriptor.binding))
            if found is not None:
                yield from self._memory.use(descriptor.uid, descriptor.level, "graph", found.reads, found.writes)

    def _slots_of(self, shader: LoadedShader) -> dict[tuple[int, int], Slot]:
        """(set, binding) → the variables of a shader there."""
        if shader.uid not in self._slots:
            self._slots[shader.uid] = slots_of([(shader.uid, shader.interface)], "")[0]
        return self._slots[shader.uid]


def _extent(variables: Iterable[DescriptorBinding]) -> int | None:
    """The bytes of a buffer that variables can touch: those of their blocks, unless one ends in a runtime array."""
    extents = [
        None if variable.block is None or variable.block.runtime_stride_bytes is not None else variable.block.size_bytes
        for variable in variables
    ]
    known = [extent for extent in extents if extent is not None]
    return max(known) if known and len(known) == len(extents) else None


_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(validations: Sequence[Validation], version: str) -> dict[str, Any]:
    """One run of this ``version`` of the program with the findings of several files; rules are the codes that occur."""
    used = sorted({finding.code for validation in validations for finding in validation.findings})
    rules = [_rule(CODES[code]) for code in used]
    indices = {code: index for index, code in enumerate(used)}
    return {
        "$schema": _SARIF,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "scenario-runner", "version": version, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(finding, validation.file, indices[finding.code])
                    for validation in validations
                    for finding in validation.findings
                ],
            }
        ],
    }


def _rule(code: Code) -> dict[str, Any]:
    return {
        "id": code.code,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.meaning},
        "help": {"text": f"{code.fix} Source: {code.source}"},
        "defaultConfiguration": {"level": code.severity},
    }


def _result(finding: Diagnostic, file: str, rule: int) -> dict[str, Any]:
    place: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(finding.path or file)}}}
    if finding.line is not None:
        region = {"startLine": finding.line}
        if finding.column is not None:
            region["startColumn"] = finding.column
        place["physicalLocation"]["region"] = region
    if finding.pointer:
        place["logicalLocations"] = [{"fullyQualifiedName": finding.pointer, "kind": "value"}]
    text = f"{finding.message}\n{finding.help}" if finding.help else finding.message
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": text},
        "locations": [place],
    }


def _uri(path: str) -> str:
    """A path as a URI reference: relative ones stay relative."""
    plain = path.replace("\\", "/")
    return f"file://{quote(plain)}" if plain.startswith("/") else quote(plain)
