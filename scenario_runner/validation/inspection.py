"""One scenario file through all rules.

1. The text is read; what is wrong with it stands alone, since nothing can be said of the rest.
2. `plan.resolve.examine` looks at everything that a run would look at, without stopping.
3. What a run finds later or not at all is added: images that cannot be decoded, a device's limits and features,
   missing barriers.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError, LimitError, ScenarioRunnerError, error_class
from scenario_runner.plan.model.records import CompilerOptions
from scenario_runner.validation.model import Validation

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.plan.resolve import Examination
    from scenario_runner.scenario import Scenario
    from scenario_runner.validation.reported_device import ReportedDevice


class Options(NamedTuple):
    """What to look at: ``hazards`` for missing barriers, ``device`` for one device's limits and features, ``sandbox``
    for files outside of the scenario's folder, ``strict`` to take warnings for errors.

    ``output_dir`` is the base of relative ``dst`` paths, by default the scenario's folder.
    """

    compiler: CompilerOptions = CompilerOptions()
    hazards: bool = False
    device: ReportedDevice | None = None
    output_dir: str | None = None
    sandbox: bool = False
    strict: bool = False


def validate_file(path: str | os.PathLike[str], options: Options | None = None) -> Validation:
    """Everything that is wrong with one scenario file; what is wrong with the file itself is a finding as well."""
    # Tens of thousands of small objects that stay until the end would set off many useless collections.
    collecting = gc.isenabled()
    gc.disable()
    try:
        options = options or Options()
        file = os.fspath(path)
        if not options.sandbox:
            return _validate(file, options)
        from scenario_runner.files.sandbox import confined

        folders = [os.path.dirname(os.path.abspath(file))]
        if options.output_dir is not None:
            folders.append(options.output_dir)
        with confined(folders, [file]):
            return _validate(file, options)
    finally:
        if collecting:
            gc.enable()


def _validate(file: str, options: Options) -> Validation:
    from scenario_runner.scenario import load

    try:
        scenario = load(file)
    except ScenarioRunnerError as error:
        return Validation(file, error.problems, 0, 0, error.exit_code)
    return inspect(scenario, file, options)


def inspect(scenario: Scenario, file: str, options: Options) -> Validation:
    """Everything that is wrong with a scenario that was read already.

    Raises LimitError, which says nothing about the scenario.
    """
    from scenario_runner.plan.resolve import examine

    examination = examine(scenario, options.compiler, options.output_dir)
    found: dict[tuple[object, ...], Diagnostic] = {}
    exit_code = 0

    def add(diagnostic: Diagnostic) -> None:
        nonlocal exit_code
        if options.strict and diagnostic.severity == "warning":
            diagnostic = diagnostic._replace(severity="error")
        if diagnostic.severity == "error":
            exit_code = exit_code or error_class(diagnostic.code).exit_code
        found.setdefault((diagnostic.pointer, diagnostic.message), diagnostic)

    for each in examination.problems.errors:
        if error_class(each.code) is LimitError:
            raise LimitError(each)
        add(each)
    for each in (*scenario.warnings, *examination.problems.warnings):
        add(each)
    for each in _more(scenario, examination, options):
        add(scenario.placed(each))
    if not exit_code:
        for each in examination.problems.otherwise:
            add(each)
    in_order = sorted(found.values(), key=lambda each: (each.line or 0, each.column or 0))
    return Validation(file, tuple(in_order), len(scenario.resources), len(scenario.commands), exit_code)


def _more(scenario: Scenario, examination: Examination, options: Options) -> Iterable[Diagnostic]:
    if examination.plan is not None:
        yield from _undecodable(examination.plan)
    if options.hazards:
        from scenario_runner.checks.hazards import find_hazards
        from scenario_runner.validation.hazard_steps import steps_of

        yield from find_hazards(steps_of(scenario, examination))
    if options.device is not None and examination.plan is not None:
        yield from options.device.findings(examination.plan)


def _undecodable(plan: Plan) -> Iterator[Diagnostic]:
    """The problems of image files that are decoded as a whole: a run finds them when it reads the texels."""
    from scenario_runner.plan.destinations import at_pointer
    from scenario_runner.plan.sources import ImageFileSource

    for resource in plan.resources.values():
        source = resource.source
        if isinstance(source, ImageFileSource) and not source.divisible:
            try:
                source.read_into(memoryview(bytearray(source.size_bytes)))
            except FileError as error:
                for problem in error.problems:
                    yield at_pointer(problem, f"{resource.pointer}/src")
