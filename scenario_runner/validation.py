"""Validation of scenario files without a run or a GPU. All rules report findings with places.

1. The loader reads the text. Text errors stand alone.
2. `examine` plans the scenario and collects every error a run would end with.
3. Further rules look for undecodable images, exceeded limits and missing features on a device, and missing barriers.
   `checks.hazards` gets the memory each command reads and writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from scenario_runner.checks.hazards import Barriers, Covered, Step, Use, Work, find_hazards
from scenario_runner.errors import FileError, LimitError, ScenarioRunnerError, error_class, exit_code_of
from scenario_runner.errors.diagnostic import Diagnostic, Severity, note, warnings_as_errors
from scenario_runner.errors.text import counted
from scenario_runner.files.sandbox import allowing, confined
from scenario_runner.plan.accesses import Accesses, ResourceAccess, work_name
from scenario_runner.plan.limits import unusual_offsets
from scenario_runner.plan.plan import AnyBarrier, Barrier, Operation, Plan, ResourcePlan
from scenario_runner.plan.records import BufferBarrier, BufferPlan, CompilerOptions, ImageBarrier, MemoryBarrier
from scenario_runner.plan.resolve import resolve_with_context
from scenario_runner.plan.shader_modules import LoadedShader
from scenario_runner.plan.sources import ImageFileSource
from scenario_runner.plan.vertex_input import indices_past_the_end
from scenario_runner.run.output_files import at_pointer, mixed_outputs, wrong_destinations
from scenario_runner.scenario import DispatchBarrier, MarkBoundary, Scenario, load
from scenario_runner.scenario.entries import Entry, keys_beyond_reference
from scenario_runner.scenario.scenario import Problems

if TYPE_CHECKING:
    from scenario_runner.run.reported_device import ReportedDevice

SCHEMA = 1
"""The JSON version in `as_json`. Raise it when a key's meaning changes."""


class Validation(NamedTuple):
    """Findings about a file, in the file's order. ``exit_code`` is a run's exit code for these errors.

    ``resources`` and ``commands`` count the entries; both are 0 for a file without a scenario.
    """

    file: str
    findings: tuple[Diagnostic, ...]
    resources: int
    commands: int
    exit_code: int

    def count(self, severity: Severity) -> int:
        """Count findings with this severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def as_json(self) -> dict[str, object]:
        """Return the validation as a JSON object."""
        return {
            "file": self.file,
            "valid": not self.exit_code,
            "exit_code": self.exit_code,
            "resources": self.resources,
            "commands": self.commands,
            "counts": {severity: self.count(severity) for severity in get_args(Severity)},
            "findings": [finding.as_json() for finding in self.findings],
        }


class Options(NamedTuple):
    """Validation options.

    ``hazards`` looks for all possible missing barriers. ``device`` has limits and features to compare with.
    ``output_dir`` is the base of relative ``dst`` paths, by default the scenario's folder. ``sandbox`` refuses files
    outside of the scenario's folder. ``strict`` turns warnings into errors.
    """

    compiler: CompilerOptions = CompilerOptions()
    hazards: bool = False
    device: ReportedDevice | None = None
    output_dir: str | None = None
    sandbox: bool = False
    strict: bool = False


def validate(
    path: str | os.PathLike[str], *, hazards: bool = False, strict: bool = False, sandbox: bool = False
) -> Validation:
    """Find all errors and warnings about a scenario file, without a device.

    ``hazards`` looks for all possible missing barriers. ``strict`` turns warnings into errors, and
    ``sandbox`` refuses files outside of the scenario's folder. ``findings`` of the result has each finding, and
    ``exit_code`` is 0 for a valid file.
    """
    return validate_file(path, Options(hazards=hazards, strict=strict, sandbox=sandbox))


def validate_file(
    path: str | os.PathLike[str], options: Options | None = None, load: Callable[[Any], Scenario] = load
) -> Validation:
    """Find all errors and warnings about a scenario file. ``load`` reads the file.

    Raises LimitError if the system has too few resources to tell.
    """
    options = options or Options()
    file = os.fspath(path)
    try:
        scenario = load(path)
    except ScenarioRunnerError as error:
        return Validation(file, error.problems, 0, 0, error.exit_code)
    with ExitStack() as stack:
        if options.sandbox:
            stack.enter_context(confined([os.path.dirname(os.path.abspath(file))], [file]))
            stack.enter_context(allowing(options.output_dir))
        findings = _findings(scenario, options)
    unique: dict[tuple[object, ...], Diagnostic] = {}
    for finding in findings:
        unique.setdefault((finding.pointer, finding.message), finding)
    in_order = sorted(unique.values(), key=lambda finding: (finding.line or 0, finding.column or 0))
    counts = len(scenario.resources), len(scenario.commands)
    return Validation(file, tuple(in_order), *counts, exit_code_of(findings))


def _findings(scenario: Scenario, options: Options) -> list[Diagnostic]:
    """Find all errors and warnings about a scenario; errors ending a run come first."""
    examination = examine(scenario, options.compiler, options.output_dir)
    problems, plan = examination.problems, examination.plan
    for error in problems.errors:
        if error_class(error.code) is LimitError:
            raise LimitError(error)
    more = list(_beyond_reference(scenario))
    if plan is not None:
        more += _undecodable(plan)
        more += _wrong_indices(plan, examination)
    planned = problems.warnings
    if options.hazards:  # the full analysis finds the certain hazards again
        planned = [finding for finding in planned if not finding.code.startswith("SR-HAZARD")]
        more += find_hazards(steps_of(scenario, examination))
    if plan is not None:
        more += unusual_offsets(plan) if options.device is None else options.device.findings(plan)
    findings = [*problems.errors, *scenario.warnings, *planned, *map(scenario.placed, more)]
    strict = warnings_as_errors if options.strict else list
    findings = strict(findings)
    return findings if exit_code_of(findings) else findings + strict(problems.fallback_errors)


class Examination(NamedTuple):
    """A plan with every error found while making it.

    ``plan`` has the planned parts; None if planning made none. ``shaders`` are the loaded shaders by uid.
    """

    plan: Plan | None
    problems: Problems
    shaders: Mapping[str, LoadedShader] = {}


def examine(scenario: Scenario, compiler: CompilerOptions, output_dir: str | None) -> Examination:
    """Plan a scenario without stopping at errors, and check ``dst`` files."""
    problems = Problems(scenario)
    try:
        plan, context, _ = resolve_with_context(scenario, {}, (), output_dir, compiler, problems)
    except ScenarioRunnerError as error:
        noted = set(problems.errors)
        error.problems = tuple(problem for problem in error.problems if problem not in noted)
        problems.add_error(error, "")
        return Examination(None, problems)
    problems.report(wrong_destinations(plan))
    mixed = mixed_outputs(plan)
    if mixed is not None:
        problems.report([mixed])
    return Examination(plan, problems, context.shaders)


def _beyond_reference(scenario: Scenario) -> Iterator[Diagnostic]:
    """Yield a note that lists the keys which the reference runner lacks, at the place of the first key."""
    entries: list[tuple[str, Entry]] = []
    entries += [(scenario.resource_pointer(index), entry) for index, entry in enumerate(scenario.resources)]
    entries += [(scenario.command_pointer(index), entry) for index, entry in enumerate(scenario.commands)]
    places = [place for pointer, entry in entries for place in keys_beyond_reference(entry, entry.kind, pointer)]
    if places:
        names = sorted({name for name, _ in places})
        message = f"{counted(len(names), 'key')} beyond the reference runner's format: {', '.join(names)}"
        yield note("SR-JSON-012", places[0][1], message, "other runners ignore these keys, or reject the file")


def _undecodable(plan: Plan) -> Iterator[Diagnostic]:
    """Decode image files a run would decode whole, and yield the problems found."""
    for resource in plan.resources.values():
        source = resource.source
        if isinstance(source, ImageFileSource) and not source.divisible:
            try:
                source.read_into(memoryview(bytearray(source.size_bytes)))
            except FileError as error:
                for problem in error.problems:
                    yield at_pointer(problem, f"{resource.pointer}/src")


def _wrong_indices(plan: Plan, examination: Examination) -> Iterator[Diagnostic]:
    """Yield warnings about indices of draws that no command changes."""
    if plan.graphics_pipelines:
        accesses = Accesses(plan, examination.shaders)
        yield from indices_past_the_end(plan, accesses.changed_by)


def steps_of(scenario: Scenario, examination: Examination) -> Iterator[Step]:
    """Yield all commands' steps, or nothing without a plan. A command with errors uses no memory."""
    plan = examination.plan
    if plan is None:
        return
    planned: dict[int, list[Operation]] = {}
    for frame in plan.frames:
        for operation in frame.operations:
            planned.setdefault(operation.command, []).append(operation)
    memory = _Memory(scenario, plan.resources)
    accesses = Accesses(plan, examination.shaders)
    for index, scenario_command in enumerate(scenario.commands):
        command: Any = scenario_command
        pointer = scenario.command_pointer(index)
        operations = planned.get(index, ())
        if isinstance(command, MarkBoundary):  # all earlier work has finished
            yield Work(pointer, command.kind, (), True)
        elif not isinstance(command, DispatchBarrier) and not operations:
            yield Work(pointer, work_name(command), (), command.implicit_barrier)
        for operation in operations:
            if not isinstance(operation, Barrier):
                uses = tuple(map(memory.use, accesses.accesses_of(operation)))
                yield Work(pointer, work_name(command), uses, operation.barrier_after)
            elif isinstance(command, DispatchBarrier):
                yield Barriers(pointer, tuple(map(memory.covered, operation.barriers)))


class _Memory:
    """Finds the memory of resources: an object, and a part in bytes; mip levels for an image with separate memory."""

    def __init__(self, scenario: Scenario, resources: Mapping[str, ResourcePlan]) -> None:
        self._resources = resources
        self._uids = {resource.uid for resource in scenario.resources}
        # A model's value may have several views. Messages name the scenario's bound resource.
        self._declared: dict[tuple[str, int], ResourcePlan] = {}
        for uid, plan in resources.items():
            if uid in self._uids and plan.group is not None:
                self._declared.setdefault((plan.group, plan.offset_bytes), plan)

    def use(self, access: ResourceAccess) -> Use:
        """Return an access's memory use."""
        uid, level, stage, reads, writes, atomic, extent_bytes, offset_bytes = access
        plan = self._resources[uid]
        (memory, first, end), unit = self._part(plan, None if level is None else (level, level + 1))
        base = 0
        if plan.group is not None:
            base = plan.offset_bytes
            if uid not in self._uids:
                plan = self._declared.get((plan.group, base), plan)
        if isinstance(plan, BufferPlan):
            first += offset_bytes
            end = end if extent_bytes is None else min(end, first + extent_bytes)
        return Use(plan.uid, plan.kind, memory, first, end, stage, reads, writes, atomic, unit, base)

    def covered(self, barrier: AnyBarrier) -> Covered:
        """Return the memory part covered by a barrier."""
        scope = barrier.scope
        if isinstance(barrier, MemoryBarrier):
            return Covered(*scope)
        plan = self._resources[barrier.uid]
        if isinstance(barrier, ImageBarrier):
            levels = (barrier.base_level, barrier.base_level + barrier.level_count)
            part, unit = self._part(plan, levels)
            changes: tuple[Use, ...] = ()
            if barrier.old_layout != barrier.new_layout:
                changes = (Use(plan.uid, "image", *part, "transition", False, True, unit=unit),)
            return Covered(*scope, *part, f"image barrier {barrier.barrier!r}", changes)
        (memory, first, end), _ = self._part(plan, None)
        if isinstance(barrier, BufferBarrier):
            first += barrier.offset_bytes
            end = first + barrier.size_bytes
        return Covered(*scope, memory, first, end)

    @staticmethod
    def _part(plan: ResourcePlan, levels: tuple[int, int] | None) -> tuple[tuple[str, int, int], str]:
        """Return memory object, first and end, and their unit. ``levels`` chooses image levels; None takes all.

        In a memory group, an image's levels count as if they lay in sequence.
        """
        first, end = 0, plan.size_bytes
        if plan.is_image:
            first, end = levels or (0, plan.mips)
            if plan.group is None:
                return (f"uid {plan.uid}", first, end), "mip level"
            parts = [part for part in plan.parts if first <= part.level < end]
            first, end = parts[0].offset_bytes, parts[-1].end_bytes
        if plan.group is None:
            return (f"uid {plan.uid}", first, end), "byte"
        return (f"group {plan.group}", plan.offset_bytes + first, plan.offset_bytes + end), "byte"
